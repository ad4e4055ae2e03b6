"""What the shop sells and who ordered it. `Order.status` is written only in `moves.py`."""

import secrets
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from billing.models import Payment, new_key
from generation.models import Job
from orders.states import MailStatus, OrderStatus

CODE_LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"


def new_code() -> str:
    """An order code of 8 characters that can be read aloud: no 0, O, 1, I."""
    return "".join(secrets.choice(CODE_LETTERS) for _ in range(8))


def new_link_key() -> str:
    """The unguessable part of an order's address, 144 bits."""
    return secrets.token_urlsafe(18)


class Pose(models.Model):
    """A pose we sell. Staff edit it freely: what was ordered holds copies."""

    slug = models.SlugField(unique=True)
    name = models.CharField(max_length=60)
    description = models.CharField(max_length=200, help_text="what happens in the video, in words")
    prompt = models.TextField()
    model = models.CharField(max_length=120, blank=True, default="", help_text="empty: the shop's default model")
    parameters = models.JSONField(default=dict, blank=True)
    credits = models.PositiveSmallIntegerField(default=1)
    active = models.BooleanField(default=True)
    sort = models.PositiveSmallIntegerField(default=100)
    sample_key = models.CharField(max_length=200, blank=True, default="", editable=False)
    sample_size = models.PositiveIntegerField(default=0, editable=False)
    poster_key = models.CharField(max_length=200, blank=True, default="", editable=False)

    class Meta:
        ordering = ("sort", "id")
        constraints: ClassVar = [
            models.CheckConstraint(name="pose_costs_something", condition=Q(credits__gte=1, credits__lte=50))
        ]

    def __str__(self) -> str:
        return self.name


class Order(models.Model):
    """One purchase, from the first photo to the delivered videos."""

    Status = OrderStatus

    code = models.CharField(max_length=8, unique=True, default=new_code, editable=False)
    key = models.CharField(max_length=32, unique=True, default=new_link_key, editable=False)
    request_key = models.CharField(max_length=64, unique=True)
    lot = models.CharField(max_length=32, unique=True, default=new_key, editable=False)
    email = models.EmailField(max_length=254, blank=True, default="")
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="orders"
    )
    payment = models.OneToOneField(Payment, on_delete=models.PROTECT, null=True, blank=True, related_name="order")
    price = models.PositiveIntegerField(default=0, help_text="in the currency's smallest unit")
    currency = models.CharField(max_length=3, blank=True, default="")
    credits = models.PositiveSmallIntegerField(default=0)
    declarations = models.JSONField(default=dict, blank=True)
    status = models.CharField(max_length=16, choices=OrderStatus.choices, default=OrderStatus.DRAFT)
    state_since = models.DateTimeField(db_default=Now())
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    paid_at = models.DateTimeField(null=True, blank=True)
    seen_at = models.DateTimeField(null=True, blank=True, help_text="the customer has seen the order page after paying")
    writes = models.PositiveBigIntegerField(default=0)
    touched_at = models.DateTimeField(db_default=Now(), help_text="when its customer last changed it")

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(name="order_status_known", condition=Q(status__in=OrderStatus.values)),
            models.CheckConstraint(
                name="order_awaits_one_payment",
                condition=~Q(status="awaiting_payment") | Q(payment__isnull=False, owner__isnull=False),
            ),
            models.CheckConstraint(
                name="order_waiting_or_paid_has_a_price",
                condition=Q(status__in=["draft", "expired"]) | Q(credits__gte=1),
            ),
            models.CheckConstraint(name="paid_order_says_when", condition=~Q(status="paid") | Q(paid_at__isnull=False)),
        ]
        indexes: ClassVar = [
            models.Index(name="order_drafts_untouched", fields=["touched_at"], condition=Q(status="draft")),
            models.Index(name="order_paid", fields=["-paid_at"], condition=Q(status="paid")),
        ]

    def __str__(self) -> str:
        return self.code


