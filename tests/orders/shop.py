"""A small shop in the test's database: a pose with its clip, a price, and orders in any state."""

import io
from datetime import timedelta
from itertools import count
from pathlib import Path

from django.utils import timezone
from PIL import Image

from billing.models import CreditPack, Entry, Grant, Hold, Payment, Wallet
from generation.models import Job, JobEvent
from orders import drafts, freeze
from orders.models import Order, OrderItem, Pose
from waistheart import storage
from waistheart.installation import ident
from waistheart.models import User

PHOTOS = Path(__file__).resolve().parent.parent / "data" / "photos"
ADA = "ada@example.com"
VIDEO = b"\0\0\0\x18ftypisom" + bytes(range(256)) * 8
_numbers = count(1)


def pose(slug: str = "waist-heart", name: str = "Waist heart", **fields: object) -> Pose:
    """A pose on sale, with clip and poster, in a shop that has a price."""
    CreditPack.objects.get_or_create(credits=1, currency="GBP", active=True, defaults={"price": 400})
    made, _ = Pose.objects.get_or_create(
        slug=slug,
        defaults={
            "name": name,
            "description": "Hands meet at the waist.",
            "prompt": "waist heart",
            "sample_key": stored(VIDEO, ".mp4"),
            "sample_size": len(VIDEO),
            "poster_key": stored(b"\xff\xd8\xffposter", ".jpg"),
            **fields,
        },
    )
    return made


def stored(data: bytes, suffix: str) -> str:
    """Bytes in storage, under a key of their own."""
    key = storage.fresh_key(installation=ident(), kind="tests", suffix=suffix)
    storage.save_bytes(key=key, data=data, content_type="application/octet-stream")
    return key


def tall_photo() -> bytes:
    """A photo taller than 9:16, red at the top and blue at the bottom, so that its frame has room to move."""
    picture = Image.new("RGB", (720, 1600), "red")
    picture.paste("blue", (0, 800, 720, 1600))
    out = io.BytesIO()
    picture.save(out, "JPEG")
    return out.getvalue()


def draft(*, email: str = ADA, photo: bytes | None = None) -> Order:
    """A draft with a photo and an address, ready to be paid for."""
    order = drafts.start(pose=pose(), request_key=f"test-request-{next(_numbers)}")
    data = (PHOTOS / "ok_portrait.jpg").read_bytes() if photo is None else photo
    assert drafts.put_photo(order=order, data=data, name="IMG_1234.jpg", crop=25)
    if email:
        assert drafts.set_email(order=order, email=email)
    order.refresh_from_db()
    return order


def pay_form(order: Order, **changed: str) -> dict[str, str]:
    """What the review page would send at Pay now, both boxes ticked."""
    fresh = Order.objects.get(pk=order.pk)
    return {
        "price": str(fresh.price or 400),
        "shown": ".".join(freeze.shown(fresh)),
        "may_use": "1",
        "start_now": "1",
        **changed,
    }


def awaiting(*, payment_status: str = "open") -> Order:
    """An order whose payment page is open."""
    order = draft()
    user, _ = User.objects.get_or_create(email=ADA)
    payment = _payment(order, user, credits=1, status=payment_status, session_id=f"cs_{next(_numbers)}")
    Order.objects.filter(pk=order.pk).update(
        status="awaiting_payment", payment=payment, owner=user, price=400, currency="GBP", credits=1
    )
    order.refresh_from_db()
    return order


def paid(
    *statuses: str,
    age: float = 30,
    move: str = "",
    actor: str = "runner",
    reason: str = "",
    returned: bool = True,
    model: str = "a-model",
    deleted: bool = False,
) -> Order:
    """A paid order with one job per status. `returned`: the ledger has the row that gives a failed job's credit back."""
    order, n = draft(), len(statuses)
    user, _ = User.objects.get_or_create(email=ADA)
    Wallet.objects.get_or_create(owner=user)
    payment = _payment(order, user, credits=n, status="received")
    ends = timezone.now() + timedelta(days=30)
    grant = Grant.objects.create(
        owner=user, payment=payment, reason="bought", credits=n, available=0, held=n, expires_at=ends
    )
    first = order.items.get()
    for number in range(2, n + 1):
        OrderItem.objects.create(order=order, number=number, pose=first.pose, photo=first.photo)
    for item, status in zip(order.items.order_by("number"), statuses, strict=True):
        hold = Hold.objects.create(owner=user, credits=1, parts=1)
        job = _job(item, user, hold, n, status, reason=reason, model=model, deleted=deleted)
        JobEvent.objects.create(job=job, move=move or "x", source="queued", target=status, version=1, actor=actor)
        if status == "failed" and returned:
            Entry.objects.create(
                kind="released", occasion=f"hold:{hold.pk}", grant=grant, credits=1, available=1, held=-1
            )
        OrderItem.objects.filter(pk=item.pk).update(job=job, pose_name=item.pose.name)
    paid_at = timezone.now() - timedelta(seconds=age)
    Order.objects.filter(pk=order.pk).update(
        status="paid", payment=payment, owner=user, price=400 * n, currency="GBP", credits=n, paid_at=paid_at
    )
    order.refresh_from_db()
    return order


def url(order: Order, rest: str = "") -> str:
    """The address of the order's page, or of something under it."""
    return f"/o/{order.code}-{order.key}/{rest}"


def _payment(order: Order, user: User, *, credits: int, status: str, session_id: str | None = None) -> Payment:
    return Payment.objects.create(
        owner=user, reference=f"order:{order.code}", amount=400 * credits, currency="GBP", credits=credits, name="x",
        email=user.email, success_url="x", cancel_url="x", session_expires_at=timezone.now(), status=status,
        session_id=session_id, session_url="http://127.0.0.1:9/stripe/pay/1" if session_id else "",
    )  # fmt: skip


def _job(
    item: OrderItem, user: User, hold: Hold, size: int, status: str, *, reason: str, model: str, deleted: bool
) -> Job:
    assert item.photo is not None
    result: dict[str, object] = {}
    if status == "completed":
        result = {
            "video_key": stored(VIDEO, ".mp4"), "video_size": len(VIDEO), "video_sha256": "0" * 64, "video_width": 720,
            "video_height": 1280, "poster_key": stored(b"\xff\xd8\xffposter", ".jpg"),
            "deleted_at": timezone.now() if deleted else None,
        }  # fmt: skip
    return Job.objects.create(
        owner=user, hold=hold, lot=item.order.lot, lot_number=item.number, lot_size=size, photo_key=item.photo.key,
        photo_sha256=item.photo.sha256, crop=25, prompt="x", provider="fal", model=model, credits=1, status=status,
        reason=reason if status in ("failed", "review") else "", **result,
    )  # fmt: skip
