"""The main flow of the shop: start, photo, ask for payment, **paid**.

Start and photo stand in `drafts.py`. From here on money is involved: the order and its payment move together, in one block, and
only by what the card processor says when it is asked with our own key.
"""

import functools
import logging
from dataclasses import dataclass

from django.conf import settings
from django.db.models import OuterRef, Subquery

from billing import ledger
from billing.gateway import get_gateway
from billing.gateway_errors import GatewayError, GatewayMisconfigured
from billing.models import Payment
from billing.moves import move_payment
from billing.receipts import Receipt
from generation import work
from generation.models import Job
from generation.moves import bear
from orders import checkout, freeze, mail
from orders.freeze import price
from orders.models import Order, OrderItem
from orders.moves import may_move_order, move_order, write_draft
from waistheart import clock, guards
from waistheart.models import User

__all__ = ["Asked", "apply", "ask_payment", "came_back", "can_cancel", "cancel", "price", "reopen", "settle"]

log = logging.getLogger(__name__)
SESSION_SECONDS = 23 * 3600


@dataclass(frozen=True)
class Asked:
    """Where the customer goes to pay; or why not: incomplete, price_changed, pose_retired, not_a_draft, gateway_down."""

    problem: str = ""
    url: str = ""


# --- ask for payment -------------------------------------------------------------------------------------------------


def ask_payment(*, order: Order, declarations: dict, expected_price: int) -> Asked:
    """Freeze the order as it was read into `order`, and open the one payment page that stands for it.

    A second call, a double click or a second tab answers the same page. A change of the order since it was read makes it lose.
    """
    if order.status == Order.Status.AWAITING_PAYMENT and order.payment:
        return page_of(order.payment)
    items = list(order.items.select_related("pose", "photo"))
    problem = freeze.not_ready(order, items, expected_price)
    if problem:
        return Asked(problem)
    owner = freeze.owner_of(order.email)
    approved = freeze.approved(order, items)
    won = _ask(order, items, owner, declarations, expected_price).won
    order.refresh_from_db()
    if freeze.approved(order, list(order.items.all())) != approved:
        # Another tab's payment page may be open by now: it stands for what was approved there.
        return Asked("not_a_draft")
    if order.status == Order.Status.AWAITING_PAYMENT and order.payment:
        return page_of(order.payment)
    return Asked("gateway_down" if won else "not_a_draft")


@guards.block("orders.ask_payment")
def _ask(order: Order, items: list[OrderItem], owner: User, declarations: dict, amount: int) -> None:
    write_draft(order_id=order.pk, writes=order.writes)
    credits = sum(item.pose.credits for item in items)
    freeze.freeze_items(order, count=len(items), credits=credits)
    payment = Payment.objects.create(
        owner=owner,
        reference=f"order:{order.code}",
        amount=amount,
        currency=settings.CURRENCY,
        credits=credits,
        name=f"{items[0].pose.name} video" if len(items) == 1 else f"{len(items)} videos",
        email=order.email,
        success_url=f"{settings.PUBLIC_URL}/pay/return/?session={{CHECKOUT_SESSION_ID}}",
        cancel_url=f"{settings.PUBLIC_URL}/pay/cancelled/{order.key}/",
        session_expires_at=clock.after(SESSION_SECONDS),
    )
    move_order(
        "ask_payment", order_id=order.pk, payment_id=None, payment=payment, owner=owner, price=amount,
        currency=settings.CURRENCY, credits=credits, declarations=declarations,
    )  # fmt: skip


def page_of(payment: Payment) -> Asked:
    """The payment's page, making its session when there is none yet."""
    payment = checkout.open_session(payment)
    if payment.status in checkout.WAITING and payment.session_url:
        return Asked(url=payment.session_url)
    refused = payment.status == Payment.Status.FAILED and payment.session_id is None
    return Asked("gateway_down" if refused or payment.status in checkout.WAITING else "not_a_draft")


def reopen(*, order: Order) -> str:
    """Make an order that waits for payment a draft again: reopened, paid, pending or gateway_down.

    First the session is ended at the processor, and the order moves only when the processor says so; a session that turns out to be
    paid settles instead.
    """
    payment = order.payment
    if order.status != Order.Status.AWAITING_PAYMENT or payment is None:
        return _after_reopen(order)
    payment = checkout.open_session(payment)
    if payment.session_id and payment.status in checkout.WAITING:
        try:
            apply(payment, get_gateway().expire(session_id=payment.session_id))
        except GatewayError as error:
            log.warning("could not end the session of payment %s: %s", payment.key, error)
            return "gateway_down"
    return _after_reopen(order)


def _after_reopen(order: Order) -> str:
    order.refresh_from_db()
    if order.status == Order.Status.AWAITING_PAYMENT:
        return "pending" if order.payment and order.payment.status == "pending" else "gateway_down"
    return {Order.Status.DRAFT: "reopened", Order.Status.PAID: "paid"}.get(Order.Status(order.status), "expired")


