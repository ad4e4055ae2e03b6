"""Bad days of a payment page whose kept address leads elsewhere: the shop was started again at another port."""

from pathlib import Path
from typing import Any

import pytest
import requests

from billing import pages
from billing.models import Payment
from orders import flow
from orders.models import Order
from tests.orders.facts import the_one_job
from tests.sandbox_process import running_sandbox
from tests.shop import DECLARED, Shop

GONE = "http://127.0.0.1:9/stripe/pay/cs_1"


def pressed(order: Order) -> Any:
    return flow.ask_payment(order=order, declarations=DECLARED, expected_price=400)


def kept_elsewhere(order: Order, url: str = GONE) -> None:
    Payment.objects.filter(pk=order.payment_id).update(session_url=url)


def test_the_page_of_a_shop_that_was_started_at_another_port(shop: Shop, settings: Any, tmp_path: Path) -> None:
    """Pay led to a port where nobody was, for as long as the session lived."""
    state = str(tmp_path / "sandbox.json")
    with pytest.MonkeyPatch.context() as patch:
        with running_sandbox("--state", state) as first:
            settings.STRIPE_API_BASE = f"{first.url}/stripe"
            order = shop.asked()
        with running_sandbox("--state", state) as second:
            settings.STRIPE_API_BASE = f"{second.url}/stripe"
            patch.setattr(shop, "sandbox", second)
            answer = pressed(order)
            assert answer.url.startswith(f"{second.url}/stripe/pay/")
            assert requests.get(answer.url, timeout=30).status_code == 200
            assert pressed(order) == answer
            assert flow.settle(shop.pay(order)) == "received"
            assert len(second.calls("sessions.create")) == 1
        the_one_job(order)


@pytest.mark.parametrize("url", [GONE, "", "http://[", "/stripe/pay/x", "javascript:alert(1)"])
def test_it_is_read_once_and_kept(shop: Shop, url: str) -> None:
    order = shop.asked()
    page = Payment.objects.get(pk=order.payment_id).session_url
    kept_elsewhere(order, url)
    assert pressed(order).url == page
    assert Payment.objects.get(pk=order.payment_id).session_url == page
    asked = len(shop.sandbox.calls("sessions.retrieve"))
    payment = Payment.objects.get(pk=order.payment_id)
    assert pages.address(payment) == page
    assert len(shop.sandbox.calls("sessions.retrieve")) == asked


def test_nobody_is_sent_away_while_the_processor_is(shop: Shop, settings: Any) -> None:
    order = shop.asked()
    settings.STRIPE_API_BASE = "http://127.0.0.1:9/stripe"
    assert (pressed(order).problem, pressed(order).url) == ("gateway_down", "")
    assert Payment.objects.get(pk=order.payment_id).status == "open"


def test_a_session_that_has_ended_has_no_page(shop: Shop) -> None:
    order = shop.asked()
    shop.pay(order, "expire")
    kept_elsewhere(order)
    assert pages.address(Payment.objects.get(pk=order.payment_id)) == ""
    answer = pressed(order)
    assert answer.url.startswith(f"{shop.sandbox.url}/stripe/pay/")
    assert Payment.objects.count() == 2


@pytest.mark.parametrize(
    ("base", "url", "theirs"),
    [
        ("https://api.stripe.com", "https://checkout.stripe.com/c/pay/cs_1", True),
        ("https://api.stripe.com", "https://checkout.stripe.com:443/c/pay/cs_1", True),
        ("https://api.stripe.com", "http://checkout.stripe.com/c/pay/cs_1", False),
        ("https://api.stripe.com", "https://checkout.stripe.com.example.org/c", False),
        ("https://api.stripe.com", "https://checkout.stripe.com@example.org/c", False),
        ("https://api.stripe.com", "http://127.0.0.1:8001/stripe/pay/cs_1", False),
        ("https://api.stripe.com", "https://pay.waistheart.example/c/pay/cs_1", False),
        ("http://127.0.0.1:9001/stripe", "http://127.0.0.1:9001/stripe/pay/cs_1", True),
        ("http://127.0.0.1:9001/stripe", "http://127.0.0.1:8001/stripe/pay/cs_1", False),
        ("http://127.0.0.1:9001/stripe", "https://checkout.stripe.com/c/pay/cs_1", False),
        ("http://127.0.0.1:9001/stripe", "", False),
        ("", "", False),
    ],
)
def test_whose_address_it_is(settings: Any, base: str, url: str, theirs: bool) -> None:
    settings.STRIPE_API_BASE = base
    assert pages.is_theirs(url) is theirs
