"""Payments and holds: all ordered pairs walked on real rows, and the rules the database keeps."""

import pytest
from django.db import IntegrityError, transaction

from billing import ledger, moves
from billing.models import CreditPack, Entry, Grant, Hold, HoldPart, Payment, Wallet
from billing.states import HOLD, PAYMENT
from tests.constraints import checks_of, negatives_are_refused, refused
from tests.rows import columns, new_grant, new_hold, new_owner, new_payment, tried
from waistheart import clock

pytestmark = pytest.mark.django_db
END = {"settled": ledger.settle, "released": lambda **which: ledger.release(**which, note="a test")}


def test_the_counts_of_the_design():
    assert (len(PAYMENT.states), len(list(PAYMENT.pairs())), len(PAYMENT.declared())) == (7, 42, 15)
    assert (len(HOLD.states), len(list(HOLD.pairs())), len(HOLD.declared())) == (3, 6, 2)


@pytest.mark.parametrize(("source", "target"), PAYMENT.pairs())
def test_every_pair_of_payment_states_is_declared_or_refused(source: str, target: str):
    towards = [move for move in PAYMENT.moves if move.target == target]
    for declared in towards:
        payment = new_payment(status=source, tries=3, state_since=clock.ago(60))
        before = columns(payment)
        outcome = tried(moves.move_payment, name=declared.name, payment_id=payment.pk)
        now = Payment.objects.get(pk=payment.pk)
        if source in declared.sources:
            assert outcome.won
            assert (now.status, now.tries) == (target, 0)
            assert now.state_since > before["state_since"]
            assert (now.next_look_at is not None) == (target in {"open", "pending"})
        else:
            assert outcome.lost == f"payment.{declared.name}"
            assert columns(payment) == before
    assert PAYMENT.allows(source, target) == any(source in move.sources for move in towards)
    assert towards or target == "open", "only the first state is no move's target"


@pytest.mark.parametrize(("source", "target"), HOLD.pairs())
def test_every_pair_of_hold_states_is_declared_or_refused(source: str, target: str):
    """Held, then settled or released, exactly once; nothing leads back."""
    row = new_hold(owner_id=new_owner(), credits=2)
    which = {"hold_id": row.pk, "owner_id": row.owner_id}
    if source in END:
        assert tried(END[source], **which).won
    if target not in END:
        assert [move.name for move in HOLD.moves if move.target == target] == []
        return
    before = [columns(row), *Grant.objects.values(), *Entry.objects.values(), *Wallet.objects.values()]
    outcome = tried(END[target], **which)
    if HOLD.allows(source, target):
        assert outcome.won
        assert Hold.objects.get(pk=row.pk).status == target
    else:
        assert outcome.lost == f"hold.{target}"
        assert before == [columns(row), *Grant.objects.values(), *Entry.objects.values(), *Wallet.objects.values()]


def test_the_database_keeps_the_rules_of_money():
    """Each CHECK is broken once past all code; a new one without a line here fails."""
    owner = new_owner()
    hold, payment = new_hold(owner_id=owner, credits=2), new_payment(owner_id=owner)
    pack = CreditPack.objects.create(credits=1, price=400, currency="GBP")
    grant, part = Grant.objects.get(), HoldPart.objects.get()
    for column, value in (("credits", 0), ("credits", 51), ("price", 0)):
        refused("pack_sells_something", pack, **{column: value})
    for column, value in (("amount", 0), ("credits", 0), ("credits", 51)):
        refused("payment_sells_something", payment, **{column: value})
    refused("payment_status_known", payment, status="dreaming")
    refused("payment_without_end_is_looked_at", payment, next_look_at=None)
    refused("grant_has_credits", grant, credits=0, held=0)
    for column in ("available", "held", "frozen", "owed"):
        refused("grant_|available|held|frozen|owed", grant, **{column: -1})
    for column in ("available", "held", "frozen"):
        refused("grant_gives_what_it_has", grant, **{column: 3})
    refused("grant_owes_at_most_what_is_held", grant, owed=3)
    refused("hold_holds_something", hold, credits=0)
    refused("hold_holds_something", hold, parts=0)
    refused("hold_status_known", hold, status="dreaming")
    refused("part_holds_something", part, credits=0)
    assert checks_of("billing") - ENTRY_RULES == {
        "pack_sells_something", "payment_sells_something", "payment_status_known", "payment_without_end_is_looked_at",
        "grant_has_credits", "grant_is_never_negative", "grant_gives_what_it_has", "grant_owes_at_most_what_is_held",
        "hold_holds_something", "hold_status_known", "part_holds_something",
    }  # fmt: skip
    rows = (grant, hold, payment, pack, part, Wallet.objects.get())
    assert [negatives_are_refused(row) for row in rows] == [5, 2, 5, 2, 1, 1]


