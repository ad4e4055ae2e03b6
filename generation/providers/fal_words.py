"""fal's answers in our words: which refusals mean what. The table stands at the top of `fal.py`."""

import json
import math
from collections.abc import Mapping
from typing import Any

import requests

from generation.providers import base

IMAGE_TROUBLE = {"image_load_error", "file_download_error"}
LOCKED = ("user is locked", "exhausted balance", "top_up")


def raise_refusal(status: int, data: Any, headers: Mapping[str, str]) -> None:
    """Explicit refusals of a POST: not accepted, and why. The body's words are read before the status."""
    said = text(data)
    if status == 402 or (status == 403 and any(word in said.lower() for word in LOCKED)):
        raise base.OutOfCredits(f"{status} {said}")
    if status == 429:
        raise base.RateLimited(f"429 {said}", retry_after=seconds(headers.get("retry-after")))
    if status == 404:
        raise base.Misconfigured(f"404 {said}", model_only=True)
    if status in {400, 413, 422}:
        why = kind(data)
        if why == "image":
            raise base.Unavailable(f"{status} {said}", image=True)
        raise base.Rejected(f"{status} {said}", kind=why)


def raise_read(response: requests.Response) -> None:
    said = text(body_of(response))
    if response.status_code == 402 or (response.status_code == 403 and any(word in said.lower() for word in LOCKED)):
        raise base.OutOfCredits(f"{response.status_code} {said}")
    if response.status_code in {401, 403}:
        raise base.Misconfigured(f"{response.status_code} {said}")
    if response.status_code == 429:
        raise base.RateLimited(said, retry_after=seconds(response.headers.get("retry-after")))


def kind(data: Any) -> str:
    """moderation, image or invalid_input, from the types in `detail`."""
    detail = data.get("detail") if isinstance(data, dict) else None
    types = {row.get("type") for row in detail if isinstance(row, dict)} if isinstance(detail, list) else set()
    if "content_policy_violation" in types:
        return "moderation"
    if types & IMAGE_TROUBLE:
        return "image"
    return "invalid_input"


def body_of(response: requests.Response) -> dict[str, Any]:
    try:
        data = response.json()
    except ValueError:
        return {}
    return data if isinstance(data, dict) else {}


def text(data: Any) -> str:
    """The provider's own words, short, for staff."""
    if not isinstance(data, dict):
        return ""
    detail = data.get("detail") or data.get("error") or data.get("error_type") or ""
    return (detail if isinstance(detail, str) else json.dumps(detail))[:200]


def seconds(text: str | None) -> float | None:
    """A header's number of seconds; None for a date, a negative, an endless or no number."""
    try:
        number = float(text) if text else -1.0
    except ValueError:
        return None
    return number if 0 <= number < math.inf else None
