"""What every request to the card processor has in common: the key, the faults, idempotency, and the shape of errors."""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass

from waistheart.sandbox import card_form
from waistheart.sandbox.card_errors import CardError
from waistheart.sandbox.card_idempotency import SavedAnswer, recall, remember
from waistheart.sandbox.card_objects import JsonObject, new_id
from waistheart.sandbox.faults import Fault
from waistheart.sandbox.server import Request, Response, html_response, json_response
from waistheart.sandbox.world import World

REMEMBERED_CALLS = 500


@dataclass(frozen=True)
class Call:
    """One request to one operation; `path` is as the real API knows it, `key` is the idempotency key of a POST."""

    params: JsonObject
    path: str
    ident: str
    key: str | None
    base_url: str


@dataclass(frozen=True)
class Operation:
    """A name that faults can be narrowed to (`match`), method, path with `:id`, and what does it."""

    name: str
    method: str
    path: str
    perform: Callable[[World, Call], JsonObject]

    @property
    def pattern(self) -> str:
        return "/stripe" + self.path.replace(":id", "(?P<ident>[^/]+)")


ERRORS_BEFORE = {
    "card_429": CardError("Too many requests hit the API too quickly.", status=429, code="rate_limit"),
    "card_error_503": CardError("The service is unavailable.", status=503, kind="api_error"),
    "card_403": CardError("The provided key does not have the required permissions.", status=403),
    "card_409": CardError(
        "There is currently another in-progress request using this idempotency key.",
        status=409,
        kind="idempotency_error",
        code="idempotency_key_in_use",
    ),
}


def answer(world: World, request: Request, *, operation: Operation, ident: str = "") -> Response:
    """Carry one request out as the faults in force allow, and answer as the processor does."""
    request_id = new_id("req_", length=14)
    texts = (operation.name, f"{request.method} {request.path}")
    if world.faults.take("card_drop_before", texts=texts):
        return _note(world, request, operation, Response(drop=True))
    try:
        _authorise(world, request)
        _refuse(world, operation, texts)
        response = _answer_once(world, _call(request, ident), operation, texts, request_id)
    except CardError as error:
        response = json_response(error.status, error.body(), {"Request-Id": request_id})
    return _note(world, request, operation, _spoil(response, request, _spoiler(world, texts)))


def _authorise(world: World, request: Request) -> None:
    word, _, key = request.headers.get("Authorization", "").partition(" ")
    if word != "Bearer" or not key:
        raise CardError("You did not provide an API key.", status=401)
    if key.strip() != world.settings.stripe_key:
        raise CardError(f"Invalid API Key provided: {key[:8]}****", status=401)


def _refuse(world: World, operation: Operation, texts: tuple[str, ...]) -> None:
    if fault := world.faults.take(*ERRORS_BEFORE, texts=texts):
        raise ERRORS_BEFORE[fault.name]
    if operation.name == "sessions.create" and world.faults.take("card_refuse_create", texts=texts):
        raise CardError("Your account cannot currently make charges.", code="account_invalid")
    if operation.name == "sessions.create" and world.faults.take("card_refuse_email", texts=texts):
        raise CardError("Invalid email address", code="email_invalid", param="customer_email")


def _call(request: Request, ident: str) -> Call:
    if request.method == "POST":
        params = card_form.parse(request.body.decode("utf-8", "replace"))
    else:
        params = card_form.nested(request.query.items())
    key = request.headers.get("Idempotency-Key") if request.method == "POST" else None
    return Call(params, request.path.removeprefix("/stripe"), ident, key, request.base_url)


def _answer_once(world: World, call: Call, operation: Operation, texts: tuple[str, ...], request_id: str) -> Response:
    """Under the world's lock, so that two requests with one key are one act and one answer."""
    with world.lock:
        saved = recall(world, key=call.key, path=call.path, params=call.params) if call.key else None
        if saved:
            headers = {"Idempotent-Replayed": "true", "Original-Request": saved.request_id, "Request-Id": request_id}
            return json_response(saved.status, saved.body, headers)
        if world.faults.take("card_500", texts=texts):
            failure = CardError("An unknown error occurred", status=500, kind="api_error")
            saved = SavedAnswer(500, failure.body(), request_id)
        else:
            saved = SavedAnswer(200, operation.perform(world, call), request_id)
        if call.key:
            remember(world, key=call.key, path=call.path, params=call.params, answer=saved)
        return json_response(saved.status, saved.body, {"Request-Id": request_id})


def _spoiler(world: World, texts: tuple[str, ...]) -> Fault | None:
    return world.faults.take("card_drop_after", "card_slow", "card_garbage", texts=texts)


def _spoil(response: Response, request: Request, fault: Fault | None) -> Response:
    """What happens to an answer on its way, after everything has been done."""
    for name in ("Idempotency-Key", "Stripe-Version"):
        if value := request.headers.get(name):
            response.headers[name] = re.sub(r"[^\x20-\x7e]", "", value)
    if fault is None:
        return response
    if fault.name == "card_slow":
        time.sleep(fault.seconds("seconds", 30.0))
        return response
    if fault.name == "card_garbage":
        return html_response(200, "<!doctype html><title>Welcome</title><p>Please sign in to this network.")
    return Response(drop=True)


def _note(world: World, request: Request, operation: Operation, response: Response) -> Response:
    """Keep what was asked, never the API key, for people and tests who look at the state."""
    with world.lock:
        calls = world.collection("calls")
        calls[new_id("call_")] = {
            "operation": operation.name,
            "method": request.method,
            "path": request.path,
            "key": request.headers.get("Idempotency-Key"),
            "version": request.headers.get("Stripe-Version"),
            "status": 0 if response.drop else response.status,
            "at": time.time(),
        }
        while len(calls) > REMEMBERED_CALLS:
            del calls[next(iter(calls))]
        world.touch()
    return response
