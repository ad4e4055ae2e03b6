"""What the tests of the video queue speak with: a raw client, a host for photos and an ear for webhooks."""

import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeVar

import requests

from tests.sandbox_process import Sandbox

Seen = TypeVar("Seen")
PHOTOS = Path(__file__).resolve().parent.parent / "data" / "photos"
MODEL = "fal-ai/heart-pose/image-to-video"
KEY = {"Authorization": "Key sandbox-fal-key"}


class Fal:
    """The queue API at its raw level; nothing is retried and nothing is followed."""

    def __init__(self, sandbox: Sandbox, image_url: str) -> None:
        self.sandbox = sandbox
        self.image_url = image_url
        self.queue = f"{sandbox.url}/fal/queue"

    def submit(self, *, image_url: str | None = None, webhook: str = "", **body: Any) -> requests.Response:
        model = body.pop("model", MODEL)
        body = {"prompt": "waist heart", "image_url": image_url or self.image_url, "duration": "5", **body}
        query = {"fal_webhook": webhook} if webhook else {}
        return requests.post(
            f"{self.queue}/{model}", json=body, params=query, headers=KEY, timeout=30, allow_redirects=False
        )

    def get(self, url: str, **query: Any) -> requests.Response:
        return requests.get(url, headers=KEY, params=query, timeout=30)

    def listing(self, **query: Any) -> requests.Response:
        url = f"{self.sandbox.url}/fal/api/v1/models/requests/by-endpoint"
        return self.get(url, **{"endpoint_id": MODEL, **query})

    def completed(self, accepted: dict[str, Any]) -> dict[str, Any]:
        """Wait until the queue calls the request COMPLETED, and return that status."""

        def look() -> dict[str, Any] | None:
            answer = self.get(accepted["status_url"])
            return dict(answer.json()) if answer.status_code == 200 else None

        return wait_for(look)

    def result(self, **body: Any) -> requests.Response:
        """Submit, wait for the end, and read the result."""
        accepted = self.submit(**body).json()
        self.completed(accepted)
        return self.get(accepted["response_url"])

    def video_url(self, **body: Any) -> str:
        return str(self.result(**body).json()["video"]["url"])

    def only_request(self) -> dict[str, Any]:
        """The sandbox's own record of the one request it has accepted."""
        [request] = self.sandbox.state()["fal"]
        return dict(request)


def wait_for(look: Callable[[], Seen | None], *, seconds: float = 60) -> Seen:
    """Look again and again until there is something to see."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if seen := look():
            return seen
        time.sleep(0.03)
    raise AssertionError("waited in vain")


@dataclass
class Heard:
    """One request as it arrived at the listener."""

    path: str
    body: bytes
    headers: dict[str, str]


@dataclass
class Listener:
    """Hears webhooks and answers with `answers` in turn, the last one for ever; serves photos from the test data."""

    url: str = ""
    heard: "queue.Queue[Heard]" = field(default_factory=queue.Queue)
    answers: list[int] = field(default_factory=lambda: [200])
    photo_reads: list[str] = field(default_factory=list)

    def photo(self, name: str) -> str:
        return f"{self.url}/photos/{name}"

    def next(self, seconds: float = 45) -> Heard:
        return self.heard.get(timeout=seconds)

    def hears_nothing(self, seconds: float = 0.5) -> bool:
        try:
            self.heard.get(timeout=seconds)
        except queue.Empty:
            return True
        return False


@contextmanager
def listening() -> Iterator[Listener]:
    """A listener on a free port."""
    listener = Listener()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            listener.photo_reads.append(self.path)
            path = PHOTOS / self.path.partition("?")[0].rpartition("/")[2]
            found = path.is_file()
            body = path.read_bytes() if found else b""
            self._answer(200 if found else 404, body)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            listener.heard.put(Heard(self.path, body, dict(self.headers)))
            self._answer(listener.answers[0] if len(listener.answers) == 1 else listener.answers.pop(0), b"")

        def _answer(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    listener.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        yield listener
    finally:
        server.shutdown()
        server.server_close()
