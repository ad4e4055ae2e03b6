"""What paid means in credits: grant, hold, settle, release, expire, each with its ledger lines; the audit agrees after each."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import IntegrityError

from billing import ledger
from billing.audit import differences
from billing.models import Entry, Grant, Hold, HoldPart, Wallet
from tests.rows import DAY, age, columns, dispute, done, new_grant, new_hold, new_owner, new_payment, take_back, tried
from waistheart import clock

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def audited(db: None) -> Iterator[None]:
    """Whatever a test here does, the balances equal the sums of the entries afterwards."""
    yield
    assert differences() == []


def balances(grant: Grant) -> tuple[int, int, int, int]:
    now = Grant.objects.get(pk=grant.pk)
    return now.available, now.held, now.frozen, now.owed


def release(row: Hold) -> int:
    return done(ledger.release, hold_id=row.pk, owner_id=row.owner_id, note="a test")


def settle(row: Hold) -> int:
    return done(ledger.settle, hold_id=row.pk, owner_id=row.owner_id)


def lines(kind: str) -> list[dict[str, int]]:
    names = ("grant_id", "credits", "available", "held", "frozen", "owed")
    return list(Entry.objects.filter(kind=kind).order_by("pk").values(*names))


# --- grant -----------------------------------------------------------------------------------------------------------


def test_a_grant_is_born_with_its_credits_held():
    payment = new_payment(status="received", credits=5)
    which = {"owner_id": payment.owner_id, "payment_id": payment.pk, "credits": 5}
    bought = done(ledger.grant_bought, **which, holds=[1, 2])
    assert balances(bought.grant) == (2, 3, 0, 0)
    assert [(row.credits, row.parts, row.status) for row in bought.holds] == [(1, 1, "held"), (2, 1, "held")]
    life = Grant.objects.filter(expires_at__gt=clock.after(364 * DAY), expires_at__lt=clock.after(366 * DAY))
    assert life.exists()
    with pytest.raises(IntegrityError):
        tried(ledger.grant_bought, **which, holds=[])


def test_staff_give_once_for_one_occasion():
    given = {"owner_id": new_owner(), "credits": 3, "reason": "sorry", "made_by": "eve", "occasion": "ticket:7"}
    assert balances(done(ledger.grant_from_staff, **given)) == (3, 0, 0, 0)
    with pytest.raises(IntegrityError):
        tried(ledger.grant_from_staff, **given)


def test_nobodys_credits_move_without_a_wallet():
    owner = new_owner()
    Wallet.objects.filter(pk=owner).delete()
    given = {"owner_id": owner, "credits": 3, "reason": "sorry", "made_by": "eve", "occasion": "ticket:7"}
    assert tried(ledger.grant_from_staff, **given).lost == "wallet"


# --- hold ------------------------------------------------------------------------------------------------------------


def test_credits_that_expire_soonest_are_held_first():
    owner = new_owner()
    late, soon, middle = (new_grant(owner_id=owner, credits=2, days=days) for days in (90, 10, 30))
    row = done(ledger.hold, owner_id=owner, credits=5)
    assert [balances(grant)[:2] for grant in (soon, middle, late)] == [(0, 2), (0, 2), (1, 1)]
    assert (row.credits, row.parts) == (5, 3)
    parts = HoldPart.objects.order_by("pk").values_list("grant_id", "credits")
    assert list(parts) == [(soon.pk, 2), (middle.pk, 2), (late.pk, 1)]


def test_what_may_not_be_spent_is_not_held():
    owner, stranger = new_owner(), new_owner()
    expired, owing, disputed = (new_grant(owner_id=owner, credits=5, days=days) for days in (-1, 5, 6))
    new_grant(owner_id=stranger, credits=5)
    held = done(ledger.hold, owner_id=owner, credits=1)
    assert HoldPart.objects.get(hold=held).grant_id == owing.pk
    take_back(owing, 1)
    dispute(disputed)
    with pytest.raises(ledger.NotEnoughCredits):
        tried(ledger.hold, owner_id=owner, credits=1)
    assert balances(expired) == (5, 0, 0, 0)


def test_too_few_credits_change_nothing():
    owner = new_owner()
    grants = [new_grant(owner_id=owner, credits=2) for _ in range(3)]
    before = [columns(grant) for grant in grants]
    with pytest.raises(ledger.NotEnoughCredits):
        tried(ledger.hold, owner_id=owner, credits=7)
    assert [columns(grant) for grant in grants] == before
    assert (Hold.objects.count(), HoldPart.objects.count()) == (0, 0)


# --- settle ----------------------------------------------------------------------------------------------------------


def test_settled_credits_are_gone():
    owner = new_owner()
    first, second = new_grant(owner_id=owner, credits=2, days=1), new_grant(owner_id=owner, credits=2, days=2)
    assert settle(done(ledger.hold, owner_id=owner, credits=3)) == 0
    assert [balances(grant) for grant in (first, second)] == [(0, 0, 0, 0), (1, 0, 0, 0)]
    assert [line["credits"] for line in lines("settled")] == [2, 1]


@pytest.mark.parametrize(("owed", "loss", "left"), [(1, 0, 1), (3, 1, 2), (5, 3, 2)])
def test_settling_what_is_owed_books_the_rest_as_a_loss(owed: int, loss: int, left: int):
    """Five credits are held by two jobs; the video of the one is delivered, so only the other's credits can still be owed."""
    owner = new_owner()
    grant = new_grant(owner_id=owner, credits=5)
    done(ledger.hold, owner_id=owner, credits=2)
    row = done(ledger.hold, owner_id=owner, credits=3)
    take_back(grant, owed)
    assert settle(row) == 0
    assert balances(grant) == (0, 2, 0, left)
    assert [-line["owed"] for line in lines("loss")] == ([loss] if loss else [])


