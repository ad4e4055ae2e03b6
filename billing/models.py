"""Money and credits. Balances move only in `ledger.py`, payments only in `moves.py`; rows are added, never edited by hand."""

import uuid
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from billing.states import HoldStatus, PaymentStatus
from waistheart import money


def new_key() -> str:
    """A random key of 128 bits, as hex."""
    return uuid.uuid4().hex


class Wallet(models.Model):
    """One row per owner, written first by every block that moves the owner's credits: it serialises them."""

    owner = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, primary_key=True)
    moves = models.PositiveBigIntegerField(default=0)

    def __str__(self) -> str:
        return f"wallet of {self.owner_id}"


class CreditPack(models.Model):
    """What can be bought: credits for a price in the currency's smallest unit."""

    credits = models.PositiveSmallIntegerField()
    price = models.PositiveIntegerField(help_text="in the currency's smallest unit")
    currency = models.CharField(max_length=3)
    active = models.BooleanField(default=True)

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                name="pack_sells_something", condition=Q(credits__gte=1, credits__lte=50, price__gte=1)
            ),
            models.UniqueConstraint(
                name="one_active_pack_per_size", fields=["credits", "currency"], condition=Q(active=True)
            ),
        ]

    def __str__(self) -> str:
        words = money.words(amount=self.price, currency=self.currency)
        return f"{self.credits} credit{'' if self.credits == 1 else 's'} for {words}"


class Payment(models.Model):
    """One checkout session at the card processor, with the exact parameters it was asked for."""

    Status = PaymentStatus

    key = models.CharField(max_length=32, unique=True, default=new_key, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="payments")
    reference = models.CharField(max_length=64, help_text="what it is for, as a plain word")
    amount = models.PositiveIntegerField()
    currency = models.CharField(max_length=3)
    credits = models.PositiveSmallIntegerField()
    name = models.CharField(max_length=120)
    email = models.EmailField(max_length=254)
    success_url = models.CharField(max_length=500)
    cancel_url = models.CharField(max_length=500)
    session_expires_at = models.DateTimeField()
    status = models.CharField(max_length=10, choices=PaymentStatus.choices, default=PaymentStatus.OPEN)
    state_since = models.DateTimeField(db_default=Now())
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    session_id = models.CharField(max_length=255, unique=True, null=True, blank=True)
    session_url = models.TextField(blank=True, default="")
    payment_intent = models.CharField(max_length=255, blank=True, default="")
    charge = models.CharField(max_length=255, blank=True, default="")
    paid_amount = models.PositiveBigIntegerField(null=True, blank=True)
    paid_currency = models.CharField(max_length=3, blank=True, default="")
    next_look_at = models.DateTimeField(null=True, blank=True, db_default=Now())
    tries = models.PositiveIntegerField(default=0)
    failures = models.PositiveIntegerField(default=0)
    last_error = models.CharField(max_length=300, blank=True, default="")

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                name="payment_sells_something", condition=Q(amount__gte=1, credits__gte=1, credits__lte=50)
            ),
            models.CheckConstraint(name="payment_status_known", condition=Q(status__in=PaymentStatus.values)),
            models.CheckConstraint(
                name="payment_without_end_is_looked_at",
                condition=~Q(status__in=["open", "pending"]) | Q(next_look_at__isnull=False),
            ),
        ]
        indexes: ClassVar = [
            models.Index(name="payment_due", fields=["next_look_at"], condition=Q(status__in=["open", "pending"])),
            models.Index(name="payment_mismatched", fields=["state_since"], condition=Q(status="mismatched")),
            models.Index(name="payment_raising", fields=["state_since"], condition=Q(failures__gte=10)),
            models.Index(name="payment_reference", fields=["reference"]),
        ]

    def __str__(self) -> str:
        return f"payment {self.key[:8]} for {self.reference} ({self.status})"


