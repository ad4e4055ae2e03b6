"""Money that goes back, from the API or from the processor's own dashboard, and money that banks dispute."""

import time

from waistheart.sandbox import card_errors as errors
from waistheart.sandbox.card_events import emit
from waistheart.sandbox.card_faults import manner_of
from waistheart.sandbox.card_form import whole_number
from waistheart.sandbox.card_objects import JsonObject, dispute_object, refund_object
from waistheart.sandbox.world import World

DISPUTED = frozenset(
    {"needs_response", "under_review", "appeal_needs_response", "appeal_under_review", "won", "lost", "prevented"}
    | {"warning_needs_response", "warning_under_review", "warning_closed"}
)
KNOWN = frozenset({"payment_intent", "charge", "amount", "metadata", "reason", "expand"})


def create_refund(world: World, *, params: JsonObject, key: str | None = None, status: str = "succeeded") -> JsonObject:
    """Refund a charge, all that is left of it by default; refused beyond what is left."""
    if unknown := set(params) - KNOWN:
        raise errors.unknown(min(unknown))
    with world.lock:
        charge = _charge(world, params)
        left = charge["amount_captured"] - charge["amount_refunded"]
        if left <= 0:
            raise errors.CardError(f"Charge {charge['id']} has already been refunded.", code="charge_already_refunded")
        amount = whole_number(params, "amount", default=left)
        if not 0 < amount <= left:
            raise errors.invalid("amount", f"Refund amount ({amount}) is greater than unrefunded amount ({left})")
        refund = refund_object(charge=charge, amount=amount, params=params, status=status, now=int(time.time()))
        world.collection("refunds")[refund["id"]] = refund
        _move(charge, amount)
        _tell(world, "refund.created", refund, key)
        return refund


def update_refund(world: World, *, ident: str, status: str) -> JsonObject:
    """The bank's news about a refund: succeeded, or failed, which may come weeks after it succeeded."""
    if status not in ("succeeded", "failed"):
        raise errors.invalid("status", "A refund becomes succeeded or failed")
    with world.lock:
        refund: JsonObject | None = world.collection("refunds").get(ident)
        if refund is None:
            raise errors.missing("refund", ident, param="refund")
        if refund["status"] in ("failed", status):
            return refund
        refund["status"], refund["pending_reason"] = status, None
        if status == "failed":
            refund["failure_reason"] = "declined"
            _move(world.collection("charges")[refund["charge"]], -refund["amount"])
        _tell(world, "refund.updated", refund, None)
        return refund


def dispute(world: World, *, intent_id: str, amount: int | None = None, status: str = "needs_response") -> JsonObject:
    """The customer's bank takes the money back, all of it by default; said again, the news about the same dispute."""
    if status not in DISPUTED:
        raise errors.invalid("status", f"A dispute is one of {', '.join(sorted(DISPUTED))}")
    with world.lock:
        charge = _charge(world, {"payment_intent": intent_id})
        disputes = world.collection("disputes")
        found = next((one for one in disputes.values() if one["charge"] == charge["id"]), None)
        if found is None:
            found = dispute_object(charge=charge, amount=amount or charge["amount_captured"], now=int(time.time()))
            disputes[found["id"]] = found
        found["status"] = status
        charge["disputed"] = True  # and stays so, whatever becomes of it
        world.touch()
        return charge


def _charge(world: World, params: JsonObject) -> JsonObject:
    ident = str(params.get("charge", ""))
    if params.get("payment_intent"):
        intent = world.collection("intents").get(params["payment_intent"])
        if intent is None:
            raise errors.missing("payment_intent", params["payment_intent"], param="payment_intent")
        ident = intent["latest_charge"]
    charge = world.collection("charges").get(ident)
    if charge is None:
        raise errors.missing("charge", ident, param="charge")
    if charge["status"] != "succeeded":
        raise errors.CardError("This charge has not been captured.", code="charge_not_refundable")
    found: JsonObject = charge
    return found


def _move(charge: JsonObject, amount: int) -> None:
    charge["amount_refunded"] += amount
    charge["refunded"] = charge["amount_refunded"] >= charge["amount_captured"]


def _tell(world: World, kind: str, refund: JsonObject, key: str | None) -> None:
    world.touch()
    emit(world, kind=kind, thing=refund, manner=manner_of(world, refund["id"], kind), key=key)
