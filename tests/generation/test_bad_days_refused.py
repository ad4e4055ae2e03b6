"""Bad days of a submit that was answered: refused, told to slow down, unavailable, and an image that cannot be loaded."""

from itertools import pairwise
from typing import Any

import pytest
import requests

from billing.models import Entry, Grant
from generation import review, runner
from generation.models import Job, ProviderAccount
from orders.models import Mail
from tests.generation.bad_days import (
    alarms,
    assert_books_balance,
    generations,
    last,
    most_in_flight,
    now,
    page_of,
    posts,
    sweep,
    until,
)
from tests.shop import Shop
from tests.shop_fixture import wait_for

NOWHERE = "http://127.0.0.1:9"


def test_refused_photo_gives_the_credit_back(shop: Shop) -> None:
    job = shop.paid()
    [grant] = Grant.objects.all()
    shop.sandbox.fault("content_policy_422")
    assert runner.advance(job.pk) == "final"
    assert (now(job).status, now(job).reason) == ("failed", "moderation")
    grant.refresh_from_db()
    assert (grant.credits, grant.available, grant.held) == (1, 1, 0)
    assert list(Entry.objects.order_by("id").values_list("kind", "grant")) == [
        (kind, grant.pk) for kind in ("granted", "held", "released")
    ]
    assert_books_balance()

    shop.sweep()
    assert Mail.objects.filter(status="sent").count() == 2
    page = requests.get(shop.url + page_of(job), timeout=30).text
    assert "We cannot use this photo" in page
    assert "Your credit is back" in page
    sweep(shop, minutes=3)
    assert posts(shop) == 1


@pytest.mark.parametrize(("retry_after", "waits"), [(None, 0), (300, 4)])
def test_429_waits_and_goes_on(shop: Shop, retry_after: int | None, waits: int) -> None:
    job = shop.paid()
    shop.sandbox.fault("rate_limited_429", retry_after=retry_after)
    runner.advance(job.pk)
    for _ in range(5):
        assert runner.advance(job.pk) == "told to slow down"
    sweep(shop, minutes=waits)
    assert (now(job).status, posts(shop)) == ("queued", 1)
    until(shop, job)
    assert (len(generations(shop, job)), posts(shop)) == (1, 2)
    assert alarms("unavailable") == alarms("out_of_credits") == 0


@pytest.mark.parametrize("retry_after", ["inf", "nan", "-5", "1e300", "Wed, 21 Oct 2026 07:28:00 GMT"])
def test_429_with_a_time_that_is_none(shop: Shop, retry_after: str) -> None:
    job = shop.paid()
    shop.sandbox.fault("rate_limited_429", retry_after=retry_after)
    assert runner.advance(job.pk) == "RateLimited"
    assert runner.advance(job.pk) == "told to slow down"
    shop.age(3600)
    until(shop, job)


def test_503_for_an_hour(shop: Shop) -> None:
    first, *others = jobs = [shop.paid(email=f"{n}@example.com") for n in range(5)]
    shop.sandbox.fault("error_503", accepted=True)
    shop.sandbox.fault("error_503", times="all")
    asked = []
    for _ in range(60):
        sweep(shop)
        asked.append(posts(shop))
        assert most_in_flight() <= 2
    assert now(first).status == "completed"
    assert asked[-1] > asked[9] > 2, "the shop stood still"
    assert all(later - earlier <= 2 for earlier, later in pairwise(asked))
    assert alarms("unavailable") == 1

    requests.delete(f"{shop.sandbox.url}/control/faults", timeout=30)
    fresh = shop.paid(email="fresh@example.com")
    until(shop, fresh, minutes=6)
    assert ProviderAccount.objects.get().state == "ok"
    sweep(shop, minutes=15, seconds=301)
    for job in others:
        state = now(job)
        assert state.status == "completed" or (state.status, state.reason) == ("review", "unknown_submit")
        assert state.status == "completed" or state.next_step_at is not None
    assert all(len(generations(shop, job)) <= 1 for job in jobs)

    parked = [job for job in others if now(job).status == "review"]
    assert parked
    assert all(review.requeue(job=now(job), actor="staff") for job in parked)
    until(shop, *jobs)
    assert [len(generations(shop, job)) for job in jobs] == [1] * 5
    assert_books_balance()


