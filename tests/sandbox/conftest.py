"""Fixtures of these tests: somebody who hears webhooks, and a raw client of the video queue."""

from collections.abc import Iterator

import pytest

from tests.sandbox.fal_client import Fal, Listener, listening
from tests.sandbox_process import Sandbox


@pytest.fixture
def listener() -> Iterator[Listener]:
    """Somebody who hears webhooks and serves photos."""
    with listening() as listener:
        yield listener


@pytest.fixture
def fal(sandbox: Sandbox, listener: Listener) -> Fal:
    """A raw client whose photo is a good portrait."""
    return Fal(sandbox, listener.photo("ok_portrait.jpg"))
