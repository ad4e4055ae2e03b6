"""Bad days of the paid POST: each story of docs/failures.md under "Submitting", told against the provider's own process."""

import logging
import threading
from itertools import pairwise
from typing import Any

import pytest
import requests

from billing.models import Entry, Grant
from generation import leases, review, runner, submissions, submit, work
from generation import sweep as sweeps
from generation.models import Job, ProviderAccount, Submission
from generation.providers.base import Handle
from orders.models import Mail
from tests.generation.bad_days import (
    alarms,
    assert_books_balance,
    at_once,
    generations,
    last,
    most_in_flight,
    now,
    page_of,
    posts,
    sweep,
    until,
)
from tests.shop import Shop, run_now
from tests.shop_fixture import wait_for
from waistheart.models import GuardTally, Hint

NOWHERE = "http://127.0.0.1:9"


# --- the answer is lost ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fault", ["drop_after_accept", "garbled_answer", "error_500", "error_502", "error_503", "error_504"]
)
def test_lost_answer_is_looked_for_not_repeated(shop: Shop, fault: str) -> None:
    job = shop.paid()
    shop.sandbox.fault(fault, accepted=True)
    assert runner.advance(job.pk) == "UnknownOutcome"
    assert last(job).status == "unknown"
    until(shop, job)
    assert (len(generations(shop, job)), posts(shop)) == (1, 1)
    assert Submission.objects.get().status == "done"


def test_two_lost_answers_are_not_mixed_up(shop: Shop) -> None:
    jobs = [shop.paid(email=f"{n}@example.com") for n in range(2)]
    shop.sandbox.fault("drop_after_accept", times=2)
    assert [runner.advance(job.pk) for job in jobs] == ["UnknownOutcome"] * 2
    until(shop, *jobs)
    for job in jobs:
        assert [request["request_id"] for request in generations(shop, job)] == [last(job).external_id]


def test_accepted_without_an_id(shop: Shop) -> None:
    job = shop.paid()
    shop.sandbox.fault("no_id")
    assert runner.advance(job.pk) == "UnknownOutcome"
    until(shop, job)
    assert (len(generations(shop, job)), posts(shop)) == (1, 1)


def test_unknown_submit_goes_to_review(shop: Shop) -> None:
    job = shop.paid()
    shop.sandbox.fault("drop_before_accept")
    sweep(shop, minutes=11, seconds=301)
    assert (now(job).status, last(job).status, posts(shop)) == ("queued", "unknown", 1)
    sweep(shop, minutes=20)
    assert (now(job).status, now(job).reason) == ("review", "unknown_submit")
    assert now(job).next_step_at is not None
    sweep(shop, minutes=3, seconds=901)
    assert (now(job).status, posts(shop)) == ("review", 1)

    assert review.requeue(job=now(job), actor="staff")
    until(shop, job)
    assert (len(generations(shop, job)), posts(shop)) == (1, 2)


def test_unknown_submit_found_in_review_comes_back(shop: Shop) -> None:
    job = shop.paid()
    shop.sandbox.fault("drop_after_accept")
    shop.sandbox.fault("list_empty", times="all")
    sweep(shop, minutes=15, seconds=301)
    assert (now(job).status, now(job).reason) == ("review", "unknown_submit")
    shop.sandbox.post("/control/topup", {})
    requests.delete(f"{shop.sandbox.url}/control/faults?fault=list_empty", timeout=5)
    until(shop, job)
    assert (len(generations(shop, job)), Submission.objects.get().resumes) == (1, 1)


# --- the account is empty --------------------------------------------------------------------------------------------


def test_402_for_an_hour_then_topped_up(shop: Shop) -> None:
    jobs = [shop.paid(email=f"{n}@example.com") for n in range(3)]
    shop.sandbox.fault("status_402", times="all")
    asked = []
    for _ in range(60):
        sweep(shop)
        sweeps.probe(run_now)
        asked.append(posts(shop))
    begun = [minute for minute, (before, after) in enumerate(pairwise([0, *asked])) if after > before]
    assert begun == [0, 15, 30, 45]
    assert asked[-1] == 4
    assert {now(job).status for job in jobs} == {"queued"}
    assert alarms("out_of_credits") == 1

    shop.sandbox.post("/control/topup", {})
    until(shop, *jobs)
    assert [len(generations(shop, job)) for job in jobs] == [1, 1, 1]
    assert alarms("out_of_credits") == 1
    assert_books_balance()

    again = shop.paid()
    shop.sandbox.fault("status_402")
    runner.advance(again.pk)
    assert alarms("out_of_credits") == 2
    until(shop, again)


