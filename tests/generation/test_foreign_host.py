"""Bad days of our list of media hosts: the provider's results lie elsewhere, and no customer may pay for that."""

from typing import Any

import pytest
from django.conf import settings as settings_now

from generation import accounts, runner
from generation.looking import look_for_result
from generation.models import ProviderAccount, Submission
from generation.providers import get_provider
from generation.providers.base import ForeignHost, Snapshot, State
from generation.providers.fal import Fal
from tests.generation.bad_days import alarms, assert_books_balance, generations, last, now, posts, sweep, until
from tests.generation.stories import assert_delivered, at, made, step
from tests.shop import Shop

ELSEWHERE = ["127.0.0.1:9"]


def account() -> ProviderAccount:
    """The account in use as it is now."""
    return accounts.account_of(get_provider())


def test_a_media_host_that_moved_costs_nobody_a_video(shop: Shop, settings: Any) -> None:
    """It was paid five times over and parked as bad bytes, quietly: now what was bought waits, the rest is not bought, and all are delivered."""
    pinned, settings.FAL_MEDIA_HOSTS = settings.FAL_MEDIA_HOSTS, ELSEWHERE
    jobs = [shop.paid(email=f"{n}@example.com") for n in range(5)]
    sweep(shop, minutes=40)
    states = [now(job).status for job in jobs]
    bought = states.count("processing")  # one, when the first had ended before the second was begun
    assert bought in (1, 2)
    assert states.count("queued") == 5 - bought
    waiting = now(jobs[states.index("processing")])
    assert waiting.last_error.startswith("ForeignHost: the result lies on host: 127.0.0.1")
    assert pinned[0] in waiting.last_error
    assert waiting.bad_bytes == 0
    assert (account().state, alarms("misconfigured"), posts(shop)) == ("misconfigured", 1, bought)
    assert pinned[0] in account().detail

    settings.FAL_MEDIA_HOSTS = pinned
    until(shop, *jobs, minutes=60)
    assert (account().state, alarms("misconfigured"), posts(shop)) == ("ok", 1, 5)
    assert_books_balance()


def test_the_deadline_says_what_to_mend(shop: Shop, settings: Any) -> None:
    job = made(shop)
    pinned, settings.FAL_MEDIA_HOSTS = settings.FAL_MEDIA_HOSTS, ELSEWHERE
    assert step(job).status == "processing"
    job = at(shop, job, settings_now.PROCESSING_DEADLINE_SECONDS)
    assert (job.status, job.reason) == ("review", "misconfigured")
    assert pinned[0] in job.last_error

    # While it waits for a person it uses none of its ways back up. Others are tried again, as many as may be in flight: they stop
    # the buying as it did.
    others = [shop.paid(email=f"{n}@example.com") for n in range(4)]
    sweep(shop, minutes=40)
    assert (now(job).status, last(job).resumes, account().state) == ("review", 0, "misconfigured")
    assert posts(shop) in (2, 3)
    assert alarms("misconfigured") == 2

    settings.FAL_MEDIA_HOSTS = pinned
    until(shop, job, *others, minutes=60)
    assert len(generations(shop, job)) == 1


def test_a_host_that_moves_between_finish_and_store(shop: Shop, settings: Any) -> None:
    job = made(shop)
    shop.sandbox.fault("error_503", on="media")
    job = step(job)
    assert (job.status, job.last_error) == ("storing", "NotNow: status:503")
    pinned, settings.FAL_MEDIA_HOSTS = settings.FAL_MEDIA_HOSTS, ELSEWHERE
    for _ in range(4):
        assert runner.advance(job.pk) == "waits"
    job = now(job)
    assert (job.status, job.bad_bytes, job.lease_id, account().state) == ("storing", 0, None, "misconfigured")
    assert job.last_error.startswith("ForeignHost: ")
    settings.FAL_MEDIA_HOSTS = pinned
    assert step(job).status == "completed"
    assert_delivered(shop, job)


def test_a_pinned_name_with_a_number_of_this_house_is_waited_for(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Our own name server says so, and nobody has seen the bytes yet."""
    job = made(shop)
    with monkeypatch.context() as patch:
        patch.setattr("generation.outbound._permitted", lambda number, live: False)
        for _ in range(4):
            assert runner.advance(job.pk) == "waits"
    assert (now(job).status, now(job).bad_bytes) == ("storing", 0)
    assert now(job).last_error.startswith("NotNow: address: 127.0.0.1 is 127.0.0.1")
    assert step(job).status == "completed"


def test_staff_end_the_waiting_job_and_the_account_is_tried_again(shop: Shop, settings: Any) -> None:
    """One odd address must not stop the shop for days: without a job that waits there, the probe is a POST as ever."""
    job = made(shop)
    pinned, settings.FAL_MEDIA_HOSTS = settings.FAL_MEDIA_HOSTS, ELSEWHERE
    step(job)
    settings.FAL_MEDIA_HOSTS = pinned
    other = shop.paid(email="next@example.com")
    Submission.objects.filter(job=job).update(status="done")
    shop.age(901)
    sweep(shop)
    until(shop, other)
    assert account().state == "ok"


@pytest.mark.parametrize("unreadable", [False, True])
def test_one_odd_address_holds_the_shop_up_until_its_deadline_at_most(
    shop: Shop, settings: Any, unreadable: bool
) -> None:
    """One result lies elsewhere and all others where they should; it may even be gone by then."""
    job = made(shop)
    pinned, settings.FAL_MEDIA_HOSTS = settings.FAL_MEDIA_HOSTS, ELSEWHERE
    step(job)
    assert account().state == "misconfigured"
    other = shop.paid(email="next@example.com")
    if unreadable:
        settings.FAL_MEDIA_HOSTS = pinned
        shop.sandbox.fault("error_503", on="status", match=last(job).external_id, times="all")
    else:
        at(shop, job, settings_now.PROCESSING_DEADLINE_SECONDS)
        assert now(job).status == "review"
    shop.age(901)
    sweep(shop)
    assert last(other).status in ("accepted", "done")


@pytest.mark.parametrize(
    "url", ["", "x", "http://", "http://[", "http://a b/", "http://u:p@127.0.0.1:9/", "ftp://127.0.0.1:9/x", "//x/y",
            "https://127.0.0.1:9/x", "http://127.0.0.1:x/", "http://h\u00e9/x"]
)  # fmt: skip
def test_what_is_no_address_is_no_host_of_ours(shop: Shop, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    submission = last(shop.submitted())
    monkeypatch.setattr(Fal, "fetch_status", lambda *_, **__: Snapshot(State.DONE, url=url))
    assert look_for_result(submission).url == ""
    assert account().state == "ok"


def test_a_whole_address_on_another_host_is(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    submission = last(shop.submitted())
    monkeypatch.setattr(Fal, "fetch_status", lambda *_, **__: Snapshot(State.DONE, url="http://v9.example:81/x.mp4"))
    with pytest.raises(ForeignHost, match=r"v9\.example:81"):
        look_for_result(submission)
    assert account().state == "misconfigured"
