"""The card processor's API over HTTP: what it makes, what it refuses, and in which words."""

import time

import pytest
import requests

from tests.sandbox.cards import KEY, form, get, new_session, post
from tests.sandbox_process import Sandbox


def test_a_new_session_is_open_unpaid_and_without_intent(sandbox: Sandbox) -> None:
    session = new_session(sandbox)
    assert session["id"].startswith("cs_test_")
    assert session["url"] == f"{sandbox.url}/stripe/pay/{session['id']}"
    assert (session["status"], session["payment_status"], session["payment_intent"]) == ("open", "unpaid", None)
    assert (session["amount_total"], session["currency"], session["livemode"]) == (290, "eur", False)
    assert session["metadata"] == {"credits": "1"}
    assert "line_items" not in session


@pytest.mark.parametrize(
    ("changes", "param", "code"),
    [
        ({"payment_method_types[0]": "card"}, "payment_method_types", "parameter_unknown"),
        ({"payment_methods": "card"}, "payment_methods", "parameter_unknown"),
        ({"ui_mode": "hosted"}, "ui_mode", None),
        ({"mode": None}, "mode", "parameter_missing"),
        ({"success_url": "order"}, "success_url", "url_invalid"),
        ({"success_url": None}, "success_url", "parameter_missing"),
        ({"customer_email": "anna"}, "customer_email", "email_invalid"),
        ({"line_items[0][price_data][unit_amount]": "2.9"}, "unit_amount", "parameter_invalid_integer"),
        ({"line_items[0][price_data][currency]": "euro"}, "line_items[0][price_data][currency]", None),
        ({"expires_at": str(int(time.time()) + 60)}, "expires_at", None),
        ({"expires_at": str(int(time.time()) + 90000)}, "expires_at", None),
    ],
)
def test_a_wrong_parameter_is_refused_by_name(
    sandbox: Sandbox, changes: dict[str, str | None], param: str, code: str | None
) -> None:
    answer = post(sandbox, "checkout/sessions", form(**changes))
    error = answer.json()["error"]
    assert answer.status_code == 400
    assert (error["type"], error["param"], error.get("code")) == ("invalid_request_error", param, code)


def test_no_key_and_a_wrong_key_are_401(sandbox: Sandbox) -> None:
    url = f"{sandbox.url}/stripe/v1/checkout/sessions"
    assert requests.get(url, timeout=30).status_code == 401
    wrong = requests.get(url, headers={"Authorization": "Bearer sk_live_1234567890"}, timeout=30)
    assert wrong.status_code == 401
    assert "1234567890" not in wrong.text


def test_expansions_reach_the_charge_and_the_line_items(sandbox: Sandbox) -> None:
    session = new_session(sandbox, **{"payment_intent_data[metadata][reference]": "order-7"})
    sandbox.card(session["id"], "pay")
    path = f"checkout/sessions/{session['id']}"
    whole = get(sandbox, path, **{"expand[0]": "payment_intent.latest_charge", "expand[1]": "line_items"}).json()
    assert whole["payment_intent"]["latest_charge"]["amount_refunded"] == 0
    assert whole["payment_intent"]["metadata"] == {"reference": "order-7"}
    assert whole["line_items"]["data"][0]["description"] == "Heart video: waist heart"
    flat = get(sandbox, path).json()
    assert flat["payment_intent"] == whole["payment_intent"]["id"]
    assert get(sandbox, f"payment_intents/{flat['payment_intent']}").json()["status"] == "succeeded"
    assert get(sandbox, path, **{"expand[0]": "shop"}).status_code == 400


def test_the_same_key_gives_the_same_answer(sandbox: Sandbox) -> None:
    fields = form()
    first = post(sandbox, "checkout/sessions", fields, key="k1")
    second = post(sandbox, "checkout/sessions", fields, key="k1")
    assert first.json() == second.json()
    assert "Idempotent-Replayed" not in first.headers
    assert second.headers["Idempotent-Replayed"] == "true"
    assert second.headers["Original-Request"] == first.headers["Request-Id"]
    assert len(get(sandbox, "checkout/sessions").json()["data"]) == 1


def test_the_same_key_with_other_parameters_is_refused(sandbox: Sandbox) -> None:
    post(sandbox, "checkout/sessions", form(), key="k1")
    other = post(sandbox, "checkout/sessions", form(client_reference_id="order-8"), key="k1")
    assert other.status_code == 400
    assert other.json()["error"]["type"] == "idempotency_error"


def test_a_refused_request_does_not_use_up_its_key(sandbox: Sandbox) -> None:
    assert post(sandbox, "checkout/sessions", form(mode=None), key="k1").status_code == 400
    assert post(sandbox, "checkout/sessions", form(), key="k1").status_code == 200


