"""The ledger against an oracle: any order of verbs over one owner's credits leaves what a ten-line model of it says."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

import pytest
from django.db import transaction
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from billing import ledger
from billing.audit import differences
from billing.models import Grant
from tests.rows import DAY, dispute, done, new_grant, new_owner, take_back, tried
from waistheart import clock

pytestmark = pytest.mark.django_db
RETURNED_DAYS = 30


@dataclass
class Pot:
    """One grant as the model sees it; `days` until it expires; among equal days the one that got them first, or is older."""

    days: int
    turn: int
    free: int
    held: int = 0
    frozen: int = 0
    owed: int = 0
    disputed: bool = False


@dataclass
class Model:
    """What the design says about credits, without a database."""

    pots: dict[int, Pot] = field(default_factory=dict)
    holds: dict[int, dict[int, int]] = field(default_factory=dict)
    turns: Iterator[int] = field(default_factory=count)

    def plan(self, credits: int) -> dict[int, int] | None:
        takes = {}
        spendable = [pk for pk, pot in self.pots.items() if pot.days > 0 and not (pot.owed or pot.disputed)]
        for pk in sorted(spendable, key=lambda pk: (self.pots[pk].days, self.pots[pk].turn, pk)):
            takes[pk] = min(self.pots[pk].free, credits - sum(takes.values()))
        return {pk: n for pk, n in takes.items() if n} if sum(takes.values()) == credits else None

    def hold(self, hold_id: int, takes: dict[int, int]) -> None:
        self.holds[hold_id] = takes
        for pk, n in takes.items():
            self.pots[pk].free -= n
            self.pots[pk].held += n

    def settle(self, hold_id: int) -> None:
        for pk, n in self.holds.pop(hold_id).items():
            self.pots[pk].held -= n
            self.pots[pk].owed = min(self.pots[pk].owed, self.pots[pk].held)

    def release(self, hold_id: int) -> None:
        turn = next(self.turns)
        for pk, n in self.holds.pop(hold_id).items():
            pot = self.pots[pk]
            if pot.days <= 0:
                pot.free = 0
            if pot.days <= RETURNED_DAYS:
                pot.days, pot.turn = RETURNED_DAYS, turn
            paid = min(pot.owed, n)
            pot.held, pot.owed = pot.held - n, pot.owed - paid
            pot.frozen += (n - paid) * pot.disputed
            pot.free += (n - paid) * (not pot.disputed)


class Ledger(RuleBasedStateMachine):
    """Each example has an owner of its own, and is undone when it ends."""

    def __init__(self) -> None:
        super().__init__()
        self.savepoint = transaction.savepoint()
        self.owner, self.model = new_owner(), Model()

    def teardown(self) -> None:
        try:
            assert differences() == []
        finally:
            transaction.savepoint_rollback(self.savepoint)

    @initialize(many=st.lists(st.tuples(st.integers(2, 6), st.integers(20, 90)), min_size=2, max_size=5))
    def begin(self, many: list[tuple[int, int]]) -> None:
        for credits, days in many:
            self.grant(credits=credits, days=days)

    @rule(credits=st.integers(1, 6), days=st.integers(1, 90))
    def grant(self, credits: int, days: int) -> None:
        pk = new_grant(owner_id=self.owner, credits=credits, days=days).pk
        self.model.pots[pk] = Pot(days, next(self.model.turns), credits)

    @rule(credits=st.integers(1, 5), again=st.booleans())
    def hold(self, credits: int, again: bool) -> None:
        takes = self.model.plan(credits)
        if takes is None:
            with pytest.raises(ledger.NotEnoughCredits):
                tried(ledger.hold, owner_id=self.owner, credits=credits)
        else:
            self.model.hold(done(ledger.hold, owner_id=self.owner, credits=credits).pk, takes)
        if again:
            self.hold(credits=credits, again=False)

    @precondition(lambda self: self.model.holds)
    @rule(data=st.data(), end=st.sampled_from(["settle", "release"]), again=st.sampled_from(["settle", "release"]))
    def end(self, data: st.DataObject, end: str, again: str) -> None:
        hold_id = data.draw(st.sampled_from(sorted(self.model.holds)))
        short_or_back = done(getattr(ledger, end), **self.ending(hold_id, end))
        assert short_or_back == (0 if end == "settle" else sum(self.model.holds[hold_id].values()))
        getattr(self.model, end)(hold_id)
        assert not tried(getattr(ledger, again), **self.ending(hold_id, again)).won

    def ending(self, hold_id: int, end: str) -> dict[str, object]:
        which = {"hold_id": hold_id, "owner_id": self.owner}
        return which | ({"note": "a test"} if end == "release" else {})

    @rule(days=st.integers(1, 25))
    def time_passes(self, days: int) -> None:
        for pk, pot in self.model.pots.items():
            pot.days -= days
            # Never at the very moment: half a day later, so that the test's own speed decides nothing.
            Grant.objects.filter(pk=pk).update(expires_at=clock.after((pot.days - 0.5) * DAY + pot.turn))

    @precondition(lambda self: self.model.pots)
    @rule(data=st.data())
    def expire(self, data: st.DataObject) -> None:
        pk = data.draw(st.sampled_from(sorted(self.model.pots)))
        pot = self.model.pots[pk]
        outcome = tried(ledger.expire_grant, grant_id=pk, owner_id=self.owner)
        assert outcome.won is (pot.days <= 0 and pot.free > 0)
        if outcome.won:
            assert outcome.value == pot.free
            pot.free = 0

    @precondition(lambda self: any(pot.held > pot.owed for pot in self.model.pots.values()))
    @rule(data=st.data())
    def processor_takes_back(self, data: st.DataObject) -> None:
        owing = sorted(pk for pk, pot in self.model.pots.items() if pot.held > pot.owed)
        pk = data.draw(st.sampled_from(owing))
        credits = data.draw(st.integers(1, self.model.pots[pk].held - self.model.pots[pk].owed))
        take_back(Grant(pk=pk), credits)
        self.model.pots[pk].owed += credits

    @precondition(lambda self: any(not pot.disputed for pot in self.model.pots.values()))
    @rule(data=st.data())
    def customer_disputes(self, data: st.DataObject) -> None:
        pk = data.draw(st.sampled_from(sorted(pk for pk, pot in self.model.pots.items() if not pot.disputed)))
        pot = self.model.pots[pk]
        dispute(Grant(pk=pk))
        pot.disputed, pot.frozen, pot.free = True, pot.frozen + pot.free, 0

    @invariant()
    def rows_say_what_the_model_says(self) -> None:
        rows = Grant.objects.filter(owner_id=self.owner).values_list("pk", "available", "held", "frozen", "owed")
        model = {pk: (pot.free, pot.held, pot.frozen, pot.owed) for pk, pot in self.model.pots.items()}
        assert {pk: balances for pk, *balances in rows} == {pk: list(balances) for pk, balances in model.items()}


def test_any_order_of_verbs_agrees_with_the_model() -> None:
    run_state_machine_as_test(
        Ledger,
        settings=settings(
            max_examples=40, stateful_step_count=25, deadline=None, database=None, derandomize=True,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate],  # shrinking an example of many statements would outlast the test's time
        ),
    )  # fmt: skip
