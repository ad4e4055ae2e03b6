"""What a video may cost: never more than the card processor takes, said to staff in words and never to a customer as an error."""

import logging

import pytest
from django.test import Client

from billing.admin import PackForm
from billing.gateway import MOST_AMOUNT
from billing.models import CreditPack, Payment
from orders import flow
from orders.admin_pose import PoseForm
from orders.models import Pose
from tests.orders import shop
from tests.shop import DECLARED

pytestmark = pytest.mark.django_db


def pack(**fields: object) -> PackForm:
    return PackForm({"credits": 1, "price": 400, "currency": "GBP", "active": "", **fields})


@pytest.mark.parametrize(
    ("credits", "price", "taken"), [(1, 1_999_999, True), (1, 2_000_000, False), (2, 2_000_000, True)]
)
def test_a_credit_costs_at_most_what_makes_every_pose_payable(credits: int, price: int, taken: bool):
    form = pack(credits=credits, price=price)
    assert form.is_valid() is taken
    assert taken or form.errors["price"] == ["One credit costs 1999999 at most: a video of 50 credits must be payable."]


def test_a_pose_that_nobody_can_pay_is_refused():
    shop.pose()
    CreditPack.objects.update(price=10_000_000)
    fields = {"name": "x", "slug": "x", "description": "d", "prompt": "p", "sort": 1, "model": "", "parameters": "{}"}
    assert PoseForm({**fields, "credits": 9}).is_valid()
    form = PoseForm({**fields, "credits": 10})
    assert form.errors["credits"] == ["A video would cost £1,000,000.00: more than the card processor takes."]


@pytest.mark.django_db(transaction=True)
def test_a_price_that_was_put_there_otherwise_is_no_error_page(caplog: pytest.LogCaptureFixture):
    order = shop.draft()
    Pose.objects.update(credits=50)
    CreditPack.objects.update(price=MOST_AMOUNT)
    amount = 50 * MOST_AMOUNT
    asked = flow.ask_payment(order=order, declarations=DECLARED, expected_price=amount)
    assert asked.problem == "gateway_down"
    assert [record.levelno for record in caplog.records if "more than the processor takes" in record.message] == [
        logging.ERROR
    ]
    page = Client().post(f"/make/{order.key}/pay/", shop.pay_form(order, price=str(amount)), follow=True)
    assert page.status_code == 200
    assert "Card payment is not available right now." in page.content.decode()
    assert not Payment.objects.exists()
