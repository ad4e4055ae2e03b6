"""One HTTP exchange: a fresh connection, no redirect, no retry, one deadline over all of it and a limit of bytes.

A well-kept HTTP client would repeat, follow or pool, and its timeout starts anew with every byte. Here it must be known whether a
byte has left us, and when it is over. So this is `http.client`.
"""

import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from generation.outbound import tls

CONNECT_SECONDS = 10.0


class NothingSent(Exception):
    """Not one byte left us: the request could not be formed, or the connection never came up."""


class NoAnswer(Exception):
    """Bytes left us, and no whole answer came back in time."""


@dataclass(frozen=True)
class Answer:
    """A whole answer: status, headers in lower case, body."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """The body as JSON, or None when it is none."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None


def exchange(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str],
    seconds: float,
    limit: int,
    body: bytes | None = None,
    before_first_byte: Callable[[], None] = lambda: None,
) -> Answer:
    """Send one request and read its whole answer: at most so many seconds for everything, at most `limit` bytes of body.

    Raises NothingSent or NoAnswer, and whatever `before_first_byte` raises; it is called when the connection stands.
    """
    ends = time.monotonic() + seconds
    connection = _formed(method, url, headers, body)
    try:
        _connect(connection, ends)
        before_first_byte()
        try:
            return _exchange(connection, body, limit, ends)
        except (OSError, ValueError, http.client.HTTPException) as error:  # ValueError: a chunk of a negative size
            raise NoAnswer(f"no answer: {type(error).__name__}") from error
    finally:
        connection.close()


def _formed(method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> http.client.HTTPConnection:
    """The request's head, complete before there is a connection: what cannot be written down never was sent."""
    try:
        parts = urlsplit(url)
        connection = _connection(parts.scheme, parts.hostname or "", parts.port)
        connection.putrequest(method, f"{parts.path or '/'}{'?' + parts.query if parts.query else ''}")
        for name, value in {"User-Agent": "WaistHeart", **headers}.items():
            connection.putheader(name, value)
        if body is not None or method != "GET":
            # Strict gateways refuse a PUT that does not say that it brings nothing.
            connection.putheader("Content-Length", str(len(body or b"")))
    except (ValueError, http.client.HTTPException) as error:
        raise NothingSent(f"the request cannot be formed: {type(error).__name__}") from error
    connection.response_class = Final
    return connection


def _connection(scheme: str, host: str, port: int | None) -> http.client.HTTPConnection:
    if scheme == "https":
        return http.client.HTTPSConnection(host, port, context=tls())
    return http.client.HTTPConnection(host, port)


def _connect(connection: http.client.HTTPConnection, ends: float) -> None:
    try:
        connection.timeout = min(CONNECT_SECONDS, _left(ends))
        connection.connect()
        _left(ends)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise NothingSent(f"no connection: {type(error).__name__}") from error


def _exchange(connection: http.client.HTTPConnection, body: bytes | None, limit: int, ends: float) -> Answer:
    with _hanging_up(connection.sock, ends):
        connection.endheaders(body)
        response = connection.getresponse()
        answer = _whole(response, limit)
    # An answer without a length ends with the connection, also when it was we who hung up.
    _left(ends)
    return Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, answer)


class Final(http.client.HTTPResponse):
    """The answer itself. What comes before it (100, 102, 103 ...) says only that one is on its way; `http.client` skips 100 alone."""

    def begin(self) -> None:
        super().begin()
        while self.status < 200:
            self.headers = None  # type: ignore[assignment]  # or nothing more would be read
            super().begin()


def _whole(response: http.client.HTTPResponse, limit: int) -> bytes:
    answer = response.read(limit + 1)
    if len(answer) > limit:
        raise NoAnswer("the answer is too large")
    if response.length:  # fewer bytes came than were announced
        raise http.client.IncompleteRead(answer, response.length)
    return answer


@contextmanager
def _hanging_up(sock: socket.socket, ends: float) -> Iterator[None]:
    """Hang up at the deadline. A timeout of the socket starts anew with every byte, in the head of an answer as in its body."""
    sock.settimeout(_left(ends))
    watchdog = threading.Timer(_left(ends), _hang_up, [sock])
    watchdog.daemon = True
    watchdog.start()
    try:
        yield
    finally:
        watchdog.cancel()


def _hang_up(sock: socket.socket) -> None:
    with suppress(OSError):
        # The plain socket's own: the encrypted one's would also change what the reading thread holds.
        socket.socket.shutdown(sock, socket.SHUT_RDWR)


def _left(ends: float) -> float:
    left = ends - time.monotonic()
    if left <= 0:
        raise TimeoutError("deadline")
    return left
