"""Leases: who may spend money or move many bytes for a job now. A random id and an end on the database's clock."""

import logging
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.db import DatabaseError
from django.db.models import Q

from generation.models import Job
from generation.moves import Seen
from waistheart import clock, guards

log = logging.getLogger(__name__)
SUBMIT_WITHIN_SECONDS = 30


class LeaseLost(Exception):
    """A renewal matched nothing: somebody else may hold the job now, so the transfer stops."""


@dataclass(frozen=True)
class Lease:
    """Mine until the database's clock says otherwise. `taken` is the worker's monotonic clock, for the age before a submit."""

    seen: Seen
    id: uuid.UUID
    taken: float = field(default_factory=time.monotonic)

    def fresh_for_submit(self) -> bool:
        """Whether the first byte of a submit may still be sent under this lease."""
        return time.monotonic() - self.taken < SUBMIT_WITHIN_SECONDS


def take(seen: Seen) -> Lease | None:
    """Take the job's lease by compare-and-swap; None when the job moved on or a live lease exists."""
    lease = Lease(seen, uuid.uuid4())
    won = _take(lease).won
    return lease if won else None


@guards.block("generation.lease")
def _take(lease: Lease) -> None:
    free = Q(lease_until__isnull=True) | Q(lease_until__lte=clock.now())
    rows = Job.objects.filter(free, pk=lease.seen.job_id, status=lease.seen.status, version=lease.seen.version)
    guards.must("lease.take", rows.update(lease_id=lease.id, lease_until=clock.after(settings.LEASE_SECONDS)))
    _full_time(lease)


def renew(lease: Lease) -> None:
    """Give the lease its full time again, while it is still mine and alive; LeaseLost otherwise."""
    if not _renew(lease).won:
        raise LeaseLost(f"job {lease.seen.job_id}")


@guards.block("generation.renew")
def _renew(lease: Lease) -> None:
    rows = Job.objects.filter(
        pk=lease.seen.job_id, status=lease.seen.status, lease_id=lease.id, lease_until__gt=clock.now()
    )
    guards.must("lease.renew", rows.update(lease_until=clock.after(settings.LEASE_SECONDS)))
    _full_time(lease)


def _full_time(lease: Lease) -> None:
    """Write the end once more, now that the row is mine.

    PostgreSQL computes an UPDATE's new values before it waits for the row, and again only if the row was changed meanwhile: behind a
    rival that undid what it did, the lease would be short by the wait.
    """
    Job.objects.filter(pk=lease.seen.job_id, lease_id=lease.id).update(lease_until=clock.after(settings.LEASE_SECONDS))


def rest(seconds: float) -> dict[str, Any]:
    """The fields that end a lease and let nobody take another for so long; a move of the job ends the rest as well."""
    return {"lease_id": None, "lease_until": clock.after(seconds)}


def rests(job: Job) -> bool:
    """Whether the job rests: nobody works on it, and nobody may yet."""
    return Job.objects.filter(pk=job.pk, lease_id__isnull=True, lease_until__gt=clock.now()).exists()


def drop(lease: Lease) -> None:
    """Give the lease back after an act that ended without a move; harmless when it is no longer mine."""
    Job.objects.filter(pk=lease.seen.job_id, lease_id=lease.id).update(lease_id=None, lease_until=None)


@contextmanager
def given_back_on_error(lease: Lease) -> Iterator[None]:
    """Drop the lease when an act under it raises: it ended without a move, and the job need not wait for the lease to run out.

    A COMMIT whose answer was lost has cleared the lease itself, or has not happened; in both cases this is harmless.
    """
    try:
        yield
    except Exception:
        try:
            drop(lease)
        except DatabaseError:
            log.warning("lease of job %s not given back; it will run out", lease.seen.job_id, exc_info=True)
        raise


class Renewer:
    """Renews a lease while bytes move: call it with the running total; it writes at most every third of the lease."""

    def __init__(self, lease: Lease) -> None:
        self.lease = lease
        self.renewed = time.monotonic()
        self.bytes = 0

    def __call__(self, total: int) -> None:
        moved = total > self.bytes
        if moved and time.monotonic() - self.renewed > settings.LEASE_SECONDS / 3:
            renew(self.lease)
            self.renewed = time.monotonic()
            self.bytes = total
