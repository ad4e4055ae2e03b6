"""The ways back from the payment page: nothing that the card processor keeps opens an order for longer than a day."""

import json
from typing import Any

import pytest
from django.test import Client

from billing.models import Payment
from orders import flow
from orders.models import Order
from tests.shop import DECLARED, Shop

HOUR = 3600
CLOSED = "This way back has closed"


def cancelled(payment: Payment) -> str:
    return f"/pay/cancelled/{payment.key}/"


def returned(payment: Payment) -> str:
    return f"/pay/return/?session={payment.session_id}"


def test_nothing_of_a_session_names_the_orders_key(shop: Shop) -> None:
    order = shop.asked()
    payment = shop.pay(order, "pay_unpaid")
    held = json.dumps(shop.sandbox.state()["card"]) + json.dumps(shop.sandbox.calls("sessions.create"))
    assert order.code in held
    assert payment.key in held
    assert order.key not in held
    assert Client().get(f"/pay/cancelled/{order.key}/").status_code == 404


@pytest.mark.parametrize("do", ["nothing", "pay_unpaid", "pay", "lapse"])
@pytest.mark.parametrize("way", [cancelled, returned])
def test_both_ways_back_close_after_a_day(shop: Shop, do: str, way: Any) -> None:
    """Also while money is on its way for days, and where the order has gone on without this payment."""
    order = shop.asked()
    payment = order.payment if do == "nothing" else shop.pay(order, do)
    assert payment is not None
    flow.settle(payment)
    shop.age(24 * HOUR)
    for ask in (Client().get, Client().head):
        open_still = ask(way(payment))
        assert open_still.status_code in (200, 303)
    shop.age(2 * HOUR)
    for ask in (Client().get, Client().head):
        late = ask(way(payment))
        assert late.status_code == 410
        assert order.key not in str(late.headers) + late.content.decode()
    assert CLOSED in Client().get(way(payment)).content.decode()


def test_the_way_back_from_an_older_page_says_nothing_of_the_one_that_is_open(shop: Shop) -> None:
    order = shop.asked()
    first = order.payment
    assert first is not None
    assert flow.reopen(order=order) == "reopened"
    assert flow.ask_payment(order=order, declarations=DECLARED, expected_price=400).url
    page = Client().get(cancelled(first), follow=True).content.decode()
    assert "A payment page is open for this order." in page
    assert "No money was taken" not in page


def test_a_key_that_no_payment_has_is_not_found(shop: Shop) -> None:
    assert Client().get(f"/pay/cancelled/{'0' * 32}/").status_code == 404
    assert not Order.objects.exists()
