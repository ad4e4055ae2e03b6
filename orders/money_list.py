"""Money that came otherwise than it was asked for: what staff may do with it. The processor is asked again before anything moves."""

import logging

from django.conf import settings
from django.db.models import Q

from billing import ledger
from billing.gateway import get_gateway
from billing.gateway_errors import GatewayError
from billing.models import Payment
from billing.moves import move_payment
from billing.receipts import Receipt
from billing.states import PAYMENT
from billing.sweep import POISON
from orders import checkout, flow, mail
from orders.models import Order
from waistheart import clock, guards

log = logging.getLogger(__name__)
PENDING_SECONDS = 7 * 86400


def needs_a_person() -> Q:
    """Mismatched money; a payment that raised again and again; money on its way for longer than banks take."""
    ended = Q(status__in=[Payment.Status.RECEIVED, Payment.Status.RETURNED])
    return (
        Q(status=Payment.Status.MISMATCHED)
        | (~ended & Q(failures__gte=POISON))
        | Q(status=Payment.Status.PENDING, state_since__lte=clock.ago(PENDING_SECONDS))
    )


class NotNow(Exception):
    """The processor could not be asked, or says something else than the act needs; the text is for staff."""


def attach(*, payment: Payment) -> bool:
    """Accept the money as it came: the credits that were sold are kept for their owner, who is told. False: it had moved on.

    NotNow when the processor does not say paid, or says that any of it went back. The order it was for is a draft again and is
    not started: the customer may have changed it since.
    """
    receipt = _receipt(payment)
    if receipt.status != "paid" or receipt.refunded or receipt.disputed:
        raise NotNow("the processor does not say that this money is here to stay")
    return _attach(payment).won


def look_again(*, payment: Payment) -> bool:
    """Look at it at once, as if it had never raised. False: it has ended; NotNow: it could not be looked at, or raises still."""
    if payment.status in PAYMENT.final:
        return False
    try:
        flow.settle(payment)
    except GatewayError as error:
        raise NotNow(f"the processor could not be asked: {error}") from error
    except Exception as error:
        log.exception("payment %s still raises", payment.key)
        raise NotNow(f"it still fails: {type(error).__name__}: {error}") from error
    Payment.objects.filter(pk=payment.pk).update(failures=0)
    Payment.objects.filter(pk=payment.pk, status__in=checkout.WAITING).update(next_look_at=clock.now())
    return True


@guards.block("orders.attach")
def _attach(payment: Payment) -> None:
    move_payment("attach", payment_id=payment.pk)
    ledger.grant_bought(owner_id=payment.owner_id, payment_id=payment.pk, credits=payment.credits, holds=[])
    order = Order.objects.filter(code=payment.reference.removeprefix("order:")).first()
    mail.credits_kept(payment=payment, order=order)


def returned(*, payment: Payment) -> bool:
    """Write down that all of the money went back, once the processor says so. False: it had moved on; NotNow: it did not."""
    receipt = _receipt(payment)
    if receipt.refunded < receipt.amount:
        raise NotNow(f"the processor says that {receipt.refunded} of {receipt.amount} went back: return it there first")
    return _returned(payment).won


@guards.block("orders.money_returned")
def _returned(payment: Payment) -> None:
    move_payment("return", payment_id=payment.pk)


def _receipt(payment: Payment) -> Receipt:
    if not payment.session_id:
        raise NotNow("there is no session to look at")
    try:
        receipt = get_gateway().look_up(session_id=payment.session_id)
    except GatewayError as error:
        raise NotNow(f"the processor could not be asked: {error}") from error
    if receipt.livemode != settings.LIVE:
        raise NotNow(f"the processor's livemode is {receipt.livemode}")
    return receipt
