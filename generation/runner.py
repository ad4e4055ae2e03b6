"""What happens to a job next: submitted, stored, delivered, and everything that can go wrong.

`advance` is called by the nudge after payment, the provider's hint, the sweep and staff alike. It looks at one job, makes at most one
step per state, and is harmless to call at any time, from anywhere, twice at once: the guards decide.
"""

import logging

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db.models import F

from billing import ledger
from generation import accounts, leases, moves, own_address, submissions, submit, watch
from generation.models import Job, Submission
from generation.moves import Seen
from generation.providers import get_provider
from generation.providers.base import Misconfigured, ProviderError, RateLimited, Snapshot, State
from generation.states import MAX_ACCEPTED, JobStatus
from generation.store import BadBytes, NotNow, Stored, fetch_and_verify, forget, usable
from waistheart import clock, guards
from waistheart.storage import StorageError

log = logging.getLogger(__name__)
POISON = 10
BAD_BYTES = 3


def advance(job_id: int, *, actor: str = "runner") -> str:
    """Take the job as far as it goes now, and answer in a word where it stopped. Never raises for what the outside does."""
    said = ""
    for _ in range(4):
        job = read(job_id)
        before = job.version
        try:
            said = step(job, actor=actor)
        except (ProviderError, StorageError, ImproperlyConfigured) as error:
            # Ours or theirs, but not this customer's: the job stays where it is, and the sweep comes back.
            log.error("job %s (%s) waits: %s: %s", job_id, job.status, type(error).__name__, error)
            Job.objects.filter(pk=job_id).update(last_error=f"{type(error).__name__}: {error}"[:300])
            return "waits"
        except Exception:
            postpone(job)
            raise
        if read(job_id).version == before:
            return said
    return said


def step(job: Job, *, actor: str) -> str:
    """One step, by the state the job is in. States this code does not know are left alone."""
    if job.status == JobStatus.QUEUED:
        return queued(job, actor=actor)
    if job.status == JobStatus.PROCESSING:
        return processing(job, actor=actor)
    if job.status == JobStatus.STORING:
        return storing(job, actor=actor)
    if job.status == JobStatus.REVIEW:
        return watch.review(job)
    return "final" if job.status in moves.JOB.final else "left alone"


# --- queued ----------------------------------------------------------------------------------------------------------


def queued(job: Job, *, actor: str) -> str:
    """Has it a live submission, take that up; was the last one refused for its input, say so; else begin one."""
    live = submissions.live(job)
    if live is None:
        last = submissions.last(job)
        if last and last.status == "refused" and last.refusal == Submission.Refusal.INPUT:
            return refuse(job, last, actor=actor)
        if older_than(job, settings.QUEUE_DEADLINE_SECONDS):
            return park(job, reason=submit.why_waiting(job), actor=actor)
        return after_submit(submit.start(job), actor=actor)
    if live.status == "sending" and not submissions.abandon(live):
        return "sending"
    if live.status != "accepted":
        live = watch.recover(live)
    if live.status == "accepted":
        return take_up(job, live, actor=actor)
    if watch.unknown_for_too_long(live):
        return park(job, reason="unknown_submit", actor=actor)
    return "unknown"


def after_submit(sent: submit.Sent, *, actor: str) -> str:
    """Move the job by what its POST taught us; the submission's own row says it already."""
    if sent.lease and sent.submission and sent.said == "accepted":
        return won(_submit(sent.lease, sent.submission, actor), "submitted")
    if sent.lease and sent.submission and sent.said == "refused":
        return _refuse_or_park(sent.lease, sent.submission, actor)
    return sent.said


def take_up(job: Job, submission: Submission, *, actor: str) -> str:
    """An acceptance was learned without its worker: take the lease, move on."""
    lease = leases.take(Seen.of(job))
    return won(_submit(lease, submission, actor), "submitted") if lease else "leased"


def refuse(job: Job, submission: Submission, *, actor: str) -> str:
    """The provider refused the photo or prompt: the credit goes back, the customer is told in plain words."""
    lease = leases.take(Seen.of(job))
    return _refuse_or_park(lease, submission, actor) if lease else "leased"


def _refuse_or_park(lease: leases.Lease, submission: Submission, actor: str) -> str:
    job = Job.objects.get(pk=lease.seen.job_id)
    try:
        return won(_refuse(lease, job, submission, actor), "refused")
    except ledger.RestoreIncomplete as error:
        return park_incomplete(job, error, actor=actor)


