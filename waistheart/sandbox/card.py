"""Checkout Sessions of the card processor: created, looked at, expired. Payments are in `card_payments.py`.

Objects are plain dicts in the world's collections `sessions`, `items` (line items by session), `plans` (what the bank
will say, by session), `intents`, `charges`, `refunds` and `events`. Every function holds the world's lock by itself.
"""

import time

from waistheart.sandbox import card_errors as errors
from waistheart.sandbox import card_params
from waistheart.sandbox.card_events import Manner, emit
from waistheart.sandbox.card_faults import manner_of
from waistheart.sandbox.card_form import mapping
from waistheart.sandbox.card_objects import JsonObject, new_id, session_object
from waistheart.sandbox.world import World


def create_session(world: World, *, params: JsonObject, base_url: str, key: str | None) -> JsonObject:
    """Make an open session from these parameters; raises CardError for what the processor refuses."""
    card_params.check_session(params)
    items = card_params.line_items(params)
    ident = new_id("cs_test_", length=58)
    session = session_object(
        ident=ident,
        params=params,
        amount=sum(item["amount_total"] for item in items),
        currency=items[0]["currency"],
        expires_at=card_params.expiry(params, now=time.time()),
        now=int(time.time()),
        url=page_address(base_url, ident),
    )
    with world.lock:
        world.collection("sessions")[ident] = session
        world.collection("items")[ident] = {
            "items": items,
            "metadata": mapping(mapping(params, "payment_intent_data"), "metadata"),
        }
        world.touch()
    if world.faults.take("event_lying", texts=(ident,)):
        emit(world, kind="checkout.session.completed", thing=session, manner=Manner("lying"), key=key)
    return session


def page_address(base_url: str, ident: str) -> str:
    """Where a session's payment page is."""
    return f"{base_url}/stripe/pay/{ident}"


def look(world: World, *, ident: str) -> JsonObject:
    """The session as it stands now: one past its time expires here, a bank's answer that is due arrives here."""
    with world.lock:
        session: JsonObject | None = world.collection("sessions").get(ident)
        if session is None:
            raise errors.missing("checkout.session", ident, param="session")
        if session["status"] == "open" and session["expires_at"] <= time.time():
            _end(world, session, None)
        return session


def expire(world: World, *, ident: str, key: str | None = None) -> JsonObject:
    """End an open session; refused when it is complete or has ended already."""
    with world.lock:
        session = look(world, ident=ident)
        if session["status"] != "open":
            raise errors.CardError(
                'Only Checkout Sessions with a status in ["open"] can be expired. '
                f"This Checkout Session has a status of {session['status']}."
            )
        _end(world, session, key)
        return session


def lapse(world: World, *, ident: str) -> JsonObject:
    """Move the end of an open session into the past: nobody notices before the next look."""
    with world.lock:
        session: JsonObject = world.collection("sessions")[ident]
        session["expires_at"] = int(time.time()) - 1
        world.touch()
        return session


def tell(world: World, *, kind: str, session: JsonObject, manner: Manner | None = None, key: str | None = None) -> None:
    """Send an event about this session, in the given manner or else as the faults in force say."""
    emit(world, kind=kind, thing=session, manner=manner or manner_of(world, session["id"], kind), key=key)


def _end(world: World, session: JsonObject, key: str | None) -> None:
    session["status"] = "expired"
    session["url"] = None
    intent = world.collection("intents").get(session["payment_intent"])
    if intent:
        intent["status"], intent["canceled_at"] = "canceled", int(time.time())
    world.touch()
    tell(world, kind="checkout.session.expired", session=session, key=key)
