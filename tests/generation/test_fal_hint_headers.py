"""Whatever a stranger writes into the headers of a callback, it is refused and never an error of ours."""

import time

import pytest

from generation.providers import fal_hints
from generation.providers.base import BadSignature

NOWHERE = "http://127.0.0.1:9/jwks.json"


@pytest.mark.parametrize("stamp", ["", "now", "-5", "²", "٣", "9" * 5000, "1"])
def test_a_time_that_is_none_is_refused(stamp: str) -> None:
    with pytest.raises(BadSignature, match="timestamp"):
        fal_hints.verify({"X-Fal-Webhook-Timestamp": stamp}, b"{}", jwks_url=NOWHERE)


@pytest.mark.parametrize("signature", ["", "zz", "é", "00", "0" * 128])
def test_a_signature_that_is_none_is_refused(signature: str) -> None:
    headers = {"X-Fal-Webhook-Timestamp": str(int(time.time())), "X-Fal-Webhook-Signature": signature}
    with pytest.raises(BadSignature):
        fal_hints.verify(headers, b"{}", jwks_url=NOWHERE)
