"""fal's queue API.

| their words                                              | ours                                          |
|----------------------------------------------------------|-----------------------------------------------|
| 2xx with `request_id`                                    | accepted                                      |
| 2xx without it, 408, 5xx, no answer                      | UnknownOutcome                                |
| 402; 403 "User is locked", "Exhausted balance", "TOP_UP" | OutOfCredits                                  |
| 401, other 403, a redirect                               | Misconfigured                                 |
| 404 on the model                                         | Misconfigured, this model only                |
| 429                                                      | RateLimited                                   |
| 422 `content_policy_violation`                           | Rejected moderation / refused                 |
| 422 `image_load_error`, `file_download_error`            | Unavailable (image) / failed, kind image      |
| other 400, 413, 422                                      | Rejected invalid_input / refused              |
| `IN_QUEUE`, `IN_PROGRESS`                                | running                                       |
| `COMPLETED` and a result with `video.url`                | done                                          |
| `COMPLETED`, an error named, and a result of 5xx         | failed, known not to be billed                |
| any other 5xx, or no JSON, where one reads               | Unavailable: read again later                 |
| 404 on status or result                                  | gone                                          |
| any other word                                           | running, with an alarm                        |

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

import requests
from django.conf import settings

from generation.post import Answer, post_once
from generation.providers import base, fal_hints
from generation.providers import fal_words as words
from generation.providers.base import Ask, Handle, HintRef, Snapshot, State
from waistheart import guards

log = logging.getLogger(__name__)
TIMEOUT = (5, 20)


class Fal:
    """The adapter for fal's queue. It holds the key it was made with: a running job keeps its account."""

    name = "fal"

    def __init__(self, *, key: str, queue_url: str, api_url: str, jwks_url: str, media_hosts: list[str]) -> None:
        if not key:
            raise base.Misconfigured("FAL_KEY is empty")
        self._headers = {"Authorization": f"Key {key}", "Accept": "application/json"}
        self._key = key
        self._queue_url, self._api_url, self._jwks_url = queue_url, api_url, jwks_url
        self.media_hosts = media_hosts

    @classmethod
    def from_settings(cls) -> "Fal":
        return cls(
            key=settings.FAL_KEY,
            queue_url=settings.FAL_QUEUE_URL,
            api_url=settings.FAL_API_URL,
            jwks_url=settings.FAL_JWKS_URL,
            media_hosts=settings.FAL_MEDIA_HOSTS,
        )

    def key_print(self) -> str:
        return hashlib.sha256(self._key.encode()).hexdigest()[:12]

    # --- submit ------------------------------------------------------------------------------------------------------

    def submit(self, ask: Ask, *, may_send: Callable[[], bool]) -> Handle:
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
        data = answer.json()
        if 200 <= answer.status < 300:
            if not isinstance(data, dict) or not isinstance(data.get("request_id"), str) or not data["request_id"]:
                raise base.UnknownOutcome("accepted, but without an id")
            return Handle(
                data["request_id"],
                self._own(data.get("status_url")),
                self._own(data.get("response_url")),
                self._own(data.get("cancel_url")),
            )
        if answer.status >= 500 or answer.status == 408:
            raise base.UnknownOutcome(f"{answer.status} {words.text(data)}", server_error=True)
        words.raise_refusal(answer.status, data, answer.headers)
        raise base.Misconfigured(f"{answer.status} {words.text(data)}")

    def _own(self, url: object) -> str:
        """An address they gave us, if it is on the host our key belongs to; the key is sent to no other."""
        if isinstance(url, str) and urlsplit(url)[:2] == urlsplit(self._queue_url)[:2]:
            return url
        return ""

    # --- look --------------------------------------------------------------------------------------------------------

    def recover(self, ask: Ask, *, since: datetime) -> Handle | None:
        for row in self._listed(model=ask.model, since=since):
            given, external_id = row.get("json_input"), row.get("request_id")
            if (
                isinstance(given, dict)
                and isinstance(external_id, str)
                and _same_image(given.get("image_url"), ask.image_url)
            ):
                return self._handle(external_id, ask.model)
        return None

    def _listed(self, *, model: str, since: datetime) -> Iterator[dict[str, Any]]:
        """Their list of our requests at one endpoint, newest pages first. Inputs come only when asked for."""
        query = {"endpoint_id": model, "start": since.isoformat(), "limit": "100", "expand": "payloads"}
        for _ in range(50):
            data = words.body_of(self._read(f"{self._api_url}/models/requests/by-endpoint?{urlencode(query)}"))
            rows = data.get("items") or data.get("requests") or []
            yield from (row for row in rows if isinstance(row, dict))
            cursor = data.get("next_cursor")
            if not cursor or not data.get("has_more", True):
                return
            query["cursor"] = str(cursor)

    def fetch_status(self, handle: Handle, *, model: str) -> Snapshot:
        known = self._handle(handle.external_id, model)
        status = self._read(handle.status_url or known.status_url, gone_ok=True)
        if status.status_code == 404:
            return Snapshot(State.GONE, "status: 404")
        said = words.body_of(status)
        word = said.get("status")
        if word in {"IN_QUEUE", "IN_PROGRESS"}:
            return Snapshot(State.RUNNING, str(word))
        if word != "COMPLETED":
            log.error("fal says an unknown status word: %r", word)
            guards.count("alarm.unknown_status_word")
            return Snapshot(State.RUNNING, f"unknown word {word!r}"[:100])
        failed = bool(said.get("error") or said.get("error_type"))
        return self._result(handle.result_url or known.result_url, failed=failed)

    def _result(self, url: str, *, failed: bool) -> Snapshot:
        """COMPLETED says only that it ended; the result tells how.

        A 5xx is the work's own end only where the status or a header names an error. Any other may be a gateway's moment, and calling
        it a failure would buy a second time what is already paid for.
        """
        response = self._get(url)
        data = words.body_of(response)
        if response.status_code == 200:
            if not data:
                raise base.Unavailable("result: not a JSON object")
            video = data.get("video")
            found = video.get("url") if isinstance(video, dict) else None
            return Snapshot(State.DONE, url=found if isinstance(found, str) else "")
        if response.status_code == 404:
            return Snapshot(State.GONE, "result: 404")
        if response.status_code == 499:
            return Snapshot(State.CANCELLED, words.text(data))
        if response.status_code >= 500 and (failed or response.headers.get("X-Fal-Error-Type")):
            return Snapshot(State.FAILED, f"{response.status_code} {words.text(data)}", unbilled=True)
        if response.status_code in {400, 413, 422}:
            kind = words.kind(data)
            state = State.FAILED if kind == "image" else State.REFUSED
            return Snapshot(state, f"{response.status_code} {words.text(data)}", kind=kind, unbilled=kind == "image")
        words.raise_read(response)
        raise base.Unavailable(f"result: {response.status_code}")

    def cancel(self, handle: Handle) -> None:
        if handle.cancel_url:
            self._get(handle.cancel_url, method="PUT")

    def probe(self, *, model: str) -> None:
        self._read(f"{self._api_url}/models/requests/by-endpoint?{urlencode({'endpoint_id': model, 'limit': '1'})}")

    def _handle(self, external_id: str, model: str) -> Handle:
        """Their addresses, rebuilt from the id: they use owner and app only, without the model's sub-path."""
        app = "/".join(model.split("/")[:2])
        root = f"{self._queue_url}/{app}/requests/{quote(external_id, safe='')}"
        return Handle(external_id, f"{root}/status", root, f"{root}/cancel")

    def _read(self, url: str, *, gone_ok: bool = False) -> requests.Response:
        response = self._get(url)
        if gone_ok and response.status_code == 404:
            return response
        if response.status_code in {200, 202}:
            if not words.body_of(response):
                raise base.Unavailable("not a JSON object")
            return response
        words.raise_read(response)
        raise base.Unavailable(f"{response.status_code}")

    def _get(self, url: str, *, method: str = "GET") -> requests.Response:
        try:
            return requests.request(method, url, headers=self._headers, timeout=TIMEOUT, allow_redirects=False)
        except requests.RequestException as error:
            raise base.Unavailable(type(error).__name__) from error

    # --- hints -------------------------------------------------------------------------------------------------------

    def verify_hint(self, headers: Mapping[str, str], raw: bytes) -> HintRef:
        return fal_hints.verify(headers, raw, jwks_url=self._jwks_url)


def _same_image(given: object, ours: str) -> bool:
    """Whether an address shows our image: path and query carry the submission's secret, and our host may have changed since."""
    return isinstance(given, str) and urlsplit(given)[2:4] == urlsplit(ours)[2:4]
