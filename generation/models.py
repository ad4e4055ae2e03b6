"""The work and its outside world. `Job.status` is written only in `moves.py`, leases only in `leases.py`."""

import secrets
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from billing.models import Hold
from generation.states import LIVE_SUBMISSION, JobStatus, SubmissionStatus


def new_token() -> str:
    """An unguessable token of 192 bits that is safe in an address."""
    return secrets.token_urlsafe(24)


class ProviderAccount(models.Model):
    """How one key at one provider is doing; with a model named, how that model is doing there."""

    class State(models.TextChoices):
        OK = "ok", "ok"
        OUT_OF_CREDITS = "out_of_credits", "out of credits"
        MISCONFIGURED = "misconfigured", "misconfigured"
        UNAVAILABLE = "unavailable", "unavailable"

    provider = models.CharField(max_length=20)
    key_print = models.CharField(max_length=16, help_text="a fingerprint of the key, never the key")
    model = models.CharField(max_length=120, blank=True, default="", help_text="empty: the whole account")
    state = models.CharField(max_length=16, choices=State.choices, default=State.OK)
    since = models.DateTimeField(db_default=Now())
    detail = models.CharField(max_length=300, blank=True, default="")
    not_before = models.DateTimeField(null=True, blank=True)
    next_probe_at = models.DateTimeField(null=True, blank=True)
    read_ok_at = models.DateTimeField(null=True, blank=True)
    failures = models.PositiveIntegerField(default=0)
    in_flight_limit = models.PositiveSmallIntegerField(default=2)
    writes = models.PositiveBigIntegerField(default=0)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(name="one_account_per_key_and_model", fields=["provider", "key_print", "model"]),
            models.CheckConstraint(name="outage_is_probed", condition=Q(state="ok") | Q(next_probe_at__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"{self.provider} {self.model or 'account'}: {self.state}"


class Job(models.Model):
    """One photo becomes one video. What it needs is frozen at creation; the rest moves under guards."""

    Status = JobStatus

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="jobs")
    hold = models.OneToOneField(Hold, on_delete=models.PROTECT, related_name="job")
    lot = models.CharField(max_length=32, help_text="shared by the jobs of one order")
    lot_number = models.PositiveSmallIntegerField(default=1)
    lot_size = models.PositiveSmallIntegerField(default=1)
    photo_key = models.CharField(max_length=200)
    photo_sha256 = models.CharField(max_length=64)
    crop = models.PositiveSmallIntegerField(help_text="position of the 9:16 frame, 0 to 100 per cent")
    prompt = models.TextField()
    provider = models.CharField(max_length=20)
    model = models.CharField(max_length=120)
    parameters = models.JSONField(default=dict)
    credits = models.PositiveSmallIntegerField()
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    status = models.CharField(max_length=10, choices=JobStatus.choices, default=JobStatus.QUEUED)
    version = models.PositiveIntegerField(default=1)
    state_since = models.DateTimeField(db_default=Now())
    lease_id = models.UUIDField(null=True, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    next_step_at = models.DateTimeField(null=True, blank=True, db_default=Now())
    tries = models.PositiveIntegerField(default=0)
    failures = models.PositiveSmallIntegerField(default=0, help_text="rows that raised what nobody explains")
    not_before = models.DateTimeField(null=True, blank=True, help_text="put off: until then others take its turn")
    put_offs = models.PositiveSmallIntegerField(default=0, help_text="how often storage did not give its photo")
    bad_bytes = models.PositiveSmallIntegerField(default=0)
    accepted = models.PositiveSmallIntegerField(default=0, help_text="accepted submissions since the last requeue")
    writes = models.PositiveBigIntegerField(default=0)
    last_error = models.CharField(max_length=300, blank=True, default="")
    reason = models.CharField(max_length=40, blank=True, default="")

    video_key = models.CharField(max_length=200, blank=True, default="")
    video_size = models.PositiveBigIntegerField(null=True, blank=True)
    video_sha256 = models.CharField(max_length=64, blank=True, default="")
    video_ms = models.PositiveIntegerField(null=True, blank=True)
    video_width = models.PositiveSmallIntegerField(null=True, blank=True)
    video_height = models.PositiveSmallIntegerField(null=True, blank=True)
    poster_key = models.CharField(max_length=200, blank=True, default="")
    keep_until = models.DateTimeField(null=True, blank=True, help_text="when the video is deleted")
    deleted_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(name="job_status_known", condition=Q(status__in=JobStatus.values)),
            models.CheckConstraint(
                name="completed_job_has_a_video",
                condition=~Q(status="completed")
                | Q(deleted_at__isnull=False)
                # A CHECK that comes to NULL is kept, so a missing size must be asked for by itself.
                | (~Q(video_key="") & Q(video_size__isnull=False, video_size__gt=0) & ~Q(video_sha256="")),
            ),
            models.CheckConstraint(
                name="lease_has_an_end", condition=Q(lease_id__isnull=True) | Q(lease_until__isnull=False)
            ),
            models.CheckConstraint(
                name="unfinished_job_has_a_next_step",
                condition=Q(status__in=["completed", "failed"]) | Q(next_step_at__isnull=False),
            ),
            models.UniqueConstraint(name="one_job_per_place_in_lot", fields=["lot", "lot_number"]),
        ]
        indexes: ClassVar = [
            models.Index(
                name="job_due",
                fields=["status", "next_step_at", "id"],
                condition=~Q(status__in=["completed", "failed"]),
            ),
            models.Index(
                name="job_to_delete",
                fields=["keep_until"],
                condition=Q(deleted_at__isnull=True, keep_until__isnull=False),
            ),
            models.Index(name="job_waiting", fields=["owner", "created_at", "id"], condition=Q(status="queued")),
        ]

    def __str__(self) -> str:
        return f"job {self.pk} ({self.status})"


class Submission(models.Model):
    """One paid POST. The row is committed before the first byte is sent, and says what became of it."""

    Status = SubmissionStatus

    class Refusal(models.TextChoices):
        INPUT = "input"
        ACCOUNT = "account"
        TOO_FAST = "too_fast"
        NOT_SENT = "not_sent"
        UNREACHABLE = "unreachable", "our image address"

    job = models.ForeignKey(Job, on_delete=models.PROTECT, related_name="submissions")
    account = models.ForeignKey(ProviderAccount, on_delete=models.PROTECT, related_name="submissions")
    number = models.PositiveSmallIntegerField()
    key = models.CharField(max_length=32, unique=True)
    provider = models.CharField(max_length=20)
    model = models.CharField(max_length=120)
    lease_id = models.UUIDField(help_text="the lease it was inserted under")
    token = models.CharField(max_length=40, unique=True, default=new_token, help_text="in the callback's address")
    image_token = models.CharField(max_length=40, unique=True, default=new_token, help_text="in the image's address")
    image_key = models.CharField(max_length=200)
    image_deleted_at = models.DateTimeField(null=True, blank=True)
    status = models.CharField(max_length=8, choices=SubmissionStatus.choices, default=SubmissionStatus.SENDING)
    state_since = models.DateTimeField(db_default=Now())
    sent_at = models.DateTimeField(db_default=Now())
    external_id = models.CharField(max_length=200, null=True, blank=True)  # noqa: DJ001  (null is "not known", and unique)
    status_url = models.TextField(blank=True, default="")
    result_url = models.TextField(blank=True, default="")
    cancel_url = models.TextField(blank=True, default="")
    refusal = models.CharField(max_length=12, choices=Refusal.choices, blank=True, default="")
    refusal_kind = models.CharField(max_length=40, blank=True, default="")
    detail = models.CharField(max_length=300, blank=True, default="")
    read_error = models.CharField(max_length=300, blank=True, default="", help_text="why it could not be read last")
    cost_microdollars = models.PositiveBigIntegerField(null=True, blank=True)
    next_look_at = models.DateTimeField(null=True, blank=True, db_default=Now())
    looks = models.PositiveIntegerField(default=0)
    resumes = models.PositiveSmallIntegerField(default=0)
    late_success_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(name="submission_status_known", condition=Q(status__in=SubmissionStatus.values)),
            models.UniqueConstraint(
                name="one_live_submission_per_job", fields=["job"], condition=Q(status__in=LIVE_SUBMISSION)
            ),
            models.UniqueConstraint(name="submission_number_per_job", fields=["job", "number"]),
            models.UniqueConstraint(name="one_submission_per_external_id", fields=["provider", "external_id"]),
            models.CheckConstraint(
                name="accepted_submission_has_an_id", condition=~Q(status="accepted") | Q(external_id__isnull=False)
            ),
            models.CheckConstraint(name="refused_submission_says_why", condition=~Q(status="refused") | ~Q(refusal="")),
        ]
        indexes: ClassVar = [
            models.Index(
                name="submission_live", fields=["account", "sent_at"], condition=Q(status__in=LIVE_SUBMISSION)
            ),
            models.Index(
                name="submission_image_to_delete",
                fields=["state_since"],
                condition=Q(image_deleted_at__isnull=True) & ~Q(status__in=LIVE_SUBMISSION),
            ),
            models.Index(name="submission_due", fields=["next_look_at", "id"], condition=Q(status__in=LIVE_SUBMISSION)),
        ]

    def __str__(self) -> str:
        return f"submission {self.number} of job {self.job_id} ({self.status})"


class JobEvent(models.Model):
    """One move of a job, written in the move's own transaction. Rows are added, never changed."""

    job = models.ForeignKey(Job, on_delete=models.PROTECT, related_name="events")
    move = models.CharField(max_length=20)
    source = models.CharField(max_length=10, blank=True, default="")
    target = models.CharField(max_length=10)
    version = models.PositiveIntegerField()
    reason = models.CharField(max_length=300, blank=True, default="")
    actor = models.CharField(max_length=254)
    at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(name="one_event_per_version", fields=["job", "version"])]

    def __str__(self) -> str:
        return f"{self.move}: {self.source or 'birth'} -> {self.target}"


class JobInReview(Job):
    """The same rows, as the staff's list of those that wait for a person."""

    class Meta:
        proxy = True
        verbose_name = "job in review"
        verbose_name_plural = "jobs in review"
