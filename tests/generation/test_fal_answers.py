"""What the fal adapter makes of answers that no sandbox gives: interim ones, odd statuses, odd values, too many bytes, too slowly."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from generation import own_address
from generation.exchange import Answer
from generation.providers import get_provider, reading
from generation.providers.base import (
    Ask,
    BadSignature,
    Handle,
    Misconfigured,
    NotSent,
    OutOfCredits,
    Provider,
    ProviderError,
    RateLimited,
    Rejected,
    Snapshot,
    State,
    Unavailable,
    UnknownOutcome,
)
from generation.providers.fal import Fal
from generation.providers.fal_hints import jwks
from tests.generation.rude_server import Script, head, rude

MODEL = "fal-ai/heart-pose/image-to-video"
TAKEN = {"request_id": "r1"}
pytestmark = pytest.mark.django_db


@contextmanager
def fal(settings: Any, *script: bytes | float) -> Iterator[Provider]:
    """The adapter, with a provider that says exactly this to whatever it is asked."""
    with rude(*script) as server:
        settings.FAL_QUEUE_URL = settings.FAL_API_URL = f"http://{server.host}"
        settings.FAL_JWKS_URL = f"http://{server.host}/jwks.json"
        yield get_provider()


def adapter(url: str) -> Fal:
    """The adapter for such an address, whatever the settings would say of it."""
    return Fal(key="k", queue_url=url, api_url=url, jwks_url=url, media_hosts=[])


def ask(*, model: str = MODEL) -> Ask:
    return Ask(
        key="k", model=model, prompt="heart", parameters={}, image_url="http://127.0.0.1:8000/portraits/x.jpg",
        callback_url="http://127.0.0.1:8000/hints/fal/x/",
    )  # fmt: skip


def said(data: object, status: str = "200 OK") -> bytes:
    body = data if isinstance(data, bytes) else json.dumps(data).encode()
    return head(status, Content_Length=len(body), Connection="close") + body


def submit(settings: Any, *script: bytes | float, **about: Any) -> Handle:
    with fal(settings, *script) as provider:
        return provider.submit(ask(**about), may_send=lambda: True)


# --- the POST --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", ["100 Continue", "102 Processing", "103 Early Hints", "199 Odd"])
@pytest.mark.parametrize("times", [1, 3])
def test_an_interim_answer_is_none(settings: Any, status: str, times: int) -> None:
    """What comes before the answer says that it is on its way. Read as a refusal, it would be paid twice."""
    interim = head(status, Link="</x>; rel=preload", Connection="close")
    assert submit(settings, interim * times, 0.05, said(TAKEN)).external_id == "r1"


@pytest.mark.parametrize("after", [b"", b"HTTP/1.1 nonsense\r\n\r\n", b"\x81\x05hello"])
def test_nothing_after_an_interim_answer(settings: Any, after: bytes) -> None:
    with pytest.raises(UnknownOutcome):
        submit(settings, head("101 Switching Protocols"), after)


REFUSALS = {
    "307 Elsewhere": Misconfigured, "308 Elsewhere": Misconfigured, "401 Who": Misconfigured, "402 Pay": OutOfCredits,
    "403 No": Misconfigured, "404 What": Misconfigured, "429 Fast": RateLimited,
}  # fmt: skip
# Only with their own list of typed errors: a gateway knows these statuses too.
OF_THE_INPUT = {"400 Bad": Rejected, "413 Big": Rejected, "422 Bad": Rejected}
TYPED = {"detail": [{"loc": ["body"], "msg": "no", "type": "value_error"}]}


def test_what_is_no_known_refusal_may_have_been_accepted() -> None:
    """Each refusal of the table leads to another POST one day; nothing else does by itself."""
    for body, refusals in (({"detail": "no"}, REFUSALS), (TYPED, REFUSALS | OF_THE_INPUT)):
        known = {int(name[:3]): kind for name, kind in refusals.items()}
        for status in range(200, 1000):
            with pytest.raises(ProviderError) as caught:
                adapter("http://127.0.0.1:9")._accepted(Answer(status, {}, json.dumps(body).encode()))
            assert type(caught.value) is known.get(status, UnknownOutcome), status


@pytest.mark.parametrize(
    "status", [*REFUSALS, *OF_THE_INPUT, "303 See Other", "405 Method", "409 Conflict", "418 Tea", "510 X", "999 X"]
)
def test_the_same_over_the_wire(settings: Any, status: str) -> None:
    with pytest.raises(ProviderError) as caught:
        submit(settings, said({"detail": "no"}, status))
    assert type(caught.value) is REFUSALS.get(status, UnknownOutcome)


@pytest.mark.parametrize(
    "given", ["r" * 201, "a\0b", "a\nb", "\ud800", " r1", "", 7, None, ["r1"], {"id": "r1"}, True], ids=repr
)
def test_an_id_that_cannot_be_kept_is_none(settings: Any, given: object) -> None:
    """The row could not be written, and the acceptance would be lost with it: it is looked for in their list instead."""
    with pytest.raises(UnknownOutcome):
        submit(settings, said({"request_id": given}))
    row = {"request_id": given, "json_input": {"image_url": ask().image_url}}
    with fal(settings, said({"items": [row]})) as provider:
        assert provider.recover(ask(), since=datetime.now(UTC)) is None


@pytest.mark.parametrize("url", ["http://[", "http://\0", 5, ["x"], None, "x" * 9, "http://elsewhere.example/x", "//["])
def test_an_odd_address_is_not_used(settings: Any, url: object) -> None:
    handle = submit(settings, said({**TAKEN, "status_url": url, "response_url": url, "cancel_url": url}))
    assert handle == Handle("r1")


@pytest.mark.parametrize(
    "name", ["fal-ai/heart pose/x", "fal-ai", "", "/x", "a/b/", "a//b", "a/../b", "a/b?x", "é/b", "a/b\n"]
)
def test_a_model_that_no_path_can_carry_is_never_sent(name: str) -> None:
    with rude(said(TAKEN)) as server, pytest.raises(Misconfigured) as caught:
        adapter(f"http://{server.host}").submit(ask(model=name), may_send=lambda: True)
    assert caught.value.model_only
    assert server.requests == []


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:x", "http://[", "http://127.0.0.1/ x", "http://" + "a" * 70 + ".example"]
)
def test_a_request_that_cannot_be_formed_was_not_sent(url: str) -> None:
    with pytest.raises(NotSent):
        adapter(url).submit(ask(), may_send=lambda: True)


@pytest.mark.parametrize("key", ["k\u00e9y", "a\nb", "a b", "a\0b", "\udc80", "\u2026", " , "])
def test_a_key_that_no_header_can_carry(settings: Any, key: str) -> None:
    settings.FAL_KEY = key
    for make in (get_provider, Fal.from_settings):
        for key_print in ("", "0123456789ab"):
            with pytest.raises((Misconfigured, ImproperlyConfigured), match="FAL_KEY") as caught:
                make(key_print=key_print)
            assert key not in str(caught.value)


def test_the_newline_of_a_secret_file_is_no_part_of_the_key(settings: Any) -> None:
    settings.FAL_KEY = "abc"
    plain = get_provider().key_print()
    settings.FAL_KEY = " abc\n"
    assert get_provider().key_print() == plain


def test_a_detail_that_no_row_can_hold(settings: Any) -> None:
    with pytest.raises(OutOfCredits) as caught:
        submit(settings, said({"detail": "a\0b\ud800"}, "402 Pay"))
    assert caught.value.detail == "402 a b "


NO_WORDS_OF_THEIRS = [
    b"<html><h1>400 Bad Request</h1>Request Header Or Cookie Too Large<hr>cloudflare</html>", b"", b"[]", b"null",
    *({"detail": detail} for detail in ([{"type": ["x"]}], [{"type": {}}], [7], [], {"type": 1}, "too large", None)),
]  # fmt: skip


@pytest.mark.parametrize("body", NO_WORDS_OF_THEIRS, ids=str)
@pytest.mark.parametrize("status", OF_THE_INPUT)
def test_a_gateways_refusal_is_not_the_photos_fault(settings: Any, status: str, body: object) -> None:
    """It may have been taken behind the gateway, and an ended work has not failed for what a gateway says of our reading."""
    with pytest.raises(UnknownOutcome) as caught:
        submit(settings, said(body, status))
    assert caught.value.server_error
    with pytest.raises(Unavailable):
        adapter_result(settings, said(body, status))


def test_an_end_that_the_provider_names_itself_is_its_word(settings: Any) -> None:
    """Not every endpoint lists typed errors: the credit goes back at once, and the photo is not blamed."""
    body = {"detail": "Could not process the image", "error_type": "bad_request"}
    named = said(body, "400 Bad").replace(b"\r\n", b"\r\nX-Fal-Error-Type: bad_request\r\n", 1)
    snapshot = adapter_result(settings, named)
    assert (snapshot.state, snapshot.kind, snapshot.unbilled) == (State.FAILED, "", False)
    with pytest.raises(Unavailable) as caught:
        adapter_result(settings, said(body, "400 Bad"))
    assert caught.value.this_only


def test_a_gateway_does_not_know_what_is_gone(settings: Any) -> None:
    with pytest.raises(Unavailable):
        adapter_result(settings, said(b"<html>404</html>", "404 No"))
    assert adapter_result(settings, said({"detail": "Request not found"}, "404 No")).state == State.GONE


@pytest.mark.parametrize(
    ("kind", "state", "ours"),
    [("content_policy_violation", "refused", "moderation"), ("file_download_error", "failed", "image"),
     ("no_media_generated", "failed", ""), ("image_too_small", "refused", "invalid_input")],
)  # fmt: skip
def test_a_refused_result_in_their_own_words(settings: Any, kind: str, state: str, ours: str) -> None:
    snapshot = adapter_result(settings, said({"detail": [{"type": kind}]}, "422 Bad"))
    assert (snapshot.state, snapshot.kind) == (state, ours)


def adapter_result(settings: Any, answer: bytes) -> Snapshot:
    """What the adapter makes of this answer to the reading of a result."""
    with rude(answer) as server:
        return adapter(f"http://{server.host}")._result(server.url(), failed=False)


@pytest.mark.parametrize("cursor", ["\ud800", "a\0b", ["\n"], {"a": "\ud800"}], ids=ascii)
def test_a_cursor_that_no_address_can_carry(settings: Any, cursor: object) -> None:
    page = said({"items": [], "has_more": True, "next_cursor": cursor})
    with fal(settings, page) as provider, pytest.raises(Unavailable):
        provider.recover(ask(), since=datetime.now(UTC))


# --- reads -----------------------------------------------------------------------------------------------------------


READS = ["status", "list", "probe", "cancel"]


def look(provider: Provider, read: str) -> object:
    url = f"{provider._queue_url}/x"  # type: ignore[attr-defined]
    if read == "status":
        return provider.fetch_status(Handle("r1"), model=MODEL)
    if read == "list":
        return provider.recover(ask(), since=datetime.now(UTC))
    return (
        provider.probe(model=MODEL) if read == "probe" else provider.cancel(Handle("r1", cancel_url=url), model=MODEL)
    )


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("start", [b"HTTP/1.1 200 OK\r\nX: ", head(Content_Length=9999) + b"{"])
def test_a_read_that_drips_ends_at_its_deadline(
    settings: Any, monkeypatch: pytest.MonkeyPatch, read: str, start: bytes
) -> None:
    monkeypatch.setattr(reading, "SECONDS", 0.4)
    drip: Script = [piece for _ in range(30) for piece in (b" ", 0.1)]
    started = time.monotonic()
    with fal(settings, start, *drip) as provider, pytest.raises(Unavailable):
        look(provider, read)
    assert time.monotonic() - started < 2


@pytest.mark.parametrize("read", READS)
def test_a_read_that_never_ends_in_bytes(settings: Any, monkeypatch: pytest.MonkeyPatch, read: str) -> None:
    monkeypatch.setattr(reading, "BYTES", 1000)
    monkeypatch.setattr(reading, "LIST_BYTES", 1000)
    with fal(settings, said({"status": "IN_QUEUE", "x": "y" * 1000})) as provider, pytest.raises(Unavailable):
        look(provider, read)


def test_a_list_of_many_slow_pages_ends(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "LIST_SECONDS", 0.5)
    page = said({"items": [], "has_more": True, "next_cursor": "more"})
    with fal(settings, 0.2, page) as provider, pytest.raises(Unavailable):
        look(provider, "list")


def test_our_own_address_drips(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_address, "SECONDS", 0.4)
    picture = b"\xff\xd8 one picture of some forty bytes \xff\xd9"
    begins = head(Content_Type="image/jpeg", Content_Length=len(picture))
    with rude(begins, *[piece for byte in picture for piece in (bytes([byte]), 0.1)]) as server:
        assert not own_address.shows(f"http://{server.host}/portraits/x.jpg", picture)
    with rude(begins, picture) as server:
        assert own_address.shows(f"http://{server.host}/portraits/x.jpg", picture)
    with rude(head(Content_Type="text/html", Content_Length=len(picture)), picture) as server:
        assert not own_address.shows(f"http://{server.host}/portraits/x.jpg", picture)


@pytest.mark.parametrize(
    "body", [b"[]", b"{}", b'{"keys": 5}', b'{"keys": [{"x": 5}]}', b'{"keys": [[]]}', b"[" * 50000]
)
def test_a_key_set_of_an_odd_shape(settings: Any, body: bytes) -> None:
    jwks.forget()
    names = ("Request-Id", "User-Id", "Timestamp", "Signature")
    values = ("r1", "u1", str(int(time.time())), "00" * 64)
    headers = {f"X-Fal-Webhook-{name}": value for name, value in zip(names, values, strict=True)}
    with fal(settings, said(body)) as provider, pytest.raises(BadSignature):
        provider.verify_hint(headers, b"{}")


@pytest.mark.parametrize("word", [None, 5, ["COMPLETED"], {}, "a\0b", "x" * 1000])
def test_an_odd_status_is_running(settings: Any, word: object) -> None:
    with fal(settings, said({"status": word})) as provider:
        snapshot = provider.fetch_status(Handle("r1"), model=MODEL)
    assert (snapshot.state, snapshot.unknown_word) == (State.RUNNING, repr(word)[:60])
    assert snapshot.detail.isprintable()


@pytest.mark.parametrize("rows", [5, "rows", {"a": 1}, [5, None, "x"], [{"json_input": {"image_url": "http://["}}]])
def test_a_list_of_an_odd_shape_shows_nothing(settings: Any, rows: object) -> None:
    with fal(settings, said({"items": rows})) as provider:
        assert provider.recover(ask(), since=datetime.now(UTC)) is None


def test_an_address_in_the_list_that_is_none_is_not_ours(settings: Any) -> None:
    rows = [{"request_id": "theirs", "json_input": {"image_url": "http://["}}]
    with fal(settings, said({"items": rows})) as provider:
        assert provider.recover(ask(), since=datetime.now(UTC)) is None


NEGATIVE_CHUNK = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nhello\r\n0\r\n\r\n"


def test_a_chunk_of_negative_size_is_a_lost_answer(settings: Any) -> None:
    with fal(settings, NEGATIVE_CHUNK) as provider, pytest.raises(UnknownOutcome):
        provider.submit(ask(), may_send=lambda: True)
    with fal(settings, NEGATIVE_CHUNK) as provider, pytest.raises(Unavailable):
        provider.fetch_status(Handle("r1"), model=MODEL)


def test_a_key_set_that_is_away_is_asked_for_once_in_a_while(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def away(url: str, **_: Any) -> Answer:
        asked.append(url)
        raise Unavailable("away")

    monkeypatch.setattr("generation.providers.fal_hints.read", away)
    jwks.forget()
    assert [jwks.keys("http://127.0.0.1:9/jwks.json") for _ in range(5)] == [[]] * 5
    assert len(asked) == 1
    jwks.forget()
