"""Leases: a random id, taken by compare-and-swap, that ends by the database's clock and is named in the last write."""

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial

import pytest
from django.conf import settings
from django.db import connection, transaction
from django.db.models import F

from generation import leases, moves
from generation.models import Job
from generation.moves import Seen
from tests.rows import VIDEO, age, at_once, columns, new_job, tried
from waistheart import clock
from waistheart.models import GuardTally

pytestmark = pytest.mark.django_db(transaction=True)


def now(job: Job) -> Job:
    return Job.objects.get(pk=job.pk)


def taken(job: Job) -> leases.Lease:
    lease = leases.take(Seen.of(job))
    assert lease is not None
    return lease


def seconds_left(job: Job) -> float:
    end = now(job).lease_until
    assert end is not None
    return (end - clock.read()).total_seconds()


# --- take ------------------------------------------------------------------------------------------------------------


def test_a_lease_is_random_and_lasts_its_whole_time():
    first, second = new_job(), new_job()
    assert taken(first).id != taken(second).id
    assert settings.LEASE_SECONDS - 1 < seconds_left(first) <= settings.LEASE_SECONDS


def test_twenty_workers_in_the_same_millisecond():
    job = new_job()
    winners = [lease for lease in at_once(*[partial(leases.take, Seen.of(job))] * 20) if lease is not None]
    assert len(winners) == 1
    assert now(job).lease_id == winners[0].id
    assert GuardTally.objects.get(guard="lease.take").lost == 19


@pytest.mark.parametrize("change", [{"version": 2}, {"status": "processing"}])
def test_a_job_that_has_moved_on_is_not_leased(change: dict[str, object]):
    job = new_job()
    Job.objects.filter(pk=job.pk).update(**change)
    assert leases.take(Seen.of(job)) is None


def test_a_live_lease_stands_until_it_has_run_out():
    job = new_job()
    first = taken(job)
    assert leases.take(Seen.of(job)) is None
    age(job, settings.LEASE_SECONDS - 5, "lease_until")
    assert leases.take(Seen.of(job)) is None
    age(job, 6, "lease_until")
    second = taken(job)
    assert second.id != first.id
    assert seconds_left(job) > settings.LEASE_SECONDS - 1


def test_an_expired_lease_is_taken_by_one_of_twenty():
    job = new_job()
    taken(job)
    age(job, settings.LEASE_SECONDS + 1, "lease_until")
    winners = [lease for lease in at_once(*[partial(leases.take, Seen.of(job))] * 20) if lease is not None]
    assert len(winners) == 1
    assert now(job).lease_id == winners[0].id


# --- the database's clock, after a wait ------------------------------------------------------------------------------


def touch(job: Job) -> None:
    Job.objects.filter(pk=job.pk).update(writes=F("writes") + 1)


def touch_and_undo(job: Job) -> None:
    """What every block does that loses its race."""
    touch(job)
    transaction.set_rollback(True)


def lock_only(job: Job) -> None:
    Job.objects.select_for_update().get(pk=job.pk)


def after_a_rival(job: Job, rival: Callable[[Job], None], act: Callable[[], object], *, holds: float) -> object:
    """Run `act` while a rival holds the job's row for so many seconds; it must have waited for it."""
    holding = threading.Event()

    def hold() -> None:
        with transaction.atomic():
            rival(job)
            holding.set()
            time.sleep(holds)

    def wait_and_act() -> object:
        assert holding.wait(timeout=20)
        started = time.monotonic()
        answer = act()
        assert time.monotonic() - started > holds * 0.8, "the act did not wait for the row"
        return answer

    _, answer = at_once(hold, wait_and_act)
    return answer


@pytest.mark.postgres
@pytest.mark.parametrize("rival", [touch, touch_and_undo, lock_only])
def test_a_lease_lasts_its_whole_time_from_the_moment_it_is_written(rival: Callable[[Job], None]):
    """A lease computed before two seconds of waiting for the row would end two seconds early."""
    job = new_job()
    lease = after_a_rival(job, rival, partial(leases.take, Seen.of(job)), holds=2)
    assert isinstance(lease, leases.Lease), lease
    assert settings.LEASE_SECONDS - 0.5 < seconds_left(job) <= settings.LEASE_SECONDS


