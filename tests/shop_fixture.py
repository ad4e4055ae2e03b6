"""The shop as a fixture: a live web thread, the sandbox process, and settings that join the two."""

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.signals import request_finished, request_started

from generation.providers import fal_hints
from tests.sandbox_process import Sandbox
from tests.shop import Shop


@pytest.fixture
def shop(transactional_db: None, live_server: Any, sandbox: Sandbox, settings: Any) -> Iterator[Shop]:
    """An empty shop that sells one pose; it closes when the provider has stopped calling."""
    settings.PUBLIC_URL = live_server.url
    settings.ALLOWED_HOSTS = ["*"]
    join(settings, sandbox)
    with Traffic() as traffic:
        yield Shop(url=live_server.url, sandbox=sandbox)
        sandbox.reset()
        # Emptying the tables under a request that reads two of them is a deadlock.
        wait_for(traffic.stopped)


def join(settings: Any, sandbox: Sandbox) -> None:
    """Have this sandbox be the shop's provider and card processor."""
    settings.FAL_QUEUE_URL = f"{sandbox.url}/fal/queue"
    settings.FAL_API_URL = f"{sandbox.url}/fal/api/v1"
    settings.FAL_JWKS_URL = f"{sandbox.url}/fal/.well-known/jwks.json"
    settings.FAL_MEDIA_HOSTS = [sandbox.host]
    settings.STRIPE_API_BASE = f"{sandbox.url}/stripe"
    fal_hints.jwks.forget()


class Traffic:
    """How many requests the web thread is answering."""

    def __enter__(self) -> "Traffic":
        self._count, self._lock = 0, threading.Lock()
        request_started.connect(self._one_more, dispatch_uid="traffic")
        request_finished.connect(self._one_less, dispatch_uid="traffic")
        return self

    def __exit__(self, *error: object) -> None:
        request_started.disconnect(dispatch_uid="traffic")
        request_finished.disconnect(dispatch_uid="traffic")

    def stopped(self) -> bool:
        """Whether no request is under way, and none comes within a moment."""
        before = self._count
        time.sleep(0.03)
        return before <= 0 and self._count <= 0

    def _one_more(self, **signal: object) -> None:
        with self._lock:
            self._count += 1

    def _one_less(self, **signal: object) -> None:
        with self._lock:
            self._count -= 1


def wait_for(what: Any, seconds: float = 60) -> Any:
    """Call until it answers something true."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        found = what()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError(f"not within {seconds} s")
