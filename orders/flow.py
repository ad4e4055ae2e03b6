"""The main flow of the shop: start, photo, ask for payment, **paid**.

Start and photo stand in `drafts.py`. From here on money is involved: the order and its payment move together, in one block, and
only by what the card processor says when it is asked with our own key.
"""

import logging
from dataclasses import dataclass

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Case, CharField, OuterRef, Subquery, Value, When

from billing import ledger
from billing.gateway import get_gateway
from billing.gateway_errors import GatewayError, GatewayMisconfigured, GatewayRefused
from billing.models import CreditPack, Payment, Wallet
from billing.moves import move_payment
from billing.receipts import Receipt
from generation import work
from generation.models import Job
from generation.moves import bear
from orders import mail
from orders.models import Order, OrderItem, Photo, Pose
from orders.moves import may_move_order, move_order, write_draft
from waistheart import clock, guards
from waistheart.models import User, normalise_email

log = logging.getLogger(__name__)
SESSION_SECONDS = 23 * 3600
WAITING = ("open", "pending")


@dataclass(frozen=True)
class Asked:
    """Where the customer goes to pay; or why not: incomplete, price_changed, pose_retired, not_a_draft, gateway_down."""

    problem: str = ""
    url: str = ""


# --- ask for payment -------------------------------------------------------------------------------------------------


def price(pose: Pose) -> tuple[int, str]:
    """What one video of a pose costs, in the currency's smallest unit: credits needed times the one-credit pack."""
    pack = CreditPack.objects.get(credits=1, currency=settings.CURRENCY, active=True)
    return pose.credits * pack.price, pack.currency


def ask_payment(*, order: Order, declarations: dict, expected_price: int) -> Asked:
    """Freeze the order as it was read into `order`, and open the one payment page that stands for it.

    A second call, a double click or a second tab answers the same page. A change of the order since it was read makes it lose.
    """
    if order.status == Order.Status.AWAITING_PAYMENT and order.payment:
        return _page_of(order.payment)
    items = list(order.items.select_related("pose", "photo"))
    problem = _not_ready(order, items, expected_price)
    if problem:
        return Asked(problem)
    owner = _owner(order.email)
    won = _ask(order, items, owner, declarations, expected_price).won
    order.refresh_from_db()
    if order.status == Order.Status.AWAITING_PAYMENT and order.payment:
        return _page_of(order.payment)
    return Asked("gateway_down" if won else "not_a_draft")


def _not_ready(order: Order, items: list[OrderItem], expected_price: int) -> str:
    if order.status != Order.Status.DRAFT:
        return "not_a_draft"
    if not items or not order.email or any(i.photo is None or i.photo.deleted_at for i in items):
        return "incomplete"
    if any(not i.pose.active for i in items):
        return "pose_retired"
    if sum(price(i.pose)[0] for i in items) != expected_price:
        return "price_changed"
    return ""


def _owner(email: str) -> User:
    """The customer of an e-mail address, with a wallet; made before any payment of theirs is asked."""
    address = normalise_email(email)
    owner = User.objects.filter(email=address).first()
    if owner is None:
        try:
            with transaction.atomic():
                owner = User.objects.create_user(address)
        except IntegrityError:
            owner = User.objects.get(email=address)
    Wallet.objects.bulk_create([Wallet(owner=owner)], ignore_conflicts=True)
    return owner


@guards.block("orders.ask_payment")
def _ask(order: Order, items: list[OrderItem], owner: User, declarations: dict, amount: int) -> None:
    write_draft(order_id=order.pk, writes=order.writes)
    credits = sum(item.pose.credits for item in items)
    _freeze_items(order, len(items))
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


def _freeze_items(order: Order, count: int) -> None:
    """Copy into each item all that its job will need: staff may edit a pose while the customer is paying. One statement."""
    pose = Pose.objects.filter(pk=OuterRef("pose_id"))
    photo = Photo.objects.filter(pk=OuterRef("photo_id"), deleted_at__isnull=True)
    own_model = Subquery(pose.values("model"))
    model = Case(
        When(pose__in=Pose.objects.filter(model=""), then=Value(settings.VIDEO_MODEL)),
        default=own_model,
        output_field=CharField(),
    )
    frozen = OrderItem.objects.filter(order=order, photo__isnull=False).update(
        frozen_at=clock.now(),
        pose_name=Subquery(pose.values("name")),
        prompt=Subquery(pose.values("prompt")),
        parameters=Subquery(pose.values("parameters")),
        credits=Subquery(pose.values("credits")),
        provider=settings.VIDEO_PROVIDER,
        model=model,
        photo_key=Subquery(photo.values("key")),
        photo_sha256=Subquery(photo.values("sha256")),
    )
    if frozen != count:
        raise guards.LostRace("order.items")


def _page_of(payment: Payment) -> Asked:
    """The payment's page, making its session when there is none yet."""
    payment = open_session(payment)
    if payment.status in WAITING and payment.session_url:
        return Asked(url=payment.session_url)
    return Asked("gateway_down" if payment.status in WAITING else "not_a_draft")


