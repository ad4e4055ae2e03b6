"""What must be true after a payment, and how the card processor's events reach the shop in tests."""

import hashlib
import json
import time
from typing import Any

import requests
from django.conf import settings

from billing.audit import differences
from billing.models import Grant, Hold, Payment
from generation.models import Job
from orders.models import Mail, Order
from tests.shop import Shop
from waistheart import storage
from waistheart.installation import ident
from waistheart.sandbox.card_events import signature


def the_one_job(order: Order) -> Job:
    """The order is paid once and is worked on once: one job, one grant with its credit held, one mail, books in balance."""
    order.refresh_from_db()
    assert order.status == "paid"
    job = Job.objects.get(lot=order.lot)
    grant = Grant.objects.get(payment=order.payment)
    assert (grant.credits, grant.available, grant.held) == (1, 0, 1)
    assert Hold.objects.get(hold_parts__grant=grant).pk == job.hold_id
    assert order.items.get().job_id == job.pk
    assert Mail.objects.filter(order=order, kind="order_received").count() == 1
    assert differences() == []
    return job


def a_draft_with_its_photo(order: Order) -> None:
    """Nothing was begun; the order is a draft that can be paid."""
    order.refresh_from_db()
    assert (order.status, order.payment) == ("draft", None)
    photo = order.items.get().photo
    assert photo is not None
    assert storage.size(key=photo.key) == photo.size
    assert not Job.objects.filter(lot=order.lot).exists()


def credits_kept(payment: Payment) -> None:
    """The money is received, its credit waits for its owner, who is told once, and nothing was begun for it."""
    payment.refresh_from_db()
    assert payment.status == "received"
    grant = Grant.objects.get(payment=payment)
    assert (grant.owner_id, grant.available, grant.held) == (payment.owner_id, 1, 0)
    mail = Mail.objects.get(kind="credits_kept", occasion=f"payment:{payment.pk}")
    assert mail.to == payment.email
    assert differences() == []


def photo_keys() -> set[str]:
    """The keys of all portraits that lie in storage."""
    return {listed.key for listed in storage.list_keys(prefix=f"{ident()}/photos/")}


def sha256(key: str) -> str:
    """The hash of what lies under a key."""
    return hashlib.sha256(storage.read(key=key)).hexdigest()


def event(session_id: str, *, ident: str = "evt_1", kind: str = "checkout.session.completed", **thing: Any) -> bytes:
    """The body of an event about a checkout session that says it is paid."""
    session = {"id": session_id, "object": "checkout.session", "status": "complete", "payment_status": "paid", **thing}
    return json.dumps({"id": ident, "object": "event", "type": kind, "data": {"object": session}}).encode()


def send_event(
    shop: Shop, body: bytes, *, path: str = "/hints/stripe/", age: int = 0, secret: str = "", signed: str | None = None
) -> requests.Response:
    """Post an event to the shop, signed `age` seconds ago with our secret or another one."""
    if signed is None:
        secret = secret or settings.STRIPE_WEBHOOK_SECRET
        signed = signature(body=body, secret=secret, at=int(time.time()) - age)
    headers = {"Stripe-Signature": signed, "Content-Type": "application/json"}
    return requests.post(shop.url + path, data=body, headers=headers, timeout=30, allow_redirects=False)
