"""The gateway's contract against the sandbox as a process: one test per fault of the card processor, by its name."""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
import stripe
from stripe._api_version import _ApiVersion

from billing import gateway as gateway_module
from billing import receipts
from billing.gateway import API_VERSION, StripeGateway, get_gateway
from billing.gateway_errors import (
    BadSignature,
    GatewayMisconfigured,
    GatewayRefused,
    GatewayUnavailable,
    UnreadableEvent,
)
from tests.generation.rude_server import head, rude
from tests.sandbox_process import Ear, Sandbox

pytestmark = pytest.mark.django_db  # making a gateway asks the database which world it belongs to
EXPIRES_AT = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=23)


def order(**changes: Any) -> dict[str, Any]:
    """The arguments of one creation, the same ones on every call."""
    return {
        "key": "0123456789abcdef0123456789abcdef",
        "amount": 290,
        "currency": "GBP",
        "credits": 1,
        "reference": "order:7",
        "name": "Heart video: waist heart",
        "email": "anna@example.com",
        "success_url": "http://127.0.0.1:8000/back/{CHECKOUT_SESSION_ID}",
        "cancel_url": "http://127.0.0.1:8000/order/7",
        "expires_at": EXPIRES_AT,
        **changes,
    }


@pytest.fixture
def gateway(sandbox: Sandbox, settings: Any) -> StripeGateway:
    settings.STRIPE_API_BASE = f"{sandbox.url}/stripe"
    settings.STRIPE_SECRET_KEY = "sk_test_sandbox"
    settings.STRIPE_WEBHOOK_SECRET = "whsec_sandbox"
    return get_gateway()


@pytest.fixture
def session_id(gateway: StripeGateway) -> str:
    return gateway.create_session(**order()).id


def made(sandbox: Sandbox) -> int:
    return len(sandbox.state()["card"].get("sessions", {}))


def test_the_pinned_version_is_the_one_of_the_pinned_library(
    gateway: StripeGateway, sandbox: Sandbox, session_id: str
) -> None:
    assert _ApiVersion.CURRENT == API_VERSION
    assert sandbox.calls("sessions.create")[0]["version"] == API_VERSION


def test_a_new_session_is_open_and_says_what_we_asked(gateway: StripeGateway, session_id: str) -> None:
    receipt = gateway.look_up(session_id=session_id)
    assert receipt.status == "open"
    assert (receipt.amount, receipt.currency) == (290, "gbp")
    assert (receipt.credits, receipt.reference) == (1, "order:7")
    assert (receipt.payment_intent, receipt.charge, receipt.refunded, receipt.disputed) == (None, None, 0, False)
    assert receipt.livemode is False
    assert receipt.url


def test_the_same_arguments_give_the_same_session(gateway: StripeGateway, sandbox: Sandbox, session_id: str) -> None:
    again = get_gateway().create_session(**order())
    assert again.id == session_id
    assert made(sandbox) == 1


def test_other_arguments_under_the_same_key_are_refused(gateway: StripeGateway, session_id: str) -> None:
    with pytest.raises(GatewayRefused) as refused:
        gateway.create_session(**order(amount=291))
    assert refused.value.code == "idempotency_error"


def test_a_paid_session(gateway: StripeGateway, sandbox: Sandbox, session_id: str) -> None:
    sandbox.card(session_id, "pay")
    receipt = gateway.look_up(session_id=session_id)
    assert receipt.status == "paid"
    assert (receipt.payment_intent or "").startswith("pi_")
    assert (receipt.charge or "").startswith("ch_")


def test_a_declined_card_leaves_it_open(gateway: StripeGateway, sandbox: Sandbox, session_id: str) -> None:
    sandbox.card(session_id, "decline")
    assert gateway.look_up(session_id=session_id).status == "open"


