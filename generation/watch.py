"""Looking after submissions whose job does not wait for them: unknown ones, those of jobs in review, and of jobs that have ended."""

import logging
from collections.abc import Callable
from datetime import timedelta

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from billing import ledger
from generation import moves, submissions
from generation.looking import LIST, look, look_for_result, unread
from generation.models import Job, Submission
from generation.moves import Seen
from generation.parking import park_incomplete
from generation.providers import provider_of
from generation.providers.base import Misconfigured, Provider, ProviderError, Snapshot, State
from generation.states import JOB, SUBMISSION, JobStatus
from waistheart import clock, guards

log = logging.getLogger(__name__)
MAX_RESUMES = 2
CLOCKS_APART = timedelta(minutes=15)  # their list is asked from a little earlier: their clock is not ours
RESUMED_AFTER = {
    "unknown_submit": {State.DONE, State.RUNNING},
    "deadline": {State.DONE},
    "gone": {State.DONE},
    "misconfigured": {State.DONE},
}
ENDED_BADLY = {State.FAILED, State.REFUSED, State.CANCELLED}


def recover(submission: Submission) -> Submission:
    """Look for an unknown submission at the provider by its image address, and adopt its id when found; the row as it is then."""
    ask, since = submissions.ask_of(submission, submission.job), submission.sent_at - CLOCKS_APART
    provider = provider_for(submission)
    if provider is None:
        return submission
    try:
        handle = provider.recover(ask, since=since)
    except ProviderError as error:
        unread(submission, error, what=LIST)
        return submission
    if handle is not None:
        submissions.record_accepted(submission, handle)
    return Submission.objects.select_related("account", "job").get(pk=submission.pk)


def provider_for(submission: Submission) -> Provider | None:
    """The adapter it was sent by; None while our own settings do not give us one, which is no failure of the provider's."""
    try:
        return provider_of(submission)
    except (Misconfigured, ImproperlyConfigured) as error:
        log.error("submission %s waits: %s: %s", submission.pk, type(error).__name__, error)
        return None


def unknown_for_too_long(submission: Submission) -> bool:
    """Whether it was looked for in vain so long that a person must decide: it is not sent again blindly."""
    since = clock.ago(settings.UNKNOWN_SUBMIT_REVIEW_SECONDS)
    return Submission.objects.filter(pk=submission.pk, status="unknown", sent_at__lte=since).exists()


def review(job: Job) -> str:
    """A job in review is still looked at: its submission's end is written down, and what it waited for may bring it back."""
    if review_is_over(job):
        return give_back(job)
    submission = submissions.live(job)
    if submission is None:
        return "waits for a person"
    if submission.status == "sending" and not submissions.abandon(submission):
        return "sending"
    if submission.status != "accepted":
        submission = recover(submission)
    if submission.status != "accepted":
        return "unknown"
    state = state_of(submission, read=look_for_result)
    if state in ENDED_BADLY:
        _ended(submission, "fail")
        return "its submission failed"
    if state in RESUMED_AFTER.get(job.reason, set()) and submission.resumes < MAX_RESUMES:
        return "resumed" if _resume(job, submission, "sweep").won else "lost"
    return "waits for a person"


def review_is_over(job: Job) -> bool:
    """Whether the job has waited for a person longer than we let the customer's money wait."""
    if not gives_back(job):
        return False
    over = clock.ago(settings.REVIEW_GIVE_BACK_SECONDS)
    return Job.objects.filter(pk=job.pk, version=job.version, status="review", state_since__lte=over).exists()


def gives_back(job: Job) -> bool:
    """Whether the clock ends this review at all: what is not all there cannot be given back, and waits for a person."""
    return job.reason != "restore_incomplete"


def give_back(job: Job) -> str:
    """Nobody decided for 72 hours: the credit goes back by itself, and the provider is asked to stop."""
    try:
        if not _close(job).won:
            return "lost"
    except ledger.RestoreIncomplete as error:
        return park_incomplete(job, error, actor="sweep")
    ask_to_cancel(job)
    return "closed"


