"""Celery tasks of the work. Each carries an id and nothing else, and makes one call."""

from celery import shared_task

from generation import accounts, runner, schedule, submissions, sweep, watch, work
from generation.models import Job, ProviderAccount, Submission
from generation.providers import get_provider
from generation.states import JOB, LIVE_SUBMISSION


@shared_task(name="generation.advance")
def advance(job_id: int) -> None:
    """Look at one job; when it gave a slot up, or its turn, nudge whoever is next."""
    seen = Job.objects.get(pk=job_id)
    before = submissions.last(seen)
    runner.advance(job_id)
    job = Job.objects.get(pk=job_id)
    if job.put_offs > seen.put_offs:
        nudge_instead(job)
        return
    now = submissions.last(job)
    if now is not None and gave_a_slot_up(job, before, now):
        nudge_next(now.account, but=job_id)


@shared_task(name="generation.watch")
def watch_submission(submission_id: int) -> None:
    """Look at a live submission whose job has ended; when it ended as well, nudge whoever is next."""
    before = Submission.objects.select_related("account", "job").get(pk=submission_id)
    watch.watch(before)
    now = Submission.objects.select_related("account", "job").get(pk=submission_id)
    if gave_a_slot_up(now.job, before, now):
        nudge_next(now.account, but=now.job_id)


@shared_task(name="generation.probe")
def probe() -> None:
    """Try the accounts that cannot take work."""
    sweep.probe(lambda task, row_id: work.nudge(row_id))


def gave_a_slot_up(job: Job, before: Submission | None, now: Submission) -> bool:
    """Whether a look ended a submission: one that was live before it, or one begun in it whose job has ended with it.

    One begun in it that was not accepted, of a job that waits on, says that nobody should hurry.
    """
    if now.status in LIVE_SUBMISSION:
        return False
    begun_in_it = before is None or before.pk != now.pk
    was_live = before is not None and before.status in LIVE_SUBMISSION
    return was_live or (begun_in_it and job.status in JOB.final)


def nudge_instead(job: Job) -> None:
    """A job was put off in its turn, and the slot that it did not take is for the next one: one only, so that a storage that is away
    is asked once for each that waits, and by no more workers than before."""
    account = accounts.account_of(get_provider(job.provider))
    for next_id in schedule.next_ids(account, most=1):
        work.nudge(next_id)


def nudge_next(account: ProviderAccount, *, but: int) -> None:
    """A slot came free: those whose turn it is need not wait for the sweep."""
    for next_id in schedule.next_ids(account, most=account.in_flight_limit):
        if next_id != but:
            work.nudge(next_id)
