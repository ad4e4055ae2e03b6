"""Paid at the processor, and the processor does not tell us: written down, rung once, on a list, and with a way out."""

import html
import logging
import re
from typing import Any

import pytest
import requests
from django.test import Client

from billing import looks
from billing.gateway_errors import GatewayMisconfigured, GatewayUnavailable
from billing.models import Payment
from generation.models import Job
from orders import console, flow, kept, money_list
from orders.models import Order, Photo
from tests.orders.facts import a_draft_with_its_photo, credits_kept, the_one_job
from tests.orders.rivals import lost
from tests.shop import Shop
from waistheart.models import User

GONE = "cs_test_of_another_account"
DAY = 86400
PROMISE = "shows it in a minute or two"
NO_NEED = "If you have paid, there is no need to pay again."
UNCONFIRMED = "We could not find out from the card processor whether a payment"


@pytest.fixture(params=["key revoked", "another account"])
def paid_unseen(request: Any, shop: Shop, settings: Any) -> Order:
    """An order whose session is paid, and cannot be looked up from now on."""
    order = shop.asked()
    payment = shop.pay(order)
    if request.param == "key revoked":
        settings.STRIPE_SECRET_KEY = "sk_test_revoked"
    else:
        elsewhere(payment)
    return order


def elsewhere(payment: Payment) -> None:
    """From now on the payment's session is one that our account does not have."""
    Payment.objects.filter(pk=payment.pk).update(session_id=GONE)


def text(shop: Shop, order: Order) -> str:
    """The words of the order's page, wherever its address leads."""
    page = requests.get(f"{shop.url}/o/{order.code}-{order.key}/", timeout=30).text
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", page)))


def staff(act: str, payment: Payment, **form: Any) -> str:
    """Press a button of the money list; the messages that follow."""
    if not User.objects.filter(email="boss@example.com").exists():
        User.objects.create_superuser("boss@example.com", "a-long-password")
    client = Client()
    assert client.login(username="boss@example.com", password="a-long-password")
    seen = Payment.objects.get(pk=payment.pk)
    version = int(seen.state_since.timestamp() * 1_000_000)
    chosen = {"action": act, "_selected_action": payment.pk, f"version_{payment.pk}": version, "confirmed": "1"}
    answer = client.post("/admin/billing/mismatchedpayment/", {**chosen, **form}, follow=True)
    return " ".join(str(message) for message in answer.context["messages"])


def alarms(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.getMessage().startswith("ALARM")]


