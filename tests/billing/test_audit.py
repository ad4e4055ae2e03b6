"""The audit finds every kind of hand in the ledger, and names the row."""

from collections.abc import Callable
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db.models import F, QuerySet

from billing import ledger
from billing.audit import differences
from billing.models import Entry, Grant, Hold, HoldPart, Payment
from tests.rows import delete_by_hand, done, new_grant, new_owner, new_payment

pytestmark = pytest.mark.django_db


@pytest.fixture
def honest(transactional_db: None) -> None:
    """A bought grant of five: one credit settled, one released, one held, two available; and a grant from staff, all expired."""
    payment = new_payment(status="received", credits=5)
    owner = payment.owner_id
    bought = done(ledger.grant_bought, owner_id=owner, payment_id=payment.pk, credits=5, holds=[1, 1, 1])
    settled, released, _ = bought.holds
    done(ledger.settle, hold_id=settled.pk, owner_id=owner)
    done(ledger.release, hold_id=released.pk, owner_id=owner, note="refused")
    old = new_grant(owner_id=owner, credits=3, days=-1)
    done(ledger.expire_grant, grant_id=old.pk, owner_id=owner)
    assert differences() == []


def grant() -> QuerySet[Grant]:
    return Grant.objects.filter(payment__isnull=False)


def hold(status: str) -> QuerySet[Hold]:
    return Hold.objects.filter(status=status)


def part(status: str) -> QuerySet[HoldPart]:
    return HoldPart.objects.filter(hold__status=status)


TAMPERED: dict[str, tuple[Callable[[], object], str]] = {
    "available raised": (lambda: grant().update(available=F("available") + 1, credits=F("credits") + 1), "available"),
    "available lowered": (lambda: grant().update(available=0), "available"),
    "held lowered": (lambda: grant().update(held=0), "held"),
    "frozen from available": (lambda: grant().update(available=0, frozen=F("available")), "frozen"),
    "owed written": (lambda: grant().update(owed=1), "owed"),
    "credits raised": (lambda: grant().update(credits=6), "credits"),
    "grant deleted": (lambda: delete_by_hand(grant().get()), "credits of a deleted row"),
    "expired grant deleted": (lambda: delete_by_hand(Grant.objects.get(payment=None)), "grant"),
    "granted line raised": (
        lambda: Entry.objects.filter(kind="granted", credits=5).update(credits=6, available=6),
        "available",
    ),
    "settled line deleted": (lambda: Entry.objects.filter(kind="settled").delete(), "settled"),
    "released line deleted": (lambda: Entry.objects.filter(kind="released").delete(), "released"),
    "held line deleted": (lambda: Entry.objects.filter(kind="held").first().delete(), "held"),
    "expired line deleted": (lambda: Entry.objects.filter(kind="expired").delete(), "available"),
    "line on another hold": (lambda: Entry.objects.filter(kind="settled").update(occasion="hold:0"), "settled"),
    "held hold called released": (lambda: hold("held").update(status="released"), "held in holds"),
    "settled hold called released": (lambda: hold("settled").update(status="released"), "released"),
    "released hold called settled": (lambda: hold("released").update(status="settled"), "settled"),
    "settled hold called held": (lambda: hold("settled").update(status="held"), "held in holds"),
    "hold's credits raised": (lambda: hold("held").update(credits=2), "credits"),
    "hold's parts raised": (lambda: hold("held").update(parts=2), "parts"),
    "part raised": (lambda: part("held").update(credits=2), "held in holds"),
    "part deleted": (lambda: part("held").delete(), "parts"),
    "ended part deleted": (lambda: part("settled").delete(), "parts"),
    "grant of another owner": (lambda: grant().update(owner_id=new_owner()), "parts"),
    "payment called open": (lambda: Payment.objects.update(status="open"), "paid"),
    "payment's credits raised": (lambda: Payment.objects.update(credits=6), "credits"),
    "payment without its grant": (lambda: grant().update(payment=None), "credits"),
    "received by hand": (lambda: new_payment(status="received"), "credits"),
}


@pytest.mark.parametrize("kind", TAMPERED)
def test_the_audit_finds(kind: str, honest: None):
    tamper, what = TAMPERED[kind]
    tamper()
    found = differences()
    assert any(what in (difference.what, difference.row.split()[0]) for difference in found), found
    with pytest.raises(CommandError, match=f"{len(found)} differences"):
        call_command("audit", stdout=StringIO(), stderr=StringIO())


def test_an_honest_ledger_is_called_so(honest: None):
    out = StringIO()
    call_command("audit", stdout=out)
    assert "0 differences" in out.getvalue()
