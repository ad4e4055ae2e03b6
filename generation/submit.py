"""The paid POST: who may begin one, the row that says so before the first byte, and what its answer teaches."""

import hashlib
import logging
from dataclasses import dataclass

from django.core.exceptions import ImproperlyConfigured

from generation import accounts, crop, leases, own_address, parking, schedule, submissions
from generation.looking import still_foreign
from generation.models import Job, ProviderAccount, Submission, new_token
from generation.moves import Seen
from generation.providers import get_provider
from generation.providers.base import (
    Misconfigured,
    NotSent,
    OutOfCredits,
    Provider,
    ProviderError,
    RateLimited,
    Rejected,
    Unavailable,
    UnknownOutcome,
)
from waistheart import storage
from waistheart.installation import ident

log = logging.getLogger(__name__)
STATE = accounts.STATE
REFUSAL = Submission.Refusal


@dataclass(frozen=True)
class Sent:
    """What became of starting: a word, and where the job may move now, the lease and the submission to name in its guard."""

    said: str
    lease: leases.Lease | None = None
    submission: Submission | None = None


def start(job: Job) -> Sent:
    """Begin a submission if it is this job's turn and the account can take it. A second caller finds the lease taken.

    StorageError: its photo or image cannot be had now, and others take its turn meanwhile.
    """
    try:
        return _start(job)
    except storage.StorageError:
        parking.put_off(job)
        raise


def _start(job: Job) -> Sent:
    provider = get_provider(job.provider)
    account = accounts.account_of(provider)
    refusal = admit(job, account, provider)
    if refusal:
        return Sent(refusal)
    lease = leases.take(Seen.of(job))
    if lease is None:
        return Sent("leased")
    with leases.given_back_on_error(lease):
        try:
            submission = begin(job, lease, account)
        except (storage.StorageError, OSError) as error:
            # One name for all its kinds: by it others go first.
            raise storage.StorageError(f"{type(error).__name__}: {error}") from error
        if submission is None:
            leases.drop(lease)
            return Sent("not begun")
        return post(job, lease, submission, provider)


def admit(job: Job, account: ProviderAccount, provider: Provider) -> str:
    """Why no POST may be begun for this job now, in a word; empty when it may. An outage lets one probe through at a time."""
    if not accounts.may_post(account):
        return "told to slow down"
    model = accounts.blocked_models(account).get(job.model)
    if model is not None:
        if accounts.free_slots(account) <= 0 or job.pk != schedule.next_of_model(model):
            return "model is out"
        if not take_probe(job, model):
            return "model is out"
    elif job.pk not in schedule.next_ids(account, most=account.in_flight_limit if account.state == STATE.OK else 1):
        return "not its turn"
    if account.state == STATE.OK:
        return ""
    if not take_probe(job, account):
        return account.state
    if account.state == STATE.UNAVAILABLE:
        return probe(job, account, provider)
    return account.state if still_foreign(account) else ""


def take_probe(job: Job, row: ProviderAccount) -> bool:
    """Take the one probe of an outage for a job whose picture can be made: one whose photo is lost would use up each of them, and
    nothing would ever be bought again. StorageError when it cannot."""
    if not accounts.probe_is_due(row):
        return False
    try:
        portrait(job)
    except (storage.StorageError, OSError) as error:
        # As at a start: by this name others go first.
        raise storage.StorageError(f"{type(error).__name__}: {error}") from error
    return accounts.take_probe(row)


def probe(job: Job, account: ProviderAccount, provider: Provider) -> str:
    """An unavailable account is read first; one POST follows only when the read, and our own image address, answered."""
    try:
        reachable = own_address.proven(job, portrait(job))
    except (storage.StorageError, OSError) as error:
        # As at a start: by this name others go first.
        raise storage.StorageError(f"{type(error).__name__}: {error}") from error
    if not reachable:
        return "our own image address is not reachable"
    try:
        provider.probe(model=job.model)
    except accounts.REFUSED as error:
        # It answers again. Whether the key is good for a POST, a POST tells.
        accounts.list_refused(account, error)
        return ""
    except ProviderError as error:
        if (isinstance(error, Unavailable) and error.this_only) or accounts.read_lately(account):
            # It answers again, if only that this is no question to ask; or what we read of work under way says that it does.
            return ""
        log.info("%s is still unavailable: %s", account, error)
        accounts.read_failed(account, error, what="probe")
        return account.state
    accounts.read_ok(account)
    return ""


