"""The parts of Stripe's API that a shop uses, under `/stripe/v1/`, as the `stripe` library speaks them."""

from functools import partial

from waistheart.sandbox import card, card_payments, card_refunds
from waistheart.sandbox import card_errors as errors
from waistheart.sandbox.card_call import Call, Operation, answer
from waistheart.sandbox.card_lists import expanded, page
from waistheart.sandbox.card_objects import JsonObject
from waistheart.sandbox.server import Router
from waistheart.sandbox.world import World


def create_session(world: World, call: Call) -> JsonObject:
    """POST /v1/checkout/sessions"""
    session = card.create_session(world, params=call.params, base_url=call.base_url, key=call.key)
    return expanded(world, session, call.params)


def list_sessions(world: World, call: Call) -> JsonObject:
    """GET /v1/checkout/sessions"""
    sessions = [card_payments.look(world, ident=ident) for ident in list(world.collection("sessions"))]
    return _listed(world, call, sessions, frozenset({"status", "payment_intent"}))


def retrieve_session(world: World, call: Call) -> JsonObject:
    """GET /v1/checkout/sessions/:id; an open page's address is where we are asked now: we may have been started at another port"""
    found = expanded(world, card_payments.look(world, ident=call.ident), call.params)
    return {**found, "url": card.page_address(call.base_url, call.ident)} if found["url"] else found


def expire_session(world: World, call: Call) -> JsonObject:
    """POST /v1/checkout/sessions/:id/expire"""
    return expanded(world, card.expire(world, ident=call.ident, key=call.key), call.params)


def create_refund(world: World, call: Call) -> JsonObject:
    """POST /v1/refunds"""
    return expanded(world, card_refunds.create_refund(world, params=call.params, key=call.key), call.params)


def list_refunds(world: World, call: Call) -> JsonObject:
    """GET /v1/refunds"""
    return _listed(world, call, list(world.collection("refunds").values()), frozenset({"payment_intent", "charge"}))


def list_disputes(world: World, call: Call) -> JsonObject:
    """GET /v1/disputes"""
    return _listed(world, call, list(world.collection("disputes").values()), frozenset({"payment_intent", "charge"}))


def list_events(world: World, call: Call) -> JsonObject:
    """GET /v1/events"""
    return _listed(world, call, list(world.collection("events").values()), frozenset({"type"}))


def retrieve(world: World, call: Call, *, collection: str, what: str) -> JsonObject:
    """GET of one object that needs no more than its id"""
    thing = world.collection(collection).get(call.ident)
    if thing is None:
        raise errors.missing(what, call.ident, param="id")
    return expanded(world, thing, call.params)


OPERATIONS = (
    Operation("sessions.create", "POST", "/v1/checkout/sessions", create_session),
    Operation("sessions.list", "GET", "/v1/checkout/sessions", list_sessions),
    Operation("sessions.retrieve", "GET", "/v1/checkout/sessions/:id", retrieve_session),
    Operation("sessions.expire", "POST", "/v1/checkout/sessions/:id/expire", expire_session),
    Operation(
        "intents.retrieve",
        "GET",
        "/v1/payment_intents/:id",
        partial(retrieve, collection="intents", what="payment_intent"),
    ),
    Operation("charges.retrieve", "GET", "/v1/charges/:id", partial(retrieve, collection="charges", what="charge")),
    Operation("refunds.create", "POST", "/v1/refunds", create_refund),
    Operation("refunds.list", "GET", "/v1/refunds", list_refunds),
    Operation("refunds.retrieve", "GET", "/v1/refunds/:id", partial(retrieve, collection="refunds", what="refund")),
    Operation("disputes.list", "GET", "/v1/disputes", list_disputes),
    Operation("events.list", "GET", "/v1/events", list_events),
    Operation("events.retrieve", "GET", "/v1/events/:id", partial(retrieve, collection="events", what="event")),
)


def register(router: Router) -> None:
    """Add every operation to the router, and the processor's own 404 for any other path."""
    for operation in OPERATIONS:
        router.route(operation.method, operation.pattern)(partial(answer, operation=operation))
    nothing = Operation("unknown", "", "", _nothing)
    for method in ("GET", "POST", "DELETE"):
        router.route(method, r"/stripe/v1/.*")(partial(answer, operation=nothing))


def _listed(world: World, call: Call, things: list[JsonObject], filters: frozenset[str]) -> JsonObject:
    return expanded(world, page(call.params, things, url=call.path, filters=filters), call.params)


def _nothing(world: World, call: Call) -> JsonObject:
    raise errors.CardError(f"Unrecognized request URL ({call.path}).", status=404)
