"""The fal adapter against the sandbox's process: for each fault of submit, status, list and webhook, which word of ours comes out."""

import socketserver
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import requests
from django.utils import timezone

from generation.providers import fal_hints, get_provider
from generation.providers.base import (
    Ask,
    BadSignature,
    Handle,
    HintRef,
    Misconfigured,
    NotSent,
    OutOfCredits,
    Provider,
    ProviderError,
    RateLimited,
    Rejected,
    Snapshot,
    State,
    Unavailable,
    UnknownOutcome,
)
from tests.sandbox.fal_client import Heard, Listener, listening, wait_for
from tests.sandbox_process import Sandbox

MODEL = "fal-ai/heart-pose/image-to-video"
MEDIA_FAULTS = {
    "slow_body", "truncated_body", "gzip_body", "no_content_length", "html_instead_of_video", "media_expires",
    "redirect_other_host", "hevc_video", "wrong_aspect", "moov_last", "corrupt_frames", "half_video",
}  # fmt: skip


class Contract:
    """The adapter as the settings make it, and the two sides it stands between."""

    def __init__(self, sandbox: Sandbox, listener: Listener) -> None:
        self.sandbox, self.listener = sandbox, listener

    @property
    def fal(self) -> Provider:
        return get_provider()

    def ask(self, *, model: str = MODEL, word: str = "") -> Ask:
        return Ask(
            key=uuid.uuid4().hex, model=model, prompt="waist heart", parameters={"duration": "5"},
            image_url=f"{self.listener.photo('ok_portrait.jpg')}?token={word or uuid.uuid4().hex}",
            callback_url=f"{self.listener.url}/hints/fal/token/",
        )  # fmt: skip

    def submit(self, ask: Ask | None = None) -> Handle:
        return self.fal.submit(ask or self.ask(), may_send=lambda: True)

    def read(self, handle: Handle, *, model: str = MODEL) -> Snapshot:
        return self.fal.fetch_status(handle, model=model)

    def ended(self, handle: Handle) -> Snapshot:
        """Read until it runs no more."""
        wait_for(lambda: self.request(handle)["ended_at"])
        return self.read(handle)

    def request(self, handle: Handle) -> dict[str, Any]:
        [found] = [row for row in self.sandbox.state()["fal"] if row["request_id"] == handle.external_id]
        return dict(found)

    def recover(self, ask: Ask) -> Handle | None:
        return self.fal.recover(ask, since=timezone.now() - timedelta(minutes=15))

    def verify(self, heard: Heard) -> HintRef:
        return self.fal.verify_hint(requests.structures.CaseInsensitiveDict(heard.headers), heard.body)

    @property
    def accepted(self) -> int:
        return int(self.sandbox.state()["accepted"])


@pytest.fixture
def contract(db: None, sandbox: Sandbox, settings: Any) -> Iterator[Contract]:
    """The adapter, the sandbox's process, and a host for photos that hears webhooks."""
    settings.FAL_QUEUE_URL = f"{sandbox.url}/fal/queue"
    settings.FAL_API_URL = f"{sandbox.url}/fal/api/v1"
    settings.FAL_JWKS_URL = f"{sandbox.url}/fal/.well-known/jwks.json"
    settings.FAL_MEDIA_HOSTS = [sandbox.host]
    fal_hints.jwks.forget()
    with listening() as listener:
        yield Contract(sandbox, listener)


def refused(contract: Contract, kind: type[ProviderError], *, taken: int = 0) -> Any:
    """Submit, expect that error, and that the provider took so many; the error."""
    with pytest.raises(kind) as caught:
        contract.submit()
    assert contract.accepted == taken
    assert type(caught.value) is kind
    assert "sandbox-fal-key" not in str(caught.value)
    return caught.value


# --- submit ----------------------------------------------------------------------------------------------------------


def test_no_fault(contract: Contract) -> None:
    ask = contract.ask()
    handle = contract.submit(ask)
    request = contract.request(handle)
    assert request["input"] == {"prompt": "waist heart", "duration": "5", "image_url": ask.image_url}
    assert request["webhook_url"] == ask.callback_url
    assert handle == contract.recover(ask)
    done = contract.ended(handle)
    assert (done.state, done.url.startswith(f"{contract.sandbox.url}/fal/media/")) == (State.DONE, True)


def test_not_one_byte_is_sent_when_it_may_not(contract: Contract) -> None:
    with pytest.raises(NotSent):
        contract.fal.submit(contract.ask(), may_send=lambda: False)
    assert contract.accepted == 0


def test_nobody_listens(contract: Contract, settings: Any) -> None:
    settings.FAL_QUEUE_URL = "http://127.0.0.1:9/fal/queue"
    refused(contract, NotSent)


def test_status_402(contract: Contract) -> None:
    contract.sandbox.fault("status_402")
    assert refused(contract, OutOfCredits).detail.startswith("402 Payment required")


