"""Rivals: acts at the same moment in threads of their own, and one that acts right after another has read."""

import itertools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connections
from django.db.models import Sum

from waistheart.models import GuardTally

SECONDS = 60


def at_once(*acts: Callable[[], Any]) -> list[Any]:
    """Run every act in a thread with a connection of its own; what they answered, in order. An error is raised here."""
    with ThreadPoolExecutor(len(acts)) as pool:
        return [future.result(SECONDS) for future in [pool.submit(_alone, act) for act in acts]]


def meet_after(patch: pytest.MonkeyPatch, owner: Any, name: str, *, count: int) -> None:
    """Let the first `count` callers of a reading go on only when all of them have read."""
    read, barrier, calls = getattr(owner, name), threading.Barrier(count), itertools.count(1)

    def read_and_wait(*args: Any, **kwargs: Any) -> Any:
        answer = read(*args, **kwargs)
        if next(calls) <= count:
            barrier.wait(SECONDS)
        return answer

    patch.setattr(owner, name, read_and_wait)


def act_after(patch: pytest.MonkeyPatch, owner: Any, name: str, rival: Callable[[], object]) -> None:
    """Let a rival act once, right after the next caller of a reading has read; whoever reads later reads undisturbed."""
    read = getattr(owner, name)

    def read_then_rival(*args: Any, **kwargs: Any) -> Any:
        answer = read(*args, **kwargs)
        patch.setattr(owner, name, read)
        rival()
        return answer

    patch.setattr(owner, name, read_then_rival)


def lost(guard: str) -> int:
    """How often a guard has been lost."""
    return GuardTally.objects.filter(guard=guard).aggregate(n=Sum("lost"))["n"] or 0


def _alone(act: Callable[[], Any]) -> Any:
    try:
        return act()
    finally:
        connections.close_all()