def test_402_for_25_hours_goes_to_review(shop: Shop) -> None:
    job = shop.paid()
    shop.sandbox.fault("status_402", times="all")
    sweep(shop, minutes=47, seconds=1801)
    assert (now(job).status, alarms("out_of_credits")) == ("queued", 1)
    assert posts(shop) == 47
    sweep(shop, minutes=3, seconds=1801)
    assert (now(job).status, now(job).reason, alarms("out_of_credits")) == ("review", "out_of_credits", 1)
    assert not generations(shop, job)
    assert Entry.objects.filter(kind="released").count() == 0

    shop.sandbox.post("/control/topup", {})
    assert review.requeue(job=now(job), actor="staff")
    until(shop, job)
    assert len(generations(shop, job)) == 1


@pytest.mark.parametrize("reason", ["Exhausted balance. Top up your balance.", "Admin lock.", "TOP_UP."])
def test_locked_403_is_an_empty_account(shop: Shop, reason: str) -> None:
    job = shop.paid()
    shop.sandbox.fault("locked_403", times="all", reason=reason)
    sweep(shop, minutes=20)
    assert (now(job).status, posts(shop), alarms("out_of_credits")) == ("queued", 2, 1)
    assert {s.refusal for s in Submission.objects.all()} == {"account"}
    shop.sandbox.post("/control/topup", {})
    until(shop, job)
    assert len(generations(shop, job)) == 1


# --- refused, too fast, unavailable ----------------------------------------------------------------------------------


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
    page = requests.get(shop.url + page_of(job), timeout=10).text
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

    requests.delete(f"{shop.sandbox.url}/control/faults", timeout=5)
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
    requests.delete(f"{shop.sandbox.url}/control/faults", timeout=5)
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


# --- nothing was sent ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seconds", [31, 150])
def test_paused_worker_sends_nothing(shop: Shop, monkeypatch: pytest.MonkeyPatch, seconds: int) -> None:
    job = shop.paid()
    begin, said = submit.begin, []

    def paused_begin(job: Job, lease: leases.Lease, account: ProviderAccount) -> Submission | None:
        submission = begin(job, lease, account)
        monkeypatch.undo()
        object.__setattr__(lease, "taken", lease.taken - seconds)
        shop.age(seconds)
        said.append(runner.advance(job.pk))
        return submission

    monkeypatch.setattr(submit, "begin", paused_begin)
    assert runner.advance(job.pk) == "NotSent"
    assert said == ["sending" if seconds < 120 else "unknown"]
    assert (last(job).status, last(job).refusal, posts(shop)) == ("refused", "not_sent", 0)
    assert now(job).lease_id is None
    until(shop, job)
    assert (len(generations(shop, job)), posts(shop)) == (1, 1)


def test_no_connection_is_not_sent(shop: Shop, settings: Any) -> None:
    job = shop.paid()
    queue_url, settings.FAL_QUEUE_URL = settings.FAL_QUEUE_URL, f"{NOWHERE}/fal/queue"
    assert runner.advance(job.pk) == "NotSent"
    assert (last(job).status, last(job).refusal, now(job).lease_id) == ("refused", "not_sent", None)
    settings.FAL_QUEUE_URL = queue_url
    assert runner.advance(job.pk) != "NotSent"
    until(shop, job)
    assert (len(generations(shop, job)), posts(shop)) == (1, 1)


# --- many at once ----------------------------------------------------------------------------------------------------


