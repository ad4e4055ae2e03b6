"""No payment stays on the money list for ever: the processor knows nothing of its session, or its bank took the money back."""

import pytest
from django.contrib import admin

from billing.audit import differences
from billing.models import Grant, MismatchedPayment, Payment
from orders import flow, money_list
from orders.models import Order
from tests.orders.facts import a_draft_with_its_photo, credits_kept
from tests.orders.test_not_looked_up import DAY, UNCONFIRMED, elsewhere, staff, text
from tests.shop import Shop

WEEK = 7 * DAY


@pytest.fixture
def pending(shop: Shop) -> Order:
    """Its bank takes its time, and from now on our account does not have its session."""
    order = shop.asked()
    payment = shop.pay(order, "pay_unpaid", seconds=DAY)
    assert flow.settle(payment) == "pending"
    elsewhere(payment)
    return order


@pytest.fixture
def mismatched(shop: Shop) -> Payment:
    shop.sandbox.fault("wrong_amount", amount=300)
    payment = shop.pay(shop.asked())
    assert flow.settle(payment) == "mismatched"
    payment.refresh_from_db()
    return payment


def version(payment: Payment) -> int:
    return admin.site.get_model_admin(MismatchedPayment).version_of(payment)  # type: ignore[attr-defined]


def listed(payment: Payment) -> bool:
    return Payment.objects.filter(money_list.needs_a_person(), pk=payment.pk).exists()


# --- no such session -------------------------------------------------------------------------------------------------


def test_staff_end_money_on_its_way_whose_session_does_not_exist(shop: Shop, pending: Order) -> None:
    payment = Payment.objects.get()
    assert "may still be on its way" in staff("end_missing", payment, reason="x")
    shop.age(WEEK + 60)
    shop.sweep()
    payment.refresh_from_db()
    assert "resource_missing" in money_list.why(payment)
    assert staff("end_missing", payment, reason="the account was closed") == "No such session: 1 moved."
    payment.refresh_from_db()
    assert (payment.status, listed(payment)) == ("failed", False)
    a_draft_with_its_photo(pending)
    page = text(shop, pending)
    assert UNCONFIRMED in page
    assert "o money" not in page.replace("no money is taken and videos", "")


def test_money_on_its_way_that_the_processor_knows_is_not_ended(shop: Shop) -> None:
    payment = shop.pay(shop.asked(), "pay_unpaid", seconds=DAY)
    assert flow.settle(payment) == "pending"
    shop.age(WEEK + 60)
    assert "the processor knows this session" in staff("end_missing", payment, reason="x")
    payment.refresh_from_db()
    assert payment.status == "pending"


def test_money_that_was_on_its_way_and_comes_after_all_is_kept(shop: Shop, pending: Order) -> None:
    payment = Payment.objects.get()
    session = shop.sandbox.state()["card"]["sessions"].popitem()[0]
    shop.age(WEEK + 60)
    staff("end_missing", payment, reason="the account was closed")
    shop.sandbox.card(session, "succeed")
    Payment.objects.update(session_id=session)
    payment.refresh_from_db()
    assert flow.settle(payment) == "received"
    credits_kept(payment)


def test_a_page_says_whom_to_write_to_when_a_bank_takes_longer_than_banks_take(shop: Shop, pending: Order) -> None:
    assert "Some banks take a few minutes" in text(shop, pending)
    shop.age(WEEK + 60)
    page = text(shop, pending)
    assert "Some banks take a few minutes" not in page
    assert f"help@waistheart.example and quote order {pending.code}" in page
    assert "there is no need to pay again" in page


def test_staff_close_another_sum_whose_session_does_not_exist(shop: Shop, mismatched: Payment) -> None:
    session = str(mismatched.session_id)
    assert "the processor knows this session" in staff("end_missing", mismatched, reason="x")
    elsewhere(mismatched)
    assert "could not be asked" in staff("attach", mismatched, reason="x")
    assert staff("end_missing", mismatched, reason="the account was closed") == "No such session: 1 moved."
    mismatched.refresh_from_db()
    assert (mismatched.status, mismatched.paid_amount, listed(mismatched)) == ("failed", 300, False)
    order = Order.objects.get()
    a_draft_with_its_photo(order)
    page = text(shop, order)
    assert "but not the sum we asked for" in page
    assert "o money" not in page.replace("no money is taken and videos", "")

    Payment.objects.update(session_id=session)
    mismatched.refresh_from_db()
    assert flow.settle(mismatched) == "mismatched", "it turned up: a person again"


