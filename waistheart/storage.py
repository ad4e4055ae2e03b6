"""Blobs: portraits, crops and videos, in `var/media` or in an S3 bucket, whichever Django's default storage is.

Bytes are never overwritten: every upload and every try gets a `fresh_key`, and a row points at the key only after
`size` said that the storage has it all. Whatever the storage does wrong is a `StorageError`; an error of the body's
source or of `on_progress` passes through unchanged, and nothing is stored then.
"""

import re
import secrets
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta

from django.core.files.storage import FileSystemStorage, storages
from storages.backends.s3 import S3Storage

from waistheart.storage_base import (
    Backend,
    BlobExists,
    BlobMissing,
    Body,
    LengthMismatch,
    Listed,
    Progress,
    StorageError,
    own_disk,
)
from waistheart.storage_files import FilesBackend
from waistheart.storage_s3 import S3Backend

__all__ = [
    "BlobExists", "BlobMissing", "Body", "LengthMismatch", "Listed", "StorageError", "abort_stale_uploads", "delete",
    "fresh_key", "list_keys", "open_range", "own_disk", "read", "save_bytes", "save_stream", "size",
]  # fmt: skip

KEY = re.compile(r"[A-Za-z0-9_-]+(/[A-Za-z0-9_.-]+)+")
WORD = re.compile(r"[A-Za-z0-9_-]+")
SUFFIX = re.compile(r"(\.[a-z0-9]+)?")


def fresh_key(*, installation: str, kind: str, suffix: str) -> str:
    """A key that nobody has used and nobody can guess: installation, kind, day, 160 random bits, suffix (".jpg")."""
    if not (WORD.fullmatch(installation) and WORD.fullmatch(kind) and SUFFIX.fullmatch(suffix)):
        raise ValueError(f"not a key's parts: {installation!r}, {kind!r}, {suffix!r}")
    return f"{installation}/{kind}/{datetime.now(UTC):%Y/%m/%d}/{secrets.token_hex(20)}{suffix}"


def save_bytes(*, key: str, data: bytes, content_type: str) -> None:
    """Store a small body. Raises `BlobExists` when the key is taken, so a second call never changes what lies there."""
    _backend().save_bytes(_checked(key), data, content_type)


def save_stream(
    *,
    key: str,
    chunks: Iterable[bytes],
    length: int | None,
    content_type: str,
    on_progress: Progress | None = None,
) -> int:
    """Store a body of any size without holding it, and return the bytes stored.

    `length` is the exact number of bytes when it is known (another number raises `LengthMismatch`), else None.
    `on_progress` hears the running total and may raise to stop. After any error, nothing may be concluded about the
    key: the next try takes a fresh one.
    """
    return _backend().save_stream(_checked(key), chunks, length, content_type, on_progress or _silent)


def size(*, key: str) -> int | None:
    """The bytes stored under the key, asked of the storage itself; None when there are none."""
    return _backend().size(_checked(key))


def open_range(*, key: str, start: int = 0, end: int | None = None) -> Body:
    """Bytes `start` up to but without `end` (None: to the last), opened at once: `BlobMissing` comes from this call."""
    if start < 0 or (end is not None and end < start):
        raise ValueError(f"not a range: {start}..{end}")
    return _backend().open_range(_checked(key), start, end)


def read(*, key: str) -> bytes:
    """The whole of a small body. Raises `BlobMissing`."""
    return b"".join(open_range(key=key))


def delete(*, key: str) -> None:
    """Remove the bytes. What is gone already is fine."""
    _backend().delete(_checked(key))


def list_keys(*, prefix: str) -> Iterator[Listed]:
    """Every object whose key begins with the prefix, as (key, size, modified); files left by a killed save included."""
    return _backend().list_keys(prefix)


def abort_stale_uploads(*, prefix: str, older_than: timedelta) -> int:
    """End uploads in parts that a killed worker left behind (they cost money and no listing shows them); how many."""
    return _backend().abort_stale_uploads(prefix, datetime.now(UTC) - older_than)


def _backend() -> Backend:
    storage = storages["default"]
    if isinstance(storage, S3Storage):
        return S3Backend(storage)
    if isinstance(storage, FileSystemStorage):
        return FilesBackend(storage)
    raise TypeError(f"the default storage must be files or S3, not {type(storage).__name__}")


def _checked(key: str) -> str:
    if not KEY.fullmatch(key) or {".", ".."} & set(key.split("/")):
        raise ValueError(f"not a key: {key!r}")
    return key


def _silent(total: int) -> None:
    """Nobody wanted to hear."""
