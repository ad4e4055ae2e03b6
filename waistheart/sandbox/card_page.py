"""The hosted payment page at `/stripe/pay/<session>`: what a press does. The HTML is in `card_html.py`."""

from collections.abc import Callable
from contextlib import suppress
from urllib.parse import parse_qs

from waistheart.sandbox import card, card_html, card_payments
from waistheart.sandbox.card_errors import CardError
from waistheart.sandbox.card_events import Manner
from waistheart.sandbox.card_objects import JsonObject
from waistheart.sandbox.server import Request, Response, Router, html_response
from waistheart.sandbox.world import World

PATH = "/stripe/pay/(?P<ident>[^/]+)"
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    # Without a referrer a browser would not say either that the form comes from this very page.
    "Referrer-Policy": "same-origin",
}


def register(router: Router) -> None:
    router.route("GET", PATH)(show)
    router.route("POST", PATH)(press)


def show(world: World, request: Request, *, ident: str) -> Response:
    """The page of an open session, or what became of it."""
    with world.lock:
        session = _find(world, ident)
        if session is None:
            return html_response(404, card_html.not_found(), HEADERS)
        if session["status"] != "open":
            return html_response(200, card_html.ended(session), HEADERS)
        item = world.collection("items")[ident]["items"][0]
        return html_response(200, card_html.payable(session, item, declined="declined" in request.query), HEADERS)


def press(world: World, request: Request, *, ident: str) -> Response:
    """One button. A press on a session that is no longer open changes nothing and shows what became of it."""
    if _find(world, ident) is None:
        return html_response(404, card_html.not_found(), HEADERS)
    word = parse_qs(request.body.decode("utf-8", "replace")).get("do", [""])[0]
    act = BUTTONS.get(word)
    if act is None:
        return html_response(400, card_html.not_found(), HEADERS)
    with suppress(CardError):  # a second press: the next page tells where the session stands
        act(world, ident)
    session = card_payments.look(world, ident=ident)
    if session["status"] == "open":
        return _see(request.path + ("?declined=1" if word == "decline" else ""))
    if session["status"] == "complete" and word not in STAY:
        return _see(session["success_url"].replace("{CHECKOUT_SESSION_ID}", ident))
    return _see(request.path)


def _find(world: World, ident: str) -> JsonObject | None:
    try:
        return card_payments.look(world, ident=ident)
    except CardError:
        return None


def _see(address: str) -> Response:
    return Response(303, b"", {"Location": address, **HEADERS})


def _pay(event: str | None = None, seconds: float = 0.0) -> Callable[[World, str], object]:
    manner = Manner(event, seconds) if event else None
    return lambda world, ident: card_payments.pay(world, ident=ident, manner=manner)


def _pay_otherwise(fault: str) -> Callable[[World, str], object]:
    def act(world: World, ident: str) -> None:
        world.faults.push({"fault": fault, "match": ident})
        card_payments.pay(world, ident=ident)

    return act


def _bank(then: str) -> Callable[[World, str], object]:
    return lambda world, ident: card_payments.pay_unpaid(world, ident=ident, then=then)


def _lie(world: World, ident: str) -> None:
    session = card.look(world, ident=ident)
    card.tell(world, kind="checkout.session.completed", session=session, manner=Manner("lying"))


STAY = frozenset({"pay_close_tab", "expire"})
BUTTONS: dict[str, Callable[[World, str], object]] = {
    "pay": _pay(),
    "pay_by_bank": _bank("succeed"),
    "bank_fails": _bank("fail"),
    "decline": lambda world, ident: card_payments.decline(world, ident=ident),
    "pay_lose_event": _pay("lost"),
    "pay_close_tab": _pay(),
    "pay_event_twice": _pay("doubled"),
    "pay_event_late": _pay("late", 20.0),
    "pay_event_forged": _pay("bad_signature"),
    "pay_event_unknown": _pay("unknown_type"),
    "pay_wrong_amount": _pay_otherwise("wrong_amount"),
    "pay_wrong_currency": _pay_otherwise("wrong_currency"),
    "lie": _lie,
    "expire": lambda world, ident: card.expire(world, ident=ident),
}
