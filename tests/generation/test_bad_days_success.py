"""Bad days of success: each story of docs/failures.md about a video that is reported twice, late, or after its job has failed."""

from typing import Any

import pytest
from django.conf import settings

from generation import review, runner
from generation.models import Job, Submission
from generation.providers.fal import Fal
from tests.generation.bad_days import assert_books_balance, last, now
from tests.generation.stories import (
    DELIVERED,
    GIVEN_BACK,
    assert_no_orphans,
    at,
    blobs,
    entries,
    force,
    made,
    moves,
    purse,
    step,
)
from tests.orders.rivals import act_after
from tests.shop import Shop, run_now
from tests.shop_fixture import wait_for
from waistheart.models import GuardTally, Hint

DEADLINE = settings.PROCESSING_DEADLINE_SECONDS


@pytest.mark.parametrize("reading", [(Fal, "fetch_status"), (runner, "fetch_and_verify")])
def test_success_reported_twice(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, messages: list[tuple[str, int]], reading: tuple[Any, str]
) -> None:
    shop.sandbox.fault("webhook_doubled")
    job = made(shop)
    wait_for(lambda: [event["kind"] for event in shop.sandbox.state()["events"]].count("fal") == 2, seconds=60)
    assert Hint.objects.filter(source="fal").count() == 1
    assert messages[-1] == ("generation.advance", job.pk)

    # Two workers have the message: the second does all of it right after the first has read, or fetched.
    act_after(monkeypatch, *reading, lambda: run_now(*messages[-1]))
    run_now(*messages[-1])
    job = now(job)
    assert (job.status, moves(job)) == ("completed", ["submit", "finish", "store"])
    assert entries() == DELIVERED
    assert len(blobs("videos")) == 1
    assert_no_orphans()
    assert_books_balance()


def refused_by_the_provider(shop: Shop) -> Job:
    shop.sandbox.fault("content_policy_result")
    job = step(made(shop))
    assert (job.status, last(job).status) == ("failed", "failed")
    return job


def closed_by_staff(shop: Shop) -> Job:
    shop.sandbox.fault("never_finishing")
    job = at(shop, shop.submitted(), DEADLINE)
    assert job.reason == "deadline"
    assert review.close(job=job, actor="staff", reason="took too long")
    assert last(job).status == "accepted"
    return now(job)


@pytest.mark.parametrize("fail", [refused_by_the_provider, closed_by_staff])
def test_late_success_changes_nothing(shop: Shop, messages: list[tuple[str, int]], fail: Any) -> None:
    job = fail(shop)
    before = facts(job)
    assert (purse(job), entries()) == ((1, 0), GIVEN_BACK)

    messages.clear()
    force(shop, job, "done")
    wait_for(lambda: ("generation.watch", last(job).pk) in messages)
    for _ in range(2):
        run_now("generation.watch", last(job).pk)
    shop.sweep()

    assert last(job).late_success_at is not None
    assert GuardTally.objects.get(guard="late_success").lost == 1
    assert facts(job) == before
    assert (purse(job), entries()) == ((1, 0), GIVEN_BACK)
    assert not blobs("videos")
    assert_books_balance()


def facts(job: Job) -> dict[str, Any]:
    """All of the job's row but its times, which tests move, and the mark of its anchor."""
    row = Job.objects.filter(pk=job.pk).values().get()
    return {name: value for name, value in row.items() if not name.endswith(("_at", "_since", "_until", "writes"))}


def test_a_vanished_request_is_no_late_success(shop: Shop) -> None:
    job = closed_by_staff(shop)
    force(shop, job, "gone")
    shop.sweep()
    assert (last(job).status, last(job).late_success_at) == ("done", None)
    assert not GuardTally.objects.filter(guard="late_success").exists()


def test_done_ten_minutes_after_the_deadline(shop: Shop) -> None:
    shop.sandbox.fault("never_finishing")
    job = at(shop, shop.submitted(), DEADLINE)
    assert (job.status, job.reason) == ("review", "deadline")

    force(shop, job, "done")
    job = at(shop, job, 600)
    assert job.status == "completed"
    assert moves(job) == ["submit", "park", "resume", "finish", "store"]
    assert [s.resumes for s in Submission.objects.all()] == [1]
    assert entries() == DELIVERED
    assert_books_balance()