def test_a_receipt_that_is_late_closes_no_other_sum(mismatched: Payment) -> None:
    assert not money_list.checkout.end_payment("fail", mismatched, last_error="").won
    mismatched.refresh_from_db()
    assert mismatched.status == "mismatched"


# --- charged back ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", ["needs_response", "under_review", "appeal_under_review", "warning_needs_response"])
def test_a_dispute_that_is_not_over_waits_and_says_so(shop: Shop, mismatched: Payment, status: str) -> None:
    shop.sandbox.card(str(mismatched.session_id), "dispute", status=status)
    assert "its bank disputes it, and that is not over" in staff("returned", mismatched, reason="x")
    assert "here to stay" in staff("attach", mismatched, reason="x")
    mismatched.refresh_from_db()
    assert mismatched.status == "mismatched"


def test_money_that_its_bank_took_went_back(shop: Shop, mismatched: Payment) -> None:
    shop.sandbox.card(str(mismatched.session_id), "dispute")
    shop.sandbox.card(str(mismatched.session_id), "dispute", status="lost")
    assert "here to stay" in staff("attach", mismatched, reason="x")
    assert staff("returned", mismatched, reason="charged back") == "Has been returned: 1 moved."
    mismatched.refresh_from_db()
    assert (mismatched.status, Grant.objects.count()) == ("returned", 0)


def test_what_its_bank_took_and_what_was_refunded_count_together(shop: Shop, mismatched: Payment) -> None:
    session = str(mismatched.session_id)
    shop.sandbox.card(session, "refund", amount=100)
    shop.sandbox.card(session, "dispute", amount=150, status="lost")
    assert "£2.50 of £3.00 went back" in staff("returned", mismatched, reason="x")
    shop.sandbox.card(session, "refund", amount=50)
    assert staff("returned", mismatched, reason="charged back") == "Has been returned: 1 moved."


@pytest.mark.parametrize("status", ["won", "warning_closed"])
def test_a_dispute_that_took_nothing_leaves_money_that_can_be_kept(
    shop: Shop, mismatched: Payment, status: str
) -> None:
    shop.sandbox.card(str(mismatched.session_id), "dispute", status=status)
    assert "£0.00 of £3.00 went back" in staff("returned", mismatched, reason="x")
    assert staff("attach", mismatched, reason="the bank gave it back") == "Attach: 1 moved."
    assert Grant.objects.get().available == 1
    assert differences() == []


@pytest.mark.parametrize("status", ["open", "mismatched"])
def test_one_that_raised_again_and_again_leaves_as_well(shop: Shop, mismatched: Payment, status: str) -> None:
    payment = mismatched
    if status == "open":
        order = shop.asked()
        assert order.payment
        payment = order.payment
    elsewhere(payment)
    Payment.objects.filter(pk=payment.pk).update(failures=10)
    shop.age(2 * DAY)
    payment.refresh_from_db()
    assert staff("end_missing", payment, reason="the account was closed") == "No such session: 1 moved."
    payment.refresh_from_db()
    assert (payment.status, listed(payment)) == ("failed", False)


def test_a_dispute_that_was_prevented_took_nothing(shop: Shop, mismatched: Payment) -> None:
    shop.sandbox.card(str(mismatched.session_id), "dispute", status="prevented")
    assert staff("attach", mismatched, reason="x") == "Attach: 1 moved."


def test_a_page_from_before_another_sum_was_closed_moves_nothing(shop: Shop, mismatched: Payment) -> None:
    session, before = str(mismatched.session_id), version(mismatched)
    elsewhere(mismatched)
    staff("end_missing", mismatched, reason="the account was closed")
    Payment.objects.update(session_id=session)
    mismatched.refresh_from_db()
    assert flow.settle(mismatched) == "mismatched"
    mismatched.refresh_from_db()
    assert version(mismatched) != before
