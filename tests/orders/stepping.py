"""Two actors against each other, statement by statement: one stands still before a chosen statement while the other runs."""

import threading
import time
from collections.abc import Callable
from typing import Any

from django.db import connection, connections

SECONDS = 60
# SQLite tells nobody who waits: an actor that has not come back after so long stands before the other's write lock.
SQLITE_WAIT_SECONDS = 0.4


class Actor:
    """One act in a thread with a connection of its own, which stands still before step `stop_at` until told to go on.

    A step is a statement or a COMMIT. On SQLite, where a transaction that writes has the database for itself from BEGIN to
    COMMIT, only these two and the statements outside transactions are steps.
    """

    def __init__(self, act: Callable[[], Any], *, stop_at: int = 0) -> None:
        self.act = act
        self.stop_at = stop_at
        self.steps = 0
        self.stopped, self.go_on, self.done = threading.Event(), threading.Event(), threading.Event()
        self.before = ""
        self.answer: Any = None
        self.error: BaseException | None = None
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def came_to_its_step(self) -> bool:
        """Wait until it stands before its step; False when it ended without coming there."""
        self._until(lambda: self.stopped.is_set() or self.done.is_set())
        return self.stopped.is_set()

    def waits_for_a_lock(self) -> bool:
        """Let it run until it ends (False) or cannot go on because another holds a row (True)."""
        begun = time.monotonic()
        self._until(lambda: self.done.is_set() or _somebody_waits(since=begun))
        return not self.done.is_set()

    def end(self) -> Any:
        """Let it go on to its end, and answer what it answered."""
        self.go_on.set()
        assert self.done.wait(SECONDS), f"stuck before {self.before}"
        self.thread.join(SECONDS)
        if self.error is not None:
            raise self.error
        return self.answer

    def _run(self) -> None:
        own = connections["default"]
        commit = own.commit

        def stepped_commit() -> None:
            self._step("COMMIT")
            commit()

        own.commit = stepped_commit  # type: ignore[method-assign]
        try:
            with own.execute_wrapper(self._statement):
                self.answer = self.act()
        except BaseException as error:  # noqa: BLE001 (raised in the test's thread)
            self.error = error
        finally:
            own.close()
            self.done.set()

    def _statement(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        own = context["connection"]
        if own.vendor != "sqlite" or not own.in_atomic_block:
            self._step(sql)
        return execute(sql, params, many, context)

    def _step(self, words: str) -> None:
        self.steps += 1
        if self.steps == self.stop_at:
            self.before = words
            self.stopped.set()
            self.go_on.wait(SECONDS)

    def _until(self, true: Callable[[], bool]) -> None:
        ends = time.monotonic() + SECONDS
        while not true():
            assert time.monotonic() < ends, f"stuck before {self.before}"
            time.sleep(0.003)


def _somebody_waits(*, since: float) -> bool:
    if connection.vendor == "sqlite":
        return time.monotonic() - since > SQLITE_WAIT_SECONDS
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')"
        )
        return bool(cursor.fetchone()[0])