class Photo(models.Model):
    """One upload under a key of its own; never overwritten."""

    order = models.ForeignKey(Order, on_delete=models.PROTECT, related_name="photos")
    key = models.CharField(max_length=200, unique=True)
    sha256 = models.CharField(max_length=64)
    size = models.PositiveIntegerField()
    width = models.PositiveIntegerField()
    height = models.PositiveIntegerField()
    format_seen = models.CharField(max_length=10)
    name = models.CharField(max_length=120, blank=True, default="")
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    keep_until = models.DateTimeField(
        null=True, blank=True, help_text="when its bytes are deleted; empty: still needed"
    )
    deleted_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes: ClassVar = [
            models.Index(
                name="photo_to_delete",
                fields=["keep_until"],
                condition=Q(deleted_at__isnull=True, keep_until__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"photo {self.pk} of order {self.order_id}"


class OrderItem(models.Model):
    """One video of an order: a pose, a photo, and once paid a job. `ask_payment` freezes what the job will need."""

    order = models.ForeignKey(Order, on_delete=models.PROTECT, related_name="items")
    number = models.PositiveSmallIntegerField(default=1)
    pose = models.ForeignKey(Pose, on_delete=models.PROTECT, related_name="items")
    photo = models.ForeignKey(Photo, on_delete=models.PROTECT, null=True, blank=True, related_name="items")
    crop = models.PositiveSmallIntegerField(default=50)
    job = models.OneToOneField(Job, on_delete=models.PROTECT, null=True, blank=True, related_name="item")

    told_at = models.DateTimeField(
        null=True, blank=True, help_text="when the mail about its end was put into the outbox"
    )

    frozen_at = models.DateTimeField(null=True, blank=True)
    pose_name = models.CharField(max_length=60, blank=True, default="")
    prompt = models.TextField(blank=True, default="")
    provider = models.CharField(max_length=20, blank=True, default="")
    model = models.CharField(max_length=120, blank=True, default="")
    parameters = models.JSONField(default=dict, blank=True)
    credits = models.PositiveSmallIntegerField(default=0)
    photo_key = models.CharField(max_length=200, blank=True, default="")
    photo_sha256 = models.CharField(max_length=64, blank=True, default="")

    class Meta:
        ordering = ("order", "number")
        indexes: ClassVar = [
            models.Index(name="item_to_tell", fields=["job"], condition=Q(told_at__isnull=True, job__isnull=False)),
        ]
        constraints: ClassVar = [
            models.UniqueConstraint(name="one_item_per_place", fields=["order", "number"]),
            models.CheckConstraint(name="item_place", condition=Q(number__gte=1, number__lte=50)),
            models.CheckConstraint(name="item_crop", condition=Q(crop__lte=100)),
            models.CheckConstraint(
                name="frozen_item_has_all_its_job_needs",
                condition=Q(frozen_at__isnull=True)
                | (~Q(photo_key="") & ~Q(photo_sha256="") & ~Q(prompt="") & ~Q(model="") & Q(credits__gte=1)),
            ),
        ]

    def __str__(self) -> str:
        return f"item {self.number} of order {self.order_id}"


class Mail(models.Model):
    """Outbox: one row per occasion, made in the block that gives the occasion, handed over by the sweep."""

    Status = MailStatus

    reference = models.CharField(max_length=64, help_text="order:K7Q2MXPA")
    kind = models.CharField(max_length=20)
    occasion = models.CharField(max_length=64)
    order = models.ForeignKey(Order, on_delete=models.PROTECT, related_name="mails", null=True, blank=True)
    to = models.EmailField(max_length=254)
    status = models.CharField(max_length=8, choices=MailStatus.choices, default=MailStatus.DUE)
    state_since = models.DateTimeField(db_default=Now())
    message_id = models.CharField(max_length=400, unique=True)  # its end is our host, of up to 253 letters
    next_step_at = models.DateTimeField(null=True, blank=True, db_default=Now())
    tries = models.PositiveSmallIntegerField(default=0)
    handed_over = models.PositiveSmallIntegerField(default=0)
    most_hand_overs = models.PositiveSmallIntegerField(
        db_default=2, help_text="one more than two for each time that staff repeated what may have arrived"
    )
    last_error = models.CharField(max_length=300, blank=True, default="")
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(name="one_mail_per_occasion", fields=["reference", "kind", "occasion"]),
            models.CheckConstraint(name="mail_status_known", condition=Q(status__in=MailStatus.values)),
            # Two, and more only by an act of staff.
            models.CheckConstraint(
                name="mail_is_handed_over_at_most_so_often", condition=Q(handed_over__lte=F("most_hand_overs"))
            ),
        ]
        indexes: ClassVar = [
            models.Index(
                name="mail_due", fields=["next_step_at"], condition=Q(status__in=["due", "sending", "unknown"])
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} to {self.to} ({self.status})"