@pytest.mark.parametrize(("news", "status"), [("succeed", "paid"), ("fail", "failed")])
def test_money_on_its_way(gateway: StripeGateway, sandbox: Sandbox, session_id: str, news: str, status: str) -> None:
    sandbox.card(session_id, "pay_unpaid")
    assert gateway.look_up(session_id=session_id).status == "pending"
    sandbox.card(session_id, news)
    assert gateway.look_up(session_id=session_id).status == status


def test_a_session_past_its_time_is_expired(gateway: StripeGateway, sandbox: Sandbox, session_id: str) -> None:
    sandbox.card(session_id, "lapse")
    assert gateway.look_up(session_id=session_id).status == "expired"


def test_an_expired_session_may_turn_out_paid(gateway: StripeGateway, sandbox: Sandbox, session_id: str) -> None:
    assert gateway.expire(session_id=session_id).status == "expired"
    sandbox.card(session_id, "pay_after_all")
    assert gateway.look_up(session_id=session_id).status == "paid"


def test_expire_is_true_on_every_call(gateway: StripeGateway, sandbox: Sandbox, session_id: str) -> None:
    assert [gateway.expire(session_id=session_id).status for _ in range(2)] == ["expired", "expired"]


def test_expire_of_a_session_paid_a_moment_before_says_paid(
    gateway: StripeGateway, sandbox: Sandbox, session_id: str
) -> None:
    sandbox.card(session_id, "pay")
    assert gateway.expire(session_id=session_id).status == "paid"


def test_a_refund_in_the_dashboard_stays_paid_and_shows_what_went_back(
    gateway: StripeGateway, sandbox: Sandbox, session_id: str
) -> None:
    sandbox.card(session_id, "pay")
    sandbox.card(session_id, "refund", amount=100)
    receipt = gateway.look_up(session_id=session_id)
    assert (receipt.status, receipt.refunded) == ("paid", 100)


def test_a_dispute_shows(gateway: StripeGateway, sandbox: Sandbox, session_id: str) -> None:
    sandbox.card(session_id, "pay")
    sandbox.card(session_id, "dispute")
    assert gateway.look_up(session_id=session_id).disputed is True


@pytest.mark.parametrize(("status", "currency", "expected"), [
    ("needs_response", "gbp", (0, False)), ("appeal_under_review", "gbp", (0, False)), ("a_new_word", "gbp", (0, False)),
    ("lost", "gbp", (400, True)), ("lost", "usd", (0, False)), ("won", "gbp", (0, True)), ("won", "usd", (0, True)),
])  # fmt: skip
def test_only_a_lost_dispute_in_the_same_currency_took_money(status: str, currency: str, expected: tuple[int, bool]):
    found = [SimpleNamespace(status=status, currency=currency, amount=400)]
    read = receipts.disputes(found, currency="GBP")
    assert (read.taken, read.over) == expected


def test_a_charge_without_a_dispute_that_we_can_see_is_not_over(gateway: StripeGateway) -> None:
    read = gateway.disputes(charge="ch_none", currency="gbp")
    assert (read.taken, read.over) == (0, False)


def test_wrong_amount(gateway: StripeGateway, sandbox: Sandbox, session_id: str) -> None:
    sandbox.fault("wrong_amount", amount=1)
    sandbox.card(session_id, "pay")
    receipt = gateway.look_up(session_id=session_id)
    assert (receipt.status, receipt.amount) == ("paid", 1)


def test_wrong_currency(gateway: StripeGateway, sandbox: Sandbox, session_id: str) -> None:
    sandbox.fault("wrong_currency", currency="JPY")
    sandbox.card(session_id, "pay")
    receipt = gateway.look_up(session_id=session_id)
    assert (receipt.status, receipt.currency) == ("paid", "jpy")


def test_recent_paid_pages_through_all_of_them(gateway: StripeGateway, sandbox: Sandbox) -> None:
    made = [gateway.create_session(**order(key=f"{number:032x}")).id for number in range(103)]
    for ident in made[:101]:
        sandbox.card(ident, "pay")
    sandbox.card(made[101], "pay_unpaid")
    found = list(gateway.recent_paid(since=datetime.now(UTC) - timedelta(minutes=5)))
    assert sorted(found) == sorted(made[:101])
    assert len(sandbox.calls("sessions.list")) == 2


