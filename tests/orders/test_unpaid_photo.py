"""How long the photo of an order lives whose payment page was opened: from its customer's last act, not from ours."""

import html
import re

import pytest
from django.test import Client

from billing.gateway import StripeGateway
from billing.gateway_errors import GatewayError
from orders import flow
from orders.models import Order, Photo
from tests.generation.stories import broken
from tests.orders.test_money_kept import says
from tests.shop import DECLARED, Shop
from waistheart import storage

HOUR = 3600


def lives(order: Order) -> bool:
    """Whether the order's photo is there, row and bytes agreeing."""
    photo = Photo.objects.get(order=order)
    assert (storage.size(key=photo.key) is None) is (photo.deleted_at is not None)
    return photo.deleted_at is None


def later(shop: Shop, order: Order, hours: float) -> str:
    shop.age(hours * HOUR)
    shop.sweep()
    order.refresh_from_db()
    return order.status


def test_a_photo_outlives_an_abandoned_payment_page_by_no_more_than_a_day_after_the_last_change(shop: Shop) -> None:
    """The processor ends the page after 23 hours; that is no change of the customer's."""
    order = shop.asked()
    shop.age(23 * HOUR + 60)
    shop.pay(order, "expire")
    assert (later(shop, order, 0), lives(order)) == ("draft", True)
    assert (later(shop, order, 1), lives(order)) == ("expired", False)
    read = " ".join(html.unescape(re.sub(r"<[^>]+>", " ", Client().get("/help/retention/").content.decode())).split())
    assert "24 hours after you last changed it, or after the answer to your payment" in read


def test_a_photo_stays_while_its_payment_page_can_be_paid(shop: Shop) -> None:
    order = shop.asked()
    assert (later(shop, order, 30), lives(order)) == ("awaiting_payment", True)
    assert flow.settle(shop.pay(order)) == "received"
    assert lives(order)


@pytest.mark.parametrize("act", ["reopen", "pay again"])
def test_a_customer_who_comes_back_to_an_old_payment_page_has_a_day(shop: Shop, act: str) -> None:
    order = shop.asked()
    shop.age(30 * HOUR)
    if act == "reopen":
        assert flow.reopen(order=order) == "reopened"
    else:
        with broken(StripeGateway, "look_up", lambda: GatewayError("away")):
            assert flow.ask_payment(order=order, declarations=DECLARED, expected_price=400).problem == "gateway_down"
        shop.pay(order, "expire")
    assert (later(shop, order, 23), lives(order)) == ("draft", True)
    assert (later(shop, order, 1), lives(order)) == ("expired", False)


@pytest.mark.parametrize("answer", ["a bank that says no", "another sum"])
def test_a_customer_who_tried_to_pay_has_a_day_from_the_answer(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    """The bank took two days: whoever waited for it must not find the photo gone with the answer."""
    order = shop.asked()
    payment = shop.pay(order)
    says(monkeypatch, payment, status="pending")
    assert flow.settle(payment) == "pending"
    shop.age(48 * HOUR)
    assert lives(order)
    says(
        monkeypatch,
        payment,
        **({"status": "failed"} if answer == "a bank that says no" else {"amount": 399, "status": "paid"}),
    )
    assert (later(shop, order, 0), lives(order)) == ("draft", True)
    assert (later(shop, order, 23.5), lives(order)) == ("draft", True)
    assert (later(shop, order, 0.5), lives(order)) == ("expired", False)
