"""Signed events of the card processor and the many ways in which they reach the shop, or do not."""

import copy
import hashlib
import hmac
import json
import threading
import time
from dataclasses import dataclass

import requests

from waistheart.sandbox.card_objects import JsonObject, event_object
from waistheart.sandbox.world import World

MANNERS = ("plain", "lost", "doubled", "late", "bad_signature", "unknown_type", "lying", "other_version")
PAUSES = (0.5, 2.0, 5.0)  # between tries; the real thing goes on for three days
ENDPOINT_VERSION = "2026-09-30.dahlia"  # an endpoint keeps the version it was made with


@dataclass(frozen=True)
class Manner:
    """How one event travels; it waits `seconds` first."""

    name: str = "plain"
    seconds: float = 0.0

    def __post_init__(self) -> None:
        if self.name not in MANNERS:
            raise ValueError(f"no such manner of delivery: {self.name!r}; known: {', '.join(MANNERS)}")


def emit(world: World, *, kind: str, thing: JsonObject, manner: Manner, key: str | None = None) -> None:
    """Make an event about a copy of this object and deliver it in a thread; returns at once.

    The event stands in the processor's own list of events however it travels; only a lying one does not.
    """
    event = event_object(kind=kind, thing=copy.deepcopy(thing), key=key, version=ENDPOINT_VERSION, now=int(time.time()))
    if manner.name != "lying":
        world.collection("events")[event["id"]] = event
    if manner.name == "lost" or not world.settings.shop_url:
        _note(world, event, "lost", 0)
        return
    for _ in range(2 if manner.name == "doubled" else 1):
        threading.Thread(target=_carry, args=(world, bent(event, manner), manner), daemon=True).start()


def bent(event: JsonObject, manner: Manner) -> JsonObject:
    """A copy of the event as this manner of delivery tells it."""
    event = copy.deepcopy(event)
    thing = event["data"]["object"]
    if manner.name == "unknown_type":
        event["type"] = "checkout.session.reconsidered"
    if manner.name == "lying":
        thing["payment_status"], thing["status"] = "paid", "complete"
        event["type"] = "checkout.session.completed"
    if manner.name == "other_version":
        event["api_version"] = "2027-02-24.fennel"
        event["data"]["object"] = {"id": thing["id"], "object": thing["object"]}
    return event


def signature(*, body: bytes, secret: str, at: int) -> str:
    """The `Stripe-Signature` header for these bytes: the time, and HMAC-SHA256 over "time.body"."""
    mac = hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={at},v1={mac}"


def _carry(world: World, event: JsonObject, manner: Manner) -> None:
    time.sleep(manner.seconds)
    body = json.dumps(event, indent=2).encode()
    for pause in (*PAUSES, 0.0):
        if _post(world, event, body, manner):
            return
        time.sleep(pause)


def _post(world: World, event: JsonObject, body: bytes, manner: Manner) -> bool:
    """One try; a redirect counts as failure, as it does at the real processor."""
    headers = {
        "Content-Type": "application/json; charset=utf-8",
        "Stripe-Signature": signature(body=body, secret=_secret(world, manner), at=int(time.time())),
        "User-Agent": "Stripe/1.0 (sandbox)",
    }
    address = world.settings.stripe_webhook_url
    try:
        answer = requests.post(address, data=body, headers=headers, timeout=10, allow_redirects=False)
    except requests.RequestException as error:
        _note(world, event, f"{manner.name}: {type(error).__name__}", 0)
        return False
    _note(world, event, manner.name, answer.status_code)
    return 200 <= answer.status_code < 300


def _secret(world: World, manner: Manner) -> str:
    if manner.name == "bad_signature":
        return "whsec_of_somebody_else"
    return world.settings.stripe_webhook_secret.split(",")[0].strip()


def _note(world: World, event: JsonObject, manner: str, status: int) -> None:
    reference = event["data"]["object"]["id"]
    world.record_event(
        source="stripe", id=event["id"], kind=event["type"], reference=reference, manner=manner, answer=status
    )