def test_recent_paid_leaves_old_ones_out(gateway: StripeGateway, sandbox: Sandbox, session_id: str) -> None:
    sandbox.card(session_id, "pay")
    assert list(gateway.recent_paid(since=datetime.now(UTC) + timedelta(hours=25))) == []


def test_a_session_that_nobody_made_is_refused_by_name(gateway: StripeGateway) -> None:
    with pytest.raises(GatewayRefused) as refused:
        gateway.look_up(session_id="cs_test_nobody")
    assert refused.value.code == "resource_missing"


def test_card_500_is_replayed_for_its_key_and_another_key_works(gateway: StripeGateway, sandbox: Sandbox) -> None:
    sandbox.fault("card_500", match="sessions.create")
    for _ in range(2):
        with pytest.raises(GatewayUnavailable):
            gateway.create_session(**order())
    assert gateway.create_session(**order(key="another")).id


@pytest.mark.parametrize("fault", ["card_error_503", "card_429", "card_409", "card_drop_before"])
def test_unavailable_and_nothing_made(gateway: StripeGateway, sandbox: Sandbox, fault: str) -> None:
    sandbox.fault(fault)
    with pytest.raises(GatewayUnavailable):
        gateway.create_session(**order())
    assert made(sandbox) == 0
    assert gateway.create_session(**order()).id


@pytest.mark.parametrize("fault", ["card_drop_after", "card_garbage"])
def test_the_answer_is_lost_and_the_same_call_finds_the_session(
    gateway: StripeGateway, sandbox: Sandbox, fault: str
) -> None:
    sandbox.fault(fault)
    with pytest.raises(GatewayUnavailable):
        gateway.create_session(**order())
    assert made(sandbox) == 1
    assert gateway.create_session(**order()).id in sandbox.state()["card"]["sessions"]
    assert made(sandbox) == 1


def test_card_slow_gives_up(
    gateway: StripeGateway, sandbox: Sandbox, session_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway_module, "READ_SECONDS", 0.3)
    sandbox.fault("card_slow", seconds=3)
    started = time.monotonic()
    with pytest.raises(GatewayUnavailable):
        get_gateway().look_up(session_id=session_id)
    assert time.monotonic() - started < 2


def test_card_drop_after_of_expire_is_true_on_the_second_call(
    gateway: StripeGateway, sandbox: Sandbox, session_id: str
) -> None:
    sandbox.fault("card_drop_after", match="sessions.expire")
    with pytest.raises(GatewayUnavailable):
        gateway.expire(session_id=session_id)
    assert gateway.expire(session_id=session_id).status == "expired"


def test_no_call_is_repeated_in_secret(gateway: StripeGateway, sandbox: Sandbox) -> None:
    sandbox.fault("card_error_503")
    with pytest.raises(GatewayUnavailable):
        gateway.create_session(**order())
    assert len(sandbox.calls("sessions.create")) == 1


def test_card_refuse_create(gateway: StripeGateway, sandbox: Sandbox) -> None:
    sandbox.fault("card_refuse_create")
    with pytest.raises(GatewayRefused) as refused:
        gateway.create_session(**order())
    assert refused.value.code == "account_invalid"


def test_card_refuse_email(gateway: StripeGateway, sandbox: Sandbox) -> None:
    sandbox.fault("card_refuse_email")
    with pytest.raises(GatewayRefused) as refused:
        gateway.create_session(**order())
    assert refused.value.code == "email_invalid"


def test_card_500_is_said_to_be_replayed(gateway: StripeGateway, sandbox: Sandbox) -> None:
    sandbox.fault("card_500")
    asked, said = order(), []
    for _ in range(2):
        with pytest.raises(GatewayUnavailable) as error:
            gateway.create_session(**asked)
        said.append(error.value.replayed)
    assert said == [False, True]


