"""Machines as data: what a declaration may say, and that nothing in ours is unreachable or without a way out."""

import pytest

from orders.management.commands.states import MACHINES
from tests.constraints import checks_of, negatives_are_refused, refused
from waistheart.machine import Machine, Move
from waistheart.models import GuardTally, Installation

GO = Move("go", ("a",), "b")


def machine(*moves: Move) -> Machine:
    return Machine(name="Lamp", states=("a", "b", "c"), initial="a", final=frozenset({"c"}), moves=moves)


def test_pairs_are_ordered_and_complete():
    assert list(machine(GO).pairs()) == [("a", "b"), ("a", "c"), ("b", "a"), ("b", "c"), ("c", "a"), ("c", "b")]


def test_two_moves_over_one_pair_are_one_declared_pair():
    lamp = machine(GO, Move("run", ("a",), "b"), Move("end", ("a", "b"), "c"))
    assert lamp.declared() == {("a", "b"), ("a", "c"), ("b", "c")}
    assert lamp.allows("b", "c")
    assert not lamp.allows("c", "b")


def test_a_move_is_found_by_name_and_source():
    lamp = machine(GO)
    assert lamp.move("go", "a") is GO
    with pytest.raises(ValueError, match="go does not start from b"):
        lamp.move("go", "b")
    with pytest.raises(KeyError):
        lamp.move("fly", "a")


@pytest.mark.parametrize("move", [
    pytest.param(Move("go", ("x",), "b"), id="from an unknown state"),
    pytest.param(Move("go", ("a",), "x"), id="to an unknown state"),
    pytest.param(Move("go", ("a", "b"), "b"), id="to itself"),
    pytest.param(Move("go", ("c",), "a"), id="out of a final state"),
])  # fmt: skip
def test_an_impossible_move_is_no_machine(move: Move):
    with pytest.raises(ValueError, match=r"Lamp\.go"):
        machine(move)


def test_two_moves_never_share_a_name():
    with pytest.raises(ValueError, match="share a name"):
        machine(GO, Move("go", ("b",), "c"))


def reached(declared: set[tuple[str, str]], start: set[str]) -> set[str]:
    """Every state that some chain of moves leads to."""
    further = start | {target for source, target in declared if source in start}
    return further if further == start else reached(declared, further)


@pytest.mark.parametrize("ours", MACHINES, ids=lambda ours: ours.name)
def test_every_state_can_be_reached_and_left(ours: Machine):
    """A state without a way in is dead, one without a way to an end is where paid work stays for ever."""
    assert reached(ours.declared(), {ours.initial}) == set(ours.states)
    for state in ours.states:
        assert reached(ours.declared(), {state}) & ours.final, f"{ours.name}: nothing ends {state}"


@pytest.mark.django_db
def test_the_database_keeps_the_floors_rules():
    one = Installation.objects.create(pk=1, ident="x", mode="sandbox")
    rules = {"installation_is_one_row": {"id": 2}, "installation_mode_known": {"mode": "test"}}
    assert checks_of("waistheart") == set(rules)
    for rule, columns in rules.items():
        refused(rule, one, **columns)
    assert negatives_are_refused(GuardTally.objects.create(guard="x", day="2026-01-01")) == 1
