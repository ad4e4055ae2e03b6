"""fal's queue API.

| their words                                              | ours                                            |
|----------------------------------------------------------|-------------------------------------------------|
| 1xx                                                      | nothing yet: read on                            |
| 2xx with a `request_id` that we can keep                 | accepted                                        |
| 402; 403 "User is locked", "Exhausted balance", "TOP_UP" | OutOfCredits                                    |
| 401, other 403; 307 and 308 on the POST                  | Misconfigured                                   |
| 404 on the POST                                          | Misconfigured, this model only                  |
| 429                                                      | RateLimited                                     |
| 400, 413, 422 with a `detail` that lists typed errors:   | a refusal of the input; without, see below      |
| - `content_policy_violation`                             | Rejected moderation / refused                   |
| - `image_load_error`, `file_download_error`              | Unavailable (image) / failed, kind image        |
| - any other type                                         | Rejected invalid_input / refused                |
| any other answer to the POST, and no answer              | UnknownOutcome: it is never sent again for that |
| `IN_QUEUE`, `IN_PROGRESS`                                | running                                         |
| `COMPLETED` and a result with `video.url`                | done                                            |
| `COMPLETED`, an error named, and a result of 5xx         | failed, known not to be billed                  |
| `COMPLETED` and a result of `no_media_generated`         | failed, perhaps billed                          |
| `COMPLETED`, an error named, an untyped 400, 413 or 422  | failed, perhaps billed                          |
| any other status, or no JSON, where one reads            | Unavailable: read again later                   |
| 404 with a JSON object on status or result               | gone                                            |
| any other word                                           | running, and the word is told                   |

There is no key of ours in their API: a lost submit is found by our unique image address in the list by endpoint, and an empty list
proves nothing. There is no word for failed: the result must be read before success is declared.
"""

import hashlib
import json
import logging
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from django.conf import settings

from generation.exchange import Answer
from generation.post import post_once
from generation.providers import base, fal_hints
from generation.providers import fal_words as words
from generation.providers.base import Ask, Handle, HintRef, Snapshot, State
from generation.providers.reading import Pages, read
from waistheart import wire

log = logging.getLogger(__name__)