def test_twenty_workers_one_submission(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    job, admit = shop.paid(), submit.admit
    all_admitted, admitted = threading.Barrier(20), set()

    def admit_all(*about: Any) -> str:
        word = admit(*about)
        if threading.get_ident() not in admitted:
            admitted.add(threading.get_ident())
            all_admitted.wait(20)
        return word

    monkeypatch.setattr(submit, "admit", admit_all)
    said = at_once(*[lambda: runner.advance(job.pk)] * 20)
    assert len(admitted) == 20
    assert GuardTally.objects.get(guard="lease.take").lost >= 19
    assert not [word for word in said if isinstance(word, Exception)]
    assert (Submission.objects.count(), len(generations(shop, job))) == (1, 1)
    until(shop, job)
    assert (len(generations(shop, job)), posts(shop)) == (1, 1)


def test_three_times_the_limit_in_a_row(shop: Shop) -> None:
    jobs = [shop.paid(email=f"{n}@example.com") for n in range(6)]
    shop.sandbox.settings(delay_seconds=0.4)
    for _ in range(20):
        at_once(*[lambda pk=job.pk: runner.advance(pk) for job in jobs])
        assert most_in_flight() <= 2
        sweep(shop)
        if {now(job).status for job in jobs} == {"completed"}:
            break
    assert {now(job).status for job in jobs} == {"completed"}
    assert [len(generations(shop, job)) for job in jobs] == [1] * 6
    assert overlap(shop.provider()) <= 2
    assert_books_balance()


def overlap(requests: list[dict[str, Any]]) -> int:
    """The most requests that ran at one moment, by the provider's own times."""
    return max(
        len([0 for other in requests if other["sent_at"] <= one["sent_at"] < other["ended_at"]]) for one in requests
    )


# --- hints -----------------------------------------------------------------------------------------------------------


def test_hint_with_another_jobs_id(shop: Shop) -> None:
    theirs = shop.submitted(email="theirs@example.com")
    other_id = last(theirs).external_id
    mine = shop.paid(email="mine@example.com")
    shop.sandbox.fault("list_empty", times=3)
    shop.sandbox.fault("drop_after_accept")
    shop.sandbox.fault("webhook_lying", request_id=other_id)
    runner.advance(mine.pk)
    reference = f"submission:{last(mine).pk} {other_id}"
    wait_for(lambda: Hint.objects.filter(reference=reference, outcome="names an id not known yet").exists())
    runner.advance(mine.pk)
    assert (last(mine).status, last(mine).external_id) == ("unknown", None)
    assert not submissions.record_accepted(last(mine), Handle(str(other_id)))
    assert (last(mine).status, last(mine).external_id) == ("unknown", None)
    assert GuardTally.objects.filter(guard="submission.external_id").exists()

    until(shop, mine, theirs)
    assert last(theirs).external_id == other_id
    assert [request["request_id"] for request in generations(shop, mine)] == [last(mine).external_id]
    assert posts(shop) == 2


def test_early_webhook(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    job, said = shop.paid(), []
    monkeypatch.setattr(work, "nudge", lambda job_id: said.append(runner.advance(job_id)))
    shop.sandbox.fault("webhook_early")
    assert runner.advance(job.pk) in {"submitted", "running", "finished", "completed", "final"}
    assert said == ["sending"]
    assert Hint.objects.filter(source="fal").count() == 1
    until(shop, job)
    assert (len(generations(shop, job)), posts(shop)) == (1, 1)


def test_all_provider_webhooks_lost(shop: Shop) -> None:
    shop.sandbox.fault("webhook_lost", times="all")
    jobs = [shop.paid(email=f"{n}@example.com") for n in range(3)]
    until(shop, *jobs)
    assert Hint.objects.filter(source="fal").count() == 0
    assert [len(generations(shop, job)) for job in jobs] == [1, 1, 1]


# --- the key ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", ["queued", "processing"])
def test_key_removed_and_put_back(shop: Shop, settings: Any, caplog: pytest.LogCaptureFixture, status: str) -> None:
    if status == "processing":
        shop.sandbox.fault("webhook_lost")
        shop.sandbox.settings(delay_seconds=1)
    job = shop.paid() if status == "queued" else shop.submitted()
    key, settings.FAL_KEY = settings.FAL_KEY, ""
    with caplog.at_level(logging.ERROR):
        assert runner.advance(job.pk) == "waits"
    assert "FAL_KEY" in caplog.text
    shop.sweep(minutes=30)
    assert (now(job).status, now(job).failures) == (status, 0)
    assert posts(shop) == (0 if status == "queued" else 1)
    assert requests.get(shop.url + page_of(job), timeout=10).status_code == 200

    settings.FAL_KEY = key
    until(shop, job)
    assert (len(generations(shop, job)), posts(shop)) == (1, 1)


@pytest.mark.parametrize("status", ["queued", "unknown", "processing"])
def test_key_removed_for_good_goes_to_review(shop: Shop, settings: Any, status: str) -> None:
    if status == "unknown":
        shop.sandbox.fault("drop_before_accept")
    shop.sandbox.fault("never_finishing")
    job = shop.paid() if status == "queued" else shop.submitted()
    settings.FAL_KEY = ""
    if status == "unknown":
        assert last(job).status == "unknown"
    shop.age({"queued": 86400, "unknown": 3600, "processing": 7200}[status])
    shop.sweep()
    reason = {"unknown": "unknown_submit"}.get(status, "misconfigured")
    assert (now(job).status, now(job).reason) == ("review", reason)