def test_a_saved_500_is_replayed(sandbox: Sandbox) -> None:
    sandbox.fault("card_500")
    fields = form()
    assert post(sandbox, "checkout/sessions", fields, key="k1").status_code == 500
    again = post(sandbox, "checkout/sessions", fields, key="k1")
    assert (again.status_code, again.headers["Idempotent-Replayed"]) == (500, "true")
    assert post(sandbox, "checkout/sessions", fields, key="k2").status_code == 200


def test_lists_are_paged_newest_first(sandbox: Sandbox) -> None:
    made = [new_session(sandbox)["id"] for _ in range(5)]
    sandbox.card(made[1], "expire")
    first = get(sandbox, "checkout/sessions", limit="2", status="open").json()
    assert ([row["id"] for row in first["data"]], first["has_more"]) == ([made[4], made[3]], True)
    second = get(sandbox, "checkout/sessions", limit="2", status="open", starting_after=made[3]).json()
    assert ([row["id"] for row in second["data"]], second["has_more"]) == ([made[2], made[0]], False)
    assert get(sandbox, "checkout/sessions", **{"created[gte]": str(int(time.time()) + 60)}).json()["data"] == []


def test_an_open_session_expires_once(sandbox: Sandbox) -> None:
    session = new_session(sandbox)
    path = f"checkout/sessions/{session['id']}/expire"
    assert post(sandbox, path, {}).json()["status"] == "expired"
    again = post(sandbox, path, {})
    assert again.status_code == 400
    assert "status of expired" in again.json()["error"]["message"]


def test_a_paid_session_cannot_expire(sandbox: Sandbox) -> None:
    session = new_session(sandbox)
    sandbox.card(session["id"], "pay")
    assert post(sandbox, f"checkout/sessions/{session['id']}/expire", {}).status_code == 400


def test_a_session_past_its_time_is_expired_when_looked_at(sandbox: Sandbox) -> None:
    session = new_session(sandbox)
    sandbox.card(session["id"], "lapse")
    assert get(sandbox, f"checkout/sessions/{session['id']}").json()["status"] == "expired"
    kinds = [event["type"] for event in get(sandbox, "events").json()["data"]]
    assert kinds == ["checkout.session.expired"]


def test_refunds_never_exceed_the_charge(sandbox: Sandbox) -> None:
    session = new_session(sandbox)
    intent = sandbox.card(session["id"], "pay")["payment_intent"]
    assert post(sandbox, "refunds", {"payment_intent": intent, "amount": "100"}).json()["amount"] == 100
    assert post(sandbox, "refunds", {"payment_intent": intent, "amount": "191"}).status_code == 400
    rest = post(sandbox, "refunds", {"payment_intent": intent}).json()
    assert (rest["amount"], rest["status"]) == (190, "succeeded")
    over = post(sandbox, "refunds", {"payment_intent": intent}).json()
    assert over["error"]["code"] == "charge_already_refunded"
    listed = get(sandbox, "refunds", payment_intent=intent).json()["data"]
    assert [refund["amount"] for refund in listed] == [190, 100]
    assert get(sandbox, f"checkout/sessions/{session['id']}").json()["payment_status"] == "paid"


def test_a_refund_may_fail_after_it_succeeded(sandbox: Sandbox) -> None:
    session = new_session(sandbox)
    intent = sandbox.card(session["id"], "pay")["payment_intent"]
    refund = post(sandbox, "refunds", {"payment_intent": intent}).json()
    sandbox.card(session["id"], "refund_update", refund=refund["id"], status="failed")
    assert get(sandbox, f"refunds/{refund['id']}").json()["status"] == "failed"
    assert get(sandbox, f"charges/{refund['charge']}").json()["amount_refunded"] == 0


def test_version_and_key_of_a_call_are_recorded_and_the_api_key_is_not(sandbox: Sandbox) -> None:
    url = f"{sandbox.url}/stripe/v1/checkout/sessions"
    headers = {**KEY, "Stripe-Version": "2026-10-28.endive", "Idempotency-Key": "k9"}
    requests.post(url, data=form(), headers=headers, timeout=30)
    call = sandbox.calls("sessions.create")[-1]
    assert (call["version"], call["key"], call["status"]) == ("2026-10-28.endive", "k9", 200)
    assert "sk_test" not in str(sandbox.state()["card"])


def test_an_unknown_path_answers_in_the_processors_words(sandbox: Sandbox) -> None:
    answer = get(sandbox, "payouts")
    assert answer.status_code == 404
    assert answer.json()["error"]["type"] == "invalid_request_error"
