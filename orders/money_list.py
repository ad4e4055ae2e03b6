"""Money that came otherwise than it was asked for, or may have come: what staff may do with it.

The processor is asked again before anything moves.
"""

import logging

from django.conf import settings
from django.db.models import Q

from billing import ledger, looks
from billing.gateway import get_gateway
from billing.gateway_errors import GatewayError, GatewayRefused
from billing.models import Payment
from billing.moves import move_payment
from billing.receipts import Disputes, Receipt
from billing.states import PAYMENT
from billing.sweep import POISON
from orders import checkout, flow, mail
from orders.models import Order
from orders.progress import PENDING_SECONDS
from waistheart import clock, guards, money

log = logging.getLogger(__name__)
# The sweep looks every quarter of an hour: an hour after its page has closed the processor should have told us how it ended.
OVERDUE_SECONDS = 3600
MAY_BE_MISSING = (Payment.Status.OPEN, Payment.Status.PENDING, Payment.Status.MISMATCHED)


def needs_a_person() -> Q:
    """Mismatched money; a payment that raised again and again; money on its way for longer than banks take, and a payment page whose
    time is over, of which the processor has not told us how they ended."""
    ended = Q(status__in=[Payment.Status.RECEIVED, Payment.Status.RETURNED])
    return Q(status=Payment.Status.MISMATCHED) | (~ended & Q(failures__gte=POISON)) | overdue()


def overdue() -> Q:
    """A payment page that has closed a while ago, and still nobody knows whether it was paid; or money that should have come by now."""
    closed = Q(status=Payment.Status.OPEN, session_expires_at__lte=clock.ago(OVERDUE_SECONDS))
    return closed | Q(status=Payment.Status.PENDING, state_since__lte=clock.ago(PENDING_SECONDS))


def why(payment: Payment) -> str:
    """Why a payment is on the list."""
    if payment.status == Payment.Status.MISMATCHED:
        return "another sum came than was asked for"
    if payment.failures >= POISON:
        return f"raised {payment.failures} times: {payment.last_error}"
    if payment.status == Payment.Status.PENDING:
        return "on its way for longer than banks take" + (f": {payment.last_error}" if payment.last_error else "")
    return f"its page has closed, and nobody knows whether it was paid: {payment.last_error or 'not looked at since'}"


class NotNow(Exception):
    """The processor could not be asked, or says something else than the act needs; the text is for staff."""


def attach(*, payment: Payment) -> bool:
    """Accept the money as it came: the credits that were sold are kept for their owner, who is told. False: it had moved on.

    NotNow when the processor does not say paid, or says that any of it went back or may still go. The order it was for is a draft
    again and is not started: the customer may have changed it since.
    """
    receipt = _receipt(payment)
    disputes = _disputes(receipt)
    if receipt.status != "paid" or receipt.refunded or disputes.taken or not disputes.over:
        raise NotNow("the processor does not say that this money is here to stay")
    return _attach(payment).won


def look_again(*, payment: Payment) -> bool:
    """Look at it at once, as if it had never raised; true when it leaves this list. False: it has ended.

    NotNow: it could not be looked at, raises still, or the processor says what it said before.
    """
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
    still = Payment.objects.filter(needs_a_person(), pk=payment.pk).first()
    if still is not None:
        raise NotNow(f"the processor was asked, and it stays {still.status}: {why(still)}")
    return True


def end_missing(*, payment: Payment) -> bool:
    """End a payment whose session the processor says does not exist; its order is a draft again. False: it had moved on.

    NotNow while its page may be open or a bank may have it, and when the processor says anything else. Should the session turn up
    after all, and be paid, the payment is received, or comes to this list again, as any that had failed.
    """
    if payment.status not in MAY_BE_MISSING:
        raise NotNow(f"it is {payment.get_status_display()}: it has ended already")
    mismatched = payment.status == Payment.Status.MISMATCHED
    if not mismatched and not Payment.objects.filter(overdue(), pk=payment.pk).exists():
        on_its_way = payment.status == Payment.Status.PENDING
        raise NotNow("its money may still be on its way" if on_its_way else "its payment page may still be open")
    try:
        get_gateway().look_up(session_id=_session(payment))
    except GatewayRefused as error:
        if error.code == looks.MISSING:
            return checkout.end_payment(
                "close" if mismatched else "fail", payment, failures=0, last_error=str(error)[:300]
            ).won
        raise NotNow(f"the processor refuses to be asked: {error}") from error
    except GatewayError as error:
        raise NotNow(f"the processor could not be asked: {error}") from error
    raise NotNow("the processor knows this session: look again instead")


@guards.block("orders.attach")
def _attach(payment: Payment) -> None:
    move_payment("attach", payment_id=payment.pk)
    ledger.grant_bought(owner_id=payment.owner_id, payment_id=payment.pk, credits=payment.credits, holds=[])
    order = Order.objects.filter(code=payment.reference.removeprefix("order:")).first()
    mail.credits_kept(payment=payment, order=order)


def returned(*, payment: Payment) -> bool:
    """Write down that all of the money went back, once the processor says so. False: it had moved on; NotNow: it did not.

    What its bank took counts once the dispute is lost; one that goes on may give it back, and waits.
    """
    receipt = _receipt(payment)
    if receipt.refunded < receipt.amount:
        disputes = _disputes(receipt)
        gone = receipt.refunded + disputes.taken
        if gone < receipt.amount:
            wait = "return it there first" if disputes.over else "its bank disputes it, and that is not over"
            sums = [money.words(amount=units, currency=receipt.currency.upper()) for units in (gone, receipt.amount)]
            raise NotNow(f"the processor says that {' of '.join(sums)} went back: {wait}")
    return _returned(payment).won


@guards.block("orders.money_returned")
def _returned(payment: Payment) -> None:
    move_payment("return", payment_id=payment.pk)


def _receipt(payment: Payment) -> Receipt:
    try:
        receipt = get_gateway().look_up(session_id=_session(payment))
    except GatewayError as error:
        raise NotNow(f"the processor could not be asked: {error}") from error
    if receipt.livemode != settings.LIVE:
        raise NotNow(f"the processor's livemode is {receipt.livemode}")
    return receipt


def _disputes(receipt: Receipt) -> Disputes:
    """What its disputes came to; the processor is asked only where it has said that there are any."""
    if not receipt.disputed:
        return Disputes(taken=0, over=True)
    if not receipt.charge:
        return Disputes(taken=0, over=False)
    try:
        return get_gateway().disputes(charge=receipt.charge, currency=receipt.currency)
    except GatewayError as error:
        raise NotNow(f"the processor could not be asked about its dispute: {error}") from error


def _session(payment: Payment) -> str:
    if not payment.session_id:
        raise NotNow("there is no session to look at")
    return payment.session_id
