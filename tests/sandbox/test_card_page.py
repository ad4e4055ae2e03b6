"""The hosted payment page as a browser without script sees it."""

import re
import time

import pytest
import requests

from tests.sandbox.cards import get, new_session
from tests.sandbox_process import Sandbox


def press(session: dict[str, str], do: str) -> requests.Response:
    return requests.post(session["url"], data={"do": do}, allow_redirects=False, timeout=30)


def stands(sandbox: Sandbox, session: dict[str, str]) -> tuple[str, str]:
    found = get(sandbox, f"checkout/sessions/{session['id']}").json()
    return found["status"], found["payment_status"]


def test_the_page_says_what_is_paid_and_that_no_money_moves(sandbox: Sandbox) -> None:
    session = new_session(sandbox, **{"line_items[0][price_data][product_data][name]": "<b>Heart</b>"})
    page = requests.get(session["url"], timeout=30)
    assert "€2.90" in page.text
    assert "anna@example.com" in page.text.replace("<wbr>", "")
    assert "No money moves" in page.text
    assert "WaistHeart (sandbox)" in page.text
    assert "&lt;b&gt;Heart&lt;/b&gt;" in page.text
    assert "<script" not in page.text
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]


def test_pay_goes_back_to_the_shop(sandbox: Sandbox) -> None:
    session = new_session(sandbox)
    answer = press(session, "pay")
    assert answer.status_code == 303
    assert answer.headers["Location"] == f"http://127.0.0.1:8000/back?s={session['id']}"
    assert stands(sandbox, session) == ("complete", "paid")


def test_a_second_press_changes_nothing(sandbox: Sandbox) -> None:
    session = new_session(sandbox)
    first, second = press(session, "pay"), press(session, "pay")
    assert first.headers["Location"] == second.headers["Location"]
    press(session, "decline")
    press(session, "expire")
    assert stands(sandbox, session) == ("complete", "paid")
    assert len(sandbox.state()["card"]["charges"]) == 1
    assert "Payment received" in requests.get(session["url"], timeout=30).text


def test_a_declined_card_leaves_the_session_payable(sandbox: Sandbox) -> None:
    session = new_session(sandbox)
    page = requests.get(sandbox.url + press(session, "decline").headers["Location"], timeout=30)
    assert "Your card was declined" in page.text
    found = get(sandbox, f"checkout/sessions/{session['id']}", **{"expand[0]": "payment_intent"}).json()
    assert found["status"] == "open"
    assert found["payment_intent"]["last_payment_error"]["code"] == "card_declined"
    press(session, "pay")
    assert stands(sandbox, session) == ("complete", "paid")


def test_pay_and_close_the_tab_stays_here(sandbox: Sandbox) -> None:
    session = new_session(sandbox)
    answer = press(session, "pay_close_tab")
    assert answer.headers["Location"] == f"/stripe/pay/{session['id']}"
    assert "You can close this tab" in requests.get(session["url"], timeout=30).text
    assert stands(sandbox, session) == ("complete", "paid")


def test_pay_by_bank_completes_unpaid_first(sandbox: Sandbox) -> None:
    session = new_session(sandbox)
    assert "back?s=" in press(session, "pay_by_bank").headers["Location"]
    assert stands(sandbox, session) == ("complete", "unpaid")
    assert "is on its way" in requests.get(session["url"], timeout=30).text
    sandbox.card(session["id"], "succeed")
    assert stands(sandbox, session) == ("complete", "paid")


def test_a_banks_answer_arrives_by_itself(sandbox: Sandbox) -> None:
    session = new_session(sandbox)
    sandbox.card(session["id"], "pay_unpaid", then="fail", seconds=0.2)
    deadline = time.monotonic() + 5
    while "checkout.session.async_payment_failed" not in str(sandbox.state()["card"]["events"]):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_cancel_is_a_plain_link_to_the_shop(sandbox: Sandbox) -> None:
    session = new_session(sandbox)
    page = requests.get(session["url"], timeout=30).text
    assert re.search(r'<a class="quiet" href="http://127.0.0.1:8000/order">', page)


def test_an_expired_page_offers_no_way_to_pay(sandbox: Sandbox) -> None:
    session = new_session(sandbox)
    sandbox.card(session["id"], "lapse")
    page = requests.get(session["url"], timeout=30).text
    assert "has expired" in page
    assert "<button" not in page
    assert "back?s=" not in press(session, "pay").headers["Location"]
    assert stands(sandbox, session) == ("expired", "unpaid")


def test_wrong_amount_from_the_page_hits_this_session_only(sandbox: Sandbox) -> None:
    one, other = new_session(sandbox), new_session(sandbox)
    press(one, "pay_wrong_amount")
    press(other, "pay")
    amounts = {row["id"]: row["amount_total"] for row in get(sandbox, "checkout/sessions").json()["data"]}
    assert amounts == {one["id"]: 289, other["id"]: 290}


@pytest.mark.parametrize("do", ["", "steal"])
def test_an_unknown_button_does_nothing(sandbox: Sandbox, do: str) -> None:
    session = new_session(sandbox)
    assert press(session, do).status_code == 400
    assert stands(sandbox, session) == ("open", "unpaid")


def test_an_unknown_session_is_404(sandbox: Sandbox) -> None:
    assert requests.get(f"{sandbox.url}/stripe/pay/cs_test_nobody", timeout=30).status_code == 404
