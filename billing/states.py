"""Every state of money, and every move between them."""

from django.db import models

from waistheart.machine import Machine, Move


class PaymentStatus(models.TextChoices):
    OPEN = "open", "open"
    PENDING = "pending", "pending: completed, money on its way"
    RECEIVED = "received", "received"
    EXPIRED = "expired", "expired"
    FAILED = "failed", "failed"
    MISMATCHED = "mismatched", "mismatched: another amount or currency"
    RETURNED = "returned", "returned"


class HoldStatus(models.TextChoices):
    HELD = "held", "held"
    SETTLED = "settled", "settled"
    RELEASED = "released", "released"


PAYMENT = Machine(
    name="Payment",
    states=tuple(PaymentStatus.values),
    initial="open",
    final=frozenset({"received", "returned"}),
    moves=(
        Move("wait", ("open",), "pending", by="the processor says completed, but not yet paid"),
        Move(
            "receive",
            ("open", "pending", "expired", "failed"),
            "received",
            credits="grant",
            by="the processor says paid, as agreed",
        ),
        Move("expire", ("open",), "expired", by="the processor says expired"),
        Move(
            "fail",
            ("open", "pending"),
            "failed",
            by="the processor says failed, refuses to make a session for good, or knows no such session (staff)",
        ),
        Move(
            "mismatch",
            ("open", "pending", "expired", "failed"),
            "mismatched",
            by="the processor says paid, with another amount or currency",
        ),
        Move("attach", ("mismatched",), "received", credits="grant", by="staff, with a reason"),
        Move(
            "return",
            ("mismatched",),
            "returned",
            by="staff, once the processor confirms the money went back, or its bank took it",
        ),
        Move("close", ("mismatched",), "failed", by="staff, once the processor says that it knows no such session"),
    ),
    note="`expired` and `failed` are written only from what the processor says, never from our clock.",
)

HOLD = Machine(
    name="Hold",
    states=tuple(HoldStatus.values),
    initial="held",
    final=frozenset({"settled", "released"}),
    moves=(
        Move("settle", ("held",), "settled", credits="settle", by="the block that completes the job"),
        Move("release", ("held",), "released", credits="release", by="the block that fails the job"),
    ),
)