def test_a_failed_look_is_written_counted_and_rung_once_an_hour(
    shop: Shop, paid_unseen: Order, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        shop.sweep(minutes=10)
    payment = Payment.objects.get()
    assert payment.last_error
    assert (payment.status, payment.failures) == ("open", 0)
    assert lost("payment.not_looked_up") >= 4
    assert len(alarms(caplog)) == 1
    shop.age(3600)
    with caplog.at_level(logging.ERROR):
        shop.sweep()
    assert len(alarms(caplog)) == 2
    assert lost("alarm.gateway_misconfigured") + lost("alarm.gateway_refused") == 2


def test_a_paid_order_that_cannot_be_looked_up_comes_to_a_person(shop: Shop, paid_unseen: Order) -> None:
    shop.age(DAY - 600)
    shop.sweep()
    assert not Payment.objects.filter(money_list.needs_a_person()).exists()
    shop.age(3600)
    listed = Payment.objects.get(money_list.needs_a_person())
    assert "nobody knows whether it was paid" in money_list.why(listed)
    assert listed.last_error in money_list.why(listed)
    tile = next(tile for tile in console.today() if tile.name == "Money list")
    assert (tile.figure, tile.look) == ("1", True)
    assert "1 d" in tile.detail


def test_its_page_promises_no_minute_and_says_whom_to_write_to(shop: Shop, paid_unseen: Order) -> None:
    assert PROMISE in text(shop, paid_unseen)
    mark = re.search(
        r"mark=(\w+)", requests.get(f"{shop.url}/o/{paid_unseen.code}-{paid_unseen.key}/", timeout=30).text
    )
    assert mark is not None
    shop.sweep()
    page = text(shop, paid_unseen)
    assert PROMISE not in page
    assert NO_NEED in page
    assert f"help@waistheart.example and quote order {paid_unseen.code}" in page
    stale = f"{shop.url}/o/{paid_unseen.code}-{paid_unseen.key}/progress/?mark={mark[1]}"
    assert requests.get(stale, timeout=30).status_code == 200, "a page that shows the promise is painted anew"


def test_the_promise_ends_with_its_minutes(shop: Shop) -> None:
    order = shop.asked()
    shop.sweep()
    assert PROMISE in text(shop, order)
    shop.age(600)
    page = text(shop, order)
    assert PROMISE not in page
    assert NO_NEED in page


def test_an_answer_ends_the_trouble(shop: Shop, settings: Any) -> None:
    order = shop.asked()
    payment = shop.pay(order)
    key, settings.STRIPE_SECRET_KEY = settings.STRIPE_SECRET_KEY, "sk_test_revoked"
    shop.sweep(minutes=2)
    settings.STRIPE_SECRET_KEY = key
    shop.sweep(minutes=3)
    payment.refresh_from_db()
    assert (payment.status, payment.last_error) == ("received", "")
    assert Job.objects.filter(lot=order.lot).count() == 1


def test_a_processor_that_is_away_rings_nobody(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    order = shop.asked()
    shop.sandbox.fault("card_drop_before", match="sessions.retrieve", times="all")
    with caplog.at_level(logging.ERROR):
        shop.sweep(minutes=3)
    assert order.payment is not None
    order.payment.refresh_from_db()
    assert order.payment.last_error
    assert alarms(caplog) == []


def test_pay_under_a_key_that_is_not_ours_rings_too(
    shop: Shop, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    settings.STRIPE_SECRET_KEY = "sk_test_revoked"
    order = shop.draft()
    with caplog.at_level(logging.ERROR):
        asked = [flow.ask_payment(order=order, declarations={}, expected_price=400).problem for _ in range(2)]
    assert asked == ["gateway_down", "gateway_down"]
    assert len(alarms(caplog)) == 1


def test_what_the_processor_says_failed_is_not_unconfirmed(shop: Shop) -> None:
    order = shop.asked()
    payment = shop.pay(order, "pay_unpaid")
    session = str(payment.session_id)
    elsewhere(payment)
    shop.sweep()
    payment.refresh_from_db()
    assert payment.last_error.startswith("resource_missing")
    Payment.objects.filter(pk=payment.pk).update(session_id=session)
    shop.sandbox.card(session, "fail")
    shop.sweep(minutes=2)
    payment.refresh_from_db()
    assert (payment.status, payment.last_error) == ("failed", "")
    assert kept.of(order) is None


# --- the way out -----------------------------------------------------------------------------------------------------


def test_staff_end_a_payment_whose_session_does_not_exist(shop: Shop) -> None:
    order = shop.asked()
    payment = shop.pay(order)
    session = str(payment.session_id)
    elsewhere(payment)
    shop.age(DAY + 60)
    assert "Say why" not in staff("end_missing", payment, reason="closed account")
    payment.refresh_from_db()
    assert payment.status == "failed"
    assert payment.last_error.startswith("resource_missing")
    a_draft_with_its_photo(order)
    page = text(shop, order)
    assert UNCONFIRMED in page
    assert "o money" not in page.replace("no money is taken and videos", "")

    shop.age(DAY + 60)
    shop.sweep(minutes=2)
    assert not Photo.objects.filter(deleted_at=None).exists()
    assert UNCONFIRMED in text(shop, order)

    Payment.objects.filter(pk=payment.pk).update(session_id=session)
    payment.refresh_from_db()
    assert flow.settle(payment) == "received"
    credits_kept(payment)
    assert payment.last_error == ""


def test_a_session_that_turns_up_unpaid_proves_nothing(shop: Shop) -> None:
    order = shop.asked()
    payment = order.payment
    assert payment is not None
    session = str(payment.session_id)
    elsewhere(payment)
    shop.age(DAY + 60)
    staff("end_missing", payment, reason="closed account")
    Payment.objects.filter(pk=payment.pk).update(session_id=session)
    payment.refresh_from_db()
    assert flow.settle(payment) == "failed"
    assert UNCONFIRMED in text(shop, order)


def test_nothing_else_ends_it(shop: Shop, settings: Any) -> None:
    order = shop.asked()
    payment = shop.pay(order)
    elsewhere(payment)
    assert "may still be open" in staff("end_missing", payment, reason="x")
    shop.age(DAY + 60)
    settings.STRIPE_SECRET_KEY = "sk_test_revoked"
    payment.refresh_from_db()
    with pytest.raises(GatewayMisconfigured):
        flow.settle(payment)
    assert "could not be asked" in staff("end_missing", payment, reason="x")
    payment.refresh_from_db()
    assert payment.status == "open"


def test_a_session_that_is_known_is_looked_at_instead(shop: Shop) -> None:
    order = shop.asked()
    payment = shop.pay(order)
    shop.age(DAY + 60)
    assert "the processor knows this session" in staff("end_missing", payment, reason="x")
    assert staff("look", payment) == "Look again: 1 left this list."
    the_one_job(order)


def test_look_again_says_why_it_stays(shop: Shop, paid_unseen: Order) -> None:
    shop.age(DAY + 60)
    said = staff("look", Payment.objects.get())
    assert "the processor could not be asked" in said
    assert "left this list" not in said


def test_look_again_claims_nothing_of_a_sum_that_stays_another(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    shop.sandbox.fault("wrong_amount", amount=399)
    order = shop.asked()
    payment = shop.pay(order)
    assert flow.settle(payment) == "mismatched"
    payment.refresh_from_db()
    caplog.clear()
    said = staff("look", payment)
    assert "it stays mismatched: another sum came than was asked for" in said
    assert "1 moved" not in said
    assert alarms(caplog) == [], "it rang when it came"


def test_what_staff_ended_stays_unconfirmed_through_a_look_that_fails(shop: Shop) -> None:
    """One look while the processor is away must not take the warning from a page that offers Pay."""
    order = shop.asked()
    payment = shop.pay(order)
    Payment.objects.filter(pk=payment.pk).update(
        status="failed", last_error="resource_missing: no such session", state_since=payment.state_since
    )
    shop.sandbox.fault("card_drop_before", match="sessions.retrieve", times="all")
    payment.refresh_from_db()
    with pytest.raises(GatewayUnavailable):
        flow.settle(payment)
    payment.refresh_from_db()
    assert payment.last_error.startswith("resource_missing")


def test_what_staff_ended_is_confirmed_by_a_later_answer(shop: Shop) -> None:
    """The right account says that no money came: the page stops saying that nobody can know."""
    order = shop.asked()
    payment = shop.pay(order, "expire")
    Payment.objects.filter(pk=payment.pk).update(status="failed", last_error="resource_missing: no such session")
    Order.objects.filter(pk=order.pk).update(status="draft", payment=None)
    assert kept.of(order)
    payment.refresh_from_db()
    flow.settle(payment)
    payment.refresh_from_db()
    assert (payment.status, payment.last_error, kept.of(order)) == ("failed", "", None)


def test_an_answer_that_cannot_be_read_rings(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    shop.pay(shop.asked())
    monkeypatch.setattr("billing.gateway.receipt", lambda *_, **__: {}["amount_total"])
    with caplog.at_level(logging.ERROR):
        shop.sweep(minutes=3)
    assert len(alarms(caplog)) == 1
    assert "unreadable answer" in alarms(caplog)[0]


def test_money_that_was_received_long_ago_rings_for_nobody(
    shop: Shop, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    payment = shop.pay(shop.asked())
    flow.settle(payment)
    payment.refresh_from_db()
    with caplog.at_level(logging.ERROR):
        looks.unanswered(GatewayMisconfigured("another account's key"), payment)
    assert alarms(caplog) == []
