"""One reading of how the provider is doing with a submission, and what it says about the account."""

import logging

from generation import accounts, moves, submissions
from generation.models import Submission
from generation.providers import provider_of
from generation.providers.base import ProviderError, Snapshot
from waistheart import guards

log = logging.getLogger(__name__)
UNKNOWN_WORD = "unknown word "


def look(submission: Submission) -> Snapshot:
    """Read the provider's state, with the key it was sent with; a failed reading is raised and counts for the account.

    Without that key it is Misconfigured, which says nothing of the account. Repeat it at will.
    """
    provider = provider_of(submission)
    try:
        snapshot = provider.fetch_status(submissions.handle_of(submission), model=submission.model)
    except ProviderError as error:
        accounts.read_failed(submission.account, error, what="read")
        raise
    accounts.read_ok(submission.account)
    if snapshot.unknown_word and not submission.detail.startswith(UNKNOWN_WORD):
        tell_unknown_word(submission, snapshot.unknown_word)
    return snapshot


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
