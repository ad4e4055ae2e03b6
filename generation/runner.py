"""What happens to a job next: submitted, stored, delivered, and everything that can go wrong.

`advance` is called by the nudge after payment, the provider's hint, the sweep and staff alike. It looks at one job, makes at most one
step per state, and is harmless to call at any time, from anywhere, twice at once: the guards decide.
"""

import logging

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from billing import ledger
from generation import blocks, leases, own_address, submissions, submit, watch
from generation.looking import look_for_result
from generation.models import Job, Submission
from generation.moves import Seen
from generation.parking import bad_bytes, looked_well, named, park, park_incomplete, postpone
from generation.providers.base import Misconfigured, ProviderError, Snapshot, State
from generation.states import JOB, MAX_ACCEPTED, JobStatus
from generation.store import BadBytes, NotNow, fetch_and_verify, forget
from waistheart import clock, guards
from waistheart.storage import StorageError

log = logging.getLogger(__name__)
# A look went well and the job stays where it is. The words for what was left to somebody else do not tell.
LOOKED = {"running", "waits"}


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
            log.error("job %s (%s) waits: %s", job_id, job.status, named(error))
            Job.objects.filter(pk=job_id).update(last_error=named(error))
            return "waits"
        except Exception:
            log.exception("job %s raised in %s", job.pk, job.status)
            postpone(job)
            raise
        if read(job_id).version == before:
            if said in LOOKED:
                looked_well(job)
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
    return "final" if job.status in JOB.final else "left alone"


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
        return _submitted(sent.lease, sent.submission, actor)
    if sent.lease and sent.submission and sent.said == "refused":
        return _refuse_or_park(sent.lease, sent.submission, actor)
    return sent.said


def take_up(job: Job, submission: Submission, *, actor: str) -> str:
    """An acceptance was learned without its worker: take the lease, move on."""
    lease = leases.take(Seen.of(job))
    return _submitted(lease, submission, actor) if lease else "leased"


def _submitted(lease: leases.Lease, submission: Submission, actor: str) -> str:
    with leases.given_back_on_error(lease):
        return won(blocks.submit(lease, submission, actor), "submitted")


def refuse(job: Job, submission: Submission, *, actor: str) -> str:
    """The provider refused the photo or prompt: the credit goes back, the customer is told in plain words."""
    lease = leases.take(Seen.of(job))
    return _refuse_or_park(lease, submission, actor) if lease else "leased"


def _refuse_or_park(lease: leases.Lease, submission: Submission, actor: str) -> str:
    with leases.given_back_on_error(lease):
        job = Job.objects.get(pk=lease.seen.job_id)
        try:
            return won(blocks.refuse(lease, job, submission, actor), "refused")
        except ledger.RestoreIncomplete as error:
            return park_incomplete(job, error, actor=actor)


# --- processing ------------------------------------------------------------------------------------------------------


def processing(job: Job, *, actor: str) -> str:
    """Read how the provider is doing, without a lease; decide by that reading, guarded by the version read before it."""
    submission = submissions.live(job)
    if submission is None:
        return park(job, reason="no_submission", actor=actor)
    late = older_than(job, settings.PROCESSING_DEADLINE_SECONDS)
    if not late and leases.rests(job):
        return "rests"
    try:
        snapshot = look_for_result(submission)
    except (ProviderError, ImproperlyConfigured) as error:
        if late:  # silent for too long, or ours to mend; in review it is still looked at
            reason = "misconfigured" if isinstance(error, (Misconfigured, ImproperlyConfigured)) else "deadline"
            return park(job, reason=reason, actor=actor, last_error=named(error))
        raise
    if snapshot.state == State.RUNNING:
        return park(job, reason="deadline", actor=actor) if late else "running"
    if snapshot.state == State.DONE:
        if snapshot.url:
            return won(blocks.finish(job, submission, actor), "finished")
        return bad_bytes(job, "the result has no usable address", actor=actor)
    if snapshot.state == State.GONE:
        return park(job, reason="gone", actor=actor)
    return failed(job, submission, snapshot, actor=actor)


def failed(job: Job, submission: Submission, snapshot: Snapshot, *, actor: str) -> str:
    """The provider says it will not be: again when that costs nothing or may be our fault, else the credit goes back."""
    if snapshot.kind == "image":
        return image_failed(job, submission, snapshot, actor=actor)
    if snapshot.state == State.FAILED and snapshot.unbilled and job.accepted < MAX_ACCEPTED:
        return won(blocks.retry(job, submission, snapshot, actor), "retried")
    return give_up(job, submission, snapshot, actor=actor)


def image_failed(job: Job, submission: Submission, snapshot: Snapshot, *, actor: str) -> str:
    """They could not load the image: the photo's fault only when its address gave it to us each time, three times.

    Until then it is tried again although no source says that this is not billed (docs/adr/0007). After the last try a person looks
    when our address took one of them; when it was well, it ends like any last try that failed.
    """
    kind = own_address.tried(submission)
    if kind == own_address.OURS:
        own_address.outage(submission.account)
    if kind == own_address.SHOWN and own_address.times_shown(job_id=job.pk) + 1 >= own_address.ENOUGH:
        return give_up(job, submission, snapshot, actor=actor)
    if job.accepted < MAX_ACCEPTED:
        return won(blocks.retry(job, submission, snapshot, actor, kind=kind), "retried")
    if kind == own_address.OURS or own_address.took_a_try(job_id=job.pk):
        return park(job, reason="unavailable", actor=actor, last_error="our own image address was not reachable")
    return give_up(job, submission, snapshot, actor=actor, reason="provider_failed")


def give_up(job: Job, submission: Submission, snapshot: Snapshot, *, actor: str, reason: str = "") -> str:
    """The credit goes back, with the provider's reason unless another is given."""
    reason = reason or snapshot.kind or ("cancelled" if snapshot.state == State.CANCELLED else "provider_failed")
    try:
        return won(blocks.fail(job, submission, snapshot, reason, actor), "failed")
    except ledger.RestoreIncomplete as error:
        return park_incomplete(job, error, actor=actor)


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
    with leases.given_back_on_error(lease):
        return fetch_and_store(job, submission, lease, actor=actor)


def fetch_and_store(job: Job, submission: Submission, lease: leases.Lease, *, actor: str) -> str:
    """Bytes that are no video are counted, trouble that may pass is not; a definitely lost race deletes what it stored."""
    try:
        stored = fetch_and_verify(job, submission, lease, look_for_result(submission))
    except BadBytes as error:
        return bad_bytes(job, str(error), actor=actor, lease=lease)
    except NotNow as error:
        log.warning("job %s: result not fetched now: %s", job.pk, error)
        Job.objects.filter(pk=job.pk).update(last_error=named(error))
        leases.drop(lease)
        return "waits"
    except leases.LeaseLost:
        return "lease lost"
    outcome = blocks.store(lease, job, submission, stored, actor)
    if not outcome.won:
        forget(stored)
    return won(outcome, "completed")


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
