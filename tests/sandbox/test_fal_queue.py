"""The queue API on the wire: what a client of the real service would see."""

import uuid
from datetime import UTC, datetime, timedelta

import pytest
import requests

from tests.sandbox.fal_client import KEY, MODEL, Fal, Listener, wait_for
from tests.sandbox_process import Sandbox


def test_a_submit_answers_with_addresses_that_drop_the_sub_path(fal: Fal, sandbox: Sandbox) -> None:
    answer = fal.submit()
    accepted = answer.json()
    address = f"{sandbox.url}/fal/queue/fal-ai/heart-pose/requests/{accepted['request_id']}"
    assert answer.status_code == 200
    assert uuid.UUID(accepted["request_id"])
    assert accepted["response_url"] == address
    assert accepted["status_url"] == address + "/status"
    assert accepted["cancel_url"] == address + "/cancel"
    assert isinstance(accepted["queue_position"], int)


def test_the_same_body_twice_is_two_requests(fal: Fal, sandbox: Sandbox) -> None:
    assert fal.submit().json()["request_id"] != fal.submit().json()["request_id"]
    assert sandbox.state()["accepted"] == 2


@pytest.mark.parametrize("header", [{}, {"Authorization": "Bearer sandbox-fal-key"}, {"Authorization": "Key other"}])
def test_without_the_right_key_every_door_is_shut(fal: Fal, sandbox: Sandbox, header: dict[str, str]) -> None:
    accepted = fal.submit().json()
    doors = [accepted["status_url"], accepted["response_url"], fal.listing().url]
    assert [requests.get(door, headers=header, timeout=30).status_code for door in doors] == [401, 401, 401]
    assert requests.post(f"{fal.queue}/{MODEL}", json={}, headers=header, timeout=30).status_code == 401
    assert requests.put(accepted["cancel_url"], headers=header, timeout=30).status_code == 401
    assert sandbox.state()["accepted"] == 1


def test_the_status_is_202_until_it_is_completed_and_never_before_the_delay(fal: Fal, sandbox: Sandbox) -> None:
    fal.result()  # from here on the film is at hand, so only the delay is measured
    sandbox.settings(delay_seconds=1.0)
    accepted = fal.submit().json()
    early = fal.get(accepted["status_url"])
    assert early.status_code == 202
    assert early.json()["status"] in ("IN_QUEUE", "IN_PROGRESS")
    unfinished = fal.get(accepted["response_url"])
    assert (unfinished.status_code, unfinished.json()) == (400, {"detail": "Request is still in progress"})
    done = fal.completed(accepted)
    assert done["status"] == "COMPLETED"
    assert "error" not in done
    record = next(row for row in sandbox.state()["fal"] if row["request_id"] == accepted["request_id"])
    assert 1.0 <= record["ended_at"] - record["sent_at"] < 2.5
    assert record["billed"]


def test_the_result_names_the_file_and_its_size(fal: Fal, sandbox: Sandbox) -> None:
    answer = fal.result()
    video = answer.json()["video"]
    assert answer.status_code == 200
    assert video["content_type"] == "video/mp4"
    assert video["file_name"].endswith(".mp4")
    film = requests.get(video["url"], headers={"Accept-Encoding": "identity"}, timeout=30)
    assert film.headers["Content-Type"] == "video/mp4"
    assert int(film.headers["Content-Length"]) == len(film.content) == video["file_size"]
    assert "Content-Encoding" not in film.headers
    assert not [event for event in sandbox.state()["events"] if event["kind"] == "key_shown_to_media_host"]


def test_a_key_shown_to_the_media_host_is_noticed(fal: Fal, sandbox: Sandbox) -> None:
    requests.get(fal.video_url(), headers=KEY, timeout=30)
    assert [event["kind"] for event in sandbox.state()["events"]] == ["key_shown_to_media_host"]


def test_the_image_is_fetched_for_each_request(fal: Fal, listener: Listener) -> None:
    addresses = [listener.photo("ok_portrait.jpg") + f"?token={number}" for number in (1, 2)]
    for address in addresses:
        fal.result(image_url=address)
    assert listener.photo_reads == ["/photos/ok_portrait.jpg?token=1", "/photos/ok_portrait.jpg?token=2"]


@pytest.mark.parametrize(
    ("photo", "kind"),
    [
        ("nobody.jpg", "file_download_error"),
        ("bad_html.jpg", "image_load_error"),
        ("bad_empty.jpg", "image_load_error"),
    ],
)
def test_an_image_that_cannot_be_used_is_a_422_on_the_result(
    fal: Fal, listener: Listener, photo: str, kind: str
) -> None:
    answer = fal.result(image_url=listener.photo(photo))
    assert answer.status_code == 422
    assert [row["type"] for row in answer.json()["detail"]] == [kind]
    assert not fal.only_request()["billed"]