class Fal:
    """The adapter for fal's queue. It holds the key it was made with: a running job keeps its account."""

    name = "fal"

    def __init__(self, *, key: str, queue_url: str, api_url: str, jwks_url: str, media_hosts: list[str]) -> None:
        if not wire.is_visible(key):
            raise base.Misconfigured("FAL_KEY holds characters that no key has" if key else "FAL_KEY is empty")
        self._headers = {"Authorization": f"Key {key}", "Accept": "application/json"}
        self._key = key
        self._queue_url, self._api_url, self._jwks_url = queue_url, api_url, jwks_url
        self.media_hosts = media_hosts

    @classmethod
    def from_settings(cls, *, key_print: str = "") -> "Fal":
        """With the first key of FAL_KEY, which takes new work; or with the one of this fingerprint, Misconfigured without it."""
        keys = wire.keys(settings.FAL_KEY)
        if key_print:
            keys = [key for key in keys if wire.is_visible(key) and _print_of(key) == key_print]
            if not keys:
                raise base.Misconfigured(f"FAL_KEY does not hold the key {key_print} any more")
        return cls(
            key=keys[0] if keys else "",
            queue_url=settings.FAL_QUEUE_URL,
            api_url=settings.FAL_API_URL,
            jwks_url=settings.FAL_JWKS_URL,
            media_hosts=settings.FAL_MEDIA_HOSTS,
        )

    def key_print(self) -> str:
        return _print_of(self._key)

    # --- submit ------------------------------------------------------------------------------------------------------

    def submit(self, ask: Ask, *, may_send: Callable[[], bool]) -> Handle:
        if not wire.is_model(ask.model):
            raise base.Misconfigured(f"{ask.model!r} is not a model's name", model_only=True)
        url = f"{self._queue_url}/{ask.model}?{urlencode({'fal_webhook': ask.callback_url})}"
        body = json.dumps({**ask.parameters, "prompt": ask.prompt, "image_url": ask.image_url}).encode()
        answer = post_once(
            url,
            headers={**self._headers, "Content-Type": "application/json"},
            body=body,
            deadline_seconds=settings.SUBMIT_DEADLINE_SECONDS,
            may_send=may_send,
        )
        return self._accepted(answer)

    def _accepted(self, answer: Answer) -> Handle:
        data = words.body_of(answer)
        if 200 <= answer.status < 300:
            external_id = words.usable_id(data.get("request_id"))
            if not external_id:
                raise base.UnknownOutcome("accepted, but without an id that can be kept")
            addresses = (self._own(data.get(name)) for name in ("status_url", "response_url", "cancel_url"))
            return Handle(external_id, *addresses)
        words.raise_refusal(answer)
        raise base.UnknownOutcome(f"{answer.status} {words.text(data)}", server_error=True)

    def _own(self, url: object) -> str:
        """An address they gave us, if it is on the host our key belongs to now; the key is sent to no other.

        Asked when an address is given and again when it is used: whoever listens where they were before is somebody else.
        """
        if isinstance(url, str) and wire.is_visible(url) and _parts(url)[:2] == _parts(self._queue_url)[:2]:
            return url
        return ""

    # --- look --------------------------------------------------------------------------------------------------------

    def recover(self, ask: Ask, *, since: datetime) -> Handle | None:
        for row in self._listed(model=ask.model, since=since):
            given, external_id = row.get("json_input"), words.usable_id(row.get("request_id"))
            if external_id and isinstance(given, dict) and _same_image(given.get("image_url"), ask.image_url):
                return self._handle(external_id, ask.model)
        return None

    def _listed(self, *, model: str, since: datetime) -> Iterator[dict[str, Any]]:
        """Their list of our requests at one endpoint, newest pages first. Inputs come only when asked for."""
        query = {"endpoint_id": model, "start": since.isoformat(), "limit": "100", "expand": "payloads"}
        pages = Pages()
        for _ in range(50):
            url = f"{self._api_url}/models/requests/by-endpoint?{urlencode(query)}"
            data = _understood(pages.read(url, headers=self._headers))
            rows = data.get("items") or data.get("requests")
            yield from (row for row in rows if isinstance(row, dict)) if isinstance(rows, list) else ()
            cursor = data.get("next_cursor")
            if not cursor or not data.get("has_more", True):
                return
            if not isinstance(cursor, str | int) or not str(cursor).isprintable():  # half a character cannot be sent
                raise base.Unavailable("list: a cursor that cannot be asked with")
            query["cursor"] = str(cursor)

    def fetch_status(self, handle: Handle, *, model: str) -> Snapshot:
        known = self._handle(handle.external_id, model)
        status = self._read(self._own(handle.status_url) or known.status_url)
        if status.status == 404 and words.body_of(status):
            return Snapshot(State.GONE, "status: 404")
        said = _understood(status)
        word = said.get("status")
        if word in ("IN_QUEUE", "IN_PROGRESS"):
            return Snapshot(State.RUNNING, str(word))
        if word != "COMPLETED":
            return Snapshot(State.RUNNING, f"unknown word {word!r}"[:100], unknown_word=repr(word)[:60])
        failed = bool(said.get("error") or said.get("error_type"))
        return self._result(self._own(handle.result_url) or known.result_url, failed=failed)

    def _result(self, url: str, *, failed: bool) -> Snapshot:
        """COMPLETED says only that it ended; the result tells how.

        An error is the work's own end only where the status or a header names it. Any other may be a gateway's moment, and calling
        it a failure would buy a second time what is already paid for. Without typed errors it says nothing of the photo.
        """
        answer = self._read(url)
        data, detail = words.body_of(answer), f"{answer.status} {words.text(words.body_of(answer))}"
        if answer.status == 200:
            if not data:
                raise base.Unavailable("result: not a JSON object")
            video = data.get("video")
            found = video.get("url") if isinstance(video, dict) else None
            return Snapshot(State.DONE, url=found if isinstance(found, str) else "")
        if answer.status == 404 and data:
            return Snapshot(State.GONE, "result: 404")
        if answer.status == 499:
            return Snapshot(State.CANCELLED, detail)
        if answer.status >= 500 and (failed or answer.headers.get("x-fal-error-type")):
            return Snapshot(State.FAILED, detail, unbilled=True)
        if words.made_nothing(answer):
            return Snapshot(State.FAILED, detail)
        if kind := words.kind(answer):
            # Whether a 422 is billed no source says: an image that could not be loaded is sent again all the same (runner.failed).
            return Snapshot(State.FAILED if kind == "image" else State.REFUSED, detail, kind=kind)
        if answer.status in words.REFUSING and (failed or answer.headers.get("x-fal-error-type")):
            return Snapshot(State.FAILED, detail)
        return words.raise_read(answer)

    def cancel(self, handle: Handle, *, model: str) -> None:
        url = self._own(handle.cancel_url) or self._handle(handle.external_id, model).cancel_url
        answer = read(url, headers=self._headers, method="PUT")
        log.info("fal answers a cancel of %s with %s", handle.external_id, answer.status)

    def probe(self, *, model: str) -> None:
        query = urlencode({"endpoint_id": model, "limit": "1"})
        _understood(self._read(f"{self._api_url}/models/requests/by-endpoint?{query}"))

    def _handle(self, external_id: str, model: str) -> Handle:
        """Their addresses, rebuilt from the id: they use owner and app only, without the model's sub-path."""
        app = quote("/".join(model.split("/")[:2]))
        root = f"{self._queue_url}/{app}/requests/{quote(external_id, safe='')}"
        return Handle(external_id, f"{root}/status", root, f"{root}/cancel")

    def _read(self, url: str) -> Answer:
        return read(url, headers=self._headers)

    # --- hints -------------------------------------------------------------------------------------------------------

    def verify_hint(self, headers: Mapping[str, str], raw: bytes) -> HintRef:
        return fal_hints.verify(headers, raw, jwks_url=self._jwks_url)


def _understood(answer: Answer) -> dict[str, Any]:
    """The JSON object of a read that succeeded; raises for any other."""
    if answer.status not in {200, 202}:
        words.raise_read(answer)
    data = words.body_of(answer)
    if not data:
        raise base.Unavailable("not a JSON object")
    return data


def _print_of(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()[:12]


def _same_image(given: object, ours: str) -> bool:
    """Whether an address shows our image: path and query carry the submission's secret, and our host may have changed since."""
    return isinstance(given, str) and _parts(given)[2:4] == _parts(ours)[2:4] != ("", "")


def _parts(url: str) -> tuple[str, ...]:
    """Scheme, host, path and query of an address; empty ones for what is none."""
    try:
        return tuple(urlsplit(url))
    except ValueError:
        return ("", "", "", "")
