"""What a request of the video queue comes to: its result, its errors, and the file as it was ordered."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from waistheart.sandbox.fal_faults import MODERATION
from waistheart.sandbox.render import Style
from waistheart.sandbox.world import FalRequest

# The outcome, the HTTP status of the result, and its body when it is no video.
Verdict = tuple[str, int, dict[str, Any]]


def video_of(request: FalRequest, *, base_url: str) -> dict[str, Any]:
    """The result of a request that is done, with an address of its file that still works."""
    name = f"{request.request_id}.mp4"
    fresh = f"?fresh={len(request.expired)}" if request.expired else ""
    video: dict[str, Any] = {"content_type": "video/mp4", "file_name": name, "file_size": request.file_size}
    if "result_without_url" not in request.quirks:
        video["url"] = f"{base_url}/fal/media/{name}{fresh}"
    return {"video": video}


def moderated() -> Verdict:
    """The content checker said no."""
    return "refused", 422, {"detail": [MODERATION]}


def failed_with_422(params: dict[str, Any]) -> Verdict:
    """The model took the input and made nothing of it."""
    kind = str(params.get("type", "no_media_generated"))
    return "failed", 422, {"detail": [{"loc": ["body"], "msg": "The model gave no video.", "type": kind}]}


def broken(params: dict[str, Any]) -> Verdict:
    """The provider's own machine failed."""
    kind = str(params.get("type", "runner_server_error"))
    return "failed", 500, {"detail": "The runner failed.", "error": "The runner failed.", "error_type": kind}


def image_trouble(kind: str, message: str) -> Verdict:
    """The image could not be had, or could not be read."""
    return "image_error", 422, {"detail": [{"loc": ["body", "image_url"], "msg": message, "type": kind}]}


def damaged(film: bytes, quirks: dict[str, dict[str, Any]]) -> bytes:
    """The file as a broken encoder would leave it, if that was ordered."""
    if "half_video" in quirks:
        return film[: len(film) // 2]
    if "corrupt_frames" in quirks:
        return film[: len(film) // 2] + bytes(len(film) - len(film) // 2)
    return film


def style_of(request: FalRequest, *, height: int) -> Style:
    """How the file of a request is made, so many pixels tall, with the faults ordered for it."""
    style = Style(width=height * 9 // 16, height=height, seconds=_seconds(request.input.get("duration")))
    changes: dict[str, Callable[[Style], Style]] = {
        "hevc_video": lambda style: replace(style, codec="libx265"),
        "wrong_aspect": lambda style: replace(style, width=style.height, height=style.width),
        "moov_last": lambda style: replace(style, faststart=False),
    }
    for name, change in changes.items():
        style = change(style) if name in request.quirks else style
    return style


def _seconds(duration: Any) -> int:
    try:
        return min(8, max(4, int(duration)))
    except (TypeError, ValueError):
        return 5
