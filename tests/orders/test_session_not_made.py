"""A payment page that the processor will not make: one order's trouble is over with the next press, and is called by its name."""

import logging

import pytest
from django.test import Client

from billing.models import Payment
from orders import drafts, flow
from orders.checkout import Asked
from orders.models import Order
from tests.orders.facts import a_draft_with_its_photo, the_one_job
from tests.orders.shop import pay_form
from tests.shop import DECLARED, Shop


def press_pay(order: Order) -> Asked:
    order.refresh_from_db()
    return flow.ask_payment(order=order, declarations=DECLARED, expected_price=400)


@pytest.mark.parametrize("then", ["pay", "reopen", "sweep"])
def test_an_error_that_is_replayed_for_a_day_holds_up_one_press(shop: Shop, then: str) -> None:
    """The processor keeps its 500 under the key of our request: the same key would get it again until tomorrow."""
    shop.sandbox.fault("card_500")
    order = shop.draft()
    assert press_pay(order).problem == "gateway_down"
    first = Payment.objects.get()
    assert (first.status, first.session_id) == ("open", None)

    if then == "pay":
        assert press_pay(order).problem == "gateway_down"
    elif then == "reopen":
        order.refresh_from_db()
        assert flow.reopen(order=order) == "reopened"
    else:
        assert flow.settle(first) == "failed"
    first.refresh_from_db()
    assert first.status == "failed"
    a_draft_with_its_photo(order)
    assert press_pay(order).url
    order.refresh_from_db()
    flow.settle(shop.pay(order))
    the_one_job(order)
    assert len({call["key"] for call in shop.sandbox.calls("sessions.create")}) == 2


def test_a_bank_that_says_no_is_told_on_the_page(shop: Shop) -> None:
    """The page had said: we are waiting for your bank, you can close this page."""
    order = shop.asked()
    flow.settle(shop.pay(order, "pay_unpaid"))
    address = f"/o/{order.code}-{order.key}/"
    assert "waiting for your bank" in Client().get(address).content.decode()
    flow.settle(shop.pay(order, "fail"))
    page = Client().get(address, follow=True).content.decode()
    assert "Your last payment did not go through." in page
    watched = Client().get(f"{address}progress/", follow=True).content.decode()
    assert "Your last payment did not go through." in watched
    answer = press_pay(order)
    assert answer.url
    page = Client().get(f"/make/{order.key}/review/").content.decode()
    assert "did not go through" not in page


def test_an_address_that_the_processor_does_not_take_is_its_owners_to_mend(
    shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    shop.sandbox.fault("card_refuse_email")
    order = shop.draft()
    answer = Client().post(f"/make/{order.key}/pay/", pay_form(order))
    assert (answer.status_code, answer["Location"]) == (303, f"/make/{order.key}/review/?notice=email")
    page = Client().get(answer["Location"]).content.decode()
    assert "The card processor does not take this e-mail address." in page
    assert "not available" not in page
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []

    order.refresh_from_db()
    assert drafts.set_email(order=order, email="grace@example.com")
    assert press_pay(order).url
