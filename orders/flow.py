"""The main flow of the shop: start, photo, ask for payment, **paid**.

Start and photo stand in `drafts.py`. From here on money is involved: the order and its payment move together, in one block, and
only by what the card processor says when it is asked with our own key.
"""

import functools
import logging

from django.conf import settings

from billing import ledger, looks
from billing.gateway import get_gateway
from billing.gateway_errors import GatewayError, GatewayMisconfigured
from billing.models import Payment, new_key
from billing.moves import move_payment
from billing.receipts import Receipt
from generation import work
from generation.moves import bear
from orders import checkout, freeze, kept, mail
from orders.freeze import price
from orders.models import Order, OrderItem
from orders.moves import may_move_order, move_order, touch, write_draft
from waistheart import clock, guards
from waistheart.models import User

__all__ = ["apply", "ask_payment", "can_cancel", "cancel", "look", "price", "reopen", "settle"]

log = logging.getLogger(__name__)
SESSION_SECONDS = 23 * 3600


# --- ask for payment -------------------------------------------------------------------------------------------------


def ask_payment(
    *, order: Order, declarations: dict, expected_price: int, seen: freeze.Shown | None = None
) -> checkout.Asked:
    """Freeze the order as it was read into `order`, and open the one payment page that stands for it.

    A second call, a double click or a second tab answers the same page, while it can be paid: one that has ended at the processor
    ends here too, and a new one is made. What differs from `seen` (from now, without it) makes it lose: the order was changed, or
    money came that started nothing, and nobody pays twice without having read that the first is here.
    """
    seen = seen or freeze.shown(order)
    if order.status == Order.Status.AWAITING_PAYMENT and order.payment:
        touch(order_id=order.pk)
        known = look(order.payment) if order.payment.session_id else "open"
        order.refresh_from_db()
        if problem := _differs(order, seen, expected_price):
            return checkout.Asked(problem)
        if order.payment:
            return checkout.page_of(order.payment, known=bool(known))
    items = freeze.items_of(order)
    problem = freeze.not_ready(order, items, expected_price)
    if problem:
        return checkout.Asked(problem)
    owner = freeze.owner_of(order.email)
    won = _ask(order, items, owner, declarations, expected_price, seen).won
    order.refresh_from_db()
    if problem := _differs(order, seen, expected_price):
        return checkout.Asked(problem)
    if order.status == Order.Status.AWAITING_PAYMENT and order.payment:
        return checkout.page_of(order.payment)
    return checkout.Asked("gateway_down" if won else "not_a_draft")


@guards.block("orders.ask_payment")
def _ask(
    order: Order, items: list[OrderItem], owner: User, declarations: dict, amount: int, seen: freeze.Shown
) -> None:
    write_draft(order_id=order.pk, writes=order.writes)
    if freeze.shown(order) != seen:
        raise guards.LostRace("order.shown")
    credits = sum(item.pose.credits for item in items)
    freeze.freeze_items(order, count=len(items), credits=credits)
    key = new_key()
    payment = Payment.objects.create(
        key=key,
        owner=owner,
        reference=f"order:{order.code}",
        amount=amount,
        currency=settings.CURRENCY,
        credits=credits,
        name=f"{items[0].pose.name} video" if len(items) == 1 else f"{len(items)} videos",
        email=order.email,
        success_url=f"{settings.PUBLIC_URL}/pay/return/?session={{CHECKOUT_SESSION_ID}}",
        cancel_url=f"{settings.PUBLIC_URL}/pay/cancelled/{key}/",
        session_expires_at=clock.after(SESSION_SECONDS),
    )
    move_order(
        "ask_payment", order_id=order.pk, payment_id=None, payment=payment, owner=owner, price=amount,
        currency=settings.CURRENCY, credits=credits, declarations=declarations,
    )  # fmt: skip


def _differs(order: Order, seen: freeze.Shown, expected_price: int) -> str:
    """Why a payment page of this order is not for who saw something else; another tab's stands for what was approved there."""
    now = freeze.shown(order)
    if now.came != seen.came:
        return "money_came"
    if now.approved != seen.approved:
        return "not_a_draft"
    return "price_changed" if order.status == Order.Status.AWAITING_PAYMENT and order.price != expected_price else ""


def reopen(*, order: Order) -> str:
    """Make an order that waits for payment a draft again: reopened, paid, pending or gateway_down.

    First the session is ended at the processor, and the order moves only when the processor says so; a session that turns out to be
    paid settles instead.
    """
    payment = order.payment
    if order.status != Order.Status.AWAITING_PAYMENT or payment is None:
        return _after_reopen(order)
    touch(order_id=order.pk)
    payment = checkout.open_session(payment)
    if payment.session_id and payment.status in checkout.WAITING:
        try:
            with looks.asking(payment):
                apply(payment, get_gateway().expire(session_id=payment.session_id))
        except (GatewayError, checkout.MoneyStuck) as error:
            log.warning("could not end the session of payment %s: %s", payment.key, error)
            return "gateway_down"
    return _after_reopen(order)