@pytest.mark.postgres
@pytest.mark.parametrize("rival", [touch, touch_and_undo])
def test_a_renewed_lease_lasts_its_whole_time_from_the_moment_it_is_written(rival: Callable[[Job], None]):
    job = new_job()
    lease = taken(job)
    age(job, 60, "lease_until")
    assert after_a_rival(job, rival, partial(leases.renew, lease), holds=1) is None
    assert settings.LEASE_SECONDS - 0.5 < seconds_left(job) <= settings.LEASE_SECONDS


@pytest.mark.postgres
def test_a_lease_that_runs_out_while_its_renewal_waits_is_not_renewed():
    job = new_job()
    lease = taken(job)
    age(job, settings.LEASE_SECONDS - 0.5, "lease_until")
    answer = after_a_rival(job, touch, partial(leases.renew, lease), holds=1)
    assert isinstance(answer, leases.LeaseLost)


@pytest.mark.postgres
def test_the_clock_is_not_that_of_the_transactions_start():
    with transaction.atomic():
        early = clock.read()
        time.sleep(0.2)
        assert clock.read() - early >= timedelta(seconds=0.2)
        with connection.cursor() as cursor:
            cursor.execute("SELECT now()")
            assert cursor.fetchone()[0] <= early


# --- renew -----------------------------------------------------------------------------------------------------------


def test_a_renewal_gives_the_whole_time_again():
    job = new_job()
    lease = taken(job)
    age(job, 60, "lease_until")
    leases.renew(lease)
    assert seconds_left(job) > settings.LEASE_SECONDS - 1


def expire(job: Job) -> None:
    age(job, settings.LEASE_SECONDS + 1, "lease_until")


def lose(job: Job) -> None:
    expire(job)
    taken(job)


def move_on(job: Job) -> None:
    assert tried(moves.move_job, name="fail", seen=Seen.of(job), actor="tests").won


@pytest.mark.parametrize("meanwhile", [expire, lose, move_on])
def test_a_lease_that_is_not_mine_any_more_is_not_renewed(meanwhile: Callable[[Job], None]):
    """Also an expired one that nobody took: at this very moment somebody may."""
    job = new_job(status="processing")
    lease = taken(job)
    meanwhile(job)
    before = columns(job)
    with pytest.raises(leases.LeaseLost):
        leases.renew(lease)
    assert columns(job) == before


def test_a_transfer_renews_by_bytes_and_not_too_often():
    """The worker's own clock says when; a transfer that stands still is not kept alive."""
    job = new_job(status="storing")
    renewer = leases.Renewer(taken(job))
    age(job, 60, "lease_until")
    renewer(1000)
    assert seconds_left(job) < 61, "renewed a moment ago"
    renewer.renewed -= settings.LEASE_SECONDS / 2
    renewer(0)
    assert seconds_left(job) < 61, "no byte has moved"
    renewer(2000)
    assert seconds_left(job) > settings.LEASE_SECONDS - 1
    renewer.renewed -= settings.LEASE_SECONDS / 2
    expire(job)
    with pytest.raises(leases.LeaseLost):
        renewer(3000)


# --- finish and drop -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("meanwhile", "won"), [(expire, True), (lose, False)])
def test_who_finishes_with_an_expired_lease(meanwhile: Callable[[Job], None], won: bool):
    """Nobody took it: the work is done and counts. Somebody did: it is theirs."""
    job = new_job(status="storing")
    lease = taken(job)
    meanwhile(job)
    outcome = tried(moves.move_job, name="store", seen=lease.seen, actor="tests", lease_id=lease.id, **VIDEO)
    assert outcome.won is won
    assert now(job).status == ("completed" if won else "storing")
    assert (now(job).lease_id is None) is won


def test_a_lease_given_back_is_free_at_once():
    job = new_job()
    leases.drop(taken(job))
    assert (now(job).lease_id, now(job).lease_until) == (None, None)
    taken(job)


def test_giving_back_what_is_not_mine_is_harmless():
    job = new_job()
    mine = taken(job)
    expire(job)
    other = taken(job)
    leases.drop(mine)
    leases.drop(mine)
    assert now(job).lease_id == other.id


def test_a_lease_is_too_old_for_a_submit_after_half_a_minute():
    """By the worker's monotonic clock from before the lease was taken, so that no wait can make it look fresher."""
    fresh = taken(new_job())
    assert fresh.fresh_for_submit()
    old = leases.Lease(fresh.seen, fresh.id, fresh.taken - leases.SUBMIT_WITHIN_SECONDS)
    assert not old.fresh_for_submit()
