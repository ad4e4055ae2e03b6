"""The shop as a fixture: a live web thread, the sandbox process, and settings that join the two."""

import time
from typing import Any

import pytest

from generation.providers import fal_hints
from tests.sandbox_process import Sandbox
from tests.shop import Shop


@pytest.fixture
def shop(transactional_db: None, live_server: Any, sandbox: Sandbox, settings: Any) -> Shop:
    """An empty shop that sells one pose."""
    settings.PUBLIC_URL = live_server.url
    settings.ALLOWED_HOSTS = ["*"]
    settings.FAL_QUEUE_URL = f"{sandbox.url}/fal/queue"
    settings.FAL_API_URL = f"{sandbox.url}/fal/api/v1"
    settings.FAL_JWKS_URL = f"{sandbox.url}/fal/.well-known/jwks.json"
    settings.FAL_MEDIA_HOSTS = [sandbox.host]
    settings.STRIPE_API_BASE = f"{sandbox.url}/stripe"
    fal_hints.jwks.forget()
    return Shop(url=live_server.url, sandbox=sandbox)


def wait_for(what: Any, seconds: float = 20) -> Any:
    """Call until it answers something true."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        found = what()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError(f"not within {seconds} s")