# --- processing ------------------------------------------------------------------------------------------------------


def processing(job: Job, *, actor: str) -> str:
    """Read how the provider is doing, without a lease; decide by that reading, guarded by the version read before it."""
    submission = submissions.live(job)
    if submission is None:
        return park(job, reason="no_submission", actor=actor)
    snapshot = look(submission)
    if snapshot.state == State.RUNNING:
        if older_than(job, settings.PROCESSING_DEADLINE_SECONDS):
            return park(job, reason="deadline", actor=actor)
        return "running"
    if snapshot.state == State.DONE:
        if usable(submission, snapshot.url):
            return won(_finish(job, submission, actor), "finished")
        return bad_bytes(job, "the result has no usable address", actor=actor)
    if snapshot.state == State.GONE:
        return park(job, reason="gone", actor=actor)
    return failed(job, submission, snapshot, actor=actor)


def failed(job: Job, submission: Submission, snapshot: Snapshot, *, actor: str) -> str:
    """The provider says it will not be: again when that costs nothing, else the credit goes back."""
    if snapshot.kind == "image":
        own_address.check(submission.account)
    if snapshot.state == State.FAILED and snapshot.unbilled and job.accepted < MAX_ACCEPTED:
        return won(_retry(job, submission, snapshot, actor), "retried")
    reason = snapshot.kind or ("cancelled" if snapshot.state == State.CANCELLED else "provider_failed")
    try:
        return won(_fail(job, submission, snapshot, reason, actor), "failed")
    except ledger.RestoreIncomplete as error:
        return park_incomplete(job, error, actor=actor)


def look(submission: Submission) -> Snapshot:
    """One reading of the provider's state; a failed one counts for the account."""
    try:
        snapshot = get_provider(submission.provider).fetch_status(
            submissions.handle_of(submission), model=submission.model
        )
    except Misconfigured as error:
        accounts.open_outage(submission.account, state=accounts.STATE.MISCONFIGURED, detail=str(error))
        raise
    except RateLimited as error:
        accounts.slow_down(submission.account, seconds=error.retry_after)
        raise
    except ProviderError as error:
        accounts.failure(submission.account, detail=f"read: {error}")
        raise
    accounts.read_ok(submission.account)
    return snapshot


# --- storing ---------------------------------------------------------------------------------------------------------


def storing(job: Job, *, actor: str) -> str:
    """Under a lease, stream the result to a fresh key, prove it is a video and that storage holds it, then settle."""
    if older_than(job, settings.STORING_DEADLINE_SECONDS):
        return park(job, reason="deadline", actor=actor)
    submission = submissions.live(job)
    if submission is None:
        return park(job, reason="no_submission", actor=actor)
    lease = leases.take(Seen.of(job))
    if lease is None:
        return "leased"
    try:
        stored = fetch_and_verify(job, submission, lease, look(submission))
    except BadBytes as error:
        return bad_bytes(job, str(error), actor=actor, lease=lease)
    except NotNow as error:
        log.warning("job %s: result not fetched now: %s", job.pk, error)
        leases.drop(lease)
        return "waits"
    except leases.LeaseLost:
        return "lease lost"
    except (ProviderError, StorageError):
        leases.drop(lease)
        raise
    outcome = _store(lease, job, submission, stored, actor)
    if not outcome.won:
        forget(stored)
    return won(outcome, "completed")


def bad_bytes(job: Job, what: str, *, actor: str, lease: leases.Lease | None = None) -> str:
    """Count bytes that are no video; the third time a person looks."""
    if job.bad_bytes + 1 >= BAD_BYTES:
        reason = "gone" if what.startswith("gone") else "bad_bytes"
        return park(job, reason=reason, actor=actor, lease=lease, last_error=what)
    rows = Job.objects.filter(pk=job.pk, status=job.status, version=job.version, bad_bytes=job.bad_bytes)
    rows = rows.filter(lease_id=lease.id) if lease else rows
    rows.update(bad_bytes=F("bad_bytes") + 1, last_error=what[:300], lease_id=None, lease_until=None)
    return "bad bytes"


# --- parking ---------------------------------------------------------------------------------------------------------


def park(job: Job, *, reason: str, actor: str, lease: leases.Lease | None = None, last_error: str = "") -> str:
    """Put the job on the staff's list, with a reason; where its time was over, the customer's money is not."""
    return won(_park(job, reason, actor, lease, last_error), "parked")