@pytest.mark.parametrize("reason", ["Exhausted balance. Top up.", "Admin lock.", "TOP_UP."])
def test_locked_403(contract: Contract, reason: str) -> None:
    contract.sandbox.fault("locked_403", reason=reason)
    assert reason in refused(contract, OutOfCredits).detail


def test_unauthorized_401(contract: Contract) -> None:
    contract.sandbox.fault("unauthorized_401")
    assert not refused(contract, Misconfigured).model_only


def test_a_wrong_key(contract: Contract, settings: Any) -> None:
    settings.FAL_KEY = "wrong"
    assert not refused(contract, Misconfigured).model_only


def test_no_key(contract: Contract, settings: Any) -> None:
    settings.FAL_KEY = ""
    refused(contract, Misconfigured)


@pytest.mark.parametrize(("said", "seconds"), [(None, None), (7, 7.0), ("soon", None), ("inf", None), ("-1", None)])
def test_rate_limited_429(contract: Contract, said: Any, seconds: float | None) -> None:
    contract.sandbox.fault("rate_limited_429", retry_after=said)
    assert refused(contract, RateLimited).retry_after == seconds


def test_content_policy_422(contract: Contract) -> None:
    contract.sandbox.fault("content_policy_422")
    assert refused(contract, Rejected).kind == "moderation"


def test_model_retired(contract: Contract) -> None:
    contract.sandbox.fault("model_retired", model=MODEL)
    assert refused(contract, Misconfigured).model_only


@pytest.mark.parametrize("accepted", [False, True])
@pytest.mark.parametrize("page", [False, True])
@pytest.mark.parametrize("fault", ["error_500", "error_502", "error_503", "error_504"])
def test_error_5xx(contract: Contract, fault: str, page: bool, accepted: bool) -> None:
    contract.sandbox.fault(fault, html=page, accepted=accepted)
    assert refused(contract, UnknownOutcome, taken=int(accepted)).server_error


def test_drop_before_accept(contract: Contract) -> None:
    contract.sandbox.fault("drop_before_accept")
    assert not refused(contract, UnknownOutcome).server_error


@pytest.mark.parametrize("fault", ["drop_after_accept", "no_id", "garbled_answer"])
def test_a_lost_answer_is_found_by_listing(contract: Contract, fault: str) -> None:
    contract.sandbox.fault(fault)
    ask = contract.ask()
    with pytest.raises(UnknownOutcome):
        contract.submit(ask)
    handle = contract.recover(ask)
    assert handle is not None
    assert contract.request(handle)["input"]["image_url"] == ask.image_url
    assert contract.ended(handle).state == State.DONE
    assert contract.accepted == 1


def test_slow_answer(contract: Contract) -> None:
    contract.sandbox.fault("slow_answer", seconds=0.4)
    assert contract.request(contract.submit())


def test_slow_answer_beyond_the_deadline(contract: Contract, settings: Any) -> None:
    settings.SUBMIT_DEADLINE_SECONDS = 1
    contract.sandbox.fault("slow_answer", seconds=3)
    refused(contract, UnknownOutcome, taken=1)


def test_dripping_answer(contract: Contract, settings: Any) -> None:
    """Every byte comes in time, the whole does not: the deadline is over the whole exchange."""
    settings.SUBMIT_DEADLINE_SECONDS = 1
    contract.sandbox.fault("dripping_answer", seconds=4)
    refused(contract, UnknownOutcome, taken=1)


@pytest.mark.parametrize("head", [b"HTTP/1.1 200 OK\r\nX-Slow: ", b"HTTP/1.1 200 OK\r\n\r\n{"])
def test_an_answer_that_never_ends(contract: Contract, settings: Any, head: bytes) -> None:
    """In the head as in a body without a length, a byte now and then keeps nobody waiting beyond the deadline."""
    settings.SUBMIT_DEADLINE_SECONDS = 1
    with dripping(head) as url:
        settings.FAL_QUEUE_URL = url
        started = time.monotonic()
        refused(contract, UnknownOutcome)
    assert time.monotonic() - started < 3


def test_redirect_on_submit(contract: Contract) -> None:
    """Nothing is sent after it, above all not our key."""
    contract.sandbox.fault("redirect_on_submit", host=contract.listener.url.removeprefix("http://"))
    refused(contract, Misconfigured)
    assert contract.listener.hears_nothing()


# --- status and result -----------------------------------------------------------------------------------------------


def test_unknown_status(contract: Contract) -> None:
    handle = contract.submit()
    contract.sandbox.fault("unknown_status", word="EXPIRED")
    said = contract.read(handle)
    assert (said.state, said.unknown_word) == (State.RUNNING, "'EXPIRED'")
    assert contract.read(handle).unknown_word == ""


