"""Putting a job on the staff's list, and counting what leads there: bad bytes, and failures that nobody explains."""

import logging

from django.db.models import F

from generation import blocks, leases
from generation.models import Job
from generation.moves import Seen
from generation.states import JOB, JobStatus
from waistheart import clock, guards
from waistheart.wire import plain

log = logging.getLogger(__name__)
POISON = 10
BAD_BYTES = 3
BAD_BYTES_REST_SECONDS = 60
PUT_OFF_SECONDS = 60
LONGEST_PUT_OFF_SECONDS = 300


def park(job: Job, *, reason: str, actor: str, lease: leases.Lease | None = None, last_error: str = "") -> str:
    """Put the job on the staff's list, with a reason; where its time was over, the customer's money is not."""
    outcome = blocks.park(job, reason, actor, lease, plain(last_error))
    return "parked" if outcome.won else f"lost {outcome.lost}"


def park_incomplete(job: Job, error: Exception, *, actor: str) -> str:
    """The ledger could not put everything back: nothing was said to be returned, and a person must look.

    A job in review stays there, with that reason: from now on it is for staff alone.
    """
    if job.status == JobStatus.REVIEW:
        rows = Job.objects.filter(pk=job.pk, status=job.status, version=job.version).exclude(
            reason="restore_incomplete"
        )
        if rows.update(reason="restore_incomplete", last_error=str(error)[:300]):
            _alarm(job, error)
        return "restore incomplete"
    lease = leases.Lease(Seen.of(job), job.lease_id) if job.lease_id else None
    said = park(job, reason="restore_incomplete", actor=actor, lease=lease, last_error=str(error))
    if said == "parked":
        _alarm(job, error)
    return said


def _alarm(job: Job, error: Exception) -> None:
    log.error("ALARM job %s: %s", job.pk, error)
    guards.count("alarm.restore_incomplete")


def postpone(job: Job) -> None:
    """A row that raised what nobody explains waits, and is parked after ten times, so that it never holds up the others."""
    rows = Job.objects.filter(pk=job.pk, version=job.version).exclude(status__in=JOB.final)
    wait = min(900, 60 * 2 ** min(job.failures, 4))
    rows.update(failures=F("failures") + 1, next_step_at=clock.after(wait), not_before=clock.after(wait))
    if job.failures + 1 >= POISON and job.status != JobStatus.REVIEW:
        park(job, reason="poison", actor="runner")


def put_off(job: Job) -> None:
    """Storage did not give this queued job's photo or image: others take its turn for a minute, twice as long each time, 5 minutes at most.

    That time is its own: neither the sweep's claim nor a look that finds no free slot prolongs it. A move of the job ends it.
    """
    rows = Job.objects.filter(pk=job.pk, version=job.version, status=JobStatus.QUEUED, put_offs=job.put_offs)
    wait = min(LONGEST_PUT_OFF_SECONDS, PUT_OFF_SECONDS * 2 ** min(job.put_offs, 4))
    rows.update(put_offs=F("put_offs") + 1, not_before=clock.after(wait))


def looked_well(job: Job) -> None:
    """A look that went well: failures nobody explains start anew, so that a database's hiccups on many days park nothing."""
    if job.failures:
        Job.objects.filter(pk=job.pk, version=job.version, failures=job.failures).update(failures=0)


def named(error: Exception) -> str:
    """An error as a job's row shows it: its kind, then its words."""
    return plain(f"{type(error).__name__}: {error}")[:300]


def bad_bytes(job: Job, what: str, *, actor: str, lease: leases.Lease | None = None) -> str:
    """Count bytes that are no video; the third time a person looks.

    The tries are a minute apart at least, whoever asks: hints that come within seconds must not use them up.
    """
    if job.bad_bytes + 1 >= BAD_BYTES:
        reason = "gone" if what.startswith("gone") else "bad_bytes"
        return park(job, reason=reason, actor=actor, lease=lease, last_error=what)
    rows = Job.objects.filter(pk=job.pk, status=job.status, version=job.version, bad_bytes=job.bad_bytes)
    rows = rows.filter(lease_id=lease.id) if lease else rows
    rows.update(
        bad_bytes=F("bad_bytes") + 1,
        last_error=plain(what)[:300],
        next_step_at=clock.after(BAD_BYTES_REST_SECONDS),
        **leases.rest(BAD_BYTES_REST_SECONDS),
    )
    return "bad bytes"
