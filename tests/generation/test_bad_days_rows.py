"""Bad days of the sweep: each story of docs/failures.md about rows that wait, break, or are looked at by two at once."""

import threading
import time
from collections import Counter
from typing import Any

import pytest
from celery import current_app
from django.conf import settings
from django.core import mail
from django.db import OperationalError, transaction

from billing.models import Hold
from generation import crop, leases, runner, submissions
from generation import sweep as sweeps
from generation.models import Job, Submission
from generation.moves import Seen
from orders import sweep as minute
from tests.generation.bad_days import assert_books_balance, generations, now, until
from tests.generation.stories import assert_no_orphans, broken, entries, made, moves, provider_ends
from tests.orders.rivals import at_once
from tests.shop import Shop, run_now
from waistheart import clock
from waistheart.models import GuardTally

LEASE = settings.LEASE_SECONDS


def ignore(task: str, row_id: int) -> None:
    """What an emptied broker does with a message."""


# --- leases ----------------------------------------------------------------------------------------------------------


def test_last_lease_is_as_long_as_the_first(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.sandbox.fault("never_finishing", times="all")
    jobs = [shop.paid(email=f"{name}@example.com") for name in ("ada", "eve", "ivy")]
    monkeypatch.setattr(submissions.accounts, "taking_slots", lambda account_id: 0)
    left: list[float] = []
    take = leases.take

    def slow_take(seen: Seen) -> leases.Lease | None:
        """Each job takes its time, as 200 slow ones would."""
        time.sleep(0.5)
        lease = take(seen)
        if lease:
            until_ = now(Job(pk=seen.job_id)).lease_until
            assert until_
            left.append((until_ - clock.read()).total_seconds())
        return lease

    monkeypatch.setattr(leases, "take", slow_take)
    shop.sweep()
    assert len(left) == len(jobs)
    assert all(LEASE - 0.4 < seconds <= LEASE for seconds in left), left


def test_a_lease_taken_behind_a_locked_row_is_as_long(shop: Shop) -> None:
    job = shop.paid()
    locked, seconds = threading.Event(), 1.0

    def rival() -> None:
        with transaction.atomic():
            Job.objects.filter(pk=job.pk).update(last_error="looked at")
            locked.set()
            time.sleep(seconds)
            transaction.set_rollback(True)

    def worker() -> float:
        locked.wait(10)
        assert leases.take(Seen.of(job))
        until_ = now(job).lease_until
        assert until_
        return (until_ - clock.read()).total_seconds()

    _, left = at_once(rival, worker)
    assert LEASE - 0.5 < left <= LEASE


# --- pages -----------------------------------------------------------------------------------------------------------


def test_500_in_review_and_one_due(shop: Shop) -> None:
    due = made(shop)
    shop.age(3600)
    crowd(due, 500, status="review", reason="gone", next_step_at=clock.ago(90000), state_since=clock.ago(100))

    published: list[int] = []
    found = sweeps.every_minute(lambda task, row_id: published.append(row_id))
    assert due.pk in published
    assert (found["review"], found["processing"]) == (sweeps.PAGE, 1)

    # The page of the 500 moves on: all are reached, none twice.
    with transaction.atomic():
        published += [row_id for _ in range(2) for row_id in sweeps.due_jobs("review")]
    assert Counter(published) == Counter(Job.objects.values_list("pk", flat=True))


def crowd(like: Job, count: int, **fields: Any) -> None:
    """Many rows like this one, in another state; their holds are only there to be pointed at."""
    holds = Hold.objects.bulk_create([Hold(owner_id=like.owner_id, credits=1, parts=1) for _ in range(count)])
    copied = {
        f.attname: getattr(like, f.attname) for f in Job._meta.fields if f.attname not in ("id", "hold_id", "lot")
    }
    Job.objects.bulk_create([Job(**{**copied, **fields, "hold": hold, "lot": f"crowd-{hold.pk}"}) for hold in holds])


# --- rows that raise -------------------------------------------------------------------------------------------------


def photo_nobody_can_crop(shop: Shop) -> tuple[Job, Any]:
    return shop.paid(), broken(crop, "crop_jpeg", lambda: ZeroDivisionError("nobody explains this"))


def video_nobody_can_verify(shop: Shop) -> tuple[Job, Any]:
    job = made(shop)
    return job, broken(runner, "fetch_and_verify", lambda: ZeroDivisionError("nobody explains this"))


def answer_nobody_can_read(shop: Shop) -> tuple[Job, Any]:
    return made(shop), broken(runner, "look_for_result", lambda: ZeroDivisionError("nobody explains this"))


@pytest.mark.parametrize("begin", [photo_nobody_can_crop, answer_nobody_can_read, video_nobody_can_verify])
def test_poison_row(shop: Shop, begin: Any) -> None:
    job, broken_part = begin(shop)
    with broken_part:
        with pytest.raises(ZeroDivisionError):
            runner.advance(job.pk)
        state = now(job).status
        for failures in range(2, 10):
            shop.age(900)
            shop.sweep()
            assert (now(job).status, now(job).failures) == (state, failures)
            assert (now(job).next_step_at - clock.read()).total_seconds() <= 900
        for _ in range(2):
            shop.age(900)
            shop.sweep()
    assert (now(job).status, now(job).reason) == ("review", "poison")
    assert entries() == ["granted", "held"]


def test_hiccups_with_good_looks_between_park_nothing(shop: Shop) -> None:
    """Ten on as many days are no poison: a look that goes well counts from the beginning, and asks for nothing when there is none."""
    shop.sandbox.fault("never_finishing", times="all")
    job = shop.submitted()
    for _ in range(2):
        for failures in range(1, 7):
            with broken(runner, "look_for_result", lambda: OperationalError("locked")), pytest.raises(OperationalError):
                runner.advance(job.pk)
            assert now(job).failures == failures
        assert runner.advance(job.pk) == "running"
        assert (now(job).status, now(job).failures) == ("processing", 0)


def test_one_broken_row_does_not_stop_the_rest(shop: Shop) -> None:
    poison = shop.paid(email="eve@example.com")
    Job.objects.filter(pk=poison.pk).update(parameters=["not", "a", "mapping"])
    others = [shop.paid(email=f"{name}@example.com") for name in ("ada", "ivy")]
    until(shop, *others)
    assert now(poison).status == "queued"
    assert now(poison).failures > 0


# --- nobody listens --------------------------------------------------------------------------------------------------


def test_broker_emptied(shop: Shop) -> None:
    job = shop.paid()
    minute.every_minute()
    assert current_app.control.purge() > 0
    for state in ("queued", "processing", "storing"):
        assert now(job).status == state
        for _ in range(3):
            shop.age(61)
            minute.every_minute(ignore)
        assert now(job).status == state
        one_step(shop, job)
    assert now(job).status == "completed"
    assert len(generations(shop, job)) == 1
    assert_books_balance()


def one_step(shop: Shop, job: Job) -> None:
    """The first message that gets through takes the job exactly one state further, then its worker's machine is gone."""
    state = now(job).status
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "range", lambda most: range(1), raising=False)
        for _ in range(20):
            shop.sweep()
            if now(job).status != state:
                break
    provider_ends(shop)


