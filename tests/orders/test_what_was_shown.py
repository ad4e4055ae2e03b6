"""Pay means what the page showed on which it was pressed: that photo, that pose as it was described, and no money unread."""

import re
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from django.test import Client

from billing.models import CreditPack, Payment
from orders import checkout, drafts, flow, freeze, kept
from orders.models import Order, Pose
from orders.views import review
from tests.orders.shop import pay_form, tall_photo
from tests.shop import Shop

CHANGED = "This order has changed since this page was shown."
OTHER_SUM = "not the sum we asked for"


def press(order: Order, form: dict[str, str]) -> Any:
    return Client().post(f"/make/{order.key}/pay/", form)


def another_order(order: Order) -> None:
    """Tab 2: change this order, to another photo and another address."""
    fresh = Order.objects.get(pk=order.pk)
    assert flow.reopen(order=fresh) == "reopened"
    assert drafts.put_photo(order=fresh, data=tall_photo(), name="b.jpg")
    assert drafts.set_email(order=Order.objects.get(pk=order.pk), email="eve@example.com")


def paid_by_tab_2(order: Order) -> None:
    another_order(order)
    assert press(order, pay_form(order)).status_code == 303


@pytest.mark.parametrize("tab_2", [another_order, paid_by_tab_2])
def test_a_change_while_the_processor_is_asked(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, tab_2: Callable[[Order], None]
) -> None:
    """Tab 1 presses Pay on a page whose session is looked up, and meanwhile the order becomes another one."""
    order = shop.asked()
    tab_1, real = pay_form(order), flow.look

    def look(payment: Payment) -> str:
        monkeypatch.setattr(flow, "look", real)
        tab_2(order)
        return real(payment)

    monkeypatch.setattr(flow, "look", look)
    answer = press(order, tab_1)
    assert answer.status_code in {200, 409}
    assert "/stripe/pay/" not in answer.content.decode()
    assert "eve" in answer.content.decode() or answer.status_code == 409