# --- release ---------------------------------------------------------------------------------------------------------


def test_released_credits_are_back_where_they_came_from():
    owner = new_owner()
    first, second = new_grant(owner_id=owner, credits=2, days=40), new_grant(owner_id=owner, credits=2, days=50)
    ends = [grant.expires_at for grant in (first, second)]
    assert release(done(ledger.hold, owner_id=owner, credits=3)) == 3
    assert [balances(grant) for grant in (first, second)] == [(2, 0, 0, 0), (2, 0, 0, 0)]
    assert [Grant.objects.get(pk=grant.pk).expires_at for grant in (first, second)] == ends
    assert [line["available"] for line in lines("released")] == [2, 1]


@pytest.mark.parametrize(("owed", "disputed", "expected"), [
    pytest.param(0, False, (3, 0, 0, 0), id="into available"),
    pytest.param(1, False, (2, 0, 0, 0), id="first into what is owed"),
    pytest.param(3, False, (0, 0, 0, 0), id="all into what is owed"),
    pytest.param(0, True, (0, 0, 3, 0), id="frozen while disputed"),
    pytest.param(1, True, (0, 0, 2, 0), id="first into what is owed, then frozen"),
])  # fmt: skip
def test_where_a_released_credit_goes(owed: int, disputed: bool, expected: tuple[int, ...]):
    owner = new_owner()
    grant = new_grant(owner_id=owner, credits=3)
    row = done(ledger.hold, owner_id=owner, credits=3)
    if owed:
        take_back(grant, owed)
    if disputed:
        dispute(grant)
    assert release(row) == 3
    assert balances(grant) == expected
    moved = (expected[0], -3, expected[2], -owed)
    (line,) = lines("released")
    assert (line["available"], line["held"], line["frozen"], line["owed"]) == moved


def test_what_is_owed_for_another_job_stays_owed():
    owner = new_owner()
    grant = new_grant(owner_id=owner, credits=5)
    done(ledger.hold, owner_id=owner, credits=2)
    row = done(ledger.hold, owner_id=owner, credits=3)
    take_back(grant, 4)
    release(row)
    assert balances(grant) == (0, 2, 0, 1)


def test_credits_come_back_to_a_grant_that_has_expired():
    """What was left there lapses first; what comes back lives another 30 days, and expires then."""
    owner = new_owner()
    living, grant = new_grant(owner_id=owner, credits=1, days=0.5), new_grant(owner_id=owner, credits=3, days=1)
    row = done(ledger.hold, owner_id=owner, credits=3)
    age(grant, 2 * DAY, "expires_at")
    release(row)
    assert (balances(living), balances(grant)) == ((1, 0, 0, 0), (2, 0, 0, 0))
    assert [line["credits"] for line in lines("expired")] == [1]
    end = Grant.objects.filter(expires_at__gt=clock.after(29.9 * DAY), expires_at__lt=clock.after(30.1 * DAY))
    assert list(end.order_by("pk")) == [living, grant]
    age(grant, 33 * DAY, "expires_at")
    assert done(ledger.expire_grant, grant_id=grant.pk, owner_id=owner) == 2
    assert [line["credits"] for line in lines("expired")] == [1, 2]


