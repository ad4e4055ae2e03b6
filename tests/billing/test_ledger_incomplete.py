"""Restored means counted: a release that finds less than was held is undone, and never called returned."""

from collections.abc import Callable

import pytest
from django.db.models import F

from billing import ledger
from billing.audit import differences
from billing.models import Entry, Grant, Hold, HoldPart
from tests.rows import age, columns, delete_by_hand, done, new_grant, new_owner, tried

pytestmark = pytest.mark.django_db(transaction=True)


def held_from_two_grants() -> tuple[Hold, Grant, Grant]:
    """Three credits in a hold: two of a grant of three, one of a grant of two."""
    owner = new_owner()
    first, second = new_grant(owner_id=owner, credits=2, days=1), new_grant(owner_id=owner, credits=2, days=2)
    return done(ledger.hold, owner_id=owner, credits=3), first, second


def delete_grant(grant: Grant) -> None:
    delete_by_hand(grant)


def delete_part(grant: Grant) -> None:
    delete_by_hand(HoldPart.objects.get(grant=grant))


def lower_part(grant: Grant) -> None:
    HoldPart.objects.filter(grant=grant).update(credits=F("credits") - 1)


def lower_held(grant: Grant) -> None:
    Grant.objects.filter(pk=grant.pk).update(held=F("held") - 1)


WAYS = [delete_grant, delete_part, lower_part, lower_held]


@pytest.mark.parametrize("spoil", WAYS)
def test_an_incomplete_release_is_undone(spoil: Callable[[Grant], None]):
    row, first, _ = held_from_two_grants()
    spoil(first)
    before = [columns(row), *Grant.objects.values(), *Entry.objects.values()]
    with pytest.raises(ledger.RestoreIncomplete):
        tried(ledger.release, hold_id=row.pk, owner_id=row.owner_id, note="refused")
    assert [columns(row), *Grant.objects.values(), *Entry.objects.values()] == before
    assert differences() != []


@pytest.mark.parametrize(("spoil", "missing"), [(delete_grant, 2), (delete_part, 2), (lower_part, 1), (lower_held, 2)])
def test_staff_replace_what_is_missing(spoil: Callable[[Grant], None], missing: int):
    """What is left goes back, a new grant stands for the rest: together it is all that was held, and it is not given twice."""
    row, first, second = held_from_two_grants()
    spoil(first)
    closing = {"hold_id": row.pk, "owner_id": row.owner_id, "note": "sorry", "made_by": "eve@example.com"}
    assert done(ledger.release_what_is_left, **closing) == missing
    assert Grant.objects.get(pk=second.pk).available == 2
    new = Grant.objects.exclude(pk__in=[first.pk, second.pk]).get()
    assert (new.owner_id, new.available, new.reason, new.made_by) == (row.owner_id, missing, "sorry", "eve@example.com")
    back = sum(Entry.objects.filter(kind="released").values_list("credits", flat=True))
    assert back + missing == row.credits
    assert Hold.objects.get(pk=row.pk).status == "released"
    assert tried(ledger.release_what_is_left, **closing).lost == "hold.released"


def test_staff_close_a_hold_of_which_nothing_is_missing():
    row, first, second = held_from_two_grants()
    closing = {"hold_id": row.pk, "owner_id": row.owner_id, "note": "sorry", "made_by": "eve@example.com"}
    assert done(ledger.release_what_is_left, **closing) == 0
    assert list(Grant.objects.order_by("pk").values_list("pk", "available")) == [(first.pk, 2), (second.pk, 2)]
    assert differences() == []


def test_what_is_left_comes_back_to_expired_grants_too():
    row, first, second = held_from_two_grants()
    delete_grant(first)
    age(second, 3 * 86400, "expires_at")
    closing = {"hold_id": row.pk, "owner_id": row.owner_id, "note": "sorry", "made_by": "eve@example.com"}
    assert done(ledger.release_what_is_left, **closing) == 2
    assert Grant.objects.get(pk=second.pk).available == 1
    assert [entry.credits for entry in Entry.objects.filter(kind="expired", grant=second)] == [1]


@pytest.mark.parametrize(("spoil", "short"), [(delete_grant, 2), (delete_part, 2), (lower_part, 1), (lower_held, 1)])
def test_a_shortfall_never_withholds_a_video(spoil: Callable[[Grant], None], short: int):
    """Settling goes through, says how much was missing, and the audit stays red until somebody has looked."""
    row, first, second = held_from_two_grants()
    spoil(first)
    assert done(ledger.settle, hold_id=row.pk, owner_id=row.owner_id) == short
    assert Hold.objects.get(pk=row.pk).status == "settled"
    assert Grant.objects.get(pk=second.pk).held == 0
    assert any(difference.row == f"hold {row.pk}" for difference in differences())
