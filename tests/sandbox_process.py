"""The sandbox as a process of its own, as tests use it: start, switches, what it knows, and an ear for its events."""

import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import requests

ROOT = Path(__file__).resolve().parent.parent


class Sandbox:
    """One running sandbox, reached only over HTTP."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.host = url.removeprefix("http://")

    def fault(self, fault: str, *, times: int | str = 1, match: str = "", **params: Any) -> None:
        """Push a fault for the next `times` acts that fit."""
        self.post("/control/faults", {"fault": fault, "times": times, "match": match, **params})

    def card(self, session_id: str, do: str, **params: Any) -> dict[str, Any]:
        """Do something to a checkout session, as the buttons of the payment page would."""
        return self.post(f"/control/card/{session_id}", {"do": do, **params})

    def state(self) -> dict[str, Any]:
        """Everything the sandbox knows."""
        return requests.get(f"{self.url}/control/state", timeout=30).json()

    def calls(self, operation: str) -> list[dict[str, Any]]:
        """The requests to one operation of the card processor since the last reset, oldest first."""
        return [call for call in self.state()["card"].get("calls", {}).values() if call["operation"] == operation]

    def reset(self) -> None:
        """Forget everything but the settings."""
        self.post("/control/reset", {})

    def settings(self, **values: Any) -> None:
        """Change `delay_seconds`, `film_height` or `shop_url`."""
        self.post("/control/settings", values)

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        answer = requests.post(self.url + path, json=body, timeout=30)
        assert answer.ok, answer.text
        return answer.json()


@contextmanager
def running_sandbox(*options: str, shop_url: str = "", delay_seconds: float = 0.1) -> Iterator[Sandbox]:
    """Start `manage.py sandbox` on a free port and stop it again."""
    command = [sys.executable, "manage.py", "sandbox", "--port", "0", "--delay", str(delay_seconds)]
    environ = {**os.environ, "DJANGO_SETTINGS_MODULE": "waistheart.settings", "PYTHONUNBUFFERED": "1"}
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            [*command, "--shop-url", shop_url, *options],
            cwd=ROOT,
            env=environ,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        try:
            assert process.stdout is not None
            words = process.stdout.readline()
            if not words.startswith("sandbox: http"):
                process.wait(10)
                log.seek(0)
                raise AssertionError(f"the sandbox did not start: {words}{log.read()}")
            yield Sandbox(words.removeprefix("sandbox: ").strip().removesuffix("/control/"))
        finally:
            process.terminate()
            process.wait(60)


@dataclass
class Heard:
    """One event as it arrived."""

    body: bytes
    signature: str
    path: str


class Ear:
    """A tiny shop that only listens; `answers` are the statuses it gives, the last one for ever."""

    def __init__(self) -> None:
        self.heard: queue.Queue[Heard] = queue.Queue()
        self.answers = [200]
        ear = self

        class Listener(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                ear.heard.put(Heard(body, self.headers.get("Stripe-Signature", ""), self.path))
                self.send_response(ear.answers[0] if len(ear.answers) == 1 else ear.answers.pop(0))
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Listener)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def next(self, timeout: float = 30) -> Heard:
        return self.heard.get(timeout=timeout)

    def nothing_more(self, seconds: float = 0.4) -> bool:
        """True when nothing arrives for so long."""
        try:
            self.heard.get(timeout=seconds)
        except queue.Empty:
            return True
        return False

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture(scope="session")
def sandbox_process() -> Iterator[Sandbox]:
    """One sandbox for the whole run; tests take `sandbox`, which begins empty."""
    with running_sandbox() as sandbox:
        yield sandbox


@pytest.fixture
def sandbox(sandbox_process: Sandbox) -> Sandbox:
    """The sandbox, emptied: no sessions, no work, no faults, nobody to send events to.

    Its films are about the smallest that a shop takes, an eighth of what the demo renders: hundreds of tests decode every frame of one.
    """
    sandbox_process.reset()
    sandbox_process.settings(shop_url="", delay_seconds=0.1, film_height=448)
    return sandbox_process


@pytest.fixture
def ear(sandbox: Sandbox) -> Iterator[Ear]:
    """A listener that the sandbox sends its events to."""
    ear = Ear()
    sandbox.settings(shop_url=ear.url)
    yield ear
    sandbox.settings(shop_url="")
    ear.stop()