def test_503_while_the_provider_accepts_is_paid_once(shop: Shop) -> None:
    jobs = [shop.paid(email=f"{n}@example.com") for n in range(3)]
    shop.sandbox.fault("error_503", times="all", accepted=True)
    sweep(shop, minutes=20)
    assert {now(job).status for job in jobs} == {"completed"}
    assert [len(generations(shop, job)) for job in jobs] == [1, 1, 1]


def test_retired_model_stops_that_model_only(shop: Shop) -> None:
    retired = "fal-ai/old-heart/image-to-video"
    shop.sandbox.fault("model_retired", times="all", model=retired)
    pose = shop.add_pose("old-heart", model=retired)
    waiting = [shop.paid(email=f"{n}@example.com", pose=pose) for n in range(2)]
    selling = [shop.paid(email=f"{n}@example.com") for n in range(2)]
    until(shop, *selling)
    assert {now(job).status for job in waiting} == {"queued"}
    assert alarms("misconfigured") == 1
    assert list(ProviderAccount.objects.exclude(state="ok").values_list("model", flat=True)) == [retired]
    before = posts(shop)
    sweep(shop, minutes=15)
    assert posts(shop) == before + 1

    shop.age(86400)
    sweep(shop)
    assert {(now(job).status, now(job).reason) for job in waiting} == {("review", "misconfigured")}
    requests.delete(f"{shop.sandbox.url}/control/faults", timeout=30)
    assert all(review.requeue(job=now(job), actor="staff") for job in waiting)
    until(shop, *waiting)
    assert [len(generations(shop, job)) for job in waiting] == [1, 1]


def test_own_image_address_unreachable(shop: Shop, settings: Any) -> None:
    jobs = [shop.paid(email=f"{n}@example.com") for n in range(3)]
    settings.PUBLIC_URL = NOWHERE
    sweep(shop, minutes=10)
    assert {now(job).status for job in jobs} == {"queued"}
    assert alarms("unavailable") == 1
    assert posts(shop) == 2
    assert ProviderAccount.objects.get().detail == "our own image address is not reachable"

    settings.PUBLIC_URL = shop.url
    until(shop, *jobs)
    assert Job.objects.filter(status="failed").count() == 0
    assert alarms("unavailable") == 1


def test_own_image_address_breaks_at_the_last_try(shop: Shop, settings: Any) -> None:
    shop.sandbox.settings(delay_seconds=2)  # so that no sweep both sends it and hears how it ended
    job = shop.paid()
    shop.sandbox.fault("image_unreachable", times=3)
    while now(job).accepted < 3:
        sweep(shop)
    wait_for(lambda: all(request["ended_at"] for request in shop.provider()))
    settings.PUBLIC_URL = NOWHERE
    sweep(shop)
    assert (now(job).status, now(job).reason) == ("review", "unavailable"), "our fault was called the photo's"
    assert Entry.objects.filter(kind="released").count() == 0

    settings.PUBLIC_URL = shop.url
    sweep(shop, minutes=3)
    assert last(job).status == "failed"
    assert review.requeue(job=now(job), actor="staff")
    until(shop, job)


def test_image_that_nobody_can_load_is_the_photos_fault_at_the_third_try(shop: Shop) -> None:
    job = shop.paid()
    shop.sandbox.fault("image_unreachable", times="all")
    until(shop, job, status="failed")
    assert (now(job).reason, len(generations(shop, job)), alarms("unavailable")) == ("image", 3, 0)
    assert Grant.objects.get().available == 1
