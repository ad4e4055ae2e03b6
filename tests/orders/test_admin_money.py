"""The money list of the console: what stands there, and what its buttons do."""

from typing import Any

import pytest

from billing.audit import differences
from billing.models import Grant, Payment
from orders import flow
from orders.models import Mail
from tests.console import Console, text_of
from tests.shop import Shop
from waistheart import clock

MONEY = "billing/mismatchedpayment/"


@pytest.fixture
def mismatched(shop: Shop) -> Payment:
    """A payment that came with another amount."""
    order = shop.asked()
    shop.sandbox.fault("wrong_amount", amount=300)
    payment = shop.pay(order)
    assert flow.settle(payment) == "mismatched"
    return Payment.objects.get(pk=payment.pk)


def test_attach_keeps_the_credits_and_tells_the_customer(shop: Shop, mismatched: Payment):
    console = Console()
    assert "£3.00" in console.get(MONEY)
    asked = console.choose(MONEY, "attach", mismatched.pk, shown=console.get(MONEY))
    assert console.confirm(MONEY, asked, reason="a discount we had promised") == ["Attach: 1 moved."]
    assert Payment.objects.get(pk=mismatched.pk).status == "received"
    assert Grant.objects.get().available == 1
    assert differences() == []
    assert console.confirm(MONEY, asked, reason="twice") == ["Attach: 1 had already moved on."]
    assert Grant.objects.count() == 1
    shop.sweep()
    assert Mail.objects.filter(kind="credits_kept", status="sent").count() == 1
    assert "a discount we had promised" in console.get(f"billing/payment/{mismatched.pk}/history/")


def test_money_that_went_back_is_not_attached_but_written_down(shop: Shop, mismatched: Payment):
    console = Console()
    said = console.act(MONEY, "returned", mismatched.pk, reason="sent back")
    assert len(said) == 1
    assert said[0].endswith("the processor says that £0.00 of £3.00 went back: return it there first")
    refund(shop, mismatched)
    assert "not say that this money is here to stay" in console.act(MONEY, "attach", mismatched.pk, reason="x")[0]
    assert console.act(MONEY, "returned", mismatched.pk, reason="sent back") == ["Has been returned: 1 moved."]
    assert Payment.objects.get(pk=mismatched.pk).status == "returned"
    assert Grant.objects.count() == 0


def test_a_processor_that_is_away_moves_nothing(shop: Shop, mismatched: Payment, settings: Any):
    console = Console()
    settings.STRIPE_SECRET_KEY = "sk_live_oops"
    assert "could not be asked" in console.act(MONEY, "attach", mismatched.pk, reason="x")[0]
    assert Payment.objects.get(pk=mismatched.pk).status == "mismatched"


def test_a_note_is_kept(mismatched: Payment):
    console = Console()
    assert console.act(MONEY, "note", mismatched.pk, reason="asked the bank on Monday") == ["Note: 1 noted."]
    assert "asked the bank on Monday" in console.get(f"billing/payment/{mismatched.pk}/history/")
    assert Payment.objects.get(pk=mismatched.pk).status == "mismatched"


def refund(shop: Shop, payment: Payment) -> None:
    """Return all the money at the processor, as its own pages would."""
    shop.sandbox.card(payment.session_id or "", "refund")


def test_the_money_list_shows_money_that_never_ends(shop: Shop) -> None:
    console = Console()
    raised, pending, fine = (shop.asked(email=f"{name}@example.com").payment for name in ("raised", "pending", "fine"))
    assert raised
    assert pending
    assert fine
    Payment.objects.filter(pk=raised.pk).update(failures=10)
    Payment.objects.filter(pk=pending.pk).update(status="pending")
    shop.age(7 * 86400 + 60)
    Payment.objects.filter(pk=fine.pk).update(status="pending", state_since=clock.now())
    page = text_of(console.get(MONEY))
    assert "raised@example.com" in page
    assert "pending@example.com" in page
    assert "fine@example.com" not in page
