"""The card processor's callbacks: each is answered like the first, stored once, and causes one look at most."""

import json
import time
from functools import partial
from typing import Any

import pytest
import requests
from django.conf import settings

from generation.models import Job
from orders import tasks
from tests.orders.facts import event, send_event, the_one_job
from tests.orders.rivals import at_once, lost
from tests.shop import Shop
from tests.shop_fixture import wait_for
from waistheart.celery import app
from waistheart.models import Hint
from waistheart.sandbox.card_events import signature

TIMES = 20


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """The messages that the shop has sent to its workers."""
    sent: list[tuple[str, Any]] = []
    monkeypatch.setattr(app, "send_task", lambda name, args=(), **more: sent.append((name, *args)))
    return sent


def test_both_spellings_and_every_repeat_are_taken(shop: Shop, looks: list[tuple[str, Any]]) -> None:
    payment = shop.pay(shop.asked())
    body = event(str(payment.session_id))
    for path in ("/hints/stripe", "/hints/stripe/", "/hints/stripe", "/hints/stripe/"):
        assert send_event(shop, body, path=path).status_code == 200
    hint = Hint.objects.get()
    assert (hint.source, hint.event_id, hint.kind) == ("stripe", "evt_1", "checkout.session.completed")
    assert (hint.reference, hint.outcome) == (f"payment:{payment.pk}", "looked at")
    assert looks == [("orders.look", payment.pk)]


def test_twenty_times_the_same_event_at_once(shop: Shop, looks: list[tuple[str, Any]]) -> None:
    order = shop.asked()
    payment = shop.pay(order)
    press = partial(send_event, shop, event(str(payment.session_id)))
    answers = at_once(*[press] * TIMES)
    assert [answer.status_code for answer in answers] == [200] * TIMES
    assert Hint.objects.count() == 1
    assert looks == [("orders.look", payment.pk)]
    for _ in range(2):
        tasks.look(looks[0][1])
    the_one_job(order)


def test_twenty_different_events_of_one_payment_at_once(shop: Shop, looks: list[tuple[str, Any]]) -> None:
    order = shop.asked()
    payment = shop.pay(order)
    bodies = [event(str(payment.session_id), ident=f"evt_{n}") for n in range(TIMES)]
    answers = at_once(*[partial(send_event, shop, body) for body in bodies])
    assert [answer.status_code for answer in answers] == [200] * TIMES
    assert Hint.objects.count() == len(looks) == TIMES
    at_once(*[partial(tasks.look, payment.pk)] * 5)
    the_one_job(order)


def test_an_event_is_taken_until_it_is_five_minutes_old(shop: Shop, looks: list[tuple[str, Any]]) -> None:
    payment = shop.pay(shop.asked())
    assert send_event(shop, event(str(payment.session_id)), age=290).status_code == 200
    assert send_event(shop, event(str(payment.session_id), ident="evt_2"), age=301).status_code == 401
    assert [hint.event_id for hint in Hint.objects.all()] == ["evt_1"]
    assert lost("hint.unverified.stripe") == 1


@pytest.mark.parametrize(
    "signed",
    [
        pytest.param("", id="none"),
        pytest.param("rubbish", id="rubbish"),
        pytest.param("t=NOW,v1=\u00e9\u00e9", id="not ASCII"),
        pytest.param("t=NOW", id="a time alone"),
        pytest.param("t=NOW,v0=" + "0" * 64, id="another scheme"),
        pytest.param("t=NOW,v1=" + "0" * 64, id="another secret"),
        pytest.param("t=" + "9" * 5000 + ",v1=" + "0" * 64, id="a time without end"),
    ],
)
def test_what_we_cannot_trust_is_refused_and_leaves_nothing(
    shop: Shop, looks: list[tuple[str, Any]], signed: str
) -> None:
    payment = shop.pay(shop.asked())
    answer = send_event(shop, event(str(payment.session_id)), signed=signed.replace("NOW", str(int(time.time()))))
    assert answer.status_code == 401
    assert not Hint.objects.exists()
    assert looks == []
    assert lost("hint.unverified.stripe") == 1