def test_never_finishing(contract: Contract) -> None:
    contract.sandbox.fault("never_finishing")
    handle = contract.submit()
    assert contract.read(handle).state == State.RUNNING
    contract.fal.cancel(handle, model=MODEL)
    assert contract.ended(handle).state == State.CANCELLED


@pytest.mark.parametrize("billed", [False, True])
def test_content_policy_result(contract: Contract, billed: bool) -> None:
    contract.sandbox.fault("content_policy_result", billed=billed)
    said = contract.ended(contract.submit())
    assert (said.state, said.kind, said.unbilled) == (State.REFUSED, "moderation", False)


def test_completed_then_422(contract: Contract) -> None:
    contract.sandbox.fault("completed_then_422")
    said = contract.ended(contract.submit())
    assert (said.state, said.kind, said.unbilled) == (State.FAILED, "", False)


@pytest.mark.parametrize("kind", ["image_too_small", "face_detection_error"])
def test_completed_then_422_for_the_photo(contract: Contract, kind: str) -> None:
    contract.sandbox.fault("completed_then_422", type=kind)
    said = contract.ended(contract.submit())
    assert (said.state, said.kind, said.unbilled) == (State.REFUSED, "invalid_input", False)


def test_completed_with_error(contract: Contract) -> None:
    contract.sandbox.fault("completed_with_error")
    said = contract.ended(contract.submit())
    assert (said.state, said.unbilled) == (State.FAILED, True)


def test_image_unreachable(contract: Contract) -> None:
    contract.sandbox.fault("image_unreachable")
    said = contract.ended(contract.submit())
    assert (said.state, said.kind, said.unbilled) == (State.FAILED, "image", False), (
        "no source says that a 422 is not billed"
    )


def test_result_without_url(contract: Contract) -> None:
    contract.sandbox.fault("result_without_url")
    said = contract.ended(contract.submit())
    assert (said.state, said.url) == (State.DONE, "")


def test_result_expired(contract: Contract) -> None:
    handle = contract.submit()
    contract.sandbox.fault("result_expired")
    assert contract.ended(handle).state == State.GONE


def test_a_request_nobody_knows(contract: Contract) -> None:
    assert contract.read(Handle(str(uuid.uuid4()))).state == State.GONE


READS = {
    "status_402": OutOfCredits, "locked_403": OutOfCredits, "unauthorized_401": Misconfigured,
    "rate_limited_429": RateLimited, "error_500": Unavailable, "error_502": Unavailable, "error_503": Unavailable,
    "error_504": Unavailable, "drop_before_accept": Unavailable,
}  # fmt: skip


@pytest.mark.parametrize("on", ["status", "result", "list"])
@pytest.mark.parametrize(("fault", "kind"), READS.items())
def test_reads_that_fail(contract: Contract, fault: str, kind: type[ProviderError], on: str) -> None:
    """A failed read says nothing of the video: above all a passing 5xx on the result of a paid one is no failure of it."""
    ask = contract.ask()
    handle = contract.submit(ask)
    wait_for(lambda: contract.request(handle)["ended_at"])
    contract.sandbox.fault(fault, on=on)
    with pytest.raises(kind) as caught:
        contract.recover(ask) if on == "list" else contract.read(handle)
    assert type(caught.value) is kind
    assert contract.read(handle).state == State.DONE


@pytest.mark.parametrize("fault", ["error_503", "drop_before_accept", "unauthorized_401"])
def test_a_probe_fails_like_any_read(contract: Contract, fault: str) -> None:
    contract.fal.probe(model=MODEL)
    contract.sandbox.fault(fault, on="list")
    with pytest.raises(READS[fault]):
        contract.fal.probe(model=MODEL)
    contract.fal.probe(model=MODEL)


# --- list ------------------------------------------------------------------------------------------------------------


def test_list_empty(contract: Contract) -> None:
    ask = contract.ask()
    handle = contract.submit(ask)
    contract.sandbox.fault("list_empty")
    assert [contract.recover(ask), contract.recover(ask)] == [None, handle]


def test_list_hides_open(contract: Contract) -> None:
    contract.sandbox.fault("never_finishing")
    contract.sandbox.fault("list_hides_open")
    ask = contract.ask()
    handle = contract.submit(ask)
    assert [contract.recover(ask), contract.recover(ask)] == [None, handle]


def test_only_the_very_same_image_address_is_ours(contract: Contract) -> None:
    contract.submit(contract.ask(word="one"))
    assert contract.recover(contract.ask(word="on")) is None
    assert contract.recover(contract.ask(word="one2")) is None


def test_a_lost_one_is_found_behind_many_pages(contract: Contract) -> None:
    contract.sandbox.fault("never_finishing", times="all")
    ask = contract.ask()
    handle = contract.submit(ask)
    for _ in range(120):
        contract.submit()
    assert contract.recover(ask) == handle


