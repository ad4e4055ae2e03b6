"""Money that came and starts nothing: the order goes on, the money has an owner, and no page says that none was taken."""

import dataclasses
from typing import Any

import pytest
from django.test import Client

from billing.audit import differences
from billing.gateway import StripeGateway, get_gateway
from billing.models import Entry, Grant, Payment, Wallet
from generation.models import Job
from orders import checkout, console, flow, kept, money_list
from orders.kept import Fate
from orders.models import Mail, Order
from tests.orders.facts import a_draft_with_its_photo, credits_kept, the_one_job
from tests.orders.rivals import act_after, lost
from tests.orders.shop import pay_form
from tests.shop import DECLARED, Shop

KEPT = "No video was begun with it, and it is kept for you"
OTHER_SUM = "not the sum we asked for. A person looks at it"


def says(monkeypatch: pytest.MonkeyPatch, payment: Payment, **changed: Any) -> None:
    """Let the processor say something else about a payment than it would."""
    receipt = dataclasses.replace(get_gateway().look_up(session_id=str(payment.session_id)), **changed)
    monkeypatch.setattr(StripeGateway, "look_up", lambda self, session_id: receipt)


def read(path: str) -> str:
    """The text of a page, wherever its address leads."""
    page = Client().get(path, follow=True)
    assert page.status_code in (200, 410, 503)
    return page.content.decode()


def back(payment: Payment) -> str:
    return read(f"/pay/return/?session={payment.session_id}")


def late(shop: Shop, order: Order) -> Payment:
    """The order's payment, which ended without money and was paid after all; the shop has not heard of it."""
    payment = shop.pay(order, "lapse")
    assert flow.settle(payment) == "expired"
    shop.sandbox.card(str(payment.session_id), "pay_after_all")
    payment.refresh_from_db()
    return payment


# --- received, and gone back already ---------------------------------------------------------------------------------


@pytest.mark.parametrize("gone", [{"refunded": 1}, {"disputed": True}], ids=["one unit refunded", "disputed"])
def test_money_that_does_not_stay_leaves_a_draft(shop: Shop, monkeypatch: pytest.MonkeyPatch, gone: Any) -> None:
    order = shop.asked()
    payment = shop.pay(order)
    says(monkeypatch, payment, **gone)
    assert flow.settle(payment) == "received"
    a_draft_with_its_photo(order)
    credits_kept(payment)
    assert Grant.objects.get().disputed is bool(gone.get("disputed"))
    assert KEPT in read(f"/make/{order.key}/review/")


