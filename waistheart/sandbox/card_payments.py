"""What a customer and a bank do to a session: pay, pay later, succeed, fail, decline, pay after all."""

import threading
import time

from waistheart.sandbox import card
from waistheart.sandbox import card_errors as errors
from waistheart.sandbox.card_events import Manner
from waistheart.sandbox.card_objects import JsonObject, charge_object, intent_object
from waistheart.sandbox.world import World


def pay(world: World, *, ident: str, manner: Manner | None = None) -> JsonObject:
    """Pay an open session by card; one that is no longer open stays as it is, so a double press is harmless."""
    with world.lock:
        session = card.look(world, ident=ident)
        if session["status"] == "open":
            _bend(world, session)
            _complete(world, session, "paid", way="card")
            card.tell(world, kind="checkout.session.completed", session=session, manner=manner)
        return session


def pay_unpaid(
    world: World, *, ident: str, then: str | None = None, seconds: float = 8.0, manner: Manner | None = None
) -> JsonObject:
    """Complete an open session whose money comes later; `then` (succeed or fail) follows after `seconds`."""
    with world.lock:
        session = card.look(world, ident=ident)
        if session["status"] == "open":
            _complete(world, session, "unpaid", way="sepa_debit")
            card.tell(world, kind="checkout.session.completed", session=session, manner=manner)
            if then:
                world.collection("plans")[ident] = {"do": then, "at": time.time() + seconds}
                later = threading.Timer(seconds + 0.05, look, kwargs={"world": world, "ident": ident})
                later.daemon = True
                later.start()
        return session


def look(world: World, *, ident: str) -> JsonObject:
    """Like `card.look`, and a bank's answer that is due arrives now (a restart forgets timers, not plans)."""
    with world.lock:
        session = card.look(world, ident=ident)
        plan = world.collection("plans").get(ident)
        if plan and plan["at"] <= time.time():
            (succeed if plan["do"] == "succeed" else fail)(world, ident=ident)
        return session


def succeed(world: World, *, ident: str, manner: Manner | None = None) -> JsonObject:
    """The money of a pending session arrives."""
    with world.lock:
        session, intent = _pending(world, ident)
        session["payment_status"] = "paid"
        charge = world.collection("charges")[intent["latest_charge"]]
        charge["status"], charge["amount_captured"] = "succeeded", charge["amount"]
        intent["status"], intent["amount_received"], intent["processing"] = "succeeded", intent["amount"], None
        card.tell(world, kind="checkout.session.async_payment_succeeded", session=session, manner=manner)
        return session


def fail(world: World, *, ident: str, manner: Manner | None = None) -> JsonObject:
    """The bank of a pending session sends no money; the session stays complete and unpaid."""
    with world.lock:
        session, intent = _pending(world, ident)
        charge = world.collection("charges")[intent["latest_charge"]]
        charge["status"], charge["paid"], charge["captured"] = "failed", False, False
        charge["failure_code"], charge["failure_message"] = "debit_not_authorized", "The bank refused the debit."
        intent["status"], intent["processing"] = "requires_payment_method", None
        intent["last_payment_error"] = _payment_error(charge)
        card.tell(world, kind="checkout.session.async_payment_failed", session=session, manner=manner)
        return session


def decline(world: World, *, ident: str) -> JsonObject:
    """The card of an open session is declined: an attempt stands on record, the session stays payable."""
    with world.lock:
        session = card.look(world, ident=ident)
        if session["status"] == "open":
            intent = _intent(world, session)
            charge = _charge(world, intent, status="failed", way="card")
            intent["status"] = "requires_payment_method"
            intent["last_payment_error"] = _payment_error(charge)
            world.touch()
        return session


def pay_after_all(world: World, *, ident: str, manner: Manner | None = None) -> JsonObject:
    """A session already called expired turns out to be paid."""
    with world.lock:
        session = card.look(world, ident=ident)
        if session["status"] != "expired":
            raise errors.CardError(f"This Checkout Session has a status of {session['status']}.")
        _complete(world, session, "paid", way="card")
        card.tell(world, kind="checkout.session.completed", session=session, manner=manner)
        return session


def _bend(world: World, session: JsonObject) -> None:
    """What is paid differs from what was asked, when a fault says so."""
    if fault := world.faults.take("wrong_amount", texts=(session["id"],)):
        amount = int(fault.params.get("amount", session["amount_total"] - 1))
        session["amount_total"] = session["amount_subtotal"] = amount
    if fault := world.faults.take("wrong_currency", texts=(session["id"],)):
        other = "eur" if session["currency"] == "usd" else "usd"
        session["currency"] = str(fault.params.get("currency", other)).lower()


def _complete(world: World, session: JsonObject, payment_status: str, *, way: str) -> None:
    paid = payment_status == "paid"
    intent = _intent(world, session)
    intent["amount"], intent["currency"] = session["amount_total"], session["currency"]
    intent["status"] = "succeeded" if paid else "processing"
    intent["amount_received"] = intent["amount"] if paid else 0
    intent["last_payment_error"], intent["canceled_at"] = None, None
    _charge(world, intent, status="succeeded" if paid else "pending", way=way)
    session["status"], session["payment_status"], session["url"] = "complete", payment_status, None
    world.touch()


def _intent(world: World, session: JsonObject) -> JsonObject:
    intents = world.collection("intents")
    if session["payment_intent"] is None:
        metadata = world.collection("items")[session["id"]]["metadata"]
        intent = intent_object(session=session, metadata=metadata, now=int(time.time()))
        intents[intent["id"]] = intent
        session["payment_intent"] = intent["id"]
    found: JsonObject = intents[session["payment_intent"]]
    return found


def _charge(world: World, intent: JsonObject, *, status: str, way: str) -> JsonObject:
    charge = charge_object(intent=intent, status=status, way=way, now=int(time.time()))
    world.collection("charges")[charge["id"]] = charge
    intent["latest_charge"], intent["payment_method"] = charge["id"], charge["payment_method"]
    return charge


def _pending(world: World, ident: str) -> tuple[JsonObject, JsonObject]:
    world.collection("plans").pop(ident, None)
    session = card.look(world, ident=ident)
    intent = world.collection("intents").get(session["payment_intent"])
    if intent is None or intent["status"] != "processing":
        raise errors.CardError("No money is on its way for this Checkout Session.")
    world.touch()
    return session, intent


def _payment_error(charge: JsonObject) -> JsonObject:
    return {
        "type": "card_error",
        "code": charge["failure_code"],
        "message": charge["failure_message"],
        "charge": charge["id"],
    }
