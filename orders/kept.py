"""Money that came for an order and started nothing: it is kept, looked at by a person, or back where it came from."""

from datetime import datetime
from enum import StrEnum

from django.db.models import Max, Q
from django.utils import timezone

from billing import ledger
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
    rows = Payment.objects.filter(reference=f"order:{order.code}", status__in=["received", "mismatched", "returned"])
    fates = {_fate(payment) for payment in rows.exclude(order=order)}
    return next((fate for fate in Fate if fate in fates), None)


def of_payment(payment: Payment, order: Order | None) -> Fate | None:
    """The same for one payment: None when no money came with it, or when it started the order."""
    started = order is not None and order.status == Order.Status.PAID and order.payment_id == payment.pk
    came = payment.status in (Payment.Status.RECEIVED, Payment.Status.MISMATCHED, Payment.Status.RETURNED)
    return _fate(payment) if came and not started else None


def lapsed_at(code: str) -> datetime | None:
    """When what was kept for this order's owner lapsed; None when nothing did."""
    lapses = [_lapsed_at(payment) for payment in Payment.objects.filter(reference=f"order:{code}", status="received")]
    return max((lapse for lapse in lapses if lapse), default=None)


def _fate(payment: Payment) -> Fate:
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
