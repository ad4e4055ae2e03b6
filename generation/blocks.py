"""The runner's blocks: each is one move of a job with everything that must be true together with it.

The job's guard is the first statement and writes the job's row; what is asked of other rows after it cannot change until the end.
"""

import logging

from billing import ledger
from generation import leases, moves
from generation.models import Job, Submission
from generation.moves import Seen
from generation.providers.base import Snapshot
from generation.store import Stored
from waistheart import clock, guards

RETRY_REST_SECONDS = 60
log = logging.getLogger(__name__)


@guards.block("generation.submit")
def submit(lease: leases.Lease, submission: Submission, actor: str) -> None:
    moves.move_job("submit", seen=lease.seen, actor=actor, lease_id=lease.id)
    stands(submission)


@guards.block("generation.refuse")
def refuse(lease: leases.Lease, job: Job, submission: Submission, actor: str) -> None:
    reason = submission.refusal_kind or "invalid_input"
    moves.move_job(
        "refuse", seen=lease.seen, actor=actor, lease_id=lease.id, reason=reason, last_error=submission.detail
    )
    ledger.release(hold_id=job.hold_id, owner_id=job.owner_id, note=reason)


@guards.block("generation.finish")
def finish(job: Job, submission: Submission, actor: str) -> None:
    moves.move_job("finish", seen=Seen.of(job), actor=actor, last_error="")
    stands(submission)


@guards.block("generation.retry")
def retry(job: Job, submission: Submission, snapshot: Snapshot, actor: str, *, kind: str = "") -> None:
    # Trouble of seconds must not use up all tries: the next one is begun by a sweep.
    rest = clock.after(RETRY_REST_SECONDS)
    said = snapshot.detail[:300]
    moves.move_job("retry", seen=Seen.of(job), actor=actor, reason="provider_failed", last_error=said, not_before=rest)
    moves.move_submission("fail", submission_id=submission.pk, detail=said, refusal_kind=kind)


@guards.block("generation.fail")
def fail(job: Job, submission: Submission, snapshot: Snapshot, reason: str, actor: str) -> None:
    moves.move_job("fail", seen=Seen.of(job), actor=actor, reason=reason, last_error=snapshot.detail[:300])
    moves.move_submission("fail", submission_id=submission.pk, detail=snapshot.detail[:300])
    ledger.release(hold_id=job.hold_id, owner_id=job.owner_id, note=reason)


@guards.block("generation.store")
def store(lease: leases.Lease, job: Job, submission: Submission, stored: Stored, actor: str) -> None:
    moves.move_job("store", seen=lease.seen, actor=actor, lease_id=lease.id, **stored.fields())
    moves.move_submission("done", submission_id=submission.pk)
    short = ledger.settle(hold_id=job.hold_id, owner_id=job.owner_id)
    if short:
        log.error("ALARM job %s is delivered, the ledger is short of %s credits", job.pk, short)


@guards.block("generation.park")
def park(job: Job, reason: str, actor: str, lease: leases.Lease | None, last_error: str) -> None:
    lease_id = lease.id if lease else None
    fields = {"last_error": last_error[:300]} if last_error else {}
    moves.move_job("park", seen=Seen.of(job), actor=actor, reason=reason, lease_id=lease_id, bad_bytes=0, **fields)


def stands(submission: Submission) -> None:
    """The submission the decision speaks of is still the accepted one. Read after its job's row was written, which locks it."""
    if not Submission.objects.filter(pk=submission.pk, status="accepted").exists():
        raise guards.LostRace("submission.stands")
