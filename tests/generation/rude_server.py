"""A real HTTP server on a real socket that says exactly the bytes a test wants, at the pace it wants."""

import socket
import ssl
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

Script = Iterable[bytes | float]


class RudeServer:
    """Answers each connection with the script: bytes are sent, a number is a pause; then it hangs up (or stays)."""

    def __init__(self, script: Script, *, stays: bool = False, context: ssl.SSLContext | None = None) -> None:
        self.script = list(script)
        self.stays = stays
        self.context = context
        self.requests: list[bytes] = []
        self.over = threading.Event()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.host = f"127.0.0.1:{self.port}"
        threading.Thread(target=self._serve, daemon=True).start()

    def url(self, path: str = "/video.mp4") -> str:
        return f"http://{self.host}{path}"

    def _serve(self) -> None:
        while not self.over.is_set():
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with suppress(OSError), connection:
                self._answer(self.context.wrap_socket(connection, server_side=True) if self.context else connection)

    def _answer(self, connection: socket.socket) -> None:
        request = b""
        while b"\r\n\r\n" not in request and (piece := connection.recv(65536)):
            request += piece
        self.requests.append(request)
        for step in self.script:
            if isinstance(step, bytes):
                connection.sendall(step)
            elif self.over.wait(step):
                return
        if self.stays:
            self.over.wait(20)
        if self.context:
            connection.unwrap()


@contextmanager
def rude(*script: bytes | float, stays: bool = False, context: ssl.SSLContext | None = None) -> Iterator[RudeServer]:
    server = RudeServer(script, stays=stays, context=context)
    try:
        yield server
    finally:
        server.over.set()
        server.listener.close()


def head(status: str = "200 OK", **headers: str | int) -> bytes:
    """The head of an answer: head(Content_Length=5)."""
    lines = [f"HTTP/1.1 {status}", *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode()


def chunked(*parts: bytes, ends: bool = True) -> bytes:
    """The parts as a chunked body."""
    body = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts)
    return body + (b"0\r\n\r\n" if ends else b"")