class Grant(models.Model):
    """Credits from one payment, or from staff with a reason. Settled, expired and withdrawn credits are sums of entries."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="grants")
    payment = models.OneToOneField(Payment, on_delete=models.PROTECT, null=True, blank=True, related_name="grant")
    reason = models.CharField(max_length=200)
    made_by = models.CharField(max_length=254, blank=True, default="")
    credits = models.PositiveIntegerField()
    available = models.PositiveIntegerField()
    held = models.PositiveIntegerField(default=0)
    frozen = models.PositiveIntegerField(default=0)
    owed = models.PositiveIntegerField(default=0)
    disputed = models.BooleanField(default=False)
    expires_at = models.DateTimeField()
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(name="grant_has_credits", condition=Q(credits__gte=1)),
            # PositiveIntegerField's own CHECKs stay in place; these say the rule in one spot, on every database.
            models.CheckConstraint(
                name="grant_is_never_negative", condition=Q(available__gte=0, held__gte=0, frozen__gte=0, owed__gte=0)
            ),
            models.CheckConstraint(
                name="grant_gives_what_it_has", condition=Q(credits__gte=F("available") + F("held") + F("frozen"))
            ),
            models.CheckConstraint(name="grant_owes_at_most_what_is_held", condition=Q(owed__lte=F("held"))),
        ]
        indexes: ClassVar = [
            models.Index(name="grant_spendable", fields=["owner", "expires_at", "id"], condition=Q(available__gt=0)),
            models.Index(name="grant_expiring", fields=["expires_at"], condition=Q(available__gt=0)),
            models.Index(name="grant_owing", fields=["owner"], condition=Q(owed__gt=0)),
        ]

    def __str__(self) -> str:
        return f"grant {self.pk}: {self.available} of {self.credits} available"


class Hold(models.Model):
    """Credits set aside for one job. What was held stands here (`credits`, `parts`), never in a sum over parts."""

    Status = HoldStatus

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="holds")
    credits = models.PositiveSmallIntegerField()
    parts = models.PositiveSmallIntegerField()
    status = models.CharField(max_length=8, choices=HoldStatus.choices, default=HoldStatus.HELD)
    state_since = models.DateTimeField(db_default=Now())

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(name="hold_holds_something", condition=Q(credits__gte=1, parts__gte=1)),
            models.CheckConstraint(name="hold_status_known", condition=Q(status__in=HoldStatus.values)),
        ]

    def __str__(self) -> str:
        return f"hold {self.pk}: {self.credits} {self.status}"


class HoldPart(models.Model):
    """How many credits of a hold come from which grant."""

    hold = models.ForeignKey(Hold, on_delete=models.PROTECT, related_name="hold_parts")
    grant = models.ForeignKey(Grant, on_delete=models.PROTECT, related_name="hold_parts")
    credits = models.PositiveSmallIntegerField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(name="one_part_per_hold_and_grant", fields=["hold", "grant"]),
            models.CheckConstraint(name="part_holds_something", condition=Q(credits__gte=1)),
        ]

    def __str__(self) -> str:
        return f"{self.credits} of grant {self.grant_id} in hold {self.hold_id}"


class Entry(models.Model):
    """One line of the append-only ledger: what it moved in which balance of a grant. Sums of lines equal the balances."""

    class Kind(models.TextChoices):
        GRANTED = "granted"
        HELD = "held"
        SETTLED = "settled"
        RELEASED = "released"
        EXPIRED = "expired"
        WITHDRAWN = "withdrawn"
        OWED = "owed"
        LOSS = "loss"
        FROZEN = "frozen"
        THAWED = "thawed"

    kind = models.CharField(max_length=10, choices=Kind.choices)
    occasion = models.CharField(max_length=64, help_text="what caused it: payment:7, hold:12")
    grant = models.ForeignKey(Grant, on_delete=models.PROTECT, related_name="entries")
    credits = models.PositiveIntegerField()
    available = models.IntegerField(default=0)
    held = models.IntegerField(default=0)
    frozen = models.IntegerField(default=0)
    owed = models.IntegerField(default=0)
    note = models.CharField(max_length=200, blank=True, default="")
    at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        verbose_name_plural = "entries"
        constraints: ClassVar = [
            models.UniqueConstraint(name="entry_is_written_once", fields=["kind", "occasion", "grant"]),
            # A second grant is another row: only this keeps one occasion from giving twice.
            models.UniqueConstraint(name="one_grant_per_occasion", fields=["occasion"], condition=Q(kind="granted")),
            models.CheckConstraint(name="entry_moves_something", condition=Q(credits__gte=1)),
            models.CheckConstraint(
                name="entry_moves_what_its_kind_says",
                condition=(
                    Q(kind="granted", available=F("credits"), held=0, frozen=0, owed=0)
                    | Q(kind="held", available=-F("credits"), held=F("credits"), frozen=0, owed=0)
                    | Q(kind="settled", available=0, held=-F("credits"), frozen=0, owed__lte=0)
                    | Q(kind="released", held=-F("credits"), available__gte=0, frozen__gte=0, owed__lte=0)
                    | Q(kind="expired", available=-F("credits"), held=0, frozen=0, owed=0)
                    | Q(kind="withdrawn", held=0, available__lte=0, frozen__lte=0, owed=0)
                    | Q(kind="owed", available=0, held=0, frozen=0, owed=F("credits"))
                    | Q(kind="loss", available=0, held=0, frozen=0)
                    | Q(kind="frozen", available=-F("credits"), held=0, frozen=F("credits"), owed=0)
                    | Q(kind="thawed", available=F("credits"), held=0, frozen=-F("credits"), owed=0)
                ),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.credits} ({self.occasion})"


class MismatchedPayment(Payment):
    """The same rows, as the staff's list of money that came otherwise than it was asked for."""

    class Meta:
        proxy = True
        verbose_name = "payment on the money list"
        verbose_name_plural = "money list"
