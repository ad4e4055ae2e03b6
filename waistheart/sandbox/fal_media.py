"""The media host of the video provider: public files, and every way in which a download goes wrong."""

import gzip
import time
from collections.abc import Iterator

from waistheart.sandbox import fal_faults
from waistheart.sandbox.faults import Fault
from waistheart.sandbox.server import Request, Response, Router, html_response
from waistheart.sandbox.world import FalRequest, World

router = Router()
BODY_FAULTS = ("slow_body", "truncated_body", "gzip_body", "no_content_length", "html_instead_of_video")
VIDEO = {"Content-Type": "video/mp4"}
PAGE = "<!doctype html><title>Sign in</title><p>Please sign in to the network to go on."


@router.route("GET", r"/fal/media/(?P<request_id>[0-9a-f-]{36})\.mp4")
def download(world: World, request: Request, request_id: str) -> Response:
    """The file of one request, whole and with its length, unless a fault has it otherwise."""
    if request.headers.get("Authorization"):
        world.record_event(kind="key_shown_to_media_host", request_id=request_id)
    found, path = world.fal.get(request_id), world.media_dir / f"{request_id}.mp4"
    if found is None or found.ended_at is None or not path.exists():
        return Response(404, b"not found\n", {"Content-Type": "text/plain"})
    texts = (found.endpoint, found.image_url)
    with world.lock:
        found.reads["media"] = found.reads.get("media", 0) + 1
    if refused := fal_faults.refusal(world, on="media", texts=texts):
        return refused[0]
    if status := _expired(world, found, request.query.get("fresh", ""), texts):
        return Response(status, b"gone\n", {"Content-Type": "text/plain"})
    if fault := world.faults.take("redirect_other_host", texts=texts):
        elsewhere = f"http://{fault.params.get('host', '169.254.169.254')}{request.path}"
        return Response(302, headers={"Location": str(fault.params.get("url", elsewhere))})
    return _body(path.read_bytes(), world.faults.take(*BODY_FAULTS, texts=texts))


def _expired(world: World, found: FalRequest, address: str, texts: tuple[str, ...]) -> int:
    """The status of a dead address, 0 for one that works. An address that died once stays dead."""
    age = time.time() - (found.ended_at or 0)
    with world.lock:
        if address in found.expired:
            return int(found.quirks.get("media_expires", {}).get("status", 403))
        fault = world.faults.take("media_expires", texts=texts, only=lambda fault: age >= fault.seconds("seconds", 0))
        if fault is None:
            return 0
        found.expired.append(address)
        found.quirks["media_expires"] = fault.params
        world.touch()
        return int(fault.params.get("status", 403))


def _body(film: bytes, fault: Fault | None) -> Response:
    if fault is None:
        return Response(200, film, dict(VIDEO))
    cut = film[: int(len(film) * float(fault.params.get("share", 0.5 if fault.name == "truncated_body" else 1)))]
    if fault.name == "truncated_body":
        return Response(200, cut, dict(VIDEO), announce=len(film))
    if fault.name == "no_content_length":
        return Response(200, _pieces(cut, 64 * 1024), dict(VIDEO), no_length=True)
    if fault.name == "gzip_body":
        return Response(200, gzip.compress(film, 1), {**VIDEO, "Content-Encoding": "gzip"})
    if fault.name == "html_instead_of_video":
        return html_response(200, PAGE, {"Content-Type": str(fault.params.get("content_type", "text/html"))})
    size = max(1, len(film) // 20)
    pause = fault.seconds("seconds", 20) / 20
    return Response(200, _pieces(film, size), dict(VIDEO), announce=len(film), pause_seconds=pause)


def _pieces(film: bytes, size: int) -> Iterator[bytes]:
    for place in range(0, len(film), size):
        yield film[place : place + size]
