"""fal's queue API as the shop meets it: submit, status, result, cancel and the key set."""

import base64
import hmac
import time
import uuid
from typing import Any

from waistheart.sandbox import fal_faults, webhooks
from waistheart.sandbox.fal_outcomes import video_of
from waistheart.sandbox.fal_work import COMPLETE_STATUS, end_cancelled
from waistheart.sandbox.server import Request, Response, Router, json_response
from waistheart.sandbox.world import FalRequest, World, image_address

router = Router()
ONE = r"/fal/queue/(?P<app>[^/]+/[^/]+)/requests/(?P<request_id>[^/]+)"
RESULT_SECONDS = 3600
NOT_FOUND = {"detail": "Request not found"}


@router.route("POST", r"/fal/queue/(?P<endpoint>[^/]+/[^/]+(?:/[^/]+)*)/?")
def submit(world: World, request: Request, endpoint: str) -> Response:
    """Take one request, which is then rendered in the background; the same body twice is two requests."""
    if not key_fits(world, request):
        return unauthorized()
    try:
        body = request.json()
    except ValueError:
        body = None
    if not isinstance(body, dict):
        return json_response(422, {"detail": [{"loc": ["body"], "msg": "not a JSON object", "type": "json_invalid"}]})
    texts = (endpoint, image_address(body))
    if endpoint.startswith("fal-ai/retired/") or world.faults.take("model_retired", texts=texts, model=endpoint):
        return json_response(404, {"detail": f"Application '{endpoint}' not found"})
    refused = fal_faults.refusal(world, on="submit", texts=texts)
    if refused and not refused[1].params.get("accepted"):
        return refused[0]
    if fault := world.faults.take("redirect_on_submit", texts=texts):
        host = fault.params.get("host", "elsewhere.invalid")
        return Response(307, headers={"Location": f"http://{host}{request.path}"})
    accepted = _accept(world, request, endpoint, body, texts)
    if refused:
        return refused[0]
    answer = _addresses(request, accepted) | {"queue_position": max(0, world.to_render.qsize() - 1)}
    return fal_faults.lost_answer(world, texts=texts, answer=answer) or json_response(200, answer)


@router.route("GET", ONE + "/status")
def status(world: World, request: Request, app: str, request_id: str) -> Response:
    """Where a request stands: 202 while it waits or runs, 200 once it is COMPLETED, well or badly."""
    found = _find(world, request, app, request_id, "status")
    if isinstance(found, Response):
        return found
    word, answer = found.status, _addresses(request, found)
    if fault := world.faults.take("unknown_status", texts=(found.endpoint, found.image_url)):
        return json_response(202, {"status": str(fault.params.get("word", "PONDERING")), **answer})
    if word == "IN_QUEUE":
        return json_response(202, {"status": word, "queue_position": world.to_render.qsize(), **answer})
    if word == "IN_PROGRESS":
        return json_response(202, {"status": word, "logs": None, **answer})
    took = round((found.ended_at or 0) - (found.started_at or found.sent_at), 3)
    errors = {key: found.error[key] for key in ("error", "error_type") if key in found.error}
    return json_response(200, {"status": word, "logs": None, "metrics": {"inference_time": took}, **errors, **answer})


@router.route("GET", ONE)
def result(world: World, request: Request, app: str, request_id: str) -> Response:
    """The video of a request, or what became of it; 400 while it is not done, 404 an hour after it ended."""
    found = _find(world, request, app, request_id, "result")
    if isinstance(found, Response):
        return found
    if found.ended_at is None:
        return json_response(400, {"detail": "Request is still in progress"})
    texts = (found.endpoint, found.image_url)
    if time.time() - found.ended_at > RESULT_SECONDS or world.faults.take("result_expired", texts=texts):
        return json_response(404, NOT_FOUND)
    if found.outcome == "done":
        return json_response(200, video_of(found, base_url=request.base_url))
    kind = str(found.error.get("error_type", ""))
    headers = {"X-Fal-Retryable": "false"} | ({"X-Fal-Error-Type": kind} if kind else {})
    return json_response(found.status_code, found.error, headers)


@router.route("PUT", ONE + "/cancel")
def cancel(world: World, request: Request, app: str, request_id: str) -> Response:
    """Ask for an end: certain for a request that waits (or would run for ever); one that runs may still complete."""
    found = _find(world, request, app, request_id, "cancel")
    if isinstance(found, Response):
        return json_response(404, {"status": "NOT_FOUND"}) if found.status == 404 else found
    with world.lock:
        if found.ended_at is not None:
            return json_response(400, {"status": COMPLETE_STATUS})
        if found.started_at is None or found.never_ends:
            end_cancelled(world, found)
    return json_response(202, {"status": "CANCELLATION_REQUESTED"})


@router.route("GET", r"/fal/\.well-known/jwks\.json")
def key_set(world: World, request: Request) -> Response:
    """The public key of the webhooks."""
    public = world.signing_key.public_key().public_bytes_raw()
    material = base64.urlsafe_b64encode(public).rstrip(b"=").decode()
    key = {"kty": "OKP", "crv": "Ed25519", "use": "sig", "alg": "EdDSA", "kid": "sandbox", "x": material}
    return json_response(200, {"keys": [key]}, {"Cache-Control": "max-age=86400"})


def _accept(world: World, request: Request, endpoint: str, body: dict[str, Any], texts: tuple[str, ...]) -> FalRequest:
    now = time.time()
    accepted = FalRequest(
        request_id=str(uuid.uuid4()),
        endpoint=endpoint,
        input=body,
        webhook_url=request.query.get("fal_webhook", ""),
        base_url=request.base_url,
        sent_at=now,
        ready_at=now + world.settings.delay_seconds,
    )
    for name in fal_faults.QUIRKS:
        if fault := world.faults.take(name, texts=texts):
            accepted.quirks[name] = fault.params
    accepted.never_ends = "never_finishing" in accepted.quirks
    with world.lock:
        world.fal[accepted.request_id] = accepted
        world.touch()
    if "webhook_early" in accepted.quirks:
        webhooks.send_early(world, accepted)
    elif "webhook_lying" in accepted.quirks:
        webhooks.send_lie(world, accepted)
    world.to_render.put(accepted.request_id)
    return accepted


def _find(world: World, request: Request, app: str, request_id: str, act: str) -> FalRequest | Response:
    if not key_fits(world, request):
        return unauthorized()
    with world.lock:
        found = world.fal.get(request_id)
        if found is None or found.app != app:
            found = None
        else:
            found.reads[act] = found.reads.get(act, 0) + 1
    texts = (found.endpoint, found.image_url) if found else (app,)
    if refused := fal_faults.refusal(world, on=act, texts=texts):
        return refused[0]
    return found or json_response(404, NOT_FOUND)


def _addresses(request: Request, accepted: FalRequest) -> dict[str, Any]:
    address = f"{request.base_url}/fal/queue/{accepted.app}/requests/{accepted.request_id}"
    return {
        "request_id": accepted.request_id,
        "response_url": address,
        "status_url": f"{address}/status",
        "cancel_url": f"{address}/cancel",
    }


def key_fits(world: World, request: Request) -> bool:
    """Whether the request shows our key, or one of several with commas, in the provider's own way."""
    given = (request.headers.get("Authorization") or "").encode()
    return any(hmac.compare_digest(given, f"Key {key.strip()}".encode()) for key in world.settings.fal_key.split(","))


def unauthorized() -> Response:
    """The answer to a request without the key."""
    return json_response(401, {"detail": "Authentication is required to access this application."})
