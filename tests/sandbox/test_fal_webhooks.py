"""Webhooks: signed so that the key set proves them, repeated until the shop says yes, and every way they go wrong."""

import base64
import hashlib
import json
import time

import pytest
import requests
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from tests.sandbox.fal_client import Fal, Heard, Listener, wait_for
from tests.sandbox_process import Sandbox, running_sandbox


def verify(sandbox: Sandbox, heard: Heard) -> None:
    """Prove a webhook with the key set, or raise InvalidSignature."""
    [key] = requests.get(f"{sandbox.url}/fal/.well-known/jwks.json", timeout=30).json()["keys"]
    public = Ed25519PublicKey.from_public_bytes(base64.urlsafe_b64decode(key["x"] + "=="))
    names = ("Request-Id", "User-Id", "Timestamp")
    lines = [heard.headers[f"X-Fal-Webhook-{name}"] for name in names] + [hashlib.sha256(heard.body).hexdigest()]
    public.verify(bytes.fromhex(heard.headers["X-Fal-Webhook-Signature"]), "\n".join(lines).encode())


def test_a_webhook_is_signed_and_carries_the_result(fal: Fal, sandbox: Sandbox, listener: Listener) -> None:
    accepted = fal.submit(webhook=f"{listener.url}/hints/fal/token/").json()
    heard = listener.next()
    body = json.loads(heard.body)
    verify(sandbox, heard)
    assert heard.path == "/hints/fal/token/"
    assert body["request_id"] == body["gateway_request_id"] == accepted["request_id"]
    assert heard.headers["X-Fal-Webhook-Request-Id"] == accepted["request_id"]
    assert abs(int(heard.headers["X-Fal-Webhook-Timestamp"]) - time.time()) < 30
    assert (body["status"], body["error"]) == ("OK", None)
    assert body["payload"] == fal.get(accepted["response_url"]).json()


def test_a_failure_is_told_as_error(fal: Fal, sandbox: Sandbox, listener: Listener) -> None:
    sandbox.fault("content_policy_result")
    fal.submit(webhook=listener.url)
    body = json.loads(listener.next().body)
    assert (body["status"], body["payload"]["detail"][0]["type"]) == ("ERROR", "content_policy_violation")


def test_a_webhook_is_repeated_until_the_shop_says_2xx(fal: Fal, sandbox: Sandbox, listener: Listener) -> None:
    listener.answers[:] = [503, 301, 200]
    fal.submit(webhook=listener.url)
    assert len({listener.next().body for _ in range(3)}) == 1
    wait_for(lambda: [event["answer"] for event in sandbox.state()["events"]] == [503, 301, 200])
    assert listener.hears_nothing()


def test_webhook_lost_is_never_sent(fal: Fal, sandbox: Sandbox, listener: Listener) -> None:
    sandbox.fault("webhook_lost")
    fal.result(webhook=listener.url)
    assert listener.hears_nothing()
    assert [event["lost"] for event in sandbox.state()["events"]] == [True]


def test_webhook_doubled_comes_twice(fal: Fal, sandbox: Sandbox, listener: Listener) -> None:
    sandbox.fault("webhook_doubled")
    fal.submit(webhook=listener.url)
    assert listener.next().body == listener.next().body
    assert listener.hears_nothing()


def test_webhook_early_comes_before_the_answer_and_not_again(fal: Fal, sandbox: Sandbox, listener: Listener) -> None:
    sandbox.fault("webhook_early")
    accepted = fal.submit(webhook=listener.url).json()
    heard = listener.next(0.01)
    verify(sandbox, heard)
    assert json.loads(heard.body)["request_id"] == accepted["request_id"]
    fal.completed(accepted)
    assert listener.hears_nothing()


def test_webhook_late_comes_after_its_seconds(fal: Fal, sandbox: Sandbox, listener: Listener) -> None:
    sandbox.fault("webhook_late", seconds=0.8)
    fal.result(webhook=listener.url)
    assert listener.hears_nothing(0.4)
    verify(sandbox, listener.next())


def test_webhook_lying_says_ok_while_it_runs(fal: Fal, sandbox: Sandbox, listener: Listener) -> None:
    sandbox.fault("webhook_lying")
    sandbox.fault("never_finishing")
    accepted = fal.submit(webhook=listener.url).json()
    assert json.loads(listener.next().body)["status"] == "OK"
    assert fal.get(accepted["status_url"]).status_code == 202


def test_webhook_lying_names_another_request(fal: Fal, sandbox: Sandbox, listener: Listener) -> None:
    sandbox.fault("webhook_lying", request_id="somebody-else")
    fal.submit(webhook=listener.url)
    heard = listener.next()
    verify(sandbox, heard)
    assert json.loads(heard.body)["request_id"] == "somebody-else"


def test_webhook_bad_signature_does_not_verify(fal: Fal, sandbox: Sandbox, listener: Listener) -> None:
    sandbox.fault("webhook_bad_signature")
    fal.submit(webhook=listener.url)
    with pytest.raises(InvalidSignature):
        verify(sandbox, listener.next())


def test_webhook_old_timestamp_is_rightly_signed(fal: Fal, sandbox: Sandbox, listener: Listener) -> None:
    sandbox.fault("webhook_old_timestamp")
    fal.submit(webhook=listener.url)
    heard = listener.next()
    verify(sandbox, heard)
    assert time.time() - int(heard.headers["X-Fal-Webhook-Timestamp"]) > 3000


def test_a_restart_forgets_no_work(listener: Listener, tmp_path_factory: pytest.TempPathFactory) -> None:
    state = str(tmp_path_factory.mktemp("state") / "sandbox.json")
    with running_sandbox("--state", state, delay_seconds=1) as first:
        accepted = Fal(first, listener.photo("ok_portrait.jpg")).submit(webhook=listener.url).json()
        keys = requests.get(f"{first.url}/fal/.well-known/jwks.json", timeout=30).json()
    with running_sandbox("--state", state) as second:
        verify(second, listener.next())
        assert requests.get(f"{second.url}/fal/.well-known/jwks.json", timeout=30).json() == keys
        fal = Fal(second, "")
        answer = fal.get(accepted["response_url"].replace(first.url, second.url)).json()
        assert len(requests.get(answer["video"]["url"], timeout=30).content) == answer["video"]["file_size"]
