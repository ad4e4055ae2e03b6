"""How long a draft and its photos live: from the last change, and as long as any video is still made from them."""

from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone

from generation.models import Job
from orders import drafts, mail
from orders import sweep as sweeps
from orders.models import Order, OrderItem, Photo
from tests.orders import shop
from waistheart import clock

pytestmark = pytest.mark.django_db(transaction=True)
CHANGES: dict[str, Any] = {
    "frame": lambda order: drafts.set_crop(order=order, crop=10),
    "pose": lambda order: drafts.set_pose(order=order, pose=shop.pose("finger-heart", "Finger heart")),
    "address": lambda order: drafts.set_email(order=order, email="eve@example.com"),
    "photo": lambda order: drafts.put_photo(order=order, data=shop.tall_photo(), name="b.jpg"),
}


def old_draft() -> Order:
    """A draft that was begun long ago, and last changed nearly as long ago as a draft may live."""
    order = shop.draft()
    long_ago = timezone.now() - timedelta(days=400)
    Order.objects.filter(pk=order.pk).update(state_since=long_ago, created_at=long_ago, touched_at=long_ago)
    return Order.objects.get(pk=order.pk)


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_draft_that_was_changed_just_now_lives_on(change: Any):
    order = old_draft()
    assert change(order)
    assert sweeps.expire_drafts() == 0
    order.refresh_from_db()
    assert order.status == "draft"
    assert not drafts.expire(order)
    until = order.touched_at + timedelta(seconds=settings.DRAFT_SECONDS)
    Order.objects.filter(pk=order.pk).update(touched_at=clock.ago(settings.DRAFT_SECONDS + 1))
    assert until > timezone.now()
    assert sweeps.expire_drafts() == 1


def test_a_draft_that_nobody_touched_ends_with_its_photo():
    order = old_draft()
    assert sweeps.expire_drafts() == 1
    order.refresh_from_db()
    assert order.status == "expired"
    assert Photo.objects.get().deleted_at is not None
    assert Client().get(f"/make/{order.key}/review/").status_code == 410


def test_a_photo_stays_while_another_video_is_made_from_it():
    order = shop.paid("completed", "queued")
    OrderItem.objects.update(photo_key=Photo.objects.get().key)
    first, second = order.items.select_related("order", "job").order_by("number")
    assert mail.tell(first)
    assert Photo.objects.get().keep_until is None
    Job.objects.filter(pk=second.job_id).update(
        status="completed", video_key="v", video_size=1, video_sha256="0" * 64, video_width=720, video_height=1280,
        poster_key="p", next_step_at=None,
    )  # fmt: skip
    assert mail.tell(OrderItem.objects.select_related("order", "job").get(pk=second.pk))
    assert Photo.objects.get().keep_until is not None
