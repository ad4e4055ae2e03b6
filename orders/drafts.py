"""An order before it is paid for: chosen pose, uploaded photo, frame, e-mail address. Every change writes the order first.

So a change and Pay cannot both win: Pay names the number of writes it has seen.
"""

import hashlib
import logging

from django.conf import settings
from django.db.models import F

from orders import photos
from orders.models import Order, OrderItem, Photo, Pose
from orders.moves import move_order, write_draft, write_order
from waistheart import clock, guards, storage
from waistheart.installation import ident
from waistheart.models import normalise_email

log = logging.getLogger(__name__)


def start(*, pose: Pose, request_key: str) -> Order:
    """Begin an order for one video of a pose; the same request key answers the same order, whoever was first."""
    key = hashlib.sha256(request_key.encode()).hexdigest()[:64]
    _start(pose, key)
    return Order.objects.get(request_key=key)


@guards.block("orders.start")
def _start(pose: Pose, key: str) -> None:
    order = guards.insert("order.request_key", lambda: Order.objects.create(request_key=key))
    OrderItem.objects.create(order=order, number=1, pose=pose)


def find(*, key: str) -> Order:
    """The order behind a draft's address; Order.DoesNotExist for anything else."""
    return Order.objects.get(key=key)


def put_photo(*, order: Order, data: bytes, name: str, crop: int | None = None) -> bool:
    """Take an upload as the photo of the order's item, under a key of its own. PhotoProblem: it is none; False: no draft any more.

    StorageError: it could not be saved, and nothing has changed. The bytes of a photo that lost the race, or that this one replaces, are deleted.
    """
    portrait = photos.intake(data)
    key = storage.fresh_key(installation=ident(), kind="photos", suffix=".jpg")
    storage.save_bytes(key=key, data=portrait.jpeg, content_type="image/jpeg")
    outcome = _put_photo(order, portrait, key, name, crop)
    if not outcome.won:
        _drop_unused(key)
        return False
    drop_superseded(order)
    return True


def _drop_unused(key: str) -> None:
    """Delete the bytes of an upload that lost, unless a row points at them. What fails now, the orphan sweep does."""
    if Photo.objects.filter(key=key).exists():
        return
    try:
        storage.delete(key=key)
    except storage.StorageError:
        log.warning("a photo that lost is not deleted now", exc_info=True)


@guards.block("orders.put_photo")
def _put_photo(order: Order, portrait: photos.Portrait, key: str, name: str, crop: int | None) -> None:
    write_draft(order_id=order.pk)
    photo = Photo.objects.create(
        order=order,
        key=key,
        sha256=portrait.sha256,
        size=len(portrait.jpeg),
        width=portrait.width,
        height=portrait.height,
        format_seen=portrait.format,
        name=name[-120:],
    )
    Photo.objects.filter(order=order, keep_until__isnull=True).exclude(pk=photo.pk).update(keep_until=clock.now())
    frame = {} if crop is None else {"crop": min(100, max(0, crop))}
    OrderItem.objects.filter(order=order, number=1).update(photo=photo, **frame)


def drop_superseded(order: Order) -> None:
    """Delete the bytes of this order's photos whose time is over; what fails now, the sweep does again."""
    for photo in Photo.objects.filter(order=order, deleted_at__isnull=True, keep_until__lte=clock.now()):
        try:
            drop_photo(photo)
        except storage.StorageError:
            log.warning("photo %s not deleted now", photo.pk, exc_info=True)


def drop_photo(photo: Photo) -> None:
    """Delete one photo's bytes, then say so on its row. A second call deletes nothing more."""
    storage.delete(key=photo.key)
    _photo_is_gone(photo)


@guards.block("orders.photo_gone")
def _photo_is_gone(photo: Photo) -> None:
    write_order(order_id=photo.order_id)
    Photo.objects.filter(pk=photo.pk, deleted_at__isnull=True).update(deleted_at=clock.now())


def set_crop(*, order: Order, crop: int) -> bool:
    """Move the frame, 0 to 100 per cent; False when the order is no draft any more."""
    return _change_item(order, crop=min(100, max(0, crop))).won


def set_pose(*, order: Order, pose: Pose) -> bool:
    """Choose another pose; False when the order is no draft any more."""
    return _change_item(order, pose=pose).won


@guards.block("orders.change_item")
def _change_item(order: Order, **fields: object) -> None:
    write_draft(order_id=order.pk)
    OrderItem.objects.filter(order=order, number=1).update(**fields)


def set_email(*, order: Order, email: str) -> bool:
    """Say where the video goes; False when the order is no draft any more."""
    return _set_email(order, normalise_email(email)).won


@guards.block("orders.set_email")
def _set_email(order: Order, email: str) -> None:
    write_draft(order_id=order.pk, email=email)


def expire(order: Order) -> bool:
    """End a draft that nobody touched for DRAFT_SECONDS; its photos go. False when it was touched meanwhile."""
    if not _expire(order).won:
        return False
    drop_superseded(order)
    return True


@guards.block("orders.expire")
def _expire(order: Order) -> None:
    rows = Order.objects.filter(pk=order.pk, writes=order.writes, touched_at__lte=clock.ago(settings.DRAFT_SECONDS))
    guards.must("order.untouched", rows.update(writes=F("writes") + 1))
    move_order("expire", order_id=order.pk)
    Photo.objects.filter(order=order, keep_until__isnull=True).update(keep_until=clock.now())
