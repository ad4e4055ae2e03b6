"""Every fault of the submit and of the reads: what is answered, and whether a request was taken all the same."""

from typing import Any

import pytest
import requests

from tests.sandbox.fal_client import MODEL, Fal
from tests.sandbox_process import Sandbox

REFUSALS = {
    "status_402": 402,
    "locked_403": 403,
    "unauthorized_401": 401,
    "rate_limited_429": 429,
    "content_policy_422": 422,
    "error_500": 500,
    "error_502": 502,
    "error_503": 503,
    "error_504": 504,
}


@pytest.mark.parametrize(("fault", "status"), REFUSALS.items())
def test_a_refusal_takes_nothing_and_ends_after_its_times(fal: Fal, sandbox: Sandbox, fault: str, status: int) -> None:
    sandbox.fault(fault, times=2)
    assert [fal.submit().status_code for _ in range(3)] == [status, status, 200]
    assert sandbox.state()["accepted"] == 1


@pytest.mark.parametrize("fault", REFUSALS)
def test_a_refusal_may_hide_a_request_that_was_taken(fal: Fal, sandbox: Sandbox, fault: str) -> None:
    sandbox.fault(fault, accepted=True)
    assert fal.submit().status_code == REFUSALS[fault]
    assert sandbox.state()["accepted"] == 1


def test_locked_403_names_its_reason_until_topped_up(fal: Fal, sandbox: Sandbox) -> None:
    sandbox.fault("locked_403", times="all")
    for _ in range(3):
        assert fal.submit().json()["detail"].startswith("User is locked. Reason: Exhausted balance.")
    sandbox.post("/control/topup", {})
    assert fal.submit().status_code == 200


def test_locked_403_may_have_another_reason(fal: Fal, sandbox: Sandbox) -> None:
    sandbox.fault("locked_403", reason="Admin lock.")
    assert fal.submit().json()["detail"] == "User is locked. Reason: Admin lock."


def test_rate_limited_429_with_and_without_retry_after(fal: Fal, sandbox: Sandbox) -> None:
    sandbox.fault("rate_limited_429", retry_after=7)
    sandbox.fault("rate_limited_429")
    assert [fal.submit().headers.get("Retry-After") for _ in range(2)] == ["7", None]


def test_content_policy_422_has_the_type_in_a_list(fal: Fal, sandbox: Sandbox) -> None:
    sandbox.fault("content_policy_422")
    assert [row["type"] for row in fal.submit().json()["detail"]] == ["content_policy_violation"]


def test_a_gateway_error_may_be_a_page(fal: Fal, sandbox: Sandbox) -> None:
    sandbox.fault("error_502", html=True)
    assert fal.submit().headers["Content-Type"].startswith("text/html")


def test_drop_before_accept_takes_nothing(fal: Fal, sandbox: Sandbox) -> None:
    sandbox.fault("drop_before_accept")
    with pytest.raises(requests.ConnectionError):
        fal.submit()
    assert sandbox.state()["accepted"] == 0


def test_drop_after_accept_takes_it(fal: Fal, sandbox: Sandbox) -> None:
    sandbox.fault("drop_after_accept")
    with pytest.raises(requests.ConnectionError):
        fal.submit()
    assert sandbox.state()["accepted"] == 1


def test_no_id_and_garbled_answer_take_it(fal: Fal, sandbox: Sandbox) -> None:
    sandbox.fault("no_id")
    answer = fal.submit()
    assert (answer.status_code, "request_id" in answer.json()) == (200, False)
    sandbox.fault("garbled_answer")
    answer = fal.submit()
    assert (answer.status_code, answer.text[:9]) == (200, "<!doctype")
    assert sandbox.state()["accepted"] == 2


def test_slow_and_dripping_answers_are_whole_in_the_end(fal: Fal, sandbox: Sandbox) -> None:
    sandbox.fault("slow_answer", seconds=0.6)
    assert fal.submit().elapsed.total_seconds() >= 0.6
    sandbox.fault("dripping_answer", seconds=0.6)
    assert fal.submit().json()["request_id"]


def test_redirect_on_submit_points_elsewhere_and_takes_nothing(fal: Fal, sandbox: Sandbox) -> None:
    sandbox.fault("redirect_on_submit", host="127.0.0.1:9")
    answer = fal.submit()
    assert (answer.status_code, answer.headers["Location"]) == (307, f"http://127.0.0.1:9/fal/queue/{MODEL}")
    assert sandbox.state()["accepted"] == 0