# --- paid ------------------------------------------------------------------------------------------------------------


def came_back(*, session_id: str) -> Order | None:
    """The customer is back from the payment page: look the session up, settle, and answer the order; None for a foreign session.

    A processor that cannot be reached changes nothing: the order page waits, and the sweep looks again.
    """
    payment = Payment.objects.filter(session_id=session_id).first()
    if payment is None:
        return None
    try:
        settle(payment)
    except GatewayError as error:
        log.warning("payment %s could not be looked up on return: %s", payment.key, error)
    return Order.objects.filter(code=payment.reference.removeprefix("order:")).first()


def settle(payment: Payment) -> str:
    """Look the payment up at the processor and do what it says; the word for what is true afterwards.

    Called by the hint, the return page and the sweep alike, any number of times at once: one of them wins, the rest find it done.
    """
    payment = checkout.open_session(payment)
    if not payment.session_id:
        return payment.status
    return apply(payment, get_gateway().look_up(session_id=payment.session_id))


def apply(payment: Payment, receipt: Receipt) -> str:
    """Do what a receipt says. An older or repeated receipt finds its guard closed and changes nothing."""
    if receipt.livemode != settings.LIVE:
        raise GatewayMisconfigured(f"payment {payment.key}: the processor's livemode is {receipt.livemode}")
    if receipt.status == "paid":
        if checkout.matches(payment, receipt):
            _settle(payment, receipt)
        else:
            log.error("ALARM payment %s was paid with %s %s", payment.key, receipt.amount, receipt.currency)
            checkout.mismatch(payment, receipt)
    elif receipt.status == "pending" and payment.status == "open":
        checkout.wait(payment)
    elif receipt.status == "expired" and payment.status == "open":
        checkout.end_payment("expire", payment)
    elif receipt.status == "failed" and payment.status in checkout.WAITING:
        checkout.end_payment("fail", payment)
    return Payment.objects.get(pk=payment.pk).status


@guards.block("orders.settle")
def _settle(payment: Payment, receipt: Receipt) -> None:
    move_payment("receive", payment_id=payment.pk, **checkout.paid_fields(receipt))
    start(payment, reversed_already=bool(receipt.refunded or receipt.disputed))


def start(payment: Payment, *, reversed_already: bool) -> None:
    """Inside the block that received the money: the order's jobs begin, or the credits are kept for their owner."""
    order = Order.objects.filter(code=payment.reference.removeprefix("order:")).first()
    paid = (
        order is not None
        and not reversed_already
        and may_move_order("pay", order_id=order.pk, payment_id=payment.pk, paid_at=clock.now())
    )
    if not paid or order is None:
        ledger.grant_bought(owner_id=payment.owner_id, payment_id=payment.pk, credits=payment.credits, holds=[])
        mail.credits_kept(payment=payment, order=order)
        return
    items = list(order.items.order_by("number"))
    bought = ledger.grant_bought(
        owner_id=payment.owner_id,
        payment_id=payment.pk,
        credits=payment.credits,
        holds=[item.credits for item in items],
    )
    jobs = bear(
        [
            _job_of(order, item, owner_id=payment.owner_id, hold_id=hold.pk, lot_size=len(items))
            for item, hold in zip(items, bought.holds, strict=True)
        ],
        actor="settle",
    )
    _link_jobs(order)
    mail.order_received(order=order)
    for job in jobs:
        guards.nudge(functools.partial(work.nudge, job.pk))


def _job_of(order: Order, item: OrderItem, *, owner_id: int, hold_id: int, lot_size: int) -> Job:
    """The job of an item, from what `ask_payment` froze; nothing is read from the pose or the photo any more."""
    return Job(
        owner_id=owner_id,
        hold_id=hold_id,
        lot=order.lot,
        lot_number=item.number,
        lot_size=lot_size,
        photo_key=item.photo_key,
        photo_sha256=item.photo_sha256,
        crop=item.crop,
        prompt=item.prompt,
        provider=item.provider,
        model=item.model,
        parameters=item.parameters,
        credits=item.credits,
    )


def _link_jobs(order: Order) -> None:
    job = Job.objects.filter(lot=order.lot, lot_number=OuterRef("number")).values("pk")
    OrderItem.objects.filter(order=order).update(job=Subquery(job))


# --- cancel ----------------------------------------------------------------------------------------------------------


def can_cancel(order: Order) -> bool:
    """Whether cancelling would truly give something back: a job of the order waits, or is in review, and nothing of it is live."""
    return any(work.can_cancel(item.job) for item in order.items.select_related("job") if item.job)


def cancel(*, order: Order, actor: str) -> bool:
    """Cancel every job of the order that may still be, and give its credit back; whether any was."""
    done = [work.cancel(job=item.job, actor=actor) for item in order.items.select_related("job") if item.job]
    return any(done)
