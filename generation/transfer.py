"""A result's body from a stranger's server into our storage: pinned, counted, limited, hashed, never held in memory."""

import hashlib
import http.client
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO

from generation.body import begin
from generation.exchange import Final
from generation.outbound import TransferFailed, connect, target
from waistheart import storage

__all__ = ["Body", "Stored", "Tee", "TransferFailed", "fetch", "store_result"]

READ_SECONDS = 30.0
HEADERS = {
    "Accept": "video/*, */*;q=0.5",
    "Accept-Encoding": "identity",
    "Connection": "close",
    "User-Agent": "WaistHeart",
}

Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Body:
    """An answer that has begun well. Iterate once over `chunks`; `length` is the exact number of bytes, when known."""

    length: int | None
    content_type: str
    chunks: Iterator[bytes]


@dataclass(frozen=True, slots=True)
class Stored:
    """What lies in storage now; the same bytes in an unlinked temporary file at its start, for the caller to close."""

    size: int
    sha256: str
    file: IO[bytes]


@contextmanager
def fetch(
    *,
    url: str,
    allowed_hosts: Sequence[str],
    live: bool,
    max_bytes: int,
    deadline_seconds: float,
    on_progress: Progress | None = None,
    read_seconds: float = READ_SECONDS,
) -> Iterator[Body]:
    """Ask once for a body and hand it over while it arrives; every trouble, also in the middle, is `TransferFailed`.

    Only pinned hosts, no redirects, no keys or cookies. The whole exchange ends within `deadline_seconds` (monotonic),
    a silence within `read_seconds`. A body that is not encoded and has a length must have
    exactly that length; an encoded one is decoded, and its length is unknown. `on_progress` hears the decoded total and
    may raise to stop; what it or the caller raises passes through.
    """
    deadline = time.monotonic() + deadline_seconds
    wanted = target(url, allowed_hosts=allowed_hosts, live=live)
    connection = connect(wanted, live=live, deadline=deadline, read_seconds=read_seconds)
    connection.response_class = Final
    with _Watch(connection, deadline) as watch:
        with _named(watch):
            connection.request("GET", wanted.path, headers=HEADERS)
            answer = connection.getresponse()
            length, raw = begin(answer, watch.socket, max_bytes)
        yield Body(length, answer.headers.get("Content-Type", ""), _chunks(raw, watch, on_progress))


def store_result(
    *,
    chunks: Iterable[bytes],
    key: str,
    length: int | None = None,
    content_type: str = "video/mp4",
    on_progress: Progress | None = None,
) -> Stored:
    """Save a body under a fresh key while hashing it and writing it to a temporary file, and ask storage what it has.

    Errors of the body pass through; `StorageError` when storage failed or holds another number of bytes. After any
    error no file is left open, and the key is to be given up.
    """
    tee = Tee(chunks)
    try:
        storage.save_stream(key=key, chunks=tee, length=length, content_type=content_type, on_progress=on_progress)
        held = storage.size(key=key)
        if held != tee.size:
            raise storage.StorageError(f"storage holds {held} of {tee.size} bytes")
        with storage.own_disk():
            tee.file.seek(0)
    except BaseException:
        # Closing writes what is still in its buffer, for which there may be no room either.
        with suppress(OSError):
            tee.file.close()
        raise
    return Stored(tee.size, tee.sha256, tee.file)


class Tee:
    """Passes chunks through while it counts and hashes them and writes them to an unlinked temporary file on disk."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = chunks
        self._hash = hashlib.sha256()
        self.size = 0
        with storage.own_disk():
            self.file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (handed to the caller)

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._chunks:
            self._hash.update(chunk)
            self.size += len(chunk)
            with storage.own_disk():
                self.file.write(chunk)
            yield chunk

    @property
    def sha256(self) -> str:
        """The hash of what has passed so far, in hexadecimal."""
        return self._hash.hexdigest()


class _Watch:
    """Cuts the connection when time is up: a server that sends a byte now and then never meets a read timeout."""

    def __init__(self, connection: http.client.HTTPConnection, deadline: float) -> None:
        self._connection = connection
        self._deadline = deadline
        # The library forgets its socket as soon as the answer says that it will close.
        self.socket: socket.socket = connection.sock
        self._timer = threading.Timer(max(0.0, deadline - time.monotonic()), self._cut)
        self._timer.daemon = True

    def __enter__(self) -> "_Watch":
        self._timer.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._timer.cancel()
        self._cut()
        self._connection.close()
        self.socket.close()

    @property
    def over(self) -> bool:
        return time.monotonic() >= self._deadline

    def _cut(self) -> None:
        """Wake the reader; it finds an end or an error and that the time is over. (Not TLS's own goodbye: that waits.)"""
        with suppress(OSError):
            socket.socket.shutdown(self.socket, socket.SHUT_RDWR)


def _chunks(raw: Iterator[bytes], watch: _Watch, on_progress: Progress | None) -> Iterator[bytes]:
    total = 0
    while True:
        with _named(watch):
            chunk = next(raw, None)
            if watch.over:
                raise TransferFailed("slow", f"after {total} bytes")
        if chunk is None:
            return
        total += len(chunk)
        if on_progress is not None:
            on_progress(total)
        yield chunk


@contextmanager
def _named(watch: _Watch) -> Iterator[None]:
    """Give every trouble of the network its word. When the time is over that is the trouble, whatever it looks like."""
    try:
        yield
    except TransferFailed as error:
        if not watch.over:
            raise
        raise TransferFailed("slow", str(error)) from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        slow = watch.over or isinstance(error, TimeoutError)
        word = "slow" if slow else "short" if isinstance(error, http.client.IncompleteRead) else "network"
        raise TransferFailed(word, f"{type(error).__name__}: {error}") from error
