"""What the customer approves at Pay, made ready: is the order complete, whose is it, and the copies its jobs will be made from."""

import hashlib
import json
import logging
from typing import NamedTuple

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Case, CharField, OuterRef, Subquery, Sum, Value, When

from billing.gateway import MOST_AMOUNT
from billing.models import CreditPack, Wallet
from generation.models import Job
from orders import kept
from orders.models import Order, OrderItem, Photo, Pose
from waistheart import clock, guards
from waistheart.models import User, normalise_email

log = logging.getLogger(__name__)


def price(pose: Pose) -> tuple[int, str]:
    """What one video of a pose costs, in the currency's smallest unit: credits needed times the one-credit pack."""
    pack = CreditPack.objects.get(credits=1, currency=settings.CURRENCY, active=True)
    return pose.credits * pack.price, pack.currency


def items_of(order: Order) -> list[OrderItem]:
    """The order's items as they are now, with what they name."""
    return list(order.items.select_related("pose", "photo").order_by("number"))


def not_ready(order: Order, items: list[OrderItem], expected_price: int) -> str:
    if order.status != Order.Status.DRAFT:
        return "not_a_draft"
    if not items or not order.email or any(i.photo is None or i.photo.deleted_at for i in items):
        return "incomplete"
    if any(not i.pose.active for i in items):
        return "pose_retired"
    amount = sum(price(i.pose)[0] for i in items)
    if amount > MOST_AMOUNT:
        log.error("ALARM order %s would cost %s, more than the processor takes", order.code, amount)
        return "gateway_down"
    return "" if amount == expected_price else "price_changed"


class Shown(NamedTuple):
    """What a review page stands for: `approved` is what Pay is pressed for, in one word, and `came` what became of money that
    came for the order and started nothing."""

    approved: str
    came: str


def shown(order: Order) -> Shown:
    """What a page about this order shows now; equal as long as neither another tab, nor staff, nor money changed any of it."""
    return Shown(_approved(order, items_of(order)), kept.all_of(order))


def _approved(order: Order, items: list[OrderItem]) -> str:
    """Whose address, which photos and frames, which poses and what is made of them: of a draft as they are sold now, later as frozen."""
    made = [_frozen(item) if order.status != Order.Status.DRAFT else _as_sold(item.pose) for item in items]
    chosen = [(item.number, item.pose_id, item.photo_id, item.crop) for item in items]
    facts = json.dumps([order.email, chosen, made], sort_keys=True, default=str)
    return hashlib.sha256(facts.encode()).hexdigest()[:32]


def _as_sold(pose: Pose) -> list[object]:
    return [pose.name, pose.prompt, pose.parameters, pose.credits, pose.model or settings.VIDEO_MODEL]


def _frozen(item: OrderItem) -> list[object]:
    return [item.pose_name, item.prompt, item.parameters, item.credits, item.model]


def owner_of(email: str) -> User:
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


def freeze_items(order: Order, *, count: int, credits: int) -> None:
    """Copy into each item all that its job will need: staff may edit a pose while the customer is paying.

    LostRace when an item has no photo, or when a pose costs other credits than the payment will be asked for.
    """
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
    if frozen != count or OrderItem.objects.filter(order=order).aggregate(n=Sum("credits"))["n"] != credits:
        raise guards.LostRace("order.items")


def job_of(order: Order, item: OrderItem, *, owner_id: int, hold_id: int, lot_size: int) -> Job:
    """The job of an item, from what was frozen; nothing is read from the pose or the photo any more."""
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


def link_jobs(order: Order) -> None:
    """Give each item of the order the job that was born for it."""
    job = Job.objects.filter(lot=order.lot, lot_number=OuterRef("number")).values("pk")
    OrderItem.objects.filter(order=order).update(job=Subquery(job))
