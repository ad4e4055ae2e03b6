"""Celery tasks of the work. Each carries an id and nothing else, and makes one call."""

from celery import shared_task

from generation import accounts, runner, schedule, sweep, watch, work
from generation.models import Job, Submission
from generation.providers import get_provider

ENDED = {"completed", "failed", "refused", "retried", "parked"}


@shared_task(name="generation.advance")
def advance(job_id: int) -> None:
    """Look at one job; when it gave a slot up, nudge whoever is next."""
    if runner.advance(job_id) in ENDED:
        nudge_next(job_id)


@shared_task(name="generation.watch")
def watch_submission(submission_id: int) -> None:
    """Look at a live submission whose job has ended."""
    watch.watch(Submission.objects.select_related("account", "job").get(pk=submission_id))


@shared_task(name="generation.probe")
def probe() -> None:
    """Try the accounts that cannot take work."""
    sweep.probe(lambda task, row_id: work.nudge(row_id))


def nudge_next(job_id: int) -> None:
    """A slot came free: those whose turn it is need not wait for the sweep."""
    account = accounts.account_of(get_provider(Job.objects.get(pk=job_id).provider))
    for next_id in schedule.next_ids(account, most=account.in_flight_limit):
        work.nudge(next_id)
