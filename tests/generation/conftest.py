"""Fixtures of the work's tests."""

import pytest
from celery import current_app


@pytest.fixture
def messages(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """What workers are asked to do, as the broker would hold it; nobody does it until the test says so."""
    waiting: list[tuple[str, int]] = []
    monkeypatch.setattr(current_app, "send_task", lambda task, args, **options: waiting.append((task, args[0])))
    return waiting
