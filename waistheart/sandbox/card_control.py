"""`POST /control/card/<session>`: what the buttons of the payment page do, and more, for tests without a browser."""

from collections.abc import Callable
from typing import Any

from waistheart.sandbox import card, card_payments, card_refunds
from waistheart.sandbox.card_errors import CardError
from waistheart.sandbox.card_events import Manner
from waistheart.sandbox.card_objects import JsonObject
from waistheart.sandbox.server import Request, Response, Router, json_response
from waistheart.sandbox.world import World

LONGEST_SECONDS = 86400


def register(router: Router) -> None:
    router.route("POST", "/control/card/(?P<ident>[^/]+)")(control)


def control(world: World, request: Request, *, ident: str) -> Response:
    """Carry out `{"do": ...}` on a session and answer with the session; 400 with the known words for any other.

    `event` (lost, doubled, late, bad_signature, unknown_type, lying, other_version) is how the event travels, with
    `seconds` for a late one. refund and dispute take `amount` and `status`, refund_update `refund` and `status`, pay_unpaid
    `then` (succeed or fail) and `seconds`.
    """
    try:
        body = request.json()
        act = ACTS[body["do"]]
        act(world, ident, body)
        return json_response(200, card_payments.look(world, ident=ident))
    except CardError as error:
        return json_response(error.status, error.body())
    except (KeyError, TypeError, ValueError) as error:
        return json_response(400, {"detail": str(error), "known": sorted(ACTS)})


def manner(body: dict[str, Any]) -> Manner | None:
    """The manner of delivery that a body names, or None to leave it to the faults in force."""
    name = body.get("event")
    return Manner(str(name), seconds(body, 0)) if name else None


def seconds(body: dict[str, Any], default: float) -> float:
    """How long, as a body says; ValueError for what no clock can wait."""
    given = float(body.get("seconds", default))
    if not 0 <= given <= LONGEST_SECONDS:
        raise ValueError(f"seconds is a number from 0 to {LONGEST_SECONDS}")
    return given


def _pay(world: World, ident: str, body: dict[str, Any]) -> JsonObject:
    return card_payments.pay(world, ident=ident, manner=manner(body))


def _pay_unpaid(world: World, ident: str, body: dict[str, Any]) -> JsonObject:
    event = Manner(str(body["event"])) if body.get("event") else None
    return card_payments.pay_unpaid(world, ident=ident, then=body.get("then"), seconds=seconds(body, 8), manner=event)


def _refund(world: World, ident: str, body: dict[str, Any]) -> JsonObject:
    params: JsonObject = {"payment_intent": card.look(world, ident=ident)["payment_intent"]}
    if "amount" in body:
        params["amount"] = str(body["amount"])
    return card_refunds.create_refund(world, params=params, status=str(body.get("status", "succeeded")))


def _refund_update(world: World, ident: str, body: dict[str, Any]) -> JsonObject:
    return card_refunds.update_refund(world, ident=str(body["refund"]), status=str(body["status"]))


def _dispute(world: World, ident: str, body: dict[str, Any]) -> JsonObject:
    intent, amount = card.look(world, ident=ident)["payment_intent"], body.get("amount")
    status = str(body.get("status", "needs_response"))
    return card_refunds.dispute(world, intent_id=intent, amount=int(amount) if amount else None, status=status)


def _lie(world: World, ident: str, body: dict[str, Any]) -> JsonObject:
    session = card.look(world, ident=ident)
    card.tell(world, kind="checkout.session.completed", session=session, manner=Manner("lying"))
    return session


ACTS: dict[str, Callable[[World, str, dict[str, Any]], JsonObject]] = {
    "pay": _pay,
    "pay_unpaid": _pay_unpaid,
    "succeed": lambda world, ident, body: card_payments.succeed(world, ident=ident, manner=manner(body)),
    "fail": lambda world, ident, body: card_payments.fail(world, ident=ident, manner=manner(body)),
    "decline": lambda world, ident, body: card_payments.decline(world, ident=ident),
    "expire": lambda world, ident, body: card.expire(world, ident=ident),
    "lapse": lambda world, ident, body: card.lapse(world, ident=ident),
    "pay_after_all": lambda world, ident, body: card_payments.pay_after_all(world, ident=ident, manner=manner(body)),
    "refund": _refund,
    "refund_update": _refund_update,
    "dispute": _dispute,
    "lie": _lie,
}