def _after_reopen(order: Order) -> str:
    order.refresh_from_db()
    if order.status == Order.Status.AWAITING_PAYMENT:
        return "pending" if order.payment and order.payment.status == "pending" else "gateway_down"
    return {Order.Status.DRAFT: "reopened", Order.Status.PAID: "paid"}.get(Order.Status(order.status), "expired")


# --- paid ------------------------------------------------------------------------------------------------------------


def look(payment: Payment) -> str:
    """Settle for somebody who is at the door: the payment's state, or "" when it could not be looked up.

    Whatever fails changes nothing and is nobody's error page: the sweep looks again, and counts what nobody explains.
    """
    try:
        return settle(payment)
    except GatewayError as error:
        log.warning("payment %s not looked up now: %s", payment.key, error)
    except Exception:
        log.exception("payment %s raised", payment.key)
    return ""


def settle(payment: Payment) -> str:
    """Look the payment up at the processor and do what it says; the word for what is true afterwards.

    Called by the hint, the return page and the sweep alike, any number of times at once: one of them wins, the rest find it done.
    """
    payment = checkout.open_session(payment)
    if not payment.session_id:
        return payment.status
    with looks.asking(payment):
        return apply(payment, get_gateway().look_up(session_id=payment.session_id))


def apply(payment: Payment, receipt: Receipt) -> str:
    """Do what a receipt says. An older or repeated receipt finds its guard closed and changes nothing.

    MoneyStuck: the receipt should have moved the payment, nobody else has, and still it stands where it stood.
    """
    if receipt.livemode != settings.LIVE:
        raise GatewayMisconfigured(f"payment {payment.key}: the processor's livemode is {receipt.livemode}")
    if receipt.status == "paid":
        if checkout.matches(payment, receipt):
            checkout.judge("receive", payment, _settle(payment, receipt))
        else:
            outcome = checkout.mismatch(payment, receipt)
            if outcome.won:
                log.error("ALARM payment %s was paid with %s %s", payment.key, receipt.amount, receipt.currency)
                guards.count("alarm.mismatched")
            checkout.judge("mismatch", payment, outcome)
    elif receipt.status == "pending" and payment.status == "open":
        checkout.judge("wait", payment, checkout.wait(payment))
    elif receipt.status == "expired" and payment.status == "open":
        checkout.judge("expire", payment, checkout.end_payment("expire", payment))
    elif receipt.status == "failed" and payment.status in checkout.WAITING:
        checkout.judge("fail", payment, checkout.end_payment("fail", payment, last_error=""))
    elif receipt.status in checkout.ENDED:
        looks.known_after_all(payment)
    known = Payment.objects.get(pk=payment.pk).status
    # What has ended here while the processor says that money is on its way is no proof that none was taken.
    return "" if receipt.status == "pending" and known in checkout.ENDED else known


@guards.block("orders.settle")
def _settle(payment: Payment, receipt: Receipt) -> None:
    move_payment("receive", payment_id=payment.pk, **checkout.paid_fields(receipt))
    start(payment, receipt)


def start(payment: Payment, receipt: Receipt) -> None:
    """Inside the block that received the money: the order's jobs begin, or the credits are kept for their owner.

    Money of which anything has gone back already starts nothing: the order that waits for it is a draft again.
    """
    order = kept.order_of(payment)
    stays = not receipt.refunded and not receipt.disputed
    if not (order and stays and may_move_order("pay", order_id=order.pk, payment_id=payment.pk, paid_at=clock.now())):
        checkout.draft_again(payment)
        kept.keep(payment=payment, order=order, receipt=receipt)
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
            freeze.job_of(order, item, owner_id=payment.owner_id, hold_id=hold.pk, lot_size=len(items))
            for item, hold in zip(items, bought.holds, strict=True)
        ],
        actor="settle",
    )
    freeze.link_jobs(order)
    mail.order_received(order=order)
    for job in jobs:
        guards.nudge(functools.partial(work.nudge, job.pk))


# --- cancel ----------------------------------------------------------------------------------------------------------


def can_cancel(order: Order) -> bool:
    """Whether cancelling would truly give something back: a job of the order waits, or is in review, and nothing of it is live."""
    return any(work.can_cancel(item.job) for item in order.items.select_related("job") if item.job)


def cancel(*, order: Order, actor: str) -> bool:
    """Cancel every job of the order that may still be, and give its credit back; whether any was."""
    done = [work.cancel(job=item.job, actor=actor) for item in order.items.select_related("job") if item.job]
    return any(done)
