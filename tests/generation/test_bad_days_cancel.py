"""Cancel against begin: the lease and the version decide, cancelled and given back, or sent and paid for; never both."""

from collections import Counter
from typing import Any

import pytest

from generation import leases, runner, schedule, submissions, work
from generation.models import Job, Submission
from tests.generation.bad_days import assert_books_balance, generations, last, now
from tests.generation.stories import assert_no_orphans, entries, purse
from tests.orders.rivals import act_after, at_once, lost
from tests.shop import Shop
from waistheart import clock


@pytest.fixture(autouse=True)
def provider_never_ends(shop: Shop) -> None:
    """What is sent stays sent, however slow the test is."""
    shop.sandbox.fault("never_finishing", times="all")


def assert_one_end(shop: Shop, job: Job) -> None:
    """Cancelled and given back, or sent and still paid for; never both."""
    cancelled = now(job).status == "failed"
    assert (len(generations(shop, job)), purse(job)) == ((0, (1, 0)) if cancelled else (1, (0, 1)))
    assert entries() == ["granted", "held", *(["released"] if cancelled else [])]
    assert Submission.objects.count() == (0 if cancelled else 1)
    assert_no_orphans()
    assert_books_balance()


@pytest.mark.parametrize("moment", [(leases, "take"), (submissions, "begin")])
def test_cancel_against_begin(shop: Shop, monkeypatch: pytest.MonkeyPatch, moment: tuple[Any, str]) -> None:
    job, answers = shop.paid(), []
    act_after(monkeypatch, *moment, lambda: answers.append(work.cancel(job=now(job), actor="customer")))
    runner.advance(job.pk)
    assert answers == [False]
    assert now(job).status == "processing"
    assert_one_end(shop, job)


def test_cancel_just_before_the_lease(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    job, answers = shop.paid(), []
    act_after(
        monkeypatch,
        schedule,
        "next_ids",
        lambda: answers.append(work.cancel(job=now(job), actor="customer")),
    )
    runner.advance(job.pk)
    assert (answers, now(job).status, lost("lease.take")) == ([True], "failed", 1)
    assert_one_end(shop, job)


def test_cancel_while_a_worker_sleeps_through_its_lease(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    job, answers = shop.paid(), []

    def cancel_later() -> None:
        Job.objects.filter(pk=job.pk).update(lease_until=clock.ago(1))
        answers.append(work.cancel(job=now(job), actor="customer"))

    act_after(monkeypatch, leases, "take", cancel_later)
    runner.advance(job.pk)
    assert (answers, now(job).status, lost("submission.begin")) == ([True], "failed", 1)
    assert_one_end(shop, job)


def test_cancel_after_begin_when_the_lease_has_ended(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    job, answers = shop.paid(), []

    def cancel_later() -> None:
        Job.objects.filter(pk=job.pk).update(lease_until=clock.ago(1))
        answers.append(work.cancel(job=now(job), actor="customer"))

    act_after(monkeypatch, submissions, "begin", cancel_later)
    runner.advance(job.pk)
    assert (answers, lost("job.nothing_live")) == ([False], 1)
    assert last(job).status in ("accepted", "unknown")
    runner.advance(job.pk)
    assert now(job).status == "processing"
    assert_one_end(shop, job)


def test_twenty_threads_cancel_and_begin(shop: Shop) -> None:
    job = shop.paid()
    acts = [lambda: work.cancel(job=now(job), actor="customer"), lambda: runner.advance(job.pk)] * 10
    answers = Counter(map(str, at_once(*acts)))
    assert answers["True"] + answers["submitted"] + answers["running"] >= 1
    assert answers["True"] <= 1
    assert now(job).status in ("failed", "processing")
    assert (now(job).status == "failed") == (answers["True"] == 1)
    assert_one_end(shop, job)