def test_credits_that_come_back_live_30_days_also_in_a_grant_that_would_expire_tomorrow():
    """The help page promises it; a grant that lives longer keeps its own end, and nothing lapses."""
    owner = new_owner()
    soon, late = new_grant(owner_id=owner, credits=2, days=1), new_grant(owner_id=owner, credits=2, days=40)
    end = late.expires_at
    release(done(ledger.hold, owner_id=owner, credits=3))
    rows = Grant.objects.filter(expires_at__gt=clock.after(29.9 * DAY), expires_at__lt=clock.after(30.1 * DAY))
    assert list(rows) == [soon]
    assert Grant.objects.get(pk=late.pk).expires_at == end
    assert [balances(grant) for grant in (soon, late)] == [(2, 0, 0, 0), (2, 0, 0, 0)]
    assert lines("expired") == []


def test_a_grant_that_expires_in_the_middle_of_a_release_loses_nothing(monkeypatch: pytest.MonkeyPatch):
    """Two of its grants: one has expired, the other does so just after the expired ones were read."""
    owner = new_owner()
    expired, next_one = new_grant(owner_id=owner, credits=3, days=1), new_grant(owner_id=owner, credits=3, days=2)
    left = done(ledger.hold, owner_id=owner, credits=1)
    row = done(ledger.hold, owner_id=owner, credits=3)
    release(left)
    age(expired, 31 * DAY, "expires_at")
    write_lines = Entry.objects.bulk_create

    def meanwhile(entries: list[Entry]) -> list[Entry]:
        Grant.objects.filter(pk=next_one.pk).update(expires_at=clock.after(0.02))
        time.sleep(0.04)
        return write_lines(entries)

    monkeypatch.setattr(Entry.objects, "bulk_create", meanwhile)
    release(row)
    assert (balances(expired), balances(next_one)) == ((2, 0, 0, 0), (3, 0, 0, 0))
    assert [line["credits"] for line in lines("expired")] == [1]


# --- once ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", [settle, release])
@pytest.mark.parametrize("second", ["settle", "release", "release_what_is_left"])
def test_the_second_end_of_a_hold_loses(first: Callable[[Hold], int], second: str):
    row = new_hold(owner_id=new_owner(), credits=2)
    first(row)
    before = [columns(row), *Grant.objects.values(), *Entry.objects.values()]
    more: dict[str, Any] = {"settle": {}, "release": {"note": "x"}}.get(second, {"note": "x", "made_by": "eve"})
    outcome = tried(getattr(ledger, second), hold_id=row.pk, owner_id=row.owner_id, **more)
    assert outcome.lost == f"hold.{'settled' if second == 'settle' else 'released'}"
    assert [columns(row), *Grant.objects.values(), *Entry.objects.values()] == before


# --- expire ----------------------------------------------------------------------------------------------------------


def test_only_what_is_available_expires_and_only_in_time_and_once():
    owner = new_owner()
    grant = new_grant(owner_id=owner, credits=3, days=1)
    done(ledger.hold, owner_id=owner, credits=1)
    which = {"grant_id": grant.pk, "owner_id": owner}
    assert tried(ledger.expire_grant, **which).lost == "grant.expire"
    age(grant, 2 * DAY, "expires_at")
    assert done(ledger.expire_grant, **which) == 2
    assert balances(grant) == (0, 1, 0, 0)
    assert tried(ledger.expire_grant, **which).lost == "grant.expire"


# --- who owes --------------------------------------------------------------------------------------------------------


def test_a_hold_stops_while_one_of_its_grants_owes_or_is_disputed():
    owner = new_owner()
    first, second = new_grant(owner_id=owner, credits=1, days=1), new_grant(owner_id=owner, credits=1, days=2)
    row = done(ledger.hold, owner_id=owner, credits=2)
    other = new_hold(owner_id=new_owner())
    assert not ledger.owes(hold_id=row.pk)
    take_back(second, 1)
    assert ledger.owes(hold_id=row.pk)
    assert not ledger.owes(hold_id=other.pk)
    Grant.objects.filter(pk=second.pk).update(owed=0)
    Entry.objects.filter(kind="owed").delete()
    dispute(first)
    assert ledger.owes(hold_id=row.pk)