def test_a_request_without_an_image_ends_as_a_422(fal: Fal) -> None:
    answer = fal.result(image_url="http://127.0.0.1:9/nothing.jpg")
    assert (answer.status_code, answer.json()["detail"][0]["type"]) == (422, "file_download_error")


def test_unknown_ids_and_other_models_are_404(fal: Fal) -> None:
    accepted = fal.submit().json()
    strange = f"{fal.queue}/fal-ai/heart-pose/requests/{uuid.uuid4()}"
    elsewhere = accepted["response_url"].replace("heart-pose", "other")
    assert [fal.get(url).status_code for url in (strange, strange + "/status", elsewhere)] == [404, 404, 404]
    missing = requests.put(strange + "/cancel", headers=KEY, timeout=30)
    assert (missing.status_code, missing.json()["status"]) == (404, "NOT_FOUND")


def test_cancel_ends_what_would_never_end_and_refuses_what_is_done(fal: Fal, sandbox: Sandbox) -> None:
    sandbox.fault("never_finishing")
    endless = fal.submit().json()
    asked = requests.put(endless["cancel_url"], headers=KEY, timeout=30)
    assert (asked.status_code, asked.json()) == (202, {"status": "CANCELLATION_REQUESTED"})
    assert fal.completed(endless)["error_type"] == "client_cancelled"
    assert fal.get(endless["response_url"]).status_code == 499
    again = requests.put(endless["cancel_url"], headers=KEY, timeout=30)
    assert (again.status_code, again.json()) == (400, {"status": "ALREADY_COMPLETED"})


def test_the_list_shows_inputs_only_when_asked(fal: Fal) -> None:
    accepted = fal.submit(image_url=fal.image_url + "?token=mine").json()
    [bare] = fal.listing().json()["items"]
    [full] = fal.listing(expand="payloads").json()["items"]
    assert bare["request_id"] == full["request_id"] == accepted["request_id"]
    assert "json_input" not in bare
    assert full["json_input"]["image_url"].endswith("?token=mine")
    assert full["json_output"] is None
    fal.completed(accepted)
    [ended] = fal.listing(expand="payloads").json()["items"]
    assert ended["status_code"] == 200
    assert ended["json_output"]["video"]["url"]


def test_the_list_keeps_to_its_model_its_window_and_its_pages(fal: Fal) -> None:
    ids = [fal.submit().json()["request_id"] for _ in range(3)]
    first = fal.listing(limit=2).json()
    second = fal.listing(limit=2, cursor=first["next_cursor"]).json()
    assert [row["request_id"] for row in first["items"] + second["items"]] == ids[::-1]
    assert (first["has_more"], second["has_more"], second["next_cursor"]) == (True, False, None)
    assert fal.listing(endpoint_id="fal-ai/other").json()["items"] == []
    past = (datetime.now(UTC) - timedelta(minutes=5)).isoformat()
    assert fal.listing(end=past).json()["items"] == []
    assert len(fal.listing(start=past).json()["items"]) == 3
    assert fal.listing(endpoint_id="").status_code == 422
    assert fal.listing(start="yesterday").status_code == 422


@pytest.mark.parametrize(
    ("outcome", "status"), [("done", 200), ("failed", 500), ("refused", 422), ("cancelled", 499), ("gone", 404)]
)
def test_the_control_address_forces_an_outcome(fal: Fal, sandbox: Sandbox, outcome: str, status: int) -> None:
    sandbox.fault("never_finishing")
    accepted = fal.submit().json()
    sandbox.post(f"/control/fal/{accepted['request_id']}", {"status": outcome})
    wait_for(lambda: fal.get(accepted["response_url"]).status_code == status)


def test_a_failure_may_turn_into_a_late_success(fal: Fal, sandbox: Sandbox) -> None:
    accepted = fal.submit().json()
    sandbox.post(f"/control/fal/{accepted['request_id']}", {"status": "failed"})
    assert fal.get(accepted["response_url"]).status_code == 500
    sandbox.post(f"/control/fal/{accepted['request_id']}", {"status": "done"})
    wait_for(lambda: fal.get(accepted["response_url"]).status_code == 200)
    assert fal.only_request()["billed"]


def test_the_control_address_refuses_a_fault_it_does_not_know(sandbox: Sandbox) -> None:
    answer = requests.post(f"{sandbox.url}/control/faults", json={"fault": "bad_luck"}, timeout=30)
    assert answer.status_code == 400
    assert "locked_403" in answer.json()["detail"]
    page = requests.get(f"{sandbox.url}/control/", timeout=30)
    assert "drop_after_accept" in page.text
    assert requests.get(f"{sandbox.url}/livez", timeout=30).text == "ok\n"
