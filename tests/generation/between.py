"""Somebody between the shop and the provider, who passes every request on and may change or replace what is answered."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import requests

from tests.generation.rude_server import head

Change = Callable[[str, str, bytes], bytes]


@dataclass
class Between:
    """Where it listens, what it passed on (method, path, the key shown), and how it changes an answer: method, path, bytes."""

    url: str = ""
    passed: list[tuple[str, str, str]] = field(default_factory=list)
    change: Change = lambda method, path, answer: answer


def json_answer(status: str, body: bytes) -> bytes:
    return head(status, Content_Type="application/json", Content_Length=len(body), Connection="close") + body


@contextmanager
def between(target: str, *, key: str = "") -> Iterator[Between]:
    """Pass requests on to the target; with a key, under that one, whatever the request shows."""
    middle = Between()

    class Pass(BaseHTTPRequestHandler):
        def answer(self) -> None:
            shown = self.headers.get("Authorization", "").removeprefix("Key ")
            middle.passed.append((self.command, self.path, shown))
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {"Authorization": f"Key {key or shown}", "Content-Type": "application/json"}
            got = requests.request(self.command, target + self.path, headers=headers, data=body, timeout=30)
            answer = json_answer(f"{got.status_code} Said", got.content)
            self.wfile.write(middle.change(self.command, self.path, answer))
            self.close_connection = True

        do_GET = do_POST = do_PUT = answer  # noqa: N815  (the library's names)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Pass)
    middle.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        yield middle
    finally:
        server.shutdown()
        server.server_close()
