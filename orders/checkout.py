"""A payment's session at the card processor: made under the payment's key until there is one, and how a payment ends without money."""

import logging
from dataclasses import dataclass

from django.db.models import F

from billing import looks, pages
from billing.gateway import get_gateway
from billing.gateway_errors import GatewayError, GatewayRefused, GatewayUnavailable
from billing.models import Payment
from billing.moves import move_payment
from billing.receipts import Receipt
from billing.states import PAYMENT
from orders.models import Order
from orders.moves import may_move_order
from waistheart import clock, guards

log = logging.getLogger(__name__)
WAITING = ("open", "pending")
ENDED = ("expired", "failed")
BAD_EMAIL = (
    "email_invalid"  # the processor's word for an address that it does not take: its customer's to mend, not ours
)
BIGGEST = 2**63 - 1  # what its column can hold


@dataclass(frozen=True)
class Asked:
    """Where to pay; or why not: incomplete, price_changed, pose_retired, not_a_draft, pending, money_came, email_refused,
    gateway_down."""

    problem: str = ""
    url: str = ""


class MoneyStuck(Exception):
    """A payment that a receipt should have moved has stayed, and no rival has moved it: a fault, not a race."""


def judge(move: str, payment: Payment, outcome: guards.Outcome[None]) -> None:
    """A lost block whose payment is elsewhere by now was a race. One whose payment still waits would be lost for ever: MoneyStuck."""
    sources = PAYMENT.by_name[move].sources
    if not outcome.won and Payment.objects.filter(pk=payment.pk, status__in=sources).exists():
        raise MoneyStuck(f"payment {payment.key}: {move} lost its guard {outcome.lost}")


def open_session(payment: Payment) -> Payment:
    """Make the payment's session under its key, unless it has one; the sweep repeats this until it has. Answers the row afterwards.

    A refusal for good, or an error that the processor would repeat under this key for a day, ends the payment, and the order that
    waits for it is a draft again. A processor that is away changes nothing.
    """
    if payment.session_id or payment.status != "open":
        return payment
    try:
        session = get_gateway().create_session(
            key=payment.key,
            amount=payment.amount,
            currency=payment.currency,
            credits=payment.credits,
            reference=payment.reference,
            name=payment.name,
            email=payment.email,
            success_url=payment.success_url,
            cancel_url=payment.cancel_url,
            expires_at=payment.session_expires_at,
        )
    except GatewayRefused as error:
        if error.code != BAD_EMAIL:
            log.error("ALARM the processor refuses a session for payment %s: %s", payment.key, error)
            guards.count("alarm.session_refused")
        end_payment("fail", payment, last_error=str(error)[:300])
    except GatewayError as error:
        log.error("no session for payment %s now: %s", payment.key, error)
        looks.unanswered(error, payment)
        if isinstance(error, GatewayUnavailable) and error.replayed:
            # Nobody holds the address of a session that we never learned, so nobody can pay it beside the next one.
            end_without_session(payment)
    else:
        _keep_session(payment, session.id, session.url)
    return Payment.objects.get(pk=payment.pk)


def page_of(payment: Payment, *, known: bool = True) -> Asked:
    """The payment's page, making its session when there is none yet. Not `known`: how it stands could not be looked up now."""
    payment = open_session(payment)
    if payment.status == Payment.Status.PENDING:
        return Asked("pending")
    if not known and is_over(payment):
        return Asked("gateway_down")
    if payment.status == Payment.Status.OPEN and (url := pages.address(payment)):
        return Asked(url=url)
    refused = payment.status == Payment.Status.FAILED and payment.session_id is None
    if refused and payment.last_error.startswith(BAD_EMAIL):
        return Asked("email_refused")
    return Asked("gateway_down" if refused or payment.status in WAITING else "not_a_draft")


@guards.block("orders.session")
def _keep_session(payment: Payment, session_id: str, url: str) -> None:
    rows = Payment.objects.filter(pk=payment.pk, session_id__isnull=True)
    guards.must("payment.session", rows.update(session_id=session_id, session_url=url))


def is_over(payment: Payment) -> bool:
    """Whether the time of the payment's session is over, by the database's clock."""
    return Payment.objects.filter(pk=payment.pk, session_expires_at__lte=clock.now()).exists()


def end_without_session(payment: Payment) -> bool:
    """A payment for which no session could be made has failed; its order is a draft again. False when it has a session after all."""
    return _end_without_session(payment).won


@guards.block("orders.end_without_session")
def _end_without_session(payment: Payment) -> None:
    rows = Payment.objects.filter(pk=payment.pk, session_id__isnull=True)
    guards.must("payment.no_session", rows.update(tries=F("tries") + 1))
    move_payment("fail", payment_id=payment.pk, last_error="no session could be made")
    draft_again(payment)


@guards.block("orders.end_payment")
def end_payment(name: str, payment: Payment, **fields: str | int) -> None:
    move_payment(name, payment_id=payment.pk, **fields)
    draft_again(payment, answered=name != "expire")


def draft_again(payment: Payment, *, answered: bool = True) -> None:
    """In the block that ended a payment without starting anything: the order that waits for exactly this payment is a draft again, photo kept.

    `answered`: its customer had tried to pay, and has a draft's time from this answer. A page that nobody paid gives no new time.
    """
    order = Order.objects.filter(payment_id=payment.pk).first()
    if order is not None:
        time = {"touched_at": clock.now()} if answered else {}
        may_move_order("reopen", order_id=order.pk, payment_id=payment.pk, payment=None, **time)


def matches(payment: Payment, receipt: Receipt) -> bool:
    """Whether what was paid is what we asked for, to the unit."""
    return receipt.amount == payment.amount and receipt.currency.upper() == payment.currency.upper()


@guards.block("orders.mismatch")
def mismatch(payment: Payment, receipt: Receipt) -> None:
    move_payment("mismatch", payment_id=payment.pk, **paid_fields(receipt))
    draft_again(payment)


@guards.block("orders.wait")
def wait(payment: Payment) -> None:
    move_payment("wait", payment_id=payment.pk, next_look_at=clock.now())


def paid_fields(receipt: Receipt) -> dict[str, object]:
    """What came, cut to what its columns hold: a strange receipt must not keep money from being written down."""
    return {
        "payment_intent": (receipt.payment_intent or "")[:255],
        "charge": (receipt.charge or "")[:255],
        "paid_amount": min(max(receipt.amount, 0), BIGGEST),
        "paid_currency": receipt.currency.upper()[:3],
    }