def ask_to_cancel(job: Job) -> None:
    """Ask the provider to stop what nobody waits for any more. After the commit, and whatever comes of it decides nothing: the
    submission stays watched."""
    live = submissions.live(job)
    if live is None or not live.external_id:
        return
    try:
        provider_of(live).cancel(submissions.handle_of(live), model=live.model)
    except Exception as error:  # noqa: BLE001
        log.warning("cancel of submission %s: %s: %s", live.pk, type(error).__name__, error)


def watch(submission: Submission) -> str:
    """A live submission of a job that has ended: find out how it ended, and give its slot up in the end."""
    if too_old_to_watch(submission):
        log.error("ALARM submission %s is given up after %s s", submission.pk, settings.REVIEW_GIVE_BACK_SECONDS)
        _ended(submission, "lose")
        return "lost"
    if submission.status == "sending" and not submissions.abandon(submission):
        return "sending"
    if submission.status in SUBMISSION.final:
        return after_the_end(submission)
    if submission.status != "accepted":
        submission = recover(submission)
    if submission.status != "accepted":
        return "unknown"
    state = state_of(submission)
    if state in {State.DONE, State.GONE}:
        late = state == State.DONE and submission.job.status == JobStatus.FAILED
        if _ended(submission, "done", late_success_at=clock.now() if late else None).won and late:
            tell_late_success(submission)
        return "done"
    if state in ENDED_BADLY:
        _ended(submission, "fail")
        return "failed"
    return "running"


def after_the_end(submission: Submission) -> str:
    """A hint about a submission that had ended: the only news it may bring is a video after its job has failed."""
    news = submission.status != "done" and submission.late_success_at is None and submission.external_id
    if not news or submission.job.status != JobStatus.FAILED:
        return submission.status
    if state_of(submission) == State.DONE and _late_success(submission).won:
        tell_late_success(submission)
    return submission.status


@guards.block("generation.late_success")
def _late_success(submission: Submission) -> None:
    moves.write_job(job_id=submission.job_id)
    rows = Submission.objects.filter(pk=submission.pk, late_success_at__isnull=True)
    guards.must("submission.late_success", rows.update(late_success_at=clock.now()))


def tell_late_success(submission: Submission) -> None:
    """Nothing is taken again and nothing delivered; staff see it, and it is counted once."""
    guards.count("late_success")
    log.warning("late success: submission %s of failed job %s", submission.pk, submission.job_id)


def too_old_to_watch(submission: Submission) -> bool:
    """Whether its job has ended and its answer is older than any provider keeps it."""
    over = clock.ago(settings.REVIEW_GIVE_BACK_SECONDS)
    rows = Submission.objects.filter(pk=submission.pk, status__in=["unknown", "accepted"], sent_at__lte=over)
    return rows.filter(job__status__in=JOB.final).exists()


def state_of(submission: Submission, *, read: Callable[[Submission], Snapshot] = look) -> State | None:
    """The provider's word on it; None when it cannot be read now."""
    try:
        return read(submission).state
    except (ProviderError, ImproperlyConfigured) as error:
        log.warning("submission %s not read now: %s: %s", submission.pk, type(error).__name__, error)
        return None


@guards.block("generation.ended")
def _ended(submission: Submission, name: str, **fields: object) -> None:
    moves.write_job(job_id=submission.job_id)
    job = Job.objects.get(pk=submission.job_id)
    if job.status not in {*JOB.final, JobStatus.REVIEW}:
        raise guards.LostRace("submission.watched")
    moves.move_submission(name, submission_id=submission.pk, **fields)


@guards.block("generation.resume")
def _resume(job: Job, submission: Submission, actor: str) -> None:
    moves.move_job("resume", seen=Seen.of(job), actor=actor, reason=job.reason)
    rows = Submission.objects.filter(pk=submission.pk, status="accepted", resumes=submission.resumes)
    guards.must("submission.resume", rows.update(resumes=submission.resumes + 1))


@guards.block("generation.give_back")
def _close(job: Job) -> None:
    moves.move_job("close", seen=Seen.of(job), actor="sweep", reason="gave_back")
    ledger.release(hold_id=job.hold_id, owner_id=job.owner_id, note="gave back after review")
