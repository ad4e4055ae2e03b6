"""Well signed callbacks of fal with odd words in them, and key sets with odd keys in them."""

import base64
import hashlib
import json
import time
from typing import Any

import pytest
import requests
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from generation.exchange import Answer
from generation.providers import fal_hints
from tests.generation.bad_days import last
from tests.shop import Shop
from waistheart.models import Hint

PRIVATE = Ed25519PrivateKey.generate()
OURS = {"kty": "OKP", "crv": "Ed25519", "x": base64.urlsafe_b64encode(PRIVATE.public_key().public_bytes_raw()).decode()}
URL = "http://127.0.0.1:9/jwks.json"
UNFIT = ["\ud800", "a\0b", "a\nb", " r1", "r" * 201, "r" * 70_000, 7, 1.5, True, None, {"x": 1}, ["\0"], 10**400]


@pytest.fixture(autouse=True)
def key_set(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The provider's key set, as its list of keys; it may be changed until it is first read."""
    keys: list[Any] = [OURS]

    def answer(url: str, **about: Any) -> Answer:
        return Answer(200, {}, json.dumps({"keys": keys}).encode())

    monkeypatch.setattr("generation.providers.fal_hints.read", answer)
    fal_hints.jwks.forget()
    return keys


def signed(raw: bytes, *, request_id: str = "w1") -> dict[str, str]:
    stamp = str(int(time.time()))
    message = "\n".join([request_id, "u1", stamp, hashlib.sha256(raw).hexdigest()]).encode()
    values = {"Request-Id": request_id, "User-Id": "u1", "Timestamp": stamp, "Signature": PRIVATE.sign(message).hex()}
    return {f"X-Fal-Webhook-{name}": value for name, value in values.items()}


def body(given: object) -> bytes:
    return json.dumps({"request_id": given}).encode()


@pytest.mark.parametrize("given", UNFIT, ids=lambda given: repr(given)[:12])
def test_what_is_no_id_is_none(given: object) -> None:
    raw = body(given)
    reference = fal_hints.verify(signed(raw), raw, jwks_url=URL)
    assert (reference.external_id, reference.event_id) == ("", f"w1:{hashlib.sha256(raw).hexdigest()[:16]}")


@pytest.mark.parametrize("name", ["a\0b", "a\tb", "é" * 3, "\x85", "w" * 5000])
def test_the_name_of_a_callback_is_kept_as_a_row_can_hold_it(name: str) -> None:
    """However long it is, another body under it is another callback."""
    first, second = (
        fal_hints.verify(signed(raw, request_id=name), raw, jwks_url=URL).event_id for raw in (b"{}", b"[]")
    )
    assert first != second
    for event_id in (first, second):
        assert event_id.isprintable()
        assert len(event_id) <= 255


def test_half_a_character_in_a_header_is_refused() -> None:
    headers = signed(b"{}") | {"X-Fal-Webhook-User-Id": "\ud800"}
    with pytest.raises(fal_hints.base.BadSignature):
        fal_hints.verify(headers, b"{}", jwks_url=URL)


def test_a_callback_that_names_no_id_is_kept_and_answered(shop: Shop) -> None:
    """It was an error of ours, and the provider sent it again and again."""
    shop.sandbox.fault("webhook_lost", times="all")
    row = last(shop.submitted())
    for number, given in enumerate(UNFIT):
        raw, headers = body(given), {"Content-Type": "application/json"}
        headers |= signed(raw, request_id=f"w{number}")
        answer = requests.post(f"{shop.url}/hints/fal/{row.token}/", data=raw, headers=headers, timeout=30)
        assert answer.status_code == 200, given
    hints = Hint.objects.filter(source="fal")
    assert hints.count() == len(UNFIT)
    assert {(hint.outcome, hint.reference) for hint in hints} == {("names another id", f"submission:{row.pk}")}


ODD_KEYS = [
    {"kty": "RSA", "n": "AQAB", "e": "AQAB"},
    {"kty": "EC", "crv": "P-256", "x": "AAAA", "y": "AAAA"},
    {"kty": "OKP", "crv": "X25519", "x": OURS["x"]},
    {"kty": "OKP", "crv": "Ed448", "x": "A" * 76},
    {"kty": "OKP", "crv": "Ed25519"},
    {"kty": "OKP", "crv": "Ed25519", "x": "é"},
    {"kty": "OKP", "crv": "Ed25519", "x": 5},
    {"kty": "OKP", "crv": "Ed25519", "x": "AAAA"},
    {}, [], None, "x", 5,
]  # fmt: skip


@pytest.mark.parametrize("odd", ODD_KEYS, ids=range(len(ODD_KEYS)))
def test_a_key_that_we_cannot_use_hides_no_other(key_set: list[Any], odd: object) -> None:
    """All callbacks were refused for as long as one key of another kind stood in the set."""
    key_set[:] = [odd, OURS, odd]
    assert len(fal_hints.jwks.keys(URL)) == 1
    assert fal_hints.verify(signed(b'{"request_id": "r1"}'), b'{"request_id": "r1"}', jwks_url=URL).external_id == "r1"


def test_a_set_without_a_key_for_us_is_read_again_soon(key_set: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    key_set[:] = ODD_KEYS
    assert fal_hints.jwks.keys(URL) == []
    key_set[:] = [OURS]
    monkeypatch.setattr("generation.providers.fal_hints.FAILED_SECONDS", 0)
    assert len(fal_hints.jwks.keys(URL)) == 1


def test_a_set_that_lost_its_keys_for_us_keeps_the_old_ones(
    key_set: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(fal_hints.jwks.keys(URL)) == 1
    key_set[:] = ODD_KEYS
    monkeypatch.setattr("generation.providers.fal_hints.JWKS_SECONDS", 0)
    assert len(fal_hints.jwks.keys(URL)) == 1
