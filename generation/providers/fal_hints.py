"""fal's signed webhooks: ED25519 over four lines, with public keys read from their key set."""

import base64
import hashlib
import json
import logging
import re
import threading
import time
from collections.abc import Mapping

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from generation.exchange import Answer
from generation.providers import base
from generation.providers.base import HintRef
from generation.providers.fal_words import usable_id
from generation.providers.reading import read
from waistheart.wire import plain

log = logging.getLogger(__name__)
SIGNATURE_AGE_SECONDS = 300
JWKS_SECONDS = 3600
FAILED_SECONDS = 30
READ_SECONDS = 10  # a callback's sender waits, and whoever else brings one
# A stranger's header may hold digits that are no numbers, and more of them than int() takes.
DIGITS = re.compile(r"[0-9]{1,12}")
LONGEST_NAME = 200  # of a callback: its row has room for it and for the print of its body


def verify(headers: Mapping[str, str], raw: bytes, *, jwks_url: str) -> HintRef:
    """Check a webhook's signature and age; BadSignature otherwise. Nothing else in its body is believed.

    What it answers can be kept in a row, whatever was signed: an id that cannot be kept is none.
    """
    request_id, user_id, stamp, signature = (
        headers.get(f"X-Fal-Webhook-{name}", "") for name in ("Request-Id", "User-Id", "Timestamp", "Signature")
    )
    if not DIGITS.fullmatch(stamp) or abs(time.time() - int(stamp)) > SIGNATURE_AGE_SECONDS:
        raise base.BadSignature("timestamp")
    try:
        message = "\n".join([request_id, user_id, stamp, hashlib.sha256(raw).hexdigest()]).encode()
        wanted = bytes.fromhex(signature)
    except ValueError as error:
        raise base.BadSignature("a header is no text, or the signature is not hex") from error
    if not any(_verifies(key, wanted, message) for key in jwks.keys(jwks_url)):
        raise base.BadSignature("signature")
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise base.BadSignature("body") from error
    name = f"{plain(request_id)[:LONGEST_NAME]}:{hashlib.sha256(raw).hexdigest()[:16]}"
    return HintRef(event_id=name, external_id=usable_id(data.get("request_id") if isinstance(data, dict) else None))


class Jwks:
    """fal's public keys, kept for an hour; a fetch that fails keeps the old ones."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[str, tuple[float, list[Ed25519PublicKey]]] = {}

    def keys(self, url: str) -> list[Ed25519PublicKey]:
        with self._lock:
            read_at, keys = self._kept.get(url, (0.0, []))
            if time.monotonic() - read_at < (JWKS_SECONDS if keys else FAILED_SECONDS) and read_at:
                return keys
            try:
                keys = _keys_in(read(url, seconds=READ_SECONDS))
                self._kept[url] = (time.monotonic(), keys)
            except (base.Unavailable, ValueError, KeyError, TypeError):
                log.warning("could not read fal's public keys", exc_info=True)
                # Hints wait for each other here: one look in a while, not one per hint.
                self._kept[url] = (time.monotonic() - (JWKS_SECONDS - FAILED_SECONDS if keys else 0), keys)
            return keys

    def forget(self) -> None:
        """Read the keys anew next time."""
        with self._lock:
            self._kept.clear()


jwks = Jwks()


def _keys_in(answer: Answer) -> list[Ed25519PublicKey]:
    if answer.status != 200:
        raise base.Unavailable(f"{answer.status}")
    rows = answer.json()["keys"]
    found = [key for key in map(_public_key, rows) if key]
    if rows and not found:
        raise base.Unavailable("no key of their set is one that we can use")
    return found


def _public_key(row: object) -> Ed25519PublicKey | None:
    """A key of their set; None for one of another type, which may stand there for others."""
    if not isinstance(row, dict) or row.get("kty", "OKP") != "OKP" or row.get("crv", "Ed25519") != "Ed25519":
        return None
    try:
        x = row["x"]
        return Ed25519PublicKey.from_public_bytes(base64.urlsafe_b64decode(x + "=" * (-len(x) % 4)))
    except (ValueError, KeyError, TypeError):
        return None


def _verifies(key: Ed25519PublicKey, signature: bytes, message: bytes) -> bool:
    try:
        key.verify(signature, message)
    except InvalidSignature:
        return False
    return True