def test_card_403_is_ours_to_mend(gateway: StripeGateway, sandbox: Sandbox) -> None:
    sandbox.fault("card_403")
    with pytest.raises(GatewayMisconfigured):
        gateway.create_session(**order())


def test_nobody_there(settings: Any) -> None:
    settings.STRIPE_API_BASE = "http://127.0.0.1:9/stripe"
    with pytest.raises(GatewayUnavailable):
        get_gateway().look_up(session_id="cs_test_x")


def test_a_wrong_key_is_ours_to_mend_and_is_named_nowhere(
    gateway: StripeGateway, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    settings.STRIPE_SECRET_KEY = "sk_test_madeupforthistest"
    with pytest.raises(GatewayMisconfigured) as error:
        get_gateway().look_up(session_id="cs_test_x")
    assert "madeup" not in str(error.value) + caplog.text


def test_a_missing_key_is_ours_to_mend(settings: Any) -> None:
    settings.STRIPE_SECRET_KEY = ""
    with pytest.raises(GatewayMisconfigured):
        get_gateway()


def test_an_event_names_its_session(gateway: StripeGateway, sandbox: Sandbox, ear: Ear, session_id: str) -> None:
    sandbox.card(session_id, "pay")
    heard = ear.next()
    event = gateway.verify(body=heard.body, signature=heard.signature)
    assert (event.kind, event.session_id) == ("checkout.session.completed", session_id)
    assert event.payment_intent == gateway.look_up(session_id=session_id).payment_intent
    assert event.id.startswith("evt_")


def test_a_refund_event_names_its_intent(gateway: StripeGateway, sandbox: Sandbox, ear: Ear, session_id: str) -> None:
    intent = sandbox.card(session_id, "pay")["payment_intent"]
    ear.next()
    sandbox.card(session_id, "refund")
    heard = ear.next()
    event = gateway.verify(body=heard.body, signature=heard.signature)
    assert (event.kind, event.session_id, event.payment_intent) == ("refund.created", None, intent)


@pytest.mark.parametrize("fault", ["event_unknown_type", "event_other_version", "event_doubled", "event_late"])
def test_an_odd_event_still_names_its_session(
    gateway: StripeGateway, sandbox: Sandbox, ear: Ear, session_id: str, fault: str
) -> None:
    sandbox.fault(fault, seconds=0.1)
    sandbox.card(session_id, "pay")
    heard = ear.next()
    assert gateway.verify(body=heard.body, signature=heard.signature).session_id == session_id


def test_event_lying_is_not_believed(gateway: StripeGateway, sandbox: Sandbox, ear: Ear, session_id: str) -> None:
    sandbox.card(session_id, "lie")
    heard = ear.next()
    event = gateway.verify(body=heard.body, signature=heard.signature)
    assert event.kind == "checkout.session.completed"
    assert gateway.look_up(session_id=event.session_id or "").status == "open"


def test_event_lost_and_a_look_still_finds_the_money(
    gateway: StripeGateway, sandbox: Sandbox, ear: Ear, session_id: str
) -> None:
    sandbox.fault("event_lost")
    sandbox.card(session_id, "pay")
    assert ear.nothing_more()
    assert list(gateway.recent_paid(since=datetime.now(UTC))) == [session_id]


def test_event_bad_signature(gateway: StripeGateway, sandbox: Sandbox, ear: Ear, session_id: str) -> None:
    sandbox.fault("event_bad_signature")
    sandbox.card(session_id, "pay")
    heard = ear.next()
    with pytest.raises(BadSignature):
        gateway.verify(body=heard.body, signature=heard.signature)


def sign(body: bytes, *, secret: str = "whsec_sandbox", ago: int = 0) -> str:
    at = int(time.time()) - ago
    return stripe.WebhookSignature.generate_signature_header(body.decode(), secret, timestamp=at)


EVENT = (
    b'{"id": "evt_1", "object": "event", "type": "x", "data": {"object": {"id": "cs_1", "object": "checkout.session"}}}'
)


def test_two_secrets_hold_while_one_replaces_the_other(gateway: StripeGateway, settings: Any) -> None:
    settings.STRIPE_WEBHOOK_SECRET = "whsec_new, whsec_sandbox"
    for secret in ("whsec_new", "whsec_sandbox"):
        assert get_gateway().verify(body=EVENT, signature=sign(EVENT, secret=secret)).session_id == "cs_1"
    with pytest.raises(BadSignature):
        get_gateway().verify(body=EVENT, signature=sign(EVENT, secret="whsec_old"))


def test_an_event_older_than_five_minutes_is_refused(gateway: StripeGateway) -> None:
    assert gateway.verify(body=EVENT, signature=sign(EVENT, ago=290)).id == "evt_1"
    with pytest.raises(BadSignature):
        gateway.verify(body=EVENT, signature=sign(EVENT, ago=310))


@pytest.mark.parametrize("signature", ["", "t=1", "v1=00", "t=x,v1=00", "nonsense"])
def test_a_header_that_is_no_signature_is_refused(gateway: StripeGateway, signature: str) -> None:
    with pytest.raises(BadSignature):
        gateway.verify(body=EVENT, signature=signature)


def test_a_changed_byte_is_refused(gateway: StripeGateway) -> None:
    with pytest.raises(BadSignature):
        gateway.verify(body=EVENT.replace(b"cs_1", b"cs_2"), signature=sign(EVENT))


def test_bytes_that_are_no_text_are_refused(gateway: StripeGateway) -> None:
    with pytest.raises(BadSignature):
        gateway.verify(body=b"\xff\xfe", signature=sign(EVENT))


@pytest.mark.parametrize("body", [b"not json", b"[]", b"{}", b'{"id": "evt_1", "type": "x", "data": {"object": 3}}'])
def test_a_signed_body_that_is_no_event_is_unreadable(gateway: StripeGateway, body: bytes) -> None:
    with pytest.raises(UnreadableEvent):
        gateway.verify(body=body, signature=sign(body))


def test_without_a_webhook_secret_nothing_is_verified(gateway: StripeGateway, settings: Any) -> None:
    settings.STRIPE_WEBHOOK_SECRET = " , "
    with pytest.raises(GatewayMisconfigured):
        get_gateway().verify(body=EVENT, signature=sign(EVENT, secret=" "))


ODD = [b"{}", b"[]", b"null", b'"yes"', b"<html>", b'{"object": "checkout.session", "id": null, "url": null}']
ODD_SESSIONS = [
    b'{"object": "checkout.session", "id": "cs_another", "status": "open", "payment_status": "unpaid"}',
    b'{"object": "checkout.session", "id": "cs_1", "status": "complete", "payment_status": "paid", "amount_total": "290"}',
]


@pytest.mark.parametrize("body", ODD)
def test_an_answer_that_is_no_session_is_no_answer(settings: Any, body: bytes) -> None:
    with answering(settings, body):
        for ask in (
            lambda: get_gateway().create_session(**order()),
            lambda: get_gateway().look_up(session_id="cs_1"),
            lambda: get_gateway().expire(session_id="cs_1"),
            lambda: list(get_gateway().recent_paid(since=datetime.now(UTC))),
        ):
            with pytest.raises(GatewayUnavailable):
                ask()


@pytest.mark.parametrize("body", ODD_SESSIONS)
def test_an_answer_about_another_session_or_with_a_sum_in_words_is_no_answer(settings: Any, body: bytes) -> None:
    with answering(settings, body), pytest.raises(GatewayUnavailable):
        get_gateway().look_up(session_id="cs_1")


@contextmanager
def answering(settings: Any, body: bytes) -> Iterator[None]:
    """The card processor, or something before it, answers everything like this."""
    answer = head("200 OK", Content_Length=len(body), Content_Type="application/json", Connection="close") + body
    with rude(answer) as server:
        settings.STRIPE_API_BASE = f"http://{server.host}"
        yield
