"""What happens when nobody calls: every minute each state's rows that are due are claimed and looked at.

A row is claimed before its id is published: its next step is moved on, growing with its tries, never by more than 15 minutes. So a
lost message costs one wait, two sweeps at once publish a row once, and 500 rows in one state never hold up one in another.
"""

from collections.abc import Iterator
from functools import partial

from django.db.models import Exists, F, OuterRef, Q

from billing.models import HoldPart
from generation import accounts, parking, schedule, work
from generation.models import Job, Submission
from generation.states import JOB, LIVE_SUBMISSION, JobStatus
from waistheart import clock, storage
from waistheart.sweeping import Part, Publish, each, publish_all, run

PAGE = 200
PAGES_A_DAY = 50
WAITS = (60, 60, 60, 60, 60, 60, 120, 300, 600, 900)
STATES = (JobStatus.STORING, JobStatus.PROCESSING, JobStatus.QUEUED, JobStatus.REVIEW)


def every_minute(publish: Publish) -> dict[str, object]:
    """One sweep: publish `("generation.advance", job)` and `("generation.watch", submission)`, cancel what owes, delete images.

    Answers how many rows of each kind were found. Harmless to run twice at once, late, or for long; a part that fails stops no other.
    """
    # What owes comes before the claims: a claimed row looks as if it had been postponed.
    parts: dict[str, Part] = {"cancelled": cancel_what_owes}
    parts |= {f"{state}": partial(publish_due, publish, state) for state in STATES}
    parts |= {
        "turns": lambda: publish_jobs(publish, whose_turn()),
        "model probes": lambda: publish_jobs(publish, model_probes()),
        "watched": lambda: publish_all(publish, "generation.watch", due_submissions()),
        "images": delete_images,
    }
    return {name: run(name, part) for name, part in parts.items()}


def publish_due(publish: Publish, status: str) -> int:
    """Have one claimed page of a state's due jobs looked at."""
    return publish_jobs(publish, due_jobs(status))


def publish_jobs(publish: Publish, ids: Iterator[int]) -> int:
    """Have each of these jobs looked at."""
    return publish_all(publish, "generation.advance", ids)


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
    for account in accounts.in_use().filter(model=""):
        if account.state == accounts.STATE.OK or accounts.probe_is_due(account):
            yield from schedule.next_ids(account, most=account.in_flight_limit)


def model_probes() -> Iterator[int]:
    """For each model in an outage whose probe is due, the job whose turn it is among those that wait for it."""
    outages = accounts.in_use().exclude(model="").exclude(state=accounts.STATE.OK)
    for row in outages.filter(next_probe_at__lte=clock.now()):
        job_id = schedule.next_of_model(row)
        if job_id is not None:
            yield job_id


def probe(publish: Publish) -> int:
    """Every 15 minutes: one try of each account and model that cannot take work; all that waited resumes when it is accepted."""
    return publish_jobs(publish, whose_turn()) + publish_jobs(publish, model_probes())


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
    jobs = Job.objects.filter(Exists(owing), ~Exists(live), status=JobStatus.QUEUED)
    jobs = jobs.exclude(failures__gt=0, next_step_at__gt=clock.now()).order_by("id")[:PAGE]
    cancel = partial(work.cancel, actor="sweep", reason="payment_reversed")
    return each("cancelled", jobs, lambda job: cancel(job=job), postpone=parking.postpone)


def delete_images() -> int:
    """Delete the crops of submissions that have ended: nobody needs their address any more."""
    ended = Submission.objects.filter(
        ~Q(status__in=LIVE_SUBMISSION), image_deleted_at__isnull=True, state_since__lte=clock.ago(60)
    )
    due = ended.filter(Q(next_look_at__isnull=True) | Q(next_look_at__lte=clock.now()))
    return each("images", due.order_by("state_since")[:PAGE], delete_image, postpone=image_stays)


def delete_image(submission: Submission) -> bool:
    """Delete one submission's crop, then say so on its row."""
    storage.delete(key=submission.image_key)
    return bool(Submission.objects.filter(pk=submission.pk).update(image_deleted_at=clock.now(), next_look_at=None))


def image_stays(submission: Submission) -> None:
    """Nobody looks at an ended submission any more, so its next look is for what is left of it."""
    Submission.objects.filter(pk=submission.pk).update(next_look_at=clock.after(900))


def delete_old_videos() -> int:
    """Delete delivered videos whose time is over, page after page; one that cannot be deleted now is left for the next day."""
    old = Job.objects.filter(keep_until__lte=clock.now(), deleted_at__isnull=True).order_by("keep_until", "id")
    deleted = left = 0
    for _ in range(PAGES_A_DAY):
        page = list(old[left : left + PAGE])
        done = each("videos", page, delete_video)
        deleted, left = deleted + done, left + len(page) - done
        if len(page) < PAGE:
            break
    return deleted


def delete_video(job: Job) -> bool:
    """Delete one job's bytes, then say so on the job: its CHECK wants a video or that date."""
    for key in filter(None, (job.video_key, job.poster_key)):
        storage.delete(key=key)
    return bool(Job.objects.filter(pk=job.pk, deleted_at__isnull=True).update(deleted_at=clock.now()))
