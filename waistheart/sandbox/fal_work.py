"""The runners of the video provider: fetch the image, render, wait for the delay, end, tell the shop."""

import base64
import binascii
import hashlib
import threading
import time
from collections import OrderedDict
from typing import Any

import requests

from waistheart.sandbox import webhooks
from waistheart.sandbox.fal_outcomes import (
    Verdict,
    broken,
    damaged,
    failed_with_422,
    image_trouble,
    moderated,
    style_of,
)
from waistheart.sandbox.render import Style, UnreadableImageError, render_video
from waistheart.sandbox.say import say
from waistheart.sandbox.world import FalRequest, World

COMPLETE_STATUS = "ALREADY_COMPLETED"
OUTCOMES = ("done", "failed", "refused", "cancelled", "running", "gone")
FETCHERS = 6
MAX_IMAGE_BYTES = 30 * 1024 * 1024
# One video takes a core for over two seconds, and the shop on the same machine wants one too.
_rendering = threading.Semaphore(2)


def start(world: World) -> None:
    """Start the threads that work on requests; those that a restart interrupted are begun again."""
    with world.lock:
        for request in world.fal.values():
            if request.ended_at is None:
                request.outcome = ""
                world.to_render.put(request.request_id)
    films = Films()
    for number in range(FETCHERS):
        threading.Thread(target=_run, args=(world, films), daemon=True, name=f"runner-{number}").start()
    threading.Thread(target=_end_due, args=(world,), daemon=True, name="runner-clock").start()


def end_cancelled(world: World, request: FalRequest) -> None:
    """End a request that was asked to end."""
    error = {"detail": "Request was cancelled", "error": "Request was cancelled", "error_type": "client_cancelled"}
    _decide(request, "cancelled", 499, error)
    _end(world, request)


def force(world: World, request: FalRequest, *, outcome: str) -> None:
    """Make one request come to this outcome at once: done, failed, refused, cancelled, gone, or running for ever."""
    with world.lock:
        request.never_ends = outcome == "running"
        request.ready_at = time.time()
        if outcome == "running":
            request.ended_at, request.outcome, request.billed = None, "", False
        elif outcome == "cancelled":
            end_cancelled(world, request)
        elif outcome == "gone":
            del world.fal[request.request_id]
        elif outcome == "done":
            request.quirks = {name: value for name, value in request.quirks.items() if name.startswith("webhook")}
            request.ended_at, request.outcome, request.error, request.status_code = None, "", {}, 200
            world.to_render.put(request.request_id)
        else:
            _decide(request, *(moderated() if outcome == "refused" else broken({})))
            _end(world, request)
        world.touch()


class Films:
    """Rendered files by what they were made of, so that many jobs with one portrait cost one rendering."""

    def __init__(self, *, most: int = 32) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, str, Style], bytes] = OrderedDict()

    def film(self, *, image: bytes, prompt: str, style: Style) -> bytes:
        """The film of these bytes, rendered at most twice at a time."""
        key = (hashlib.sha256(image).hexdigest(), prompt, style)
        with _rendering:
            with self._lock:
                if key in self._kept:
                    return self._kept[key]
            film = render_video(image=image, prompt=prompt, style=style)
            with self._lock:
                self._kept[key] = film
                if len(self._kept) > self._most:
                    self._kept.popitem(last=False)
            return film


def _run(world: World, films: Films) -> None:
    while True:
        request = world.fal.get(world.to_render.get())
        if request is None or request.ended_at is not None:
            continue
        with world.lock:
            request.started_at = request.started_at or time.time()
            world.touch()
        if request.never_ends:
            continue
        verdict = _work(world, request, films)
        with world.lock:
            if not request.outcome:
                _decide(request, *verdict)
                world.to_end.put((request.ready_at, request.request_id))


def _work(world: World, request: FalRequest, films: Films) -> Verdict:
    quirks = request.quirks
    if "content_policy_result" in quirks:
        return moderated()
    if "completed_then_422" in quirks:
        return failed_with_422(quirks["completed_then_422"])
    if "completed_with_error" in quirks:
        return broken(quirks["completed_with_error"])
    try:
        if "image_unreachable" in quirks:
            raise OSError("the connection was refused")
        image = fetch_image(request.image_url)
        style = style_of(request, height=world.settings.film_height)
        film = films.film(image=image, prompt=str(request.input.get("prompt", "")), style=style)
    except (OSError, requests.RequestException) as error:
        return image_trouble("file_download_error", f"Failed to download the file: {error}")
    except UnreadableImageError as error:
        return image_trouble("image_load_error", f"Failed to load the image: {error}")
    except Exception as error:  # noqa: BLE001 - anything else is ours, and says so instead of leaving the request open for ever
        say(f"rendering failed: {error!r}")
        return broken({"type": "internal_error"})
    film = damaged(film, quirks)
    (world.media_dir / f"{request.request_id}.mp4").write_bytes(film)
    request.file_size = len(film)
    return "done", 200, {}


def fetch_image(address: str) -> bytes:
    """The bytes at this address, http(s) or data; OSError or a requests error when there are none."""
    if not address:
        raise OSError("no image address was given")
    if address.startswith("data:"):
        try:
            return base64.b64decode(address.partition(",")[2], validate=True)
        except binascii.Error as error:
            raise OSError(f"bad data address: {error}") from error
    with requests.Session() as session:
        # The machine's proxy settings are for the outside world, and there is none in the sandbox.
        session.trust_env = False
        answer = session.get(address, timeout=15, stream=True)
        answer.raise_for_status()
        body = answer.raw.read(MAX_IMAGE_BYTES + 1, decode_content=True)
    if len(body) > MAX_IMAGE_BYTES:
        raise OSError("the file is too large")
    return bytes(body)


def _decide(request: FalRequest, outcome: str, status_code: int, error: dict[str, Any]) -> None:
    request.outcome, request.status_code, request.error = outcome, status_code, error


def _end_due(world: World) -> None:
    while True:
        ready_at, request_id = world.to_end.get()
        if (wait := ready_at - time.time()) > 0:
            world.to_end.put((ready_at, request_id))
            # Something sooner may come meanwhile, so nobody sleeps for long.
            time.sleep(min(wait, 0.05))
            continue
        with world.lock:
            request = world.fal.get(request_id)
            if request is not None and request.ended_at is None and request.outcome:
                _end(world, request)


def _end(world: World, request: FalRequest) -> None:
    request.ended_at = time.time()
    charged = ("content_policy_result", "completed_then_422", "completed_with_error")
    request.billed = request.outcome == "done" or any(request.quirks.get(name, {}).get("billed") for name in charged)
    world.touch()
    threading.Thread(target=webhooks.send_final, args=(world, request), daemon=True).start()
