"""The video provider's webhooks: signed with ED25519, repeated when the shop does not say 2xx, and wrong on demand."""

import hashlib
import json
import time
from typing import Any

import requests

from waistheart.sandbox.world import FalRequest, World

USER_ID = "sandbox-user"
TIMEOUT_SECONDS = 15
PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)


def send_final(world: World, request: FalRequest) -> None:
    """Tell the shop how a request ended, unless a fault has it otherwise; returns when it is told or given up."""
    if not request.webhook_url or "webhook_early" in request.quirks:
        return
    if "webhook_lost" in request.quirks:
        world.record_event(kind="fal", request_id=request.request_id, url=request.webhook_url, lost=True)
        return
    if late := request.quirks.get("webhook_late"):
        time.sleep(float(late.get("seconds", 30)))
    body = _body(request, ok=request.outcome == "done")
    if other := request.quirks.get("webhook_lying", {}).get("request_id"):
        body["request_id"] = body["gateway_request_id"] = str(other)
    for _ in range(2 if "webhook_doubled" in request.quirks else 1):
        _deliver(world, request, body)


def send_early(world: World, request: FalRequest) -> None:
    """Say that a request is done before its submit is answered; once, and the answer does not matter."""
    if request.webhook_url:
        _post(world, request, _body(request, ok=True))


def send_lie(world: World, request: FalRequest) -> None:
    """Say that a request is done while it still runs (the lie about another id comes at the end)."""
    if request.webhook_url and "request_id" not in request.quirks["webhook_lying"]:
        _post(world, request, _body(request, ok=True))


def signed_headers(world: World, *, request_id: str, raw: bytes, timestamp: int) -> dict[str, str]:
    """The headers that prove a body: a signature over id, user, timestamp and the body's hash, a line each."""
    lines = (request_id, USER_ID, str(timestamp), hashlib.sha256(raw).hexdigest())
    signature = world.signing_key.sign("\n".join(lines).encode())
    return {
        "Content-Type": "application/json",
        "X-Fal-Webhook-Request-Id": request_id,
        "X-Fal-Webhook-User-Id": USER_ID,
        "X-Fal-Webhook-Timestamp": str(timestamp),
        "X-Fal-Webhook-Signature": signature.hex(),
    }


def _deliver(world: World, request: FalRequest, body: dict[str, Any]) -> None:
    for pause in PAUSES:
        forgotten = world.fal.get(request.request_id) is not request
        if forgotten or _post(world, request, body):
            return
        time.sleep(pause)


def _post(world: World, request: FalRequest, body: dict[str, Any]) -> bool:
    raw = json.dumps(body).encode()
    age = 3600 if "webhook_old_timestamp" in request.quirks else 0
    headers = signed_headers(world, request_id=body["request_id"], raw=raw, timestamp=int(time.time()) - age)
    if "webhook_bad_signature" in request.quirks:
        first, *rest = bytes.fromhex(headers["X-Fal-Webhook-Signature"])
        headers["X-Fal-Webhook-Signature"] = bytes([first ^ 1, *rest]).hex()
    try:
        with requests.Session() as session:
            session.trust_env = False
            answer: int | str = session.post(
                request.webhook_url, data=raw, headers=headers, timeout=TIMEOUT_SECONDS, allow_redirects=False
            ).status_code
    except requests.RequestException as error:
        answer = type(error).__name__
    world.record_event(
        kind="fal", request_id=body["request_id"], url=request.webhook_url, status=body["status"], answer=answer
    )
    return isinstance(answer, int) and 200 <= answer < 300


def _body(request: FalRequest, *, ok: bool) -> dict[str, Any]:
    body: dict[str, Any] = {
        "request_id": request.request_id,
        "gateway_request_id": request.request_id,
        "status": "OK" if ok else "ERROR",
        "error": None,
        "payload": None,
        "payload_error": None,
    }
    if ok:
        name = f"{request.request_id}.mp4"
        video = {"url": f"{request.base_url}/fal/media/{name}", "content_type": "video/mp4", "file_name": name}
        return body | {"payload": {"video": video | {"file_size": request.file_size}}}
    return body | {"payload": request.error, "error": f"Invalid status code: {request.status_code}"}
