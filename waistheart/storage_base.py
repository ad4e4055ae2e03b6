"""What both kinds of storage share: errors, a body that can be closed, and a body whose length was promised."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import IO, Protocol

CHUNK_BYTES = 64 * 1024

Progress = Callable[[int], None]


class StorageError(Exception):
    """Storage did not do it this time; another try, for a save under a fresh key, may succeed."""


class BlobMissing(StorageError):
    """No bytes lie under this key."""


class BlobExists(StorageError):
    """Bytes lie under this key already, and bytes are never overwritten."""


class LengthMismatch(StorageError):
    """The body was shorter or longer than its caller promised; nothing was stored."""


@contextmanager
def own_disk() -> Iterator[None]:
    """Trouble with a file of this machine (no room, above all) is storage trouble: `StorageError`, whatever is done with it."""
    try:
        yield
    except OSError as error:
        raise StorageError(f"this machine's own disk: {type(error).__name__}: {error}") from error


@dataclass(frozen=True, slots=True)
class Listed:
    """One stored object as a listing shows it."""

    key: str
    size: int
    modified: datetime

    def __iter__(self) -> Iterator[object]:
        return iter((self.key, self.size, self.modified))


class Backend(Protocol):
    """One kind of storage. Every method raises `StorageError` for whatever the storage itself does wrong."""

    def save_bytes(self, key: str, data: bytes, content_type: str) -> None: ...
    def save_stream(
        self, key: str, chunks: Iterable[bytes], length: int | None, content_type: str, on_progress: Progress
    ) -> int: ...
    def size(self, key: str) -> int | None: ...
    def open_range(self, key: str, start: int, end: int | None) -> "Body": ...
    def delete(self, key: str) -> None: ...
    def list_keys(self, prefix: str) -> Iterator[Listed]: ...
    def abort_stale_uploads(self, prefix: str, before: datetime) -> int: ...


class Body:
    """Stored bytes on their way out. Django closes it when the answer ends, also when nobody read a byte."""

    def __init__(self, source: IO[bytes], limit: int | None, errors: tuple[type[Exception], ...]) -> None:
        self._source = source
        self._left = limit
        self._errors = errors

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        wanted = CHUNK_BYTES if self._left is None else min(CHUNK_BYTES, self._left)
        try:
            chunk = self._source.read(wanted) if wanted else b""
        except self._errors as error:
            self.close()
            raise StorageError(f"reading broke off: {error}") from error
        if not chunk:
            self.close()
            raise StopIteration
        if self._left is not None:
            self._left -= len(chunk)
        return chunk

    def close(self) -> None:
        """Give the file or connection back. A second call does nothing."""
        with suppress(*self._errors):
            self._source.close()


class Promised:
    """A body that keeps to the length it was announced with: it raises `LengthMismatch` instead of ending early or
    running over, so that no storage ever takes a cut body for a whole one."""

    def __init__(self, chunks: Iterable[bytes], length: int, on_progress: Progress) -> None:
        self._chunks = chunks
        self._length = length
        self._on_progress = on_progress
        self.sent = 0
        self.error: BaseException | None = None

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[bytes]:
        try:
            yield from self._counted()
        except BaseException as error:
            # An HTTP library in between may dress it up as its own.
            self.error = error
            raise

    def _counted(self) -> Iterator[bytes]:
        for chunk in self._chunks:
            if self.sent + len(chunk) > self._length:
                raise LengthMismatch(f"more than the {self._length} bytes announced")
            if chunk:
                yield chunk
                self.sent += len(chunk)
                self._on_progress(self.sent)
        if self.sent != self._length:
            raise LengthMismatch(f"{self.sent} bytes instead of the {self._length} announced")