def test_model_retired_stops_that_model_only(fal: Fal, sandbox: Sandbox) -> None:
    sandbox.fault("model_retired", times="all", model=MODEL)
    assert [fal.submit(model=name).status_code for name in (MODEL, "fal-ai/retired/x", "fal-ai/other")] == [
        404,
        404,
        200,
    ]


def test_a_match_narrows_a_fault_to_one_image(fal: Fal, sandbox: Sandbox) -> None:
    sandbox.fault("status_402", match="token=two")
    urls = [f"{fal.image_url}?token={word}" for word in ("one", "two", "two")]
    assert [fal.submit(image_url=url).status_code for url in urls] == [200, 402, 200]


@pytest.mark.parametrize("on", ["status", "result", "list"])
def test_reads_can_fail_by_themselves(fal: Fal, sandbox: Sandbox, on: str) -> None:
    accepted = fal.submit().json()
    fal.completed(accepted)

    def read() -> int:
        if on == "list":
            return fal.listing().status_code
        return fal.get(accepted["status_url" if on == "status" else "response_url"]).status_code

    sandbox.fault("error_504", times=2, on=on)
    sandbox.fault("rate_limited_429", on=on)
    assert [read() for _ in range(4)] == [504, 504, 429, 200]
    sandbox.fault("drop_before_accept", on=on)
    with pytest.raises(requests.ConnectionError):
        read()


def test_unknown_status_is_another_word(fal: Fal, sandbox: Sandbox) -> None:
    accepted = fal.submit().json()
    sandbox.fault("unknown_status", word="EXPIRED")
    assert fal.get(accepted["status_url"]).json()["status"] == "EXPIRED"
    assert fal.completed(accepted)["status"] == "COMPLETED"


def test_never_finishing_stays_in_progress(fal: Fal, sandbox: Sandbox) -> None:
    fal.result()
    sandbox.fault("never_finishing")
    endless = fal.submit().json()
    fal.result()
    assert fal.get(endless["status_url"]).json()["status"] == "IN_PROGRESS"


def test_lists_may_be_empty_or_hide_what_is_open(fal: Fal, sandbox: Sandbox) -> None:
    sandbox.fault("never_finishing")
    fal.submit()
    sandbox.fault("list_empty")
    sandbox.fault("list_hides_open")
    assert [len(fal.listing().json()["items"]) for _ in range(3)] == [0, 0, 1]


@pytest.mark.parametrize(
    ("fault", "params", "status", "kind"),
    [
        ("content_policy_result", {}, 422, "content_policy_violation"),
        ("completed_then_422", {}, 422, "no_media_generated"),
        ("completed_then_422", {"type": "face_detection_error"}, 422, "face_detection_error"),
        ("image_unreachable", {}, 422, "file_download_error"),
    ],
)
def test_completed_and_then_a_422_on_the_result(
    fal: Fal, sandbox: Sandbox, fault: str, params: dict[str, Any], status: int, kind: str
) -> None:
    sandbox.fault(fault, **params)
    accepted = fal.submit().json()
    assert "error" not in fal.completed(accepted)
    answer = fal.get(accepted["response_url"])
    assert (answer.status_code, [row["type"] for row in answer.json()["detail"]]) == (status, [kind])
    assert not fal.only_request()["billed"]


def test_a_moderated_result_may_be_billed(fal: Fal, sandbox: Sandbox) -> None:
    sandbox.fault("content_policy_result", billed=True)
    fal.result()
    assert fal.only_request()["billed"]


def test_completed_with_error_says_so_in_the_status(fal: Fal, sandbox: Sandbox) -> None:
    sandbox.fault("completed_with_error")
    accepted = fal.submit().json()
    assert fal.completed(accepted)["error_type"] == "runner_server_error"
    answer = fal.get(accepted["response_url"])
    assert (answer.status_code, answer.headers["X-Fal-Error-Type"]) == (500, "runner_server_error")
    assert not fal.only_request()["billed"]


def test_result_without_url_and_result_expired(fal: Fal, sandbox: Sandbox) -> None:
    sandbox.fault("result_without_url")
    assert "url" not in fal.result().json()["video"]
    sandbox.fault("result_expired")
    assert fal.result().status_code == 404