def park_incomplete(job: Job, error: Exception, *, actor: str) -> str:
    """The ledger could not put everything back: nothing was said to be returned, and a person must look."""
    log.error("ALARM job %s: %s", job.pk, error)
    guards.count("alarm.restore_incomplete")
    lease = leases.Lease(Seen.of(job), job.lease_id) if job.lease_id else None
    return park(job, reason="restore_incomplete", actor=actor, lease=lease, last_error=str(error))


def postpone(job: Job) -> None:
    """A row that raised what nobody explains waits, and is parked after ten times, so that it never holds up the others."""
    log.exception("job %s raised in %s", job.pk, job.status)
    rows = Job.objects.filter(pk=job.pk, version=job.version).exclude(status__in=moves.JOB.final)
    wait = min(900, 60 * 2 ** min(job.failures, 4))
    rows.update(failures=F("failures") + 1, next_step_at=clock.after(wait))
    if job.failures + 1 >= POISON and job.status != JobStatus.REVIEW:
        park(job, reason="poison", actor="runner")


# --- the blocks ------------------------------------------------------------------------------------------------------


@guards.block("generation.submit")
def _submit(lease: leases.Lease, submission: Submission, actor: str) -> None:
    moves.move_job("submit", seen=lease.seen, actor=actor, lease_id=lease.id)
    _stands(submission)


@guards.block("generation.refuse")
def _refuse(lease: leases.Lease, job: Job, submission: Submission, actor: str) -> None:
    reason = submission.refusal_kind or "invalid_input"
    moves.move_job(
        "refuse", seen=lease.seen, actor=actor, lease_id=lease.id, reason=reason, last_error=submission.detail
    )
    ledger.release(hold_id=job.hold_id, owner_id=job.owner_id, note=reason)


@guards.block("generation.finish")
def _finish(job: Job, submission: Submission, actor: str) -> None:
    moves.move_job("finish", seen=Seen.of(job), actor=actor)
    _stands(submission)


@guards.block("generation.retry")
def _retry(job: Job, submission: Submission, snapshot: Snapshot, actor: str) -> None:
    moves.move_job("retry", seen=Seen.of(job), actor=actor, reason="provider_failed", last_error=snapshot.detail[:300])
    moves.move_submission("fail", submission_id=submission.pk, detail=snapshot.detail[:300])


@guards.block("generation.fail")
def _fail(job: Job, submission: Submission, snapshot: Snapshot, reason: str, actor: str) -> None:
    moves.move_job("fail", seen=Seen.of(job), actor=actor, reason=reason, last_error=snapshot.detail[:300])
    moves.move_submission("fail", submission_id=submission.pk, detail=snapshot.detail[:300])
    ledger.release(hold_id=job.hold_id, owner_id=job.owner_id, note=reason)


@guards.block("generation.store")
def _store(lease: leases.Lease, job: Job, submission: Submission, stored: Stored, actor: str) -> None:
    moves.move_job("store", seen=lease.seen, actor=actor, lease_id=lease.id, **stored.fields())
    moves.move_submission("done", submission_id=submission.pk)
    short = ledger.settle(hold_id=job.hold_id, owner_id=job.owner_id)
    if short:
        log.error("ALARM job %s is delivered, the ledger is short of %s credits", job.pk, short)


@guards.block("generation.park")
def _park(job: Job, reason: str, actor: str, lease: leases.Lease | None, last_error: str) -> None:
    lease_id = lease.id if lease else None
    fields = {"last_error": last_error[:300]} if last_error else {}
    moves.move_job("park", seen=Seen.of(job), actor=actor, reason=reason, lease_id=lease_id, bad_bytes=0, **fields)


def _stands(submission: Submission) -> None:
    """The submission the decision speaks of is still the accepted one. Read after its job's row was written, which locks it."""
    if not Submission.objects.filter(pk=submission.pk, status="accepted").exists():
        raise guards.LostRace("submission.stands")


# --- the pieces ------------------------------------------------------------------------------------------------------


def read(job_id: int) -> Job:
    """The job as it is now."""
    return Job.objects.get(pk=job_id)


def older_than(job: Job, seconds: float) -> bool:
    """Whether the job has been in its state for longer, by the database's clock."""
    return Job.objects.filter(pk=job.pk, version=job.version, state_since__lte=clock.ago(seconds)).exists()


def won(outcome: guards.Outcome, word: str) -> str:
    """The word for a block that won; a lost one says which guard lost."""
    return word if outcome.won else f"lost {outcome.lost}"