def open_session(payment: Payment) -> Payment:
    """Make the payment's session under its key, unless it has one; the sweep repeats this until it has. Answers the row afterwards.

    A refusal for good ends the payment, and the order that waits for it is a draft again. A processor that is away changes nothing.
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
        log.error("ALARM the processor refuses a session for payment %s: %s", payment.key, error)
        _end_payment("fail", payment, last_error=str(error)[:300])
    except GatewayError as error:
        log.error("no session for payment %s now: %s", payment.key, error)
        Payment.objects.filter(pk=payment.pk).update(last_error=str(error)[:300])
    else:
        _keep_session(payment, session.id, session.url)
    return Payment.objects.get(pk=payment.pk)


@guards.block("orders.session")
def _keep_session(payment: Payment, session_id: str, url: str) -> None:
    rows = Payment.objects.filter(pk=payment.pk, session_id__isnull=True)
    guards.must("payment.session", rows.update(session_id=session_id, session_url=url))


def end_without_session(payment: Payment) -> bool:
    """A payment for which no session could be made has failed; its order is a draft again. False when it has a session after all."""
    return _end_payment("fail", payment, session_id=None, last_error="no session could be made").won


def reopen(*, order: Order) -> str:
    """Make an order that waits for payment a draft again: reopened, paid, pending or gateway_down.

    First the session is ended at the processor, and the order moves only when the processor says so; a session that turns out to be
    paid settles instead.
    """
    payment = order.payment
    if order.status != Order.Status.AWAITING_PAYMENT or payment is None:
        return _after_reopen(order)
    payment = open_session(payment)
    if payment.session_id and payment.status in WAITING:
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
    payment = open_session(payment)
    if not payment.session_id:
        return payment.status
    return apply(payment, get_gateway().look_up(session_id=payment.session_id))


def apply(payment: Payment, receipt: Receipt) -> str:
    """Do what a receipt says. An older or repeated receipt finds its guard closed and changes nothing."""
    if receipt.livemode != settings.LIVE:
        raise GatewayMisconfigured(f"payment {payment.key}: the processor's livemode is {receipt.livemode}")
    if receipt.status == "paid":
        if matches(payment, receipt):
            _settle(payment, receipt)
        else:
            log.error("ALARM payment %s was paid with %s %s", payment.key, receipt.amount, receipt.currency)
            _mismatch(payment, receipt)
    elif receipt.status == "pending" and payment.status == "open":
        _wait(payment)
    elif receipt.status == "expired" and payment.status == "open":
        _end_payment("expire", payment)
    elif receipt.status == "failed" and payment.status in WAITING:
        _end_payment("fail", payment)
    return Payment.objects.get(pk=payment.pk).status


def matches(payment: Payment, receipt: Receipt) -> bool:
    """Whether what was paid is what we asked for, to the unit."""
    return receipt.amount == payment.amount and receipt.currency.upper() == payment.currency.upper()


@guards.block("orders.settle")
def _settle(payment: Payment, receipt: Receipt) -> None:
    move_payment("receive", payment_id=payment.pk, **_paid_fields(receipt))
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
            _job_of(order, item, hold_id=hold.pk, lot_size=len(items))
            for item, hold in zip(items, bought.holds, strict=True)
        ],
        actor="settle",
    )
    _link_jobs(order)
    mail.order_received(order=order)
    for job in jobs:
        guards.nudge(lambda job_id=job.pk: work.nudge(job_id))


def _job_of(order: Order, item: OrderItem, *, hold_id: int, lot_size: int) -> Job:
    """The job of an item, from what `ask_payment` froze; nothing is read from the pose or the photo any more."""
    return Job(
        owner_id=order.owner_id,
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


@guards.block("orders.mismatch")
def _mismatch(payment: Payment, receipt: Receipt) -> None:
    move_payment("mismatch", payment_id=payment.pk, **_paid_fields(receipt))
    _draft_again(payment)


@guards.block("orders.wait")
def _wait(payment: Payment) -> None:
    move_payment("wait", payment_id=payment.pk, next_look_at=clock.now())


@guards.block("orders.end_payment")
def _end_payment(name: str, payment: Payment, **fields: str) -> None:
    move_payment(name, payment_id=payment.pk, **fields)
    _draft_again(payment)


def _draft_again(payment: Payment) -> None:
    """In the block that ended a payment without money: the order that waits for exactly this payment is a draft again, photo kept."""
    order = Order.objects.filter(payment_id=payment.pk).first()
    if order is not None:
        may_move_order("reopen", order_id=order.pk, payment_id=payment.pk, payment=None)


def _paid_fields(receipt: Receipt) -> dict[str, object]:
    return {
        "payment_intent": receipt.payment_intent or "",
        "charge": receipt.charge or "",
        "paid_amount": receipt.amount,
        "paid_currency": receipt.currency.upper(),
    }


# --- cancel ----------------------------------------------------------------------------------------------------------


def can_cancel(order: Order) -> bool:
    """Whether cancelling would truly give something back: a job of the order waits, or is in review, and nothing of it is live."""
    return any(work.can_cancel(item.job) for item in order.items.select_related("job") if item.job)


def cancel(*, order: Order, actor: str) -> bool:
    """Cancel every job of the order that may still be, and give its credit back; whether any was."""
    done = [work.cancel(job=item.job, actor=actor) for item in order.items.select_related("job") if item.job]
    return any(done)