def test_a_change_between_the_page_and_the_freeze(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    order = shop.draft()
    tab_1, real = pay_form(order), flow.ask_payment

    def ask(**asked: Any) -> checkout.Asked:
        monkeypatch.setattr(flow, "ask_payment", real)
        assert drafts.put_photo(order=Order.objects.get(pk=order.pk), data=tall_photo(), name="b.jpg")
        assert press(order, pay_form(order)).status_code == 303
        return real(**asked)

    monkeypatch.setattr(flow, "ask_payment", ask)
    assert press(order, tab_1).status_code in {200, 409}


# --- money that came is read before anything more is paid ------------------------------------------------------------


def reads_it_first(order: Order, tab_1: dict[str, str], words: str) -> None:
    """Pay from the old page shows what came; from the page that shows it, it is a deliberate second order."""
    before = Payment.objects.count()
    page = press(order, tab_1)
    assert page.status_code == 200
    assert words in page.content.decode()
    assert CHANGED not in page.content.decode()
    assert Payment.objects.count() == before
    assert press(order, pay_form(order)).status_code == 303
    assert Payment.objects.count() == before + 1


def test_paid_after_all_while_the_review_page_is_open(shop: Shop) -> None:
    order = shop.asked()
    first = order.payment
    assert first is not None
    checkout.end_payment("expire", first)
    tab_1 = pay_form(order)
    shop.pay(order)
    assert flow.settle(Payment.objects.get(pk=first.pk)) == "received"
    reads_it_first(order, tab_1, "it is kept for you")


def test_another_sum_came_while_the_review_page_is_open(shop: Shop) -> None:
    shop.sandbox.fault("wrong_amount", amount=399)
    order = shop.draft()
    tab_1 = pay_form(order)
    assert press(order, tab_1).status_code == 303
    order.refresh_from_db()
    assert flow.settle(shop.pay(order)) == "mismatched"
    reads_it_first(order, tab_1, OTHER_SUM)


def test_another_sum_came_while_the_processor_did_not_answer_us(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.sandbox.fault("wrong_amount", amount=399)
    order = shop.asked()
    tab_1, real = pay_form(order), flow.look

    def look(payment: Payment) -> str:
        """Our answer is lost; a worker's look settles it."""
        monkeypatch.setattr(flow, "look", real)
        assert flow.settle(shop.pay(order)) == "mismatched"
        return ""

    monkeypatch.setattr(flow, "look", look)
    reads_it_first(order, tab_1, OTHER_SUM)


# --- a pose that staff edit ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "edit", [{"name": "Overhead kick"}, {"prompt": "a kick"}, {"model": "a/b"}, {"parameters": {"duration": "8"}}]
)
def test_a_pose_edited_before_pay_is_shown_first(shop: Shop, edit: dict[str, Any]) -> None:
    order = shop.draft()
    tab_1 = pay_form(order)
    Pose.objects.filter(pk=shop.pose.pk).update(**edit)
    page = press(order, tab_1)
    assert page.status_code == 200
    assert CHANGED in page.content.decode()
    assert not Payment.objects.exists()
    assert press(order, pay_form(order)).status_code == 303


def test_what_is_being_paid_keeps_its_name(shop: Shop) -> None:
    order = shop.asked()
    Pose.objects.filter(pk=shop.pose.pk).update(name="Overhead kick")
    page = Client().get(f"/make/{order.key}/review/").content.decode()
    assert "Waist heart" in page
    assert "Overhead kick" not in page
    assert press(order, pay_form(order)).status_code == 303
    assert Payment.objects.count() == 1


def test_the_words_are_equal_before_and_after_the_freeze(shop: Shop) -> None:
    order = shop.draft()
    before = freeze.shown(order)
    assert flow.ask_payment(order=order, declarations={}, expected_price=400, seen=before).url
    order.refresh_from_db()
    assert freeze.shown(order) == before


# --- what has ended here, and not there ------------------------------------------------------------------------------


def test_no_money_is_not_said_while_it_is_on_its_way(shop: Shop) -> None:
    order = shop.asked()
    payment = shop.pay(order, "pay_unpaid")
    checkout.end_payment("fail", payment, last_error="")
    payment.refresh_from_db()
    assert flow.look(payment) == ""
    page = Client().get(f"/pay/return/?session={payment.session_id}").content.decode()
    assert "No money was taken" not in page


# --- the price, and the page itself ----------------------------------------------------------------------------------


def test_a_price_that_changed_in_another_tab_is_shown_first(shop: Shop) -> None:
    order = shop.draft()
    tab_1 = pay_form(order)
    CreditPack.objects.update(price=900)
    assert press(order, pay_form(order, price="900")).status_code == 303
    page = press(order, tab_1)
    assert page.status_code == 200
    assert "The price is now £9.00" in page.content.decode()
    assert press(order, pay_form(order)).status_code == 303
    assert Payment.objects.get().amount == 900


@pytest.mark.parametrize("meanwhile", ["another photo", "money"])
def test_what_changes_while_the_page_is_made_is_not_taken_for_shown(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, meanwhile: str
) -> None:
    order = shop.asked()
    payment = shop.pay(order) if meanwhile == "money" else order.payment
    assert payment is not None
    checkout.end_payment("expire", payment)
    real, calls = review.shown_item, count(1)

    def shown_item(row: Order) -> Any:
        """Read what is rendered, and then it changes."""
        item, fate = real(row), kept.of(row)
        if next(calls) == 1:
            return item  # the view's own look, before the page is made
        monkeypatch.setattr(kept, "of", lambda _: fate)
        if meanwhile == "money":
            assert flow.settle(Payment.objects.get(pk=payment.pk)) == "received"
        else:
            assert drafts.put_photo(order=Order.objects.get(pk=order.pk), data=tall_photo(), name="b.jpg")
        return item

    with monkeypatch.context() as patch:
        patch.setattr(review, "shown_item", shown_item)
        old_page = Client().get(f"/make/{order.key}/review/").content.decode()
    monkeypatch.undo()
    [(name, value)] = re.findall(r'type="hidden" name="(shown)" value="([^"]*)"', old_page)
    assert press(order, pay_form(order, **{name: value})).status_code == 200
    assert Payment.objects.count() == 1
