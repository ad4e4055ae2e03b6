"""fal's answers in our words: which refusals mean what. The table stands at the top of `fal.py`."""

import json
import math
from typing import Any, NoReturn

from generation.exchange import Answer
from generation.providers import base
from waistheart.wire import plain

IMAGE_TROUBLE = {"image_load_error", "file_download_error"}
LOCKED = ("user is locked", "exhausted balance", "top_up")
# It took the input and made no video of it: that says nothing about the photo.
MADE_NOTHING = {"no_media_generated"}
REFUSING = {400, 413, 422}
LONGEST_ID = 200


def raise_refusal(answer: Answer) -> None:
    """The known refusals of a POST: definitely not accepted, and why. The body's words are read before the status.

    Whatever is not in this list may have been accepted, and is left to the caller.
    """
    status, said = answer.status, text(answer.json())
    _raise_ours(answer)
    if status in {307, 308}:  # "send it there instead": by its meaning not taken here
        raise base.Misconfigured(f"{status}: their address has moved")
    if status == 404:
        raise base.Misconfigured(f"404 {said}", model_only=True)
    why = kind(answer)
    if why:
        if why == "image":
            raise base.Unavailable(f"{status} {said}", image=True)
        raise base.Rejected(f"{status} {said}", kind=why)


def raise_read(answer: Answer) -> NoReturn:
    """Why a read was refused; any other status says nothing: Unavailable."""
    _raise_ours(answer)
    raise base.Unavailable(f"{answer.status} {text(answer.json())}", this_only=400 <= answer.status < 500)


def _raise_ours(answer: Answer) -> None:
    """What lies between the provider and us: money, the key, the pace."""
    status, said = answer.status, text(answer.json())
    if status == 402 or (status == 403 and any(word in said.lower() for word in LOCKED)):
        raise base.OutOfCredits(f"{status} {said}")
    if status in {401, 403}:
        raise base.Misconfigured(f"{status} {said}")
    if status == 429:
        raise base.RateLimited(f"429 {said}", retry_after=seconds(answer.headers.get("retry-after")))


def kind(answer: Answer) -> str:
    """moderation, image or invalid_input, from the types in `detail`; empty for what is no refusal of the input.

    A gateway says 400 and 413 too, of our headers for one: only their own list of typed errors speaks of the customer's photo.
    """
    types = refusal_types(answer)
    if not types:
        return ""
    if "content_policy_violation" in types:
        return "moderation"
    return "image" if types & IMAGE_TROUBLE else "invalid_input"


def made_nothing(answer: Answer) -> bool:
    """Whether a result says that the model ended without a video, and nothing else."""
    types = refusal_types(answer)
    return bool(types) and types <= MADE_NOTHING


def refusal_types(answer: Answer) -> set[str]:
    """The types in `detail` of an answer that refuses; empty for any other answer."""
    detail = body_of(answer).get("detail")
    rows = [row.get("type") for row in detail if isinstance(row, dict)] if isinstance(detail, list) else []
    return {given for given in rows if isinstance(given, str)} if answer.status in REFUSING else set()


def body_of(answer: Answer) -> dict[str, Any]:
    """The answer's JSON object; empty when it is none."""
    data = answer.json()
    return data if isinstance(data, dict) else {}


def text(data: Any) -> str:
    """The provider's own words, short, for staff."""
    if not isinstance(data, dict):
        return ""
    detail = data.get("detail") or data.get("error") or data.get("error_type") or ""
    return plain(detail if isinstance(detail, str) else json.dumps(detail))[:200]


def usable_id(given: object) -> str:
    """An id as we can keep it and ask by it; empty for anything else, which is no id."""
    fits = isinstance(given, str) and given.isprintable() and given == given.strip() and len(given) <= LONGEST_ID
    return str(given) if fits else ""


def seconds(text: str | None) -> float | None:
    """A header's number of seconds; None for a date, a negative, an endless or no number."""
    try:
        number = float(text) if text else -1.0
    except ValueError:
        return None
    return number if 0 <= number < math.inf else None
