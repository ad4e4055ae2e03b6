"""What happens when nobody calls: every minute each state's rows that are due are claimed and looked at.

A row is claimed before its id is published: its next step is moved on, growing with its tries, never by more than 15 minutes. So a
lost message costs one wait, two sweeps at once publish a row once, and 500 rows in one state never hold up one in another.
"""

import logging
from collections.abc import Callable, Iterator

from django.db.models import Exists, F, OuterRef, Q

from billing.models import HoldPart
from generation import accounts, schedule, work
from generation.models import Job, ProviderAccount, Submission
from generation.states import JOB, LIVE_SUBMISSION, JobStatus
from waistheart import clock, storage

log = logging.getLogger(__name__)
Publish = Callable[[str, int], None]
PAGE = 200
WAITS = (60, 60, 60, 60, 60, 60, 120, 300, 600, 900)
STATES = (JobStatus.STORING, JobStatus.PROCESSING, JobStatus.QUEUED, JobStatus.REVIEW)


def every_minute(publish: Publish) -> dict[str, int]:
    """One sweep: publish `("generation.advance", job)` and `("generation.watch", submission)`, cancel what owes, delete images.

    Answers how many rows of each kind were found. Harmless to run twice at once, late, or for long.
    """
    found = {f"{state}": publish_all(publish, "generation.advance", due_jobs(state)) for state in STATES}
    found["turns"] = publish_all(publish, "generation.advance", whose_turn())
    found["watched"] = publish_all(publish, "generation.watch", due_submissions())
    found["cancelled"] = cancel_what_owes()
    found["images"] = delete_images()
    return found


def publish_all(publish: Publish, task: str, ids: Iterator[int]) -> int:
    """Publish each id; a broker that is away loses messages, never rows."""
    count = 0
    for row_id in ids:
        count += 1
        try:
            publish(task, row_id)
        except Exception:
            log.warning("could not publish %s(%s); the row stays due", task, row_id, exc_info=True)
    return count


def due_jobs(status: str) -> Iterator[int]:
    """Claim one page of a state's due jobs, oldest first."""
    page = Job.objects.filter(status=status, next_step_at__lte=clock.now()).order_by("next_step_at", "id")[:PAGE]
    for job_id, tries in page.values_list("id", "tries"):
        wait = WAITS[min(tries, len(WAITS) - 1)]
        rows = Job.objects.filter(pk=job_id, status=status, tries=tries, next_step_at__lte=clock.now())
        if rows.update(next_step_at=clock.after(wait), tries=F("tries") + 1):
            yield job_id


def whose_turn() -> Iterator[int]:
    """The queued jobs that the free slots of each account are for, whatever they were waiting for; outages only by their probe."""
    for account in ProviderAccount.objects.filter(model=""):
        if account.state == accounts.STATE.OK or probe_is_due(account):
            yield from schedule.next_ids(account, most=account.in_flight_limit)


def probe_is_due(account: ProviderAccount) -> bool:
    """Whether an account in an outage may be asked again now; the asking itself is decided by compare-and-swap."""
    return ProviderAccount.objects.filter(pk=account.pk, next_probe_at__lte=clock.now()).exists()


def model_probes() -> Iterator[int]:
    """For each model in an outage whose probe is due, the job whose turn it is among those that wait for it."""
    outages = ProviderAccount.objects.exclude(model="").exclude(state=accounts.STATE.OK)
    for row in outages.filter(next_probe_at__lte=clock.now()):
        job_id = schedule.next_of_model(row)
        if job_id is not None:
            yield job_id


def probe(publish: Publish) -> int:
    """Every 15 minutes: one try of each account and model that cannot take work; all that waited resumes when it is accepted."""
    return publish_all(publish, "generation.advance", whose_turn()) + publish_all(
        publish, "generation.advance", model_probes()
    )


def due_submissions() -> Iterator[int]:
    """Claim live submissions of jobs that have ended."""
    due = Submission.objects.filter(
        status__in=LIVE_SUBMISSION, next_look_at__lte=clock.now(), job__status__in=JOB.final
    )
    for submission_id, looks in due.order_by("next_look_at", "id").values_list("id", "looks")[:PAGE]:
        wait = WAITS[min(looks, len(WAITS) - 1)]
        rows = Submission.objects.filter(pk=submission_id, looks=looks, next_look_at__lte=clock.now())
        if rows.update(next_look_at=clock.after(wait), looks=F("looks") + 1):
            yield submission_id


def cancel_what_owes() -> int:
    """Cancel queued jobs without a live submission whose grant owes: the processor took the money back."""
    owing = HoldPart.objects.filter(hold=OuterRef("hold"), grant__owed__gt=0)
    live = Submission.objects.filter(job=OuterRef("pk"), status__in=LIVE_SUBMISSION)
    jobs = Job.objects.filter(Exists(owing), ~Exists(live), status=JobStatus.QUEUED).order_by("id")[:PAGE]
    return sum(work.cancel(job=job, actor="sweep", reason="payment_reversed") for job in jobs)


def delete_images() -> int:
    """Delete the crops of submissions that have ended: nobody needs their address any more."""
    ended = Submission.objects.filter(
        ~Q(status__in=LIVE_SUBMISSION), image_deleted_at__isnull=True, state_since__lte=clock.ago(60)
    )
    count = 0
    for submission in ended.order_by("state_since")[:PAGE]:
        try:
            storage.delete(key=submission.image_key)
        except storage.StorageError:
            log.warning("image of submission %s not deleted now", submission.pk, exc_info=True)
            continue
        Submission.objects.filter(pk=submission.pk).update(image_deleted_at=clock.now())
        count += 1
    return count


def delete_old_videos() -> int:
    """Delete delivered videos whose time is over, then say so on the job: its CHECK wants a video or that date."""
    old = Job.objects.filter(keep_until__lte=clock.now(), deleted_at__isnull=True).order_by("keep_until")[:PAGE]
    for job in old:
        for key in filter(None, (job.video_key, job.poster_key)):
            storage.delete(key=key)
        Job.objects.filter(pk=job.pk, deleted_at__isnull=True).update(deleted_at=clock.now())
    return len(old)
