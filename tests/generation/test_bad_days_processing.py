"""Bad days of the reading: each story of docs/failures.md about what the provider says, and when. Told against its own process."""

import pytest
from django.conf import settings

from billing.models import Entry
from generation import runner
from generation.models import Job, Submission
from generation.providers.fal import Fal
from tests.generation.bad_days import alarms, assert_books_balance, generations, last, now
from tests.generation.stories import (
    DELIVERED,
    GIVEN_BACK,
    a_minute_later,
    assert_no_orphans,
    at,
    blobs,
    entries,
    force,
    made,
    moves,
    page,
    provider_ends,
    purse,
    step,
)
from tests.orders.rivals import act_after, lost
from tests.shop import Shop

# --- failure ---------------------------------------------------------------------------------------------------------


def test_stale_failed_reading(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.sandbox.fault("completed_with_error")
    job = made(shop)
    shop.sandbox.fault("never_finishing")
    # This worker has read "failed"; before it acts, another does the whole retry, and the provider accepts again.
    act_after(monkeypatch, Fal, "fetch_status", lambda: a_retry(shop, job))
    assert runner.advance(job.pk) != "retried"

    assert lost("job.retry") == 1
    assert (now(job).status, moves(job)) == ("processing", ["submit", "retry", "submit"])
    assert list(Submission.objects.order_by("number").values_list("status", flat=True)) == ["failed", "accepted"]
    force(shop, job, "done")
    assert step(job).status == "completed"
    assert len(generations(shop, job)) == 2


def a_retry(shop: Shop, job: Job) -> None:
    """The failure is read, and after its rest the job is submitted again."""
    runner.advance(job.pk)
    shop.age(61)
    runner.advance(job.pk)


def test_failure_is_retried_three_times_then_given_back(shop: Shop) -> None:
    shop.sandbox.fault("completed_with_error", times=3)
    job = until_it_ends(shop, made(shop))
    assert (job.status, job.reason) == ("failed", "provider_failed")
    assert [r["billed"] for r in generations(shop, job)] == [False] * 3
    assert moves(job) == ["submit", "retry", "submit", "retry", "submit", "fail"]
    assert (purse(job), entries()) == ((1, 0), GIVEN_BACK)
    shop.sweep()
    assert_no_orphans()
    assert_books_balance()


def test_third_try_is_delivered(shop: Shop) -> None:
    shop.sandbox.fault("completed_with_error", times=2)
    job = until_it_ends(shop, made(shop))
    assert (job.status, job.accepted) == ("completed", 3)
    assert (entries(), len(generations(shop, job))) == (DELIVERED, 3)
    assert_books_balance()


def until_it_ends(shop: Shop, job: Job) -> Job:
    """Look again and again, each time after the provider has ended, and submit again after each rest."""
    for _ in range(5):
        job = step(job)
        if job.status in ("completed", "failed"):
            break
        shop.age(61)
        runner.advance(job.pk)
        provider_ends(shop)
    return now(job)


def test_completed_then_422(shop: Shop) -> None:
    shop.sandbox.fault("completed_then_422")
    job = step(made(shop))
    assert (job.status, job.reason, moves(job)) == ("failed", "provider_failed", ["submit", "fail"])
    assert not blobs("videos")
    assert (purse(job), entries()) == ((1, 0), GIVEN_BACK)
    assert_books_balance()


# --- words that say nothing ------------------------------------------------------------------------------------------


def test_result_without_url(shop: Shop) -> None:
    shop.sandbox.fault("result_without_url")
    job = made(shop)
    for looks in (1, 2):
        assert a_minute_later(shop, job).status == "processing"
        assert now(job).bad_bytes == looks
    job = a_minute_later(shop, job)
    assert (job.status, job.reason) == ("review", "bad_bytes")
    assert entries() == ["granted", "held"]
    shop.sweep(minutes=3)
    assert (now(job).status, now(job).reason) == ("review", "bad_bytes")


def test_unknown_status_word(shop: Shop) -> None:
    job = made(shop)
    shop.sandbox.fault("unknown_status", times=2)
    for _ in range(2):
        assert runner.advance(job.pk) == "running"
        assert (now(job).status, alarms("unknown_status_word")) == ("processing", 1), (
            "one alarm, however often it is read"
        )
    assert last(job).detail == "unknown word 'PONDERING'"
    assert step(job).status == "completed"


def test_unknown_status_word_while_storing(shop: Shop) -> None:
    job = made(shop)
    shop.sandbox.fault("error_503", on="media")
    assert step(job).status == "storing"
    shop.sandbox.fault("unknown_status", times=4)
    for _ in range(4):
        assert runner.advance(job.pk) == "waits"
    assert (now(job).status, now(job).bad_bytes) == ("storing", 0)
    assert step(job).status == "completed"


def test_never_finishing(shop: Shop) -> None:
    shop.sandbox.fault("never_finishing")
    job = shop.submitted()
    assert at(shop, job, settings.PROCESSING_DEADLINE_SECONDS - 600).status == "processing"
    job = at(shop, job, 600)
    assert (job.status, job.reason) == ("review", "deadline")
    job = at(shop, job, settings.REVIEW_GIVE_BACK_SECONDS - 600)
    assert (job.status, purse(job)) == ("review", (0, 1))

    job = at(shop, job, 600)
    assert (job.status, job.reason) == ("failed", "gave_back")
    assert (purse(job), entries()) == ((1, 0), GIVEN_BACK)
    assert "Your credit is back" in page(shop, job)
    assert Entry.objects.get(kind="released").note == "gave back after review"

    # Nobody watches it for ever.
    at(shop, job, settings.REVIEW_GIVE_BACK_SECONDS)
    assert last(job).status == "lost"
    assert_no_orphans()
    assert_books_balance()
