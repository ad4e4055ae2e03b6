"""Money that came for an order and started nothing: it is kept, looked at by a person, or back where it came from.

A payment that ended without the processor knowing its session belongs here too: perhaps money came.
"""

from datetime import datetime
from enum import StrEnum

from django.db.models import Max, Q
from django.utils import timezone

from billing import ledger
from billing.looks import MISSING
from billing.models import Entry, Grant, Payment
from billing.receipts import Receipt
from orders import mail
from orders.models import Order


class Fate(StrEnum):
    """What became of such money; what matters most to its owner comes first."""

    KEPT = "kept"
    MISMATCHED = "mismatched"
    EXPIRED = "expired"
    RETURNED = "returned"
    UNCONFIRMED = "unconfirmed"


CAME = Q(status__in=["received", "mismatched", "returned"])
# The processor knew no session of it when staff ended it: nobody can say that no money was taken.
NOT_KNOWN = Q(status="failed", last_error__startswith=MISSING)


def keep(*, payment: Payment, order: Order | None, receipt: Receipt) -> None:
    """Inside the block that received the money: its credits wait for their owner, who is told.

    Of money that has gone back in full nothing is kept, and nobody is told that it were. Credits of a disputed payment cannot be spent.
    """
    ledger.grant_bought(
        owner_id=payment.owner_id,
        payment_id=payment.pk,
        credits=payment.credits,
        holds=[],
        disputed=receipt.disputed,
    )
    if receipt.refunded >= receipt.amount:
        ledger.withdraw_bought(
            owner_id=payment.owner_id, payment_id=payment.pk, note="paid back before it was received"
        )
    else:
        mail.credits_kept(payment=payment, order=order)


def order_of(payment: Payment) -> Order | None:
    """The order a payment was asked for."""
    return Order.objects.filter(code=payment.reference.removeprefix("order:")).first()


def of(order: Order) -> Fate | None:
    """What became of money that came for this order and did not start it; None when there was none. One statement, or a few."""
    fates = _fates(order)
    return next((fate for fate in Fate if fate in fates), None)


def all_of(order: Order) -> str:
    """The same of every such payment, in one word that changes whenever another one comes; empty when there was none."""
    return "-".join(sorted(_fates(order)))


def untaken(order: Order) -> bool:
    """Whether it may be said without asking the processor that no money was taken: this order never had a payment page."""
    return not Payment.objects.filter(reference=f"order:{order.code}").exists()


def said_no(order: Order) -> bool:
    """Whether the last that was heard of this order's money is that the bank refused it: its customer may have been told to wait."""
    last = Payment.objects.filter(reference=f"order:{order.code}").order_by("-pk").first()
    return last is not None and last.status == "failed" and bool(last.session_id) and not last.last_error


def is_coming(order: Order) -> bool:
    """Whether the money of an order that still waits for it is known to be here or on its way."""
    waits = order.status == Order.Status.AWAITING_PAYMENT and order.payment
    return bool(waits and order.payment and order.payment.status in (Payment.Status.PENDING, Payment.Status.RECEIVED))


def of_payment(payment: Payment, order: Order | None) -> Fate | None:
    """The same for one payment: None when no money came with it, or when it started the order."""
    started = order is not None and order.status == Order.Status.PAID and order.payment_id == payment.pk
    tells = Payment.objects.filter(CAME | NOT_KNOWN, pk=payment.pk).exists()
    return _fate(payment) if tells and not started else None


def lapsed_at(code: str) -> datetime | None:
    """When what was kept for this order's owner lapsed; None when nothing did."""
    lapses = [_lapsed_at(payment) for payment in Payment.objects.filter(reference=f"order:{code}", status="received")]
    return max((lapse for lapse in lapses if lapse), default=None)


def _fates(order: Order) -> list[Fate]:
    rows = Payment.objects.filter(CAME | NOT_KNOWN, reference=f"order:{order.code}")
    return [_fate(payment) for payment in rows.exclude(order=order)]


def _fate(payment: Payment) -> Fate:
    if payment.status == Payment.Status.FAILED:
        return Fate.UNCONFIRMED if payment.paid_amount is None else Fate.MISMATCHED
    if payment.status != Payment.Status.RECEIVED:
        return Fate(payment.status)
    if Entry.objects.filter(kind="withdrawn", grant__payment=payment, occasion=f"payment:{payment.pk}").exists():
        return Fate.RETURNED
    return Fate.EXPIRED if _lapsed_at(payment) else Fate.KEPT


def _lapsed_at(payment: Payment) -> datetime | None:
    """When the last of a payment's credits lapsed; None while any is there, and when none ever did."""
    lapse = Max("entries__at", filter=Q(entries__kind="expired"))
    grant = Grant.objects.filter(payment=payment).annotate(lapse=lapse).first()
    if grant is None or (grant.available and grant.expires_at > timezone.now()):
        return None
    if grant.available:
        return grant.expires_at
    return min(grant.lapse, grant.expires_at) if grant.lapse else None
