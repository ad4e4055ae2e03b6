"""A block that PostgreSQL undid because of others simply runs again, a few times."""

import threading

import pytest
from django.db import OperationalError
from django.db.models import F

from billing.models import CreditPack
from tests.floor.test_guards import tallies
from tests.rows import at_once
from waistheart import guards

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.postgres
def test_a_deadlock_is_repeated_until_both_have_won():
    """Two connections write two rows in opposite order: PostgreSQL undoes one of them, and it simply runs again."""
    for name in ("a", "b"):
        CreditPack.objects.create(credits=1 if name == "a" else 2, price=100, currency="GBP")
    first, second = CreditPack.objects.order_by("credits").values_list("pk", flat=True)
    met = threading.Barrier(2)
    runs: list[str] = []

    @guards.block("tests.deadlock")
    def act(name: str, mine: int, other: int) -> None:
        runs.append(name)
        raise_price(mine)
        if runs.count(name) == 1:
            met.wait(timeout=20)
        raise_price(other)

    outcomes = at_once(lambda: act("one", first, second), lambda: act("two", second, first))
    assert [outcome.won for outcome in outcomes] == [True, True]
    assert sorted(runs) in (["one", "one", "two"], ["one", "two", "two"])
    assert list(CreditPack.objects.values_list("price", flat=True)) == [102, 102]
    assert tallies() == {"tests.deadlock.repeated": 1}


def raise_price(pack_id: int) -> None:
    guards.must("pack", CreditPack.objects.filter(pk=pack_id).update(price=F("price") + 1))


@pytest.mark.parametrize("times", [3, 4])
def test_a_body_is_repeated_at_most_three_times(times: int):
    runs: list[int] = []

    class Deadlock(Exception):
        sqlstate = "40P01"

    @guards.block("tests.again")
    def act() -> str:
        runs.append(1)
        if len(runs) <= times:
            raise OperationalError("deadlock detected") from Deadlock()
        return "done"

    if times <= 3:
        assert act().value == "done"
    else:
        with pytest.raises(OperationalError):
            act()
    assert len(runs) == 4
    assert tallies() == {"tests.again.repeated": 3}


def test_another_database_error_is_not_repeated():
    runs: list[int] = []

    @guards.block("tests.away")
    def act() -> None:
        runs.append(1)
        raise OperationalError("the connection is gone")

    with pytest.raises(OperationalError):
        act()
    assert len(runs) == 1
