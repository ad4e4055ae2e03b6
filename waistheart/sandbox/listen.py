"""The door of the sandbox: a threaded HTTP/1.1 server that sends answers as they are meant, right or wrong."""

import socket
import struct
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any, cast
from urllib.parse import parse_qsl, unquote, urlsplit

from waistheart.sandbox import strangers
from waistheart.sandbox.say import say
from waistheart.sandbox.server import Request, Response, Router, json_response
from waistheart.sandbox.world import World


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
            stranger = strangers.refused(request, own=self.server.server_name)
            return stranger or self.server.router.answer(self.server.world, request)
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
