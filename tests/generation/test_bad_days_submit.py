"""Bad days of the paid POST: each story of docs/failures.md under "Submitting", told against the provider's own process."""

import threading
from itertools import pairwise
from typing import Any

import pytest
import requests

from billing.models import Entry
from generation import leases, review, runner, submissions, submit, work
from generation import sweep as sweeps
from generation.models import Job, ProviderAccount, Submission
from generation.providers.base import Handle
from tests.generation.bad_days import (
    alarms,
    assert_books_balance,
    at_once,
    generations,
    last,
    most_in_flight,
    now,
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
    requests.delete(f"{shop.sandbox.url}/control/faults?fault=list_empty", timeout=30)
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
