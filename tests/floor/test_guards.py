"""The conditional UPDATE decides: a lost race is undone whole and counted, everything else is loud."""

import time
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import IntegrityError, OperationalError, connection, transaction

from billing.models import CreditPack
from tests.rows import at_once
from waistheart import guards
from waistheart.models import GuardTally, Heartbeat, Hint

pytestmark = pytest.mark.django_db(transaction=True)


def beat(name: str) -> int:
    """A conditional UPDATE of one row: how many it matched."""
    return Heartbeat.objects.filter(name=name).update(at=datetime(2026, 1, 1, tzinfo=UTC))


def tallies() -> dict[str, int]:
    return dict(GuardTally.objects.values_list("guard", "lost"))


# --- block and must --------------------------------------------------------------------------------------------------


def test_a_won_block_answers_its_value():
    Heartbeat.objects.create(name="a")

    @guards.block("tests.won")
    def act(value: int) -> int:
        guards.must("beat.a", beat("a"))
        return value

    assert act(7) == guards.Outcome(won=True, value=7)
    assert tallies() == {}


def test_a_lost_race_is_undone_whole_and_counted_once_each_time():
    @guards.block("tests.lost")
    def act() -> None:
        Heartbeat.objects.create(name="written before the guard")
        guards.must("beat.b", beat("b"))

    assert act() == guards.Outcome(won=False, lost="beat.b")
    assert not Heartbeat.objects.exists()
    assert tallies() == {"beat.b": 1}
    before = GuardTally.objects.get().last_lost
    time.sleep(0.01)
    assert not act().won
    assert tallies() == {"beat.b": 2}
    assert GuardTally.objects.get().last_lost > before


def test_two_rows_are_a_bug_and_undo_everything():
    for name in ("a", "b"):
        Heartbeat.objects.create(name=name)

    @guards.block("tests.broken")
    def act() -> None:
        guards.must("beat.all", Heartbeat.objects.update(at=datetime(2026, 1, 1, tzinfo=UTC)))

    with pytest.raises(guards.GuardBroken, match=r"beat\.all matched 2 rows"):
        act()
    assert not Heartbeat.objects.filter(at__lt=datetime(2026, 1, 2, tzinfo=UTC)).exists()
    assert tallies() == {}


def test_no_guard_decides_outside_a_block():
    Heartbeat.objects.create(name="a")
    for guard in (guards.must, guards.may):
        with pytest.raises(guards.GuardBroken, match="outside a block"):
            guard("beat.a", beat("a"))
    with pytest.raises(guards.GuardBroken, match="outside a block"):
        guards.insert("beat.c", lambda: Heartbeat.objects.create(name="c"))
    assert not Heartbeat.objects.filter(name="c").exists()


def test_a_block_within_a_block_is_refused():
    """A block that is not the outermost transaction would call won what may still be undone."""

    @guards.block("tests.inner")
    def inner() -> None:
        Heartbeat.objects.create(name="inner")

    @guards.block("tests.outer")
    def outer() -> None:
        inner()

    for act in (outer, transaction.atomic(inner)):
        with pytest.raises(RuntimeError, match="durable"):
            act()
    assert not Heartbeat.objects.exists()


def test_an_integrity_error_within_a_block_is_a_bug():
    @guards.block("tests.check")
    def act() -> None:
        Heartbeat.objects.create(name="before")
        CreditPack.objects.create(credits=0, price=1, currency="GBP")

    with pytest.raises(IntegrityError):
        act()
    assert not Heartbeat.objects.exists()
    assert tallies() == {}


# --- may and insert --------------------------------------------------------------------------------------------------


def test_a_block_goes_on_without_an_optional_guard():
    @guards.block("tests.may")
    def act() -> tuple[bool, bool]:
        Heartbeat.objects.create(name="a")
        return guards.may("beat.a", beat("a")), guards.may("beat.b", beat("b"))

    assert act().value == (True, False)
    assert Heartbeat.objects.count() == 1
    assert tallies() == {}


def test_an_optional_guard_of_two_rows_is_a_bug_too():
    @guards.block("tests.may")
    def act() -> bool:
        return guards.may("beat.all", 2)

    with pytest.raises(guards.GuardBroken):
        act()


def test_a_unique_row_is_the_decision():
    @guards.block("tests.hint")
    def act() -> Hint:
        return guards.insert("hint", lambda: Hint.objects.create(source="fal", event_id="1", kind="x"))

    assert act().value == Hint.objects.get()
    assert act() == guards.Outcome(won=False, lost="hint")
    assert tallies() == {"hint": 1}


def test_another_broken_rule_is_no_lost_race():
    """A CHECK in the same insert says that the code is wrong, not that somebody was first."""

    @guards.block("tests.check")
    def act() -> None:
        guards.insert("pack", lambda: CreditPack.objects.create(credits=0, price=1, currency="GBP"))

    with pytest.raises(IntegrityError):
        act()
    assert tallies() == {}


def test_one_of_twenty_inserts_wins():
    @guards.block("tests.hint")
    def act() -> None:
        guards.insert("hint", lambda: Hint.objects.create(source="fal", event_id="1", kind="x"))

    outcomes = at_once(*[act] * 20)
    assert [outcome.won for outcome in outcomes].count(True) == 1
    assert Hint.objects.count() == 1
    assert tallies() == {"hint": 19}


# --- durable, nudge, count -------------------------------------------------------------------------------------------


def test_a_won_block_is_committed_when_it_returns():
    """Another connection sees it at once, so that a message with the row's id finds the row."""

    @guards.block("tests.commit")
    def act() -> None:
        Heartbeat.objects.create(name="a")

    assert act().won
    assert at_once(Heartbeat.objects.count) == [1]


def test_a_nudge_runs_after_the_commit_and_only_then():
    seen: list[Any] = []

    @guards.block("tests.nudge")
    def act(guard_rows: int) -> None:
        Heartbeat.objects.get_or_create(name="a")
        guards.nudge(lambda: seen.append(connection.in_atomic_block))
        assert seen == []
        guards.must("nudge", guard_rows)

    assert not act(0).won
    assert seen == []
    assert act(1).won
    assert seen == [False]


def test_a_nudge_that_fails_changes_nothing(caplog: pytest.LogCaptureFixture):
    """The broker is away: the row is there, the next nudge runs, the sweep will find it."""
    seen: list[str] = []

    @guards.block("tests.nudge")
    def act() -> None:
        guards.nudge(lambda: 1 / 0)
        guards.nudge(lambda: seen.append("the next one"))
        Heartbeat.objects.create(name="a")

    assert act().won
    assert Heartbeat.objects.exists()
    assert seen == ["the next one"]
    assert "nudge failed" in caplog.text


def test_counting_never_raises(monkeypatch: pytest.MonkeyPatch):
    """A tally that cannot be written may not turn a lost race into an error."""

    def away(**_: Any) -> None:
        raise OperationalError("the database is away")

    monkeypatch.setattr(GuardTally.objects, "filter", lambda **_: type("Rows", (), {"update": staticmethod(away)}))
    guards.count("anything")


def test_twenty_losses_at_once_are_twenty():
    """The first of the day inserts, the others add: none is lost between the two."""
    at_once(*[lambda: guards.count("busy")] * 20)
    assert tallies() == {"busy": 20}
