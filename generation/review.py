"""What staff may do with a job in review: requeue, resume, close and give back, deliver. Each answers whether it moved."""

import functools

from billing import ledger
from generation import moves, submissions, work
from generation.models import Job, Submission
from generation.moves import Seen
from generation.states import LIVE_SUBMISSION, JobStatus
from generation.store import Stored
from generation.watch import ask_to_cancel
from waistheart import guards


def in_review(job: Job) -> bool:
    """Whether the job was read in review: one that has moved on is nobody's to decide any more."""
    return job.status == JobStatus.REVIEW


def sending(job: Job) -> bool:
    """Whether a request is being sent at this moment. One whose worker is gone is not: that its answer is lost is written down."""
    live = submissions.live(job)
    return live is not None and live.status == "sending" and not submissions.abandon(live)


def requeue(*, job: Job, actor: str) -> bool:
    """Try again from the start. The submission that was live is written off as lost: the provider may still bill it.

    Not while it is being sent: its answer is not known yet, and may be an acceptance.
    """
    return in_review(job) and not sending(job) and _requeue(job, actor).won


@guards.block("generation.requeue")
def _requeue(job: Job, actor: str) -> None:
    moves.move_job("requeue", seen=Seen.of(job), actor=actor, reason=job.reason, accepted=0, bad_bytes=0)
    live = Submission.objects.filter(job=job, status__in=LIVE_SUBMISSION).first()
    if live is not None:
        moves.move_submission("lose", submission_id=live.pk)
    guards.nudge(functools.partial(work.nudge, job.pk))


def resume(*, job: Job, actor: str) -> bool:
    """Wait for the provider again: only while the job has a live and accepted submission."""
    return in_review(job) and _resume(job, actor).won


@guards.block("generation.resume_by_staff")
def _resume(job: Job, actor: str) -> None:
    moves.move_job("resume", seen=Seen.of(job), actor=actor, reason=job.reason)
    if not Submission.objects.filter(job=job, status="accepted").exists():
        raise guards.LostRace("submission.resume")
    guards.nudge(functools.partial(work.nudge, job.pk))


def close(*, job: Job, actor: str, reason: str) -> bool:
    """End the job and give the credit back. Missing credits of an incomplete restore are replaced by a new grant of ours.

    A submission that is still live is asked to be cancelled and stays watched; what it answers decides nothing.
    """
    if not in_review(job):
        return False
    try:
        done = _close(job, actor, reason).won
    except ledger.RestoreIncomplete:
        done = _close_with_grant(job, actor, reason).won
    if done:
        ask_to_cancel(job)
    return done


@guards.block("generation.close")
def _close(job: Job, actor: str, reason: str) -> None:
    moves.move_job("close", seen=Seen.of(job), actor=actor, reason="closed", last_error=reason[:300])
    ledger.release(hold_id=job.hold_id, owner_id=job.owner_id, note=reason)


@guards.block("generation.close_with_grant")
def _close_with_grant(job: Job, actor: str, reason: str) -> None:
    moves.move_job("close", seen=Seen.of(job), actor=actor, reason="closed", last_error=reason[:300])
    ledger.release_what_is_left(hold_id=job.hold_id, owner_id=job.owner_id, note=reason, made_by=actor)


def deliver(*, job: Job, stored: Stored, actor: str) -> bool:
    """Complete the job with a file that passed verification; the credit is settled."""
    return in_review(job) and _deliver(job, stored, actor).won


@guards.block("generation.deliver")
def _deliver(job: Job, stored: Stored, actor: str) -> None:
    moves.move_job("deliver", seen=Seen.of(job), actor=actor, reason="delivered by staff", **stored.fields())
    ledger.settle(hold_id=job.hold_id, owner_id=job.owner_id)