def begin(job: Job, lease: leases.Lease, account: ProviderAccount) -> Submission | None:
    """Make the image this submission alone shows, then commit "I am sending". None, and the image gone, when a guard lost."""
    image_key = storage.fresh_key(installation=ident(), kind="images", suffix=".jpg")
    storage.save_bytes(key=image_key, data=portrait(job), content_type="image/jpeg")
    try:
        outcome = submissions.begin(
            job=job,
            lease=lease,
            account=account,
            image_key=image_key,
            image_token=new_token(),
            state_seen=account.state,
        )
    except Exception as error:
        # Its COMMIT may have been made all the same. The row alone looks as if it were paid; only this worker knows that it is not.
        submissions.never_sent(job, lease, image_key=image_key, detail=f"never sent: {type(error).__name__}: {error}")
        raise
    if outcome.won:
        return outcome.value
    if not Submission.objects.filter(image_key=image_key).exists():
        storage.delete(key=image_key)
    return None


def portrait(job: Job) -> bytes:
    """The crop of exactly the photo that was approved at Pay: its hash must be the one frozen then."""
    photo = storage.read(key=job.photo_key)
    if hashlib.sha256(photo).hexdigest() != job.photo_sha256:
        raise storage.StorageError(f"job {job.pk}: the photo's bytes are not the ones that were approved")
    return crop.crop_jpeg(photo, job.crop)


def post(job: Job, lease: leases.Lease, submission: Submission, provider: Provider) -> Sent:
    """Send once, and write what was learned in a block of its own before anything else is decided."""
    try:
        handle = provider.submit(submissions.ask_of(submission, job), may_send=lease.fresh_for_submit)
    except ProviderError as error:
        learn(submission, error)
        if isinstance(error, Rejected):
            return Sent("refused", lease, submissions.last(job))
        leases.drop(lease)
        return Sent(type(error).__name__)
    if submissions.record_accepted(submission, handle):
        return Sent("accepted", lease, submission)
    leases.drop(lease)
    return Sent("accepted, but more is known already")


def learn(submission: Submission, error: ProviderError) -> None:
    """Write the refusal or the lost answer on the submission, then what it says about the account."""
    account, detail = submission.account, error.detail
    if isinstance(error, UnknownOutcome):
        submissions.record_unknown(submission, detail=detail)
        if error.server_error:
            accounts.failure(account, detail=detail)
        return
    refusal, kind = refusal_of(submission, error)
    submissions.record_refused(submission, refusal=refusal, detail=detail, kind=kind)
    if isinstance(error, OutOfCredits):
        accounts.open_outage(account, state=STATE.OUT_OF_CREDITS, detail=detail)
    elif isinstance(error, RateLimited):
        accounts.slow_down(account, seconds=error.retry_after)
    elif isinstance(error, Misconfigured):
        of_model = error.model_only or accounts.works_for_others(submission)
        row = accounts.row_of_model(account, model=submission.model) if of_model else account
        accounts.open_outage(row, state=STATE.MISCONFIGURED, detail=detail)
    elif isinstance(error, NotSent) and "lease" not in detail:
        accounts.failure(account, detail=detail)
    elif refusal == REFUSAL.UNREACHABLE and kind == own_address.OURS:
        own_address.outage(account)
    elif isinstance(error, Unavailable) and not error.image:
        accounts.failure(account, detail=detail)


def refusal_of(submission: Submission, error: ProviderError) -> tuple[str, str]:
    """Our word for a refusal. An image that they could not load is the photo's fault when its address gave it to us, three times."""
    if isinstance(error, Rejected):
        return REFUSAL.INPUT, error.kind
    if isinstance(error, RateLimited):
        return REFUSAL.TOO_FAST, ""
    if isinstance(error, NotSent):
        return REFUSAL.NOT_SENT, ""
    if isinstance(error, Unavailable) and error.image:
        kind = own_address.tried(submission)
        if kind == own_address.SHOWN and own_address.times_shown(job_id=submission.job_id) + 1 >= own_address.ENOUGH:
            return REFUSAL.INPUT, "image"
        return REFUSAL.UNREACHABLE, kind
    return REFUSAL.ACCOUNT, ""


def why_waiting(job: Job) -> str:
    """The reason a job queued for too long goes to the staff's list with: the account's state where that is why."""
    try:
        account = accounts.account_of(get_provider(job.provider))
    except (Misconfigured, ImproperlyConfigured):
        return STATE.MISCONFIGURED
    model = accounts.blocked_models(account).get(job.model)
    for row in (account, model):
        if row is not None and row.state != STATE.OK:
            return row.state
    return "deadline"
