"""The conditional UPDATE decides, and this is the one place that judges its row count (design section 2, rules 1 to 7).

    @guards.block("generation.store")
    def store_block() -> None:
        guards.must("job.store", Job.objects.filter(id=1, status="storing", lease_id=mine).update(status="completed"))
        ...what must be true together with it...

    outcome = store_block()          # outcome.won is False when a guard matched no row; then nothing of the block happened

A block is the outermost transaction, holds no network, storage or mail call, and is repeated by itself after a deadlock.
"""

import functools
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, ParamSpec, TypeVar

from django.db import DatabaseError, IntegrityError, OperationalError, connection, transaction
from django.db.models import F
from django.utils import timezone

from waistheart import clock
from waistheart.models import GuardTally

log = logging.getLogger(__name__)
P = ParamSpec("P")
T = TypeVar("T")
REPEATS = 3
SERIALISATION_STATES = {"40001", "40P01"}
UNIQUE_VIOLATIONS = {"23505", "SQLITE_CONSTRAINT_UNIQUE", "SQLITE_CONSTRAINT_PRIMARYKEY"}


class LostRace(Exception):
    """A guard matched no row: somebody else was first. The whole block is undone."""

    def __init__(self, guard: str) -> None:
        super().__init__(guard)
        self.guard = guard


class GuardBroken(Exception):
    """A guard matched several rows, or stood outside a block: a bug, never an ordinary loss."""


@dataclass(frozen=True)
class Outcome(Generic[T]):
    """What became of a block: `won`, the body's return value, or the name of the guard that lost."""

    won: bool
    value: T | None = None
    lost: str = ""


def block(name: str) -> Callable[[Callable[P, T]], Callable[P, Outcome[T]]]:
    """Make a function the owner of one durable transaction; calling it answers an Outcome and never raises LostRace.

    A lost guard undoes everything, is counted once, and is safe to try again after a fresh read. A deadlock or serialisation
    failure repeats the body up to three times: it must therefore touch nothing but the database.
    """

    def decorate(body: Callable[P, T]) -> Callable[P, Outcome[T]]:
        @functools.wraps(body)
        def run(*args: P.args, **kwargs: P.kwargs) -> Outcome[T]:
            for repeats in range(REPEATS + 1):
                try:
                    with transaction.atomic(durable=True):
                        value = body(*args, **kwargs)
                    return Outcome(True, value)
                except LostRace as loss:
                    count(loss.guard)
                    log.info("guard lost: %s in block %s", loss.guard, name)
                    return Outcome(False, lost=loss.guard)
                except OperationalError as error:
                    if repeats == REPEATS or not is_serialisation_failure(error):
                        raise
                    count(f"{name}.repeated")
            raise AssertionError("unreachable")

        return run

    return decorate


def must(guard: str, rows: int) -> None:
    """Judge the guard that decides: exactly one row, else LostRace (none) or GuardBroken (several)."""
    inside(guard)
    if rows == 0:
        raise LostRace(guard)
    if rows != 1:
        raise GuardBroken(f"{guard} matched {rows} rows")


def may(guard: str, rows: int) -> bool:
    """Judge an optional guard: the block goes on without it, the loss is not a loss."""
    inside(guard)
    if rows > 1:
        raise GuardBroken(f"{guard} matched {rows} rows")
    return rows == 1


def insert(guard: str, make: Callable[[], T]) -> T:
    """Let a unique row be the decision: a second one of `make` becomes LostRace. It must be the first act of its block.

    Any other IntegrityError, a CHECK or a missing parent, is a bug and stays one.
    """
    inside(guard)
    try:
        with transaction.atomic():
            return make()
    except IntegrityError as error:
        if not is_unique_violation(error):
            raise
        raise LostRace(guard) from error


def nudge(act: Callable[[], object]) -> None:
    """Run `act` after the commit; its failure is logged and changes nothing, because a sweep does the same within a minute."""

    def gently() -> None:
        try:
            act()
        except Exception:
            log.warning("nudge failed; the sweep will find the row", exc_info=True)

    transaction.on_commit(gently, robust=True)


def count(guard: str) -> None:
    """Add one to today's tally of a name. Never raises: a tally must not turn a lost race into an error."""
    today = timezone.now().date()
    rows = GuardTally.objects.filter(guard=guard, day=today)
    try:
        if not rows.update(lost=F("lost") + 1, last_lost=clock.now()):
            try:
                with transaction.atomic():
                    GuardTally.objects.create(guard=guard, day=today, lost=1)
            except IntegrityError:
                rows.update(lost=F("lost") + 1, last_lost=clock.now())
    except DatabaseError:
        log.warning("could not count %s", guard, exc_info=True)


def inside(guard: str) -> None:
    """Refuse a guard outside a transaction: what it decided would stand alone, and nothing could be undone."""
    if not connection.in_atomic_block:
        raise GuardBroken(f"{guard} stands outside a block")


def is_unique_violation(error: IntegrityError) -> bool:
    """Whether the row exists already, as PostgreSQL's state or SQLite's name of the error says."""
    cause = error.__cause__
    return bool({getattr(cause, "sqlstate", None), getattr(cause, "sqlite_errorname", None)} & UNIQUE_VIOLATIONS)


def is_serialisation_failure(error: OperationalError) -> bool:
    """Whether PostgreSQL undid the transaction because of others (deadlock, serialisation): the body may simply run again."""
    return getattr(error.__cause__, "sqlstate", None) in SERIALISATION_STATES
