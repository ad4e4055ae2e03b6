"""A page of somebody else, open in a browser on this machine, presses no switch and pays nothing."""

from typing import Any

import pytest
import requests

from tests.sandbox.cards import get, new_session
from tests.sandbox_process import Sandbox
from waistheart.sandbox.strangers import is_ours

FAULT = {"fault": "status_402"}


@pytest.mark.parametrize("headers", [
    {"Origin": "http://evil.example"}, {"Origin": "null"}, {"Host": "evil.example"}, {"Host": "evil.example:8001"},
    {"Origin": "http://evil.example", "Host": "evil.example"}, {"Host": "127.0.0.1.evil.example"}, {"Origin": "http://127.0.0.1:1"},
    {"Origin": "http://["},
])  # fmt: skip
def test_a_stranger_presses_nothing(sandbox: Sandbox, headers: dict[str, str]) -> None:
    session = new_session(sandbox)
    for method, path, body in (
        ("POST", "/control/faults", FAULT), ("POST", "/control/topup", {}), ("POST", "/control/reset", {}),
        ("POST", "/control/settings", {"delay_seconds": 9}), ("DELETE", "/control/faults", {}),
        ("POST", f"/control/card/{session['id']}", {"do": "pay"}),
    ):  # fmt: skip
        answer = requests.request(method, sandbox.url + path, json=body, headers=headers, timeout=30)
        assert answer.status_code == 403, path
    assert requests.post(session["url"], data={"do": "pay"}, headers=headers, timeout=30).status_code == 403
    assert get(sandbox, f"checkout/sessions/{session['id']}").json()["status"] == "open"
    assert sandbox.state()["faults"] == []


def test_a_name_that_leads_here_reads_nothing_either(sandbox: Sandbox) -> None:
    answer = requests.get(f"{sandbox.url}/control/state", headers={"Host": "evil.example"}, timeout=30)
    assert answer.status_code == 403


def test_our_own_page_and_programs_may(sandbox: Sandbox) -> None:
    session, own = new_session(sandbox), {"Origin": sandbox.url}
    assert requests.post(f"{sandbox.url}/control/faults", json=FAULT, headers=own, timeout=30).status_code == 201
    port = sandbox.url.rpartition(":")[2]
    local = {"Host": f"localhost:{port}", "Origin": f"http://localhost:{port}"}
    assert requests.delete(f"{sandbox.url}/control/faults", headers=local, timeout=30).status_code == 200
    paid = requests.post(session["url"], data={"do": "pay"}, headers=own, allow_redirects=False, timeout=30)
    assert paid.status_code == 303


def test_the_shop_may_know_us_by_any_name(sandbox: Sandbox) -> None:
    """Only switches and buttons are a person's: the two interfaces ask for their keys."""
    answer = requests.get(f"{sandbox.url}/stripe/v1/events", headers={"Host": "sandbox:8001"}, timeout=30)
    assert answer.status_code == 401


@pytest.mark.parametrize(("host", "ours"), [
    ("127.0.0.1:8001", True), ("127.8.8.8", True), ("[::1]:8001", True), ("localhost", True), ("pay.localhost:1", True),
    ("sandbox.example:8001", True), ("", False), ("[", False), ("10.0.0.1", False), ("localhost.evil.example", False),
])  # fmt: skip
def test_whose_a_host_header_is(host: str, ours: bool) -> None:
    assert is_ours(host, "sandbox.example") is ours


# --- switches with bad values ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("body", [
    b'{"delay_seconds": "x"}', b'{"delay_seconds": NaN}', b'{"delay_seconds": 1e999}', b'{"delay_seconds": -1}',
    b'{"delay_seconds": true}', b'{"delay_seconds": null}', b'{"shop_url": 5}', b'{"shop_url": "file:///etc"}',
    b'{"delay_seconds": 1, "shop_url": 5}', b'{"film_height": 641}', b'{"film_height": true}', b'{"film_height": 4096}', b'{"other": 1}', b"[1]", b"{",
])  # fmt: skip
def test_a_setting_that_cannot_be_is_refused_and_changes_nothing(sandbox: Sandbox, body: bytes) -> None:
    answer = requests.post(f"{sandbox.url}/control/settings", data=body, timeout=30)
    assert (answer.status_code, "detail" in answer.json()) == (400, True)
    assert sandbox.state()["delay_seconds"] == 0.1


@pytest.mark.parametrize("body", [
    {"fault": "nobody"}, {"fault": "status_402", "times": "x"}, {"fault": "never_finishing", "seconds": "x"},
    {"fault": "never_finishing", "seconds": -1}, {"fault": "never_finishing", "seconds": True},
])  # fmt: skip
def test_a_fault_that_cannot_be_is_refused(sandbox: Sandbox, body: dict[str, Any]) -> None:
    assert requests.post(f"{sandbox.url}/control/faults", json=body, timeout=30).status_code == 400
    assert sandbox.state()["faults"] == []


@pytest.mark.parametrize("path", ["/control/faults", "/control/fal/x", "/control/card/x"])
def test_a_body_that_is_none_is_refused(sandbox: Sandbox, path: str) -> None:
    assert requests.post(sandbox.url + path, data=b"[NaN]", timeout=30).status_code == 400
    assert requests.post(sandbox.url + path, data=b"{", timeout=30).status_code == 400


def test_a_time_that_no_clock_waits_is_refused(sandbox: Sandbox) -> None:
    session = new_session(sandbox)
    body = b'{"do": "pay", "event": "late", "seconds": 1e999}'
    assert requests.post(f"{sandbox.url}/control/card/{session['id']}", data=body, timeout=30).status_code == 400
    assert get(sandbox, f"checkout/sessions/{session['id']}").json()["status"] == "open"
