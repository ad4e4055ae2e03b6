"""That no money was taken is said of an order that never had a payment page, or by a page that has just asked. Nowhere else."""

import html
import re
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as project
from django.test import Client

from billing.models import CreditPack, Payment
from orders import flow
from orders.models import Order
from tests.orders.shop import pay_form
from tests.shop import Shop

JUST_PAID = "If you have just paid, there is no need to pay again"


def words(answer: Any) -> str:
    """What a page says, without the demo's band."""
    plain = re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", answer.content.decode())))
    return plain.replace("Demo: no money is taken and videos are samples", "")


def denies(answer: Any) -> bool:
    return bool(re.search(r"no money|nothing was (charged|taken)", words(answer), re.IGNORECASE))


def press_pay(order: Order, **changed: Any) -> Any:
    return Client().post(f"/make/{order.key}/pay/", pay_form(order, **changed))


@pytest.fixture
def paid(shop: Shop) -> Order:
    """Its session is paid, and every event of it is lost."""
    shop.sandbox.fault("event_lost", times="all")
    order = shop.asked()
    shop.pay(order)
    return order


def test_a_draft_that_never_had_a_payment_page_may_say_so(shop: Shop) -> None:
    order = shop.draft()
    assert "No money has been taken yet." in words(Client().get(f"/make/{order.key}/review/"))
    CreditPack.objects.update(active=False)
    assert "No money was taken." in words(press_pay(order))


def test_the_review_page_of_somebody_who_has_paid(shop: Shop, paid: Order) -> None:
    page = Client().get(f"/make/{paid.key}/review/")
    assert not denies(page)
    assert JUST_PAID in words(page)
    assert f"/o/{paid.code}-{paid.key}/" in page.content.decode()
    assert not denies(press_pay(paid, shown="another photo"))


def test_pay_in_a_closed_shop_by_somebody_who_has_paid(shop: Shop, paid: Order) -> None:
    CreditPack.objects.update(active=False)
    page = press_pay(paid)
    assert page.status_code == 503
    assert not denies(page)


def test_the_way_back_under_a_key_that_is_not_ours(shop: Shop, paid: Order, settings: Any) -> None:
    settings.STRIPE_SECRET_KEY = "sk_test_revoked"
    for page in (
        Client().get(f"/pay/cancelled/{Payment.objects.get().key}/"),
        Client().post(f"/make/{paid.key}/reopen/", follow=True),
        press_pay(paid),
    ):
        assert not denies(page)
    Payment.objects.update(status="expired", next_look_at=None)
    Order.objects.update(status="draft", payment=None)
    page = Client().get("/pay/return/", {"session": Payment.objects.get().session_id})
    assert page.status_code == 200
    assert not denies(page)


@pytest.mark.parametrize("end", ["reopened", "expired"])
def test_a_draft_that_had_one_says_nothing_it_has_not_asked(shop: Shop, end: str) -> None:
    order = shop.asked()
    assert flow.reopen(order=order) == "reopened"
    if end == "expired":
        Order.objects.update(status="expired")
    for page in (
        Client().get(f"/make/{order.key}/review/"),
        Client().get(f"/o/{order.code}-{order.key}/progress/"),
        press_pay(order, price="300"),
    ):
        assert not denies(page)
    if end == "expired":
        assert f"quote order {order.code}" in words(Client().get(f"/make/{order.key}/review/"))


def test_money_on_its_way_is_not_asked_for_again(shop: Shop) -> None:
    order = shop.asked()
    shop.pay(order, "pay_unpaid")
    assert order.payment is not None
    assert flow.settle(order.payment) == "pending"
    there = f"/o/{order.code}-{order.key}/"
    CreditPack.objects.update(active=False)
    for page in (
        Client().get(f"/make/{order.key}/review/"),
        Client().get(f"/pay/cancelled/{order.payment.key}/"),
        press_pay(order, shown="another photo"),
    ):
        assert (page.status_code, page.headers["Location"]) == (303, there)


def test_pages_that_know_of_no_order_say_nothing_of_money() -> None:
    for name in ("400.html", "403.html", "403_csrf.html", "404.html", "413.html", "500.html"):
        said = (Path(project.BASE_DIR) / "templates" / name).read_text()
        assert not re.search(r"charged|no money", said, re.IGNORECASE), name