def test_money_that_went_back_in_full_is_no_gift(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    order = shop.asked()
    payment = shop.pay(order)
    says(monkeypatch, payment, refunded=400)
    assert flow.settle(payment) == "received"
    a_draft_with_its_photo(order)
    assert Grant.objects.get().available == 0
    assert Entry.objects.get(kind="withdrawn").occasion == f"payment:{payment.pk}"
    assert differences() == []
    assert not Mail.objects.exists()
    page = back(payment)
    assert "Your payment went back" in page
    assert "No money" not in page
    assert "kept for you" not in page

    monkeypatch.undo()
    order.refresh_from_db()
    assert flow.ask_payment(order=order, declarations=DECLARED, expected_price=400).url
    order.refresh_from_db()
    flow.settle(shop.pay(order))
    the_one_job(order)


# --- what its payer reads --------------------------------------------------------------------------------------------


def test_coming_back_with_another_sum_says_that_a_person_looks(shop: Shop) -> None:
    shop.sandbox.fault("wrong_amount", amount=399)
    order = shop.asked()
    payment = shop.pay(order)
    for page in (back(payment), read(f"/make/{order.key}/review/")):
        assert OTHER_SUM in page
        assert f"quote order {order.code}" in page
        assert "No money" not in page
    assert "Pay £4.00" in read(f"/make/{order.key}/review/")


def test_coming_back_late_says_that_the_money_is_kept(shop: Shop) -> None:
    order = shop.asked()
    payment = late(shop, order)
    for page in (back(payment), read(f"/make/{order.key}/review/"), read(f"/pay/cancelled/{payment.key}/")):
        assert KEPT in page
        assert "There is no need to pay again." in page
        assert "No money" not in page


def test_an_order_that_ended_does_not_deny_its_money(shop: Shop) -> None:
    order = shop.asked()
    payment = late(shop, order)
    shop.age(86401)
    shop.sweep()
    order.refresh_from_db()
    assert order.status == "expired"
    for page in (back(payment), read(f"/make/{order.key}/review/"), read(f"/pay/cancelled/{payment.key}/")):
        assert KEPT in page
        assert "o money was taken" not in page


def test_a_closed_shop_does_not_deny_it_either(shop: Shop, settings: Any) -> None:
    order = shop.asked()
    flow.settle(late(shop, order))
    settings.STRIPE_SECRET_KEY = "sk_live_oops"
    page = Client().post(f"/make/{order.key}/pay/").content.decode()
    assert "We cannot take orders right now" in page
    assert KEPT in page
    assert "No money" not in page


def test_the_fragment_of_an_order_that_fell_back_does_not_deny_it(shop: Shop) -> None:
    order = shop.asked()
    assert "No money" not in read(f"/o/{order.code}-{order.key}/progress/")
    shop.sandbox.fault("wrong_amount", amount=399)
    flow.settle(shop.pay(order))
    page = read(f"/o/{order.code}-{order.key}/progress/")
    assert OTHER_SUM in page
    assert "No money" not in page


def test_paid_twice_says_so_beside_the_order(shop: Shop) -> None:
    order = shop.asked()
    first = order.payment
    assert first is not None
    assert flow.reopen(order=order) == "reopened"
    assert flow.ask_payment(order=order, declarations=DECLARED, expected_price=400).url
    order.refresh_from_db()
    second = shop.pay(order)
    assert "Your video is in the queue" in back(second)
    shop.sandbox.card(str(first.session_id), "pay_after_all")
    page = back(first)
    assert KEPT in page
    assert f"/o/{order.code}-{order.key}/" in page
    order.refresh_from_db()
    assert kept.of(order) == Fate.KEPT
    assert "Your video is in the queue" in back(second)


def test_pay_again_reads_first_that_money_came(shop: Shop) -> None:
    """The page is open in one tab; the money came otherwise than asked; the other tab presses Pay."""
    shop.sandbox.fault("wrong_amount", amount=399)
    order = shop.asked()
    shop.pay(order)
    page = Client().post(f"/make/{order.key}/pay/", pay_form(order))
    assert page.status_code == 200
    assert OTHER_SUM in page.content.decode()
    assert Payment.objects.count() == 1


# --- a page that has ended, and one that has not ---------------------------------------------------------------------


def test_pay_on_a_session_that_ended_there_opens_a_new_one(shop: Shop) -> None:
    order = shop.asked()
    old = order.payment
    assert old is not None
    get_gateway().expire(session_id=str(old.session_id))
    asked = flow.ask_payment(order=order, declarations=DECLARED, expected_price=400)
    order.refresh_from_db()
    assert order.payment is not None
    assert asked.url == order.payment.session_url != old.session_url
    old.refresh_from_db()
    assert old.status == "expired"


def test_a_page_whose_time_is_over_is_not_handed_out_unseen(shop: Shop) -> None:
    order = shop.asked()
    shop.sandbox.fault("card_drop_before", match="sessions.retrieve", times="all")
    assert flow.ask_payment(order=order, declarations=DECLARED, expected_price=400).url
    shop.age(86400)
    order.refresh_from_db()
    assert flow.ask_payment(order=order, declarations=DECLARED, expected_price=400).problem == "gateway_down"


def test_pay_while_the_money_is_on_its_way_leads_to_the_order(shop: Shop) -> None:
    order = shop.asked()
    shop.pay(order, "pay_unpaid")
    assert flow.ask_payment(order=order, declarations=DECLARED, expected_price=400).problem == "pending"


def test_a_prefetch_of_the_way_back_closes_nothing(shop: Shop) -> None:
    order = shop.asked()
    assert Client().head(f"/pay/cancelled/{Payment.objects.get().key}/").status_code == 303
    assert not shop.sandbox.calls("sessions.retrieve")
    page = read(f"/pay/cancelled/{Payment.objects.get().key}/")
    assert "Payment was not completed. No money was taken." in page
    assert "Change this order" in page
    assert not shop.sandbox.calls("sessions.expire")
    order.refresh_from_db()
    flow.settle(shop.pay(order))
    the_one_job(order)


def test_the_way_back_promises_nothing_it_has_not_looked_at(shop: Shop) -> None:
    shop.asked()
    shop.sandbox.fault("card_drop_before", match="sessions.retrieve", times="all")
    page = read(f"/pay/cancelled/{Payment.objects.get().key}/")
    assert "A payment page is open for this order." in page
    assert "No money was taken" not in page


# --- faults that are no races ----------------------------------------------------------------------------------------


def test_a_settle_that_cannot_win_is_counted_and_comes_to_a_person(shop: Shop) -> None:
    order = shop.asked()
    payment = shop.pay(order)
    Wallet.objects.all().delete()
    with pytest.raises(checkout.MoneyStuck, match="wallet"):
        flow.settle(payment)
    assert Client().get(f"/pay/return/?session={payment.session_id}").status_code == 303
    shop.sweep(minutes=150)
    payment.refresh_from_db()
    assert (payment.status, payment.failures >= 10) == ("open", True)
    assert [(tile.figure, tile.look) for tile in console.today() if tile.name == "Money list"] == [("1", True)]

    Wallet.objects.create(owner=payment.owner)
    flow.settle(payment)
    the_one_job(order)


def test_a_lost_race_is_still_no_fault(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    order = shop.asked()
    payment = shop.pay(order)
    act_after(monkeypatch, StripeGateway, "look_up", lambda: flow.settle(Payment.objects.get(pk=payment.pk)))
    assert flow.settle(payment) == "received"
    assert lost("payment.receive") == 1
    order.refresh_from_db()
    assert kept.of(order) is None


@pytest.mark.parametrize("amount", [0, -5, 3_000_000_000, 2**70])
def test_money_of_any_size_is_written_down(shop: Shop, monkeypatch: pytest.MonkeyPatch, amount: int) -> None:
    order = shop.asked()
    payment = shop.pay(order)
    says(monkeypatch, payment, amount=amount, currency="bitcoin", charge="ch_" + "x" * 400)
    assert flow.settle(payment) == "mismatched"
    payment.refresh_from_db()
    assert payment.paid_amount == min(max(amount, 0), 2**63 - 1)
    assert not Job.objects.exists()


def test_look_again_looks_at_once_and_hides_nothing(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    order = shop.asked()
    payment = shop.pay(order)
    checkout.end_payment("expire", payment)
    Payment.objects.filter(pk=payment.pk).update(failures=10)
    payment.refresh_from_db()

    def raises(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError

    with monkeypatch.context() as broken:
        broken.setattr(checkout, "matches", raises)
        with pytest.raises(money_list.NotNow):
            money_list.look_again(payment=payment)
    assert Payment.objects.filter(money_list.needs_a_person(), pk=payment.pk).exists()
    assert money_list.look_again(payment=payment)
    credits_kept(payment)
    assert not Payment.objects.filter(money_list.needs_a_person(), pk=payment.pk).exists()


def test_reloads_of_the_return_page_count_nothing_against_a_payment(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    payment = shop.pay(shop.asked())

    def raises(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError

    with monkeypatch.context() as broken:
        broken.setattr(checkout, "matches", raises)
        for _ in range(10):
            assert flow.look(payment) == ""
    payment.refresh_from_db()
    assert payment.failures == 0
    shop.sweep()
    payment.refresh_from_db()
    assert payment.status == "received"
