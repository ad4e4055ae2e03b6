"""One reading of how the provider is doing with a submission, and what it says about the account."""

import logging
from dataclasses import replace

from django.conf import settings

from generation import accounts, moves, parking, submissions
from generation.models import ProviderAccount, Submission
from generation.outbound import NotPinned, TransferFailed, target
from generation.providers import provider_of
from generation.providers.base import ForeignHost, ProviderError, RateLimited, Snapshot, State
from generation.states import JOB, JobStatus
from waistheart import guards

log = logging.getLogger(__name__)
NOBODY_WAITS = {JobStatus.REVIEW, *JOB.final}
WAITING = [JobStatus.PROCESSING, JobStatus.STORING]
UNKNOWN_WORD = "unknown word "
LIST = "list"
TOLD = "stopped the account: "  # how the read error of a submission begins that has opened an outage
FOREIGN = f"{ForeignHost.__name__}: "  # how the last error of a job begins that waits for its host to be pinned


def look(submission: Submission) -> Snapshot:
    """Read the provider's state, with the key it was sent with; a failed reading is raised, and counts for the account as `unread` says.

    Without that key it is Misconfigured, which says nothing of the account. Repeat it at will.
    """
    provider = provider_of(submission)
    try:
        snapshot = provider.fetch_status(submissions.handle_of(submission), model=submission.model)
    except ProviderError as error:
        unread(submission, error, what="read")
        raise
    accounts.read_ok(submission.account)
    if submission.read_error:
        Submission.objects.filter(pk=submission.pk).update(read_error="")
    if snapshot.unknown_word and not submission.detail.startswith(UNKNOWN_WORD):
        tell_unknown_word(submission, snapshot.unknown_word)
    return snapshot


def unread(submission: Submission, error: ProviderError, *, what: str) -> None:
    """Write a failed reading on its row, and count it for the account where it is evidence against that.

    Where nobody waits for the job any more (review, final) it is none: one request that cannot be read there, by whatever mistake, must
    not stop everybody else. Nor is a list that is refused, away or asked too often: it is another host's, and POSTs go on. A refused
    reading of a job that waits opens an outage at once, but only once: such an outage is closed by nothing but a POST begun and accepted
    after it, so the key works, and what is refused again is this request alone. It may speak again after a reading of its own that went
    well. A key that is revoked later is told by the next POST, and by each other request that is read. Told to slow down by anything but
    the list, we do, whoever asked.
    """
    refused, told = isinstance(error, accounts.REFUSED), submission.read_error.startswith(TOLD)
    words = parking.named(error)
    if what == LIST:
        if refused:
            accounts.list_refused(submission.account, error)
    elif isinstance(error, RateLimited):
        accounts.read_failed(submission.account, error, what=what)
    elif submission.job.status not in NOBODY_WAITS and not (refused and told):
        accounts.read_failed(submission.account, error, what=what)
        words = f"{TOLD}{words}"[:300] if refused else words
    # After the outage: who is stopped between the two tells it once more, and never not at all. Other failures do not hide it.
    if not told:
        Submission.objects.filter(pk=submission.pk).exclude(read_error=words).update(read_error=words)


def look_for_result(submission: Submission) -> Snapshot:
    """The same where the result is wanted: an address that may not be fetched is none, and one on a host that we do not pin is
    ForeignHost. That is for us to mend, and until then whatever else is bought would wait there as well: the account's outage.
    A job that waits for a person by now has told us so already, and stops nobody else again and again."""
    snapshot = look(submission)
    if snapshot.state != State.DONE:
        return snapshot
    try:
        target(snapshot.url, allowed_hosts=provider_of(submission).media_hosts, live=settings.LIVE)
    except NotPinned as error:
        trouble = ForeignHost(f"the result lies on {error}, which our list of media hosts does not name")
        if submission.job.status in WAITING:
            accounts.read_failed(submission.account, trouble, what="result")
        raise trouble from error
    except TransferFailed:
        return replace(snapshot, url="")
    return snapshot


def still_foreign(account: ProviderAccount) -> bool:
    """Whether the newest result that waits on a foreign host waits there still: the free read before the probe of such an outage.

    One that has waited until its deadline holds up nobody any more: it may be the only odd address there is, and an accepted POST
    tells. Where all results lie elsewhere, the next one stops the buying for as long again.
    """
    waiting = Submission.objects.filter(account=account, status="accepted", job__last_error__startswith=FOREIGN)
    waiting = waiting.filter(job__status__in=WAITING)
    newest = waiting.select_related("account", "job").order_by("-sent_at", "-pk").first()
    if newest is None:
        return False
    try:
        look_for_result(newest)
    except (ForeignHost, RateLimited) as error:
        log.info("%s takes no work yet: %s", account, error)
        return True
    except ProviderError:
        return False  # that it cannot be read any more says nothing of its host
    return False


def tell_unknown_word(submission: Submission, word: str) -> None:
    """One alarm per submission whose status nobody here knows, however often it is read; the word stays on its row."""
    if _keep_word(submission, word).won:
        log.error("ALARM submission %s: %s says an unknown status word: %s", submission.pk, submission.provider, word)
        guards.count("alarm.unknown_status_word")


@guards.block("generation.unknown_word")
def _keep_word(submission: Submission, word: str) -> None:
    moves.write_job(job_id=submission.job_id)
    rows = Submission.objects.filter(pk=submission.pk).exclude(detail__startswith=UNKNOWN_WORD)
    guards.must("submission.unknown_word", rows.update(detail=f"{UNKNOWN_WORD}{word}"))
