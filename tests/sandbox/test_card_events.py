"""How events of the card processor travel to the shop: plainly, and in every bad way there is."""

import json
import time

import pytest
import stripe

from tests.sandbox.cards import get, new_session
from tests.sandbox_process import Ear, Heard, Sandbox

SECRET = "whsec_sandbox"


def signed(heard: Heard, *, secret: str = SECRET) -> bool:
    try:
        return stripe.WebhookSignature.verify_header(heard.body, heard.signature, secret, tolerance=300)
    except stripe.SignatureVerificationError:
        return False


def kind(heard: Heard) -> str:
    return json.loads(heard.body)["type"]


def test_a_paid_session_sends_one_signed_event(sandbox: Sandbox, ear: Ear) -> None:
    session = new_session(sandbox)
    sandbox.card(session["id"], "pay")
    heard = ear.next()
    event = json.loads(heard.body)
    assert heard.path == "/hints/stripe/"
    assert signed(heard)
    assert (event["type"], event["livemode"]) == ("checkout.session.completed", False)
    assert event["data"]["object"]["id"] == session["id"]
    assert "line_items" not in event["data"]["object"]
    assert get(sandbox, f"events/{event['id']}").json()["type"] == event["type"]
    assert ear.nothing_more()


@pytest.mark.parametrize(
    ("acts", "kinds"),
    [
        (["expire"], ["checkout.session.expired"]),
        (["pay_unpaid", "succeed"], ["checkout.session.completed", "checkout.session.async_payment_succeeded"]),
        (["pay_unpaid", "fail"], ["checkout.session.completed", "checkout.session.async_payment_failed"]),
        (["pay", "refund"], ["checkout.session.completed", "refund.created"]),
        (["expire", "pay_after_all"], ["checkout.session.expired", "checkout.session.completed"]),
        (["decline"], []),
    ],
)
def test_each_act_sends_its_events(sandbox: Sandbox, ear: Ear, acts: list[str], kinds: list[str]) -> None:
    session = new_session(sandbox)
    for act in acts:
        sandbox.card(session["id"], act)
    assert sorted(kind(ear.next()) for _ in kinds) == sorted(kinds)
    assert ear.nothing_more()


def test_an_answer_other_than_2xx_is_tried_again(sandbox: Sandbox, ear: Ear) -> None:
    ear.answers = [500, 301, 200]
    sandbox.card(new_session(sandbox)["id"], "pay")
    bodies = {ear.next().body for _ in range(3)}
    assert len(bodies) == 1
    assert ear.nothing_more()
    deadline = time.monotonic() + 5
    while [event["answer"] for event in sandbox.state()["events"]] != [500, 301, 200]:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_event_lost_is_only_in_the_processors_list(sandbox: Sandbox, ear: Ear) -> None:
    sandbox.fault("event_lost")
    sandbox.card(new_session(sandbox)["id"], "pay")
    assert ear.nothing_more()
    assert len(get(sandbox, "events").json()["data"]) == 1


def test_event_doubled_has_one_id(sandbox: Sandbox, ear: Ear) -> None:
    sandbox.fault("event_doubled")
    sandbox.card(new_session(sandbox)["id"], "pay")
    assert ear.next().body == ear.next().body


def test_event_late_waits(sandbox: Sandbox, ear: Ear) -> None:
    sandbox.fault("event_late", seconds=1)
    sandbox.card(new_session(sandbox)["id"], "pay")
    assert ear.nothing_more(0.5)
    assert kind(ear.next()) == "checkout.session.completed"


def test_event_bad_signature(sandbox: Sandbox, ear: Ear) -> None:
    sandbox.fault("event_bad_signature")
    sandbox.card(new_session(sandbox)["id"], "pay")
    assert not signed(ear.next())


def test_event_unknown_type(sandbox: Sandbox, ear: Ear) -> None:
    sandbox.fault("event_unknown_type")
    sandbox.card(new_session(sandbox)["id"], "pay")
    heard = ear.next()
    assert kind(heard) == "checkout.session.reconsidered"
    assert signed(heard)


def test_event_lying_says_paid_while_the_object_is_open(sandbox: Sandbox, ear: Ear) -> None:
    sandbox.fault("event_lying")
    session = new_session(sandbox)
    heard = ear.next()
    assert signed(heard)
    assert json.loads(heard.body)["data"]["object"]["payment_status"] == "paid"
    assert get(sandbox, f"checkout/sessions/{session['id']}").json()["payment_status"] == "unpaid"


def test_event_other_version_holds_little_more_than_ids(sandbox: Sandbox, ear: Ear) -> None:
    sandbox.fault("event_other_version")
    session = new_session(sandbox)
    sandbox.card(session["id"], "pay")
    assert json.loads(ear.next().body)["data"]["object"] == {"id": session["id"], "object": "checkout.session"}


def test_a_fault_for_another_session_is_left_alone(sandbox: Sandbox, ear: Ear) -> None:
    one, other = new_session(sandbox), new_session(sandbox)
    sandbox.fault("event_lost", match=other["id"])
    sandbox.card(one["id"], "pay")
    assert json.loads(ear.next().body)["data"]["object"]["id"] == one["id"]
    sandbox.card(other["id"], "pay")
    assert ear.nothing_more()
