"""The one paid POST: a fresh connection, no redirect, no retry, one deadline over the whole exchange.

A well-kept HTTP client would repeat, follow or pool; here it must be known whether a byte has left us. So this is `http.client`.
"""

import http.client
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from generation.providers.base import NotSent, UnknownOutcome

MAX_ANSWER_BYTES = 1024 * 1024


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
        except ValueError:
            return None


def post_once(
    url: str, *, headers: Mapping[str, str], body: bytes, deadline_seconds: float, may_send: Callable[[], bool]
) -> Answer:
    """Send `body` once and read the whole answer. NotSent: not a byte left us. UnknownOutcome: bytes left, no whole answer came."""
    ends = time.monotonic() + deadline_seconds
    connection = _connect(url, ends)
    try:
        if not may_send():
            raise NotSent("the lease was too old to send")
        try:
            return _exchange(connection, url, headers, body, ends)
        except (OSError, http.client.HTTPException) as error:
            raise UnknownOutcome(f"no answer: {type(error).__name__}") from error
    finally:
        connection.close()


def _connect(url: str, ends: float) -> http.client.HTTPConnection:
    parts = urlsplit(url)
    make = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    try:
        connection = make(parts.hostname or "", parts.port, timeout=_left(ends))
        connection.connect()
    except (OSError, ssl.SSLError, http.client.HTTPException, ValueError) as error:
        raise NotSent(f"no connection: {type(error).__name__}") from error
    return connection


def _exchange(
    connection: http.client.HTTPConnection, url: str, headers: Mapping[str, str], body: bytes, ends: float
) -> Answer:
    parts = urlsplit(url)
    path = f"{parts.path or '/'}{'?' + parts.query if parts.query else ''}"
    with _hanging_up(connection.sock, ends):
        connection.request("POST", path, body=body, headers=dict(headers))
        response = connection.getresponse()
        answer = _whole(response)
    # An answer without a length ends with the connection, also when it was we who hung up.
    _left(ends)
    return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, answer)


def _whole(response: http.client.HTTPResponse) -> bytes:
    answer = response.read(MAX_ANSWER_BYTES + 1)
    if len(answer) > MAX_ANSWER_BYTES:
        raise UnknownOutcome("the answer is too large")
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