def test_a_signature_covers_every_byte(shop: Shop, looks: list[tuple[str, Any]]) -> None:
    body = event("cs_test_one")
    signed = signature(body=body, secret=settings.STRIPE_WEBHOOK_SECRET, at=int(time.time()))
    assert send_event(shop, body.replace(b"cs_test_one", b"cs_test_two"), signed=signed).status_code == 401
    assert send_event(shop, body + b" ", signed=signed).status_code == 401
    assert send_event(shop, b"\xff\xfe" + body, signed=signed).status_code == 401
    assert send_event(shop, body, signed=signed).status_code == 200


def test_a_secret_that_is_being_changed_has_two_values(shop: Shop, looks: list[tuple[str, Any]], settings: Any) -> None:
    settings.STRIPE_WEBHOOK_SECRET = "whsec_new, whsec_old"
    answers = [
        send_event(shop, event("cs", ident=secret), secret=secret) for secret in ("whsec_new", "whsec_old", "whsec_x")
    ]
    assert [answer.status_code for answer in answers] == [200, 200, 401]


def test_an_unknown_kind_of_event_is_stored_and_looked_at(shop: Shop, looks: list[tuple[str, Any]]) -> None:
    payment = shop.pay(shop.asked())
    body = event(str(payment.session_id), kind="checkout.session.reconsidered." + "x" * 90)
    assert send_event(shop, body).status_code == 200
    assert Hint.objects.get().kind.startswith("checkout.session.reconsidered.x")
    assert looks == [("orders.look", payment.pk)]


@pytest.mark.parametrize(
    ("thing", "reference"),
    [
        ({"id": "cs_test_of_another_shop", "object": "checkout.session"}, "cs_test_of_another_shop"),
        ({"id": "pi_1", "object": "payment_intent"}, "pi_1"),
        ({"id": "ch_1", "object": "charge", "payment_intent": "pi_2"}, "pi_2"),
        ({"id": "acct_1", "object": "account"}, ""),
        ({}, ""),
    ],
)
def test_an_event_about_nothing_of_ours_is_stored(
    shop: Shop, looks: list[tuple[str, Any]], thing: dict[str, str], reference: str
) -> None:
    body = json.dumps({"id": "evt_1", "type": "some.thing", "data": {"object": thing}}).encode()
    for _ in range(2):
        assert send_event(shop, body).status_code == 200
    hint = Hint.objects.get()
    assert (hint.reference, hint.outcome) == (reference, "no such payment")
    assert looks == []


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"null", b"{}", b'{"id": "evt_1", "type": "x", "data": {"object": []}}']
)
def test_a_signed_body_that_we_cannot_read_is_sent_again(shop: Shop, looks: list[tuple[str, Any]], body: bytes) -> None:
    assert send_event(shop, body).status_code >= 500
    assert not Hint.objects.exists()
    assert looks == []


def test_a_broker_that_is_away_loses_no_event(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    order = shop.asked()
    payment = shop.pay(order)
    monkeypatch.setattr(app, "send_task", broken)
    assert send_event(shop, event(str(payment.session_id))).status_code == 200
    assert Hint.objects.count() == 1
    shop.sweep()
    the_one_job(order)


def broken(*args: Any, **kwargs: Any) -> None:
    raise ConnectionError("no broker")


def test_only_a_post_is_an_event(shop: Shop) -> None:
    assert requests.get(f"{shop.url}/hints/stripe/", timeout=30).status_code == 405
    assert not Hint.objects.exists()


@pytest.mark.parametrize("manner", ["plain", "doubled", "unknown_type", "other_version"])
def test_however_the_processor_tells_it_the_order_is_paid_once(
    shop: Shop, looks: list[tuple[str, Any]], manner: str
) -> None:
    shop.sandbox.settings(shop_url=shop.url)
    order = shop.asked()
    payment = shop.pay(order, event=manner)
    wait_for(lambda: looks)
    assert looks == [("orders.look", payment.pk)]
    tasks.look(looks[0][1])
    the_one_job(order)
    wait_for(
        lambda: len([e for e in shop.sandbox.state()["events"] if e["answer"] == 200]) == 1 + (manner == "doubled")
    )
    assert (Hint.objects.count(), Job.objects.count()) == (1, 1)