# --- webhooks --------------------------------------------------------------------------------------------------------


def heard_of(contract: Contract, fault: str = "", **params: Any) -> tuple[Handle, Heard]:
    if fault:
        contract.sandbox.fault(fault, **params)
    handle = contract.submit()
    return handle, contract.listener.next()


def test_a_webhook(contract: Contract) -> None:
    handle, heard = heard_of(contract)
    assert contract.verify(heard).external_id == handle.external_id


def test_webhook_lost(contract: Contract) -> None:
    contract.sandbox.fault("webhook_lost")
    assert contract.ended(contract.submit()).state == State.DONE
    assert contract.listener.hears_nothing()


def test_webhook_doubled(contract: Contract) -> None:
    _, heard = heard_of(contract, "webhook_doubled")
    assert contract.verify(heard) == contract.verify(contract.listener.next())


def test_webhook_early(contract: Contract) -> None:
    contract.sandbox.settings(delay_seconds=1)
    handle, heard = heard_of(contract, "webhook_early")
    assert contract.verify(heard).external_id == handle.external_id
    assert contract.read(handle).state == State.RUNNING


def test_webhook_late(contract: Contract) -> None:
    contract.sandbox.fault("webhook_late", seconds=0.5)
    handle = contract.submit()
    assert contract.ended(handle).state == State.DONE
    assert contract.verify(contract.listener.next()).external_id == handle.external_id


def test_webhook_lying(contract: Contract) -> None:
    """It is rightly signed and says OK; only the reading counts."""
    contract.sandbox.fault("never_finishing")
    handle, heard = heard_of(contract, "webhook_lying")
    assert contract.verify(heard).external_id == handle.external_id
    assert contract.read(handle).state == State.RUNNING


def test_webhook_lying_about_another_request(contract: Contract) -> None:
    handle, heard = heard_of(contract, "webhook_lying", request_id="somebody-elses")
    assert contract.verify(heard).external_id == "somebody-elses" != handle.external_id


def test_webhook_bad_signature(contract: Contract) -> None:
    _, heard = heard_of(contract, "webhook_bad_signature")
    with pytest.raises(BadSignature):
        contract.verify(heard)


def test_webhook_old_timestamp(contract: Contract) -> None:
    _, heard = heard_of(contract, "webhook_old_timestamp")
    with pytest.raises(BadSignature):
        contract.verify(heard)


@pytest.mark.parametrize("change", ["body", "Request-Id", "User-Id", "Timestamp", "Signature", "no key set"])
def test_a_webhook_that_was_changed_on_its_way(contract: Contract, settings: Any, change: str) -> None:
    _, heard = heard_of(contract)
    name = f"X-Fal-Webhook-{change}"
    if change == "body":
        heard.body += b" "
    elif change == "no key set":
        settings.FAL_JWKS_URL = "http://127.0.0.1:9/jwks.json"
    else:
        heard.headers[name] = heard.headers[name][:-1] + ("1" if heard.headers[name][-1] != "1" else "2")
    with pytest.raises(BadSignature):
        contract.verify(heard)


def test_every_fault_of_the_queue_is_in_this_file(contract: Contract) -> None:
    """A fault that is added to the sandbox needs its word here; those of bodies belong to the tests of the transfer."""
    known = requests.get(f"{contract.sandbox.url}/control/faults", timeout=30).json()["known"]
    queue = {name for name in known if not name.startswith(("card_", "event_", "wrong_amount", "wrong_currency"))}
    text = Path(__file__).read_text()
    assert [name for name in sorted(queue - MEDIA_FAULTS) if f'"{name}"' not in text] == []


@pytest.mark.parametrize("body", [b"<html>sign in</html>", b"[]", b""])
def test_a_gateways_page_instead_of_json(contract: Contract, settings: Any, body: bytes) -> None:
    """A 200 that is not theirs says nothing: neither that a list is empty, nor that a result has no video."""
    handle, ask = contract.submit(), contract.ask()
    contract.ended(handle)
    with answering(body) as url:
        settings.FAL_API_URL = settings.FAL_QUEUE_URL = url
        with pytest.raises(Unavailable):
            contract.recover(ask)
        with pytest.raises(Unavailable):
            contract.read(Handle(handle.external_id))
        with pytest.raises(Unavailable):
            contract.read(Handle(handle.external_id, handle.status_url))


@contextmanager
def answering(body: bytes) -> Iterator[str]:
    """A server that answers every read with this body."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def dripping(head: bytes) -> Iterator[str]:
    """A server that answers with this and then a byte every tenth of a second, for at most five seconds."""

    class Drip(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(65536)
            self.request.sendall(head)
            with suppress(OSError):
                for _ in range(50):
                    time.sleep(0.1)
                    self.request.sendall(b" ")

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Drip) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
