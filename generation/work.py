"""The front door of the work, for the shop above: nudge a job, cancel one, and say how the queue is doing."""

from celery import current_app

from billing import ledger
from generation import accounts, moves, schedule
from generation.models import Job, Submission
from generation.moves import Seen
from generation.parking import park_incomplete
from generation.providers import get_provider
from generation.states import LIVE_SUBMISSION, JobStatus
from waistheart import guards


def nudge(job_id: int) -> None:
    """Ask a worker to look at a job now. The message may be lost: the sweep finds the row."""
    current_app.send_task("generation.advance", args=[job_id])


def can_cancel(job: Job) -> bool:
    """Whether nothing of the job is live at the provider, so that cancelling gives the credit back at no cost."""
    waits = job.status in {JobStatus.QUEUED, JobStatus.REVIEW} and job.reason != "restore_incomplete"
    return waits and not Submission.objects.filter(job=job, status__in=LIVE_SUBMISSION).exists()


def cancel(*, job: Job, actor: str, reason: str = "cancelled") -> bool:
    """Cancel a queued job, or close one in review, while nothing of it is live; its credit goes back. False: it had moved on, or is for staff alone."""
    if job.status not in {JobStatus.QUEUED, JobStatus.REVIEW} or job.reason == "restore_incomplete":
        return False
    try:
        return _cancel(job, actor, reason).won
    except ledger.RestoreIncomplete as error:
        park_incomplete(job, error, actor=actor)
        return False


@guards.block("generation.cancel")
def _cancel(job: Job, actor: str, reason: str) -> None:
    name = "cancel" if job.status == JobStatus.QUEUED else "close"
    moves.move_job(name, seen=Seen.of(job), actor=actor, reason=reason)
    if Submission.objects.filter(job=job, status__in=LIVE_SUBMISSION).exists():
        raise guards.LostRace("job.nothing_live")
    ledger.release(hold_id=job.hold_id, owner_id=job.owner_id, note=reason)


def place_in_queue(job: Job) -> int:
    """How many jobs are served before this one; 0 is next."""
    return schedule.place(job, accounts.account_of(get_provider(job.provider)))