def test_broker_away(shop: Shop) -> None:
    job = shop.paid()

    def refuse(task: str, row_id: int) -> None:
        raise ConnectionRefusedError

    for _ in range(3):
        shop.age(61)
        assert minute.every_minute(refuse)["generation"] != "failed"
    assert now(job).status == "queued"
    until(shop, job)


# --- two at once -----------------------------------------------------------------------------------------------------


def test_two_sweeps_at_once(shop: Shop) -> None:
    jobs = [shop.paid(email=f"{name}@example.com") for name in ("ada", "eve", "ivy")]
    for _ in range(20):
        shop.age(61)
        at_once(*[lambda: minute.every_minute(run_now)] * 2)
        provider_ends(shop)
        if all(now(job).status == "completed" for job in jobs) and len(mail.outbox) == 6:
            break
    assert [moves(job) for job in jobs] == [["submit", "finish", "store"]] * 3
    assert sorted(Submission.objects.values_list("job_id", flat=True)) == [job.pk for job in jobs]
    assert [len(generations(shop, job)) for job in jobs] == [1, 1, 1]
    assert Counter(entries()) == {"granted": 3, "held": 3, "settled": 3}
    assert Counter((m.to[0], m.subject) for m in mail.outbox).most_common(1)[0][1] == 1
    assert len(mail.outbox) == 6
    assert not GuardTally.objects.filter(guard__startswith="sweep.failed").exists()
    assert_no_orphans()
    assert_books_balance()


def test_a_row_is_claimed_by_one_of_four_sweeps(shop: Shop) -> None:
    crowd(shop.paid(), 40, status="review", reason="gone", next_step_at=clock.ago(60))
    claims = at_once(*[lambda: list(sweeps.due_jobs("review"))] * 4)
    claimed = [row_id for page in claims for row_id in page]
    assert sorted(claimed) == list(Job.objects.filter(status="review").order_by("pk").values_list("pk", flat=True))