ENTRY_RULES = {"entry_moves_something", "entry_moves_what_its_kind_says"}
# For each kind a line that is right, and the columns of which each alone makes it wrong.
LINES: dict[str, tuple[dict[str, int], tuple[str, ...]]] = {
    "granted": ({"available": 2}, ("available", "held", "frozen", "owed")),
    "held": ({"available": -2, "held": 2}, ("available", "held", "frozen", "owed")),
    "settled": ({"held": -2}, ("available", "held", "frozen", "owed")),
    "released": ({"held": -2, "available": 2}, ("held",)),
    "expired": ({"available": -2}, ("available", "held", "frozen", "owed")),
    "withdrawn": ({"available": -2}, ("held", "owed")),
    "owed": ({"owed": 2}, ("available", "held", "frozen", "owed")),
    "loss": ({"owed": -2}, ("available", "held", "frozen")),
    "frozen": ({"available": -2, "frozen": 2}, ("available", "held", "frozen", "owed")),
    "thawed": ({"available": 2, "frozen": -2}, ("available", "held", "frozen", "owed")),
}


def test_every_kind_of_entry_has_its_rule():
    assert set(LINES) == set(Entry.Kind.values)
    assert checks_of("billing") >= ENTRY_RULES


@pytest.mark.parametrize("kind", LINES)
def test_an_entry_moves_what_its_kind_says(kind: str):
    right, wrong = LINES[kind]
    grant = new_grant(owner_id=new_owner(), credits=2)
    entry = Entry.objects.create(kind=kind, occasion="test", grant=grant, credits=2, **right)
    for column in wrong:
        refused("entry_moves_what_its_kind_says", entry, **{column: getattr(entry, column) + 1})
    refused("entry_moves_what_its_kind_says", entry, kind="dreamt")
    refused("entry_moves_something|entry_moves_what_its_kind_says", entry, credits=0)


def test_rows_that_may_exist_once_exist_once():
    first, second = new_grant(owner_id=new_owner()), new_grant(owner_id=new_owner())
    entry, other = first.entries.get(), second.entries.get()
    refused("one_grant_per_occasion|occasion", other, occasion=entry.occasion)
    expired = {"kind": "expired", "credits": 1, "available": -1, "grant": first}
    Entry.objects.create(occasion="once", **expired)
    with pytest.raises(IntegrityError, match=r"entry_is_written_once|occasion"), transaction.atomic():
        Entry.objects.create(occasion="once", **expired)
    payment = new_payment()
    Grant.objects.filter(pk=first.pk).update(payment=payment)
    refused("payment_id", second, payment_id=payment.pk)
    part = HoldPart.objects.create(hold=new_hold(owner_id=new_owner()), grant=first, credits=1)
    refused("one_part_per_hold_and_grant|grant_id", HoldPart.objects.exclude(pk=part.pk).get(), grant_id=first.pk)
    CreditPack.objects.create(credits=1, price=400, currency="GBP")
    old = CreditPack.objects.create(credits=1, price=300, currency="GBP", active=False)
    refused("one_active_pack_per_size|credits", old, active=True)
