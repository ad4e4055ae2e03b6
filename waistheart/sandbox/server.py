"""The door of the sandbox: a threaded HTTP/1.1 server, a tiny router, and answers that may misbehave on purpose."""

import json
import re
import socket
import struct
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any, cast
from urllib.parse import parse_qsl, unquote, urlsplit

from waistheart.sandbox.say import say
from waistheart.sandbox.world import World


@dataclass
class Request:
    """One request as a handler sees it; `path` is decoded and has no query, header names are found in any case."""

    method: str
    path: str
    query: dict[str, str]
    headers: Mapping[str, str]
    body: bytes
    base_url: str

    def form(self) -> dict[str, str]:
        """The body as a flat form; bracketed names stay as they were sent (`line_items[0][quantity]`)."""
        return dict(parse_qsl(self.body.decode("utf-8", "replace"), keep_blank_values=True))

    def json(self) -> Any:
        """The body as JSON; raises ValueError for anything else, an empty body included."""
        return json.loads(self.body)


@dataclass
class Response:
    """One answer. The switches after `headers` are the ways in which an answer can go wrong.

    drop: close the connection without a byte. announce: the Content-Length to claim (None: the true one of a bytes
    body). no_length: claim none and end by closing. pause_seconds: wait between the chunks of the body.
    """

    status: int = 200
    body: bytes | Iterable[bytes] = b""
    headers: dict[str, str] = field(default_factory=dict)
    drop: bool = False
    announce: int | None = None
    no_length: bool = False
    pause_seconds: float = 0.0


def json_response(status: int, obj: Any, headers: Mapping[str, str] | None = None) -> Response:
    """An answer in JSON."""
    return Response(status, json.dumps(obj).encode(), {"Content-Type": "application/json", **(headers or {})})


def html_response(status: int, text: str, headers: Mapping[str, str] | None = None) -> Response:
    """An answer in HTML."""
    return Response(status, text.encode(), {"Content-Type": "text/html; charset=utf-8", **(headers or {})})


Handler = Callable[..., Response]


class Router:
    """Routes by method and whole path; handlers are called as `handler(world, request, **named_groups)`."""

    def __init__(self) -> None:
        self.routes: list[tuple[str, re.Pattern[str], Handler]] = []

    def route(self, method: str, pattern: str) -> Callable[[Handler], Handler]:
        """Register the decorated handler; the first route that matches wins."""

        def register(handler: Handler) -> Handler:
            self.routes.append((method, re.compile(pattern), handler))
            return handler

        return register

    def include(self, other: "Router") -> None:
        """Append all routes of another router."""
        self.routes.extend(other.routes)

    def answer(self, world: World, request: Request) -> Response:
        """Call the handler that fits: 404 for an unknown path, 405 for a known path with another method."""
        path_known = False
        for method, pattern, handler in self.routes:
            match = pattern.fullmatch(request.path)
            if match is None:
                continue
            if method == request.method:
                return handler(world, request, **match.groupdict())
            path_known = True
        return json_response(
            405 if path_known else 404, {"detail": "Method Not Allowed" if path_known else "Not Found"}
        )


class SandboxServer(ThreadingHTTPServer):
    """One thread per connection; none of them keeps the process alive."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], *, world: World, router: Router) -> None:
        self.world = world
        self.router = router
        super().__init__(address, Connection)

    def server_bind(self) -> None:
        # HTTPServer would look its own name up in the DNS, which may take seconds.
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is daily business here: one line, no traceback."""
        say(f"connection ended: {sys.exc_info()[1]!r}")

    @property
    def url(self) -> str:
        """Where this server can be reached."""
        return f"http://{self.server_name}:{self.server_port}"


def serve_routes(*, world: World, router: Router, host: str, port: int) -> SandboxServer:
    """Start answering in a thread and return at once; `shutdown()` stops it, port 0 takes any free port."""
    server = SandboxServer((host, port), world=world, router=router)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True, name="sandbox").start()
    return server


class Connection(BaseHTTPRequestHandler):
    """Reads requests from one connection until it closes."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: SandboxServer

    def answer(self) -> None:
        started = time.monotonic()
        request = self._read()
        response = self._decide(request)
        if response.drop:
            self._drop()
        else:
            self._send(response)
        word = "dropped" if response.drop else str(response.status)
        took = f"{(time.monotonic() - started) * 1000:.0f}ms"
        say(f"{self.command} {self.path[:200]} {word} {took}")

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_PATCH = answer  # noqa: N815

    def _read(self) -> Request:
        parts = urlsplit(self.path)
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            body = b"".join(self._chunks())
        else:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        return Request(
            method="GET" if self.command == "HEAD" else self.command,
            path=unquote(parts.path),
            query=dict(parse_qsl(parts.query, keep_blank_values=True)),
            headers=cast(Mapping[str, str], self.headers),
            body=body,
            base_url=f"http://{self.headers.get('Host') or self.server.url.removeprefix('http://')}",
        )

    def _chunks(self) -> Iterator[bytes]:
        while size := int(self.rfile.readline().split(b";")[0], 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass

    def _decide(self, request: Request) -> Response:
        try:
            return self.server.router.answer(self.server.world, request)
        except Exception:  # noqa: BLE001 - a bug of the sandbox must show, and must not look like a fault that somebody ordered
            traceback.print_exc()
            return json_response(500, {"detail": "The sandbox itself has a bug; see its log."}, {"X-Sandbox-Bug": "1"})

    def _drop(self) -> None:
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def _send(self, response: Response) -> None:
        chunks = [response.body] if isinstance(response.body, bytes) else response.body
        length = response.announce
        if length is None and isinstance(response.body, bytes) and not response.no_length:
            length = len(response.body)
        if response.no_length or length is None or response.announce is not None:
            self.close_connection = True
        head = self._head(response, length)
        if self.command == "HEAD" or response.status == HTTPStatus.NO_CONTENT:
            self.wfile.write(head)
            return
        for number, chunk in enumerate(chunks):
            if number and response.pause_seconds:
                time.sleep(response.pause_seconds)
            self.wfile.write(head + chunk)
            head = b""
        if head:
            self.wfile.write(head)

    def _head(self, response: Response, length: int | None) -> bytes:
        try:
            phrase = HTTPStatus(response.status).phrase
        except ValueError:
            phrase = "Unknown"
        headers = {"Date": self.date_time_string(), "Server": "waistheart-sandbox", **response.headers}
        if length is not None and not response.no_length:
            headers["Content-Length"] = str(length)
        if self.close_connection:
            headers["Connection"] = "close"
        lines = [f"HTTP/1.1 {response.status} {phrase}", *(f"{name}: {value}" for name, value in headers.items())]
        return "\r\n".join([*lines, "", ""]).encode("latin-1")

    def log_message(self, format: str, *args: Any) -> None:
        """Silent: `answer` writes its own single line."""
