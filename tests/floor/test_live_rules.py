"""Each rule of the live switch by its number: what breaks it, and that nothing else does."""

import socket
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.core.management.base import SystemCheckError

from tests.floor.live_settings import bucket, ids, real
from waistheart import live
from waistheart.hosts import host_of, is_inside, is_loopback, is_this_machine, is_within

__all__ = ["real"]


@pytest.mark.parametrize(("id", "name", "value"), [
    ("E002", "STRIPE_SECRET_KEY", "sk_test_abc"),
    ("E002", "STRIPE_SECRET_KEY", "rk_test_abc"),
    ("E003", "PUBLIC_URL", "https://localhost"),
    ("E003", "PUBLIC_URL", "https://192.168.1.4"),
    ("E003", "FAL_QUEUE_URL", "https://127.0.0.1:8001/fal/queue"),
    ("E003", "FAL_API_URL", "https://127.1/fal"),
    ("E003", "FAL_JWKS_URL", "https://[::1]/jwks"),
    ("E003", "FAL_MEDIA_HOSTS", ["v3.fal.media", "127.0.0.1:8001"]),
    ("E003", "FAL_MEDIA_HOSTS", ["10.0.0.7"]),
    ("E003", "STRIPE_API_BASE", "https://sandbox"),
    ("E003", "STRIPE_API_BASE", "https://shop.waistheart.example/stripe"),
    ("E004", "PUBLIC_URL", "http://shop.waistheart.example"),
    ("E004", "FAL_QUEUE_URL", "http://queue.fal.run"),
    ("E001", "FAL_MEDIA_HOSTS", []),
    ("E008", "DEBUG", True),
    ("E007", "CELERY_BROKER_URL", "filesystem://localhost"),
    ("E007", "CELERY_BROKER_URL", "memory://"),
    ("E020", "VIDEO_PROVIDER", "mock"),
])  # fmt: skip
def test_live_refuses(real: Any, id: str, name: str, value: Any):
    setattr(real, name, value)
    assert ids() == {f"waistheart.{id}"}


@pytest.mark.parametrize("storage", [
    {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    bucket(querystring_auth=False),
    bucket(custom_domain="cdn.waistheart.example"),
    bucket(default_acl="public-read"),
])  # fmt: skip
def test_live_refuses_storage_that_anybody_reads(real: Any, storage: dict[str, Any]):
    real.STORAGES = {**real.STORAGES, "default": storage}
    assert ids() == {"waistheart.E005"}


def test_live_refuses_sqlite(real: Any, monkeypatch: Any):
    monkeypatch.setitem(real.DATABASES["default"], "ENGINE", "django.db.backends.sqlite3")
    assert ids() == {"waistheart.E006"}


@pytest.mark.parametrize(("id", "options"), [
    ("E003", {"endpoint_url": "https://127.0.0.1:9000"}), ("E003", {"endpoint_url": "https://localhost:9000"}),
    ("E003", {"endpoint_url": "https://0.0.0.0"}), ("E004", {"endpoint_url": "http://s3.waistheart.example"}),
    ("E001", {"access_key": ""}), ("E001", {"secret_key": ""}),
])  # fmt: skip
def test_live_refuses_a_bucket_that_is_near_open_or_without_keys(real: Any, id: str, options: dict[str, str]):
    real.STORAGES = {**real.STORAGES, "default": bucket(**options)}
    assert ids() == {f"waistheart.{id}"}


def test_a_bucket_in_the_operators_own_network_is_right(real: Any):
    real.STORAGES = {**real.STORAGES, "default": bucket(endpoint_url="https://minio.internal:9000")}
    assert ids() == set()


@pytest.mark.parametrize("kind", ["filebased", "console", "locmem", "dummy"])
def test_live_refuses_mail_that_stays_here(real: Any, kind: str):
    real.EMAIL_BACKEND = f"django.core.mail.backends.{kind}.EmailBackend"
    assert ids() == {"waistheart.E015"}
    with pytest.raises(ImproperlyConfigured, match=r"E015.*mails stay on this machine"):
        live.refuse_to_start_inconsistent()


@pytest.mark.parametrize(("id", "name", "value"), [
    ("E010", "FAL_KEY", "sandbox-fal-key"), ("E010", "FAL_KEY", "own, sandbox-fal-key"),
    ("E010", "STRIPE_WEBHOOK_SECRET", "whsec_sandbox"), ("E002", "STRIPE_SECRET_KEY", "sk_test_sandbox"),
    ("E002", "STRIPE_SECRET_KEY", "pk_live_abc"), ("E002", "STRIPE_SECRET_KEY", "whatever"),
])  # fmt: skip
def test_live_refuses_what_everybody_knows_and_what_is_no_live_key(real: Any, id: str, name: str, value: str):
    setattr(real, name, value)
    assert ids() == {f"waistheart.{id}"}
    assert value not in str(live.problems()[0])


@pytest.mark.parametrize("host", ["queue.fal.run", "API.fal.ai", "api.stripe.com:443", "v3.fal.media"])
def test_live_refuses_an_address_that_is_called_a_sandbox(real: Any, host: str):
    real.SANDBOX_HOSTS = ["sandbox.example", host]
    assert ids() == {"waistheart.E009"}
    real.SANDBOX_HOSTS = ["sandbox.example"]
    assert ids() == set()


@pytest.mark.parametrize(("name", "value"), [
    ("FAL_QUEUE_URL", "https://queue.fal.run"),
    ("FAL_API_URL", "https://api.fal.ai/v1"),
    ("FAL_JWKS_URL", "https://rest.fal.ai/.well-known/jwks.json"),
    ("FAL_MEDIA_HOSTS", ["127.0.0.1:8001", "v3.fal.media"]),
    ("STRIPE_API_BASE", "https://api.stripe.com"),
    ("STRIPE_API_BASE", "http://localhost.evil.example"),
    ("STRIPE_API_BASE", "http://192.168.1.4"),
    ("STRIPE_API_BASE", ""),
])  # fmt: skip
def test_without_live_a_foreign_address_is_refused(settings: Any, name: str, value: Any):
    setattr(settings, name, value)
    assert ids() == {"waistheart.E012"}


def test_a_sandbox_of_ones_own_and_stripe_with_a_test_key_may_be_named(settings: Any):
    settings.SANDBOX_HOSTS = ["sandbox.example", "api.stripe.com"]
    settings.FAL_QUEUE_URL = "http://sandbox.example:8001/fal/queue"
    settings.STRIPE_API_BASE = "https://api.stripe.com"
    settings.STRIPE_SECRET_KEY = "sk_test_real"
    assert ids() == set()
    settings.STRIPE_SECRET_KEY = "sk_live_real"
    assert ids() == {"waistheart.E011"}


@pytest.mark.parametrize(("key", "right"), [
    ("", True), ("sk_test_abc", True), ("rk_test_abc", True), ("sk_live_abc", False), ("rk_live_abc", False),
    ("SK_LIVE_abc", False), ("pk_test_abc", False), ("abc", False), (" sk_live_abc", False),
])  # fmt: skip
def test_without_live_only_test_keys_are_taken(settings: Any, key: str, right: bool):
    settings.STRIPE_SECRET_KEY = key
    assert ("waistheart.E011" in ids()) is not right


@pytest.mark.parametrize("host", ["queue.fal.run", "fal.ai", "v3b.fal.media", "api.replicate.com", "API.runware.ai."])
def test_without_live_no_provider_is_real(settings: Any, host: str):
    settings.SANDBOX_HOSTS = [host, "api.stripe.com", "notfal.ai.example"]
    settings.FAL_QUEUE_URL = f"https://{host}"
    assert ids() == {"waistheart.E013"}
    with pytest.raises(ImproperlyConfigured, match="E013"):
        live.refuse_to_start_inconsistent()


@pytest.mark.parametrize(("id", "name", "value"), [
    ("E031", "SWEEP_SECONDS", 0),
    ("E031", "PROVIDER_MAX_IN_FLIGHT", -1),
    ("E032", "LEASE_SECONDS", 90),
    ("E032", "SUBMIT_DEADLINE_SECONDS", 90),
    ("E033", "LONGEST_RUN_SECONDS", 3601),
    ("E033", "UNKNOWN_SUBMIT_REVIEW_SECONDS", 7201),
    ("E034", "ORPHAN_WINDOW_SECONDS", 259200),
    ("E035", "IMAGE_URL_SECONDS", 10800),
])  # fmt: skip
def test_ages_that_contradict_each_other_are_refused_at_start(settings: Any, id: str, name: str, value: int):
    setattr(settings, name, value)
    assert f"waistheart.{id}" in ids()
    with pytest.raises(SystemCheckError, match=rf"(?s)waistheart\.{id}.*HINT"):
        call_command("check")
    with pytest.raises(ImproperlyConfigured, match=id):
        live.refuse_to_start_inconsistent()


@pytest.mark.parametrize(("host", "loopback", "inside"), [
    ("127.0.0.1", True, True), ("127.9.9.9", True, True), ("127.1", True, True), ("::1", True, True),
    ("::ffff:127.0.0.1", True, True), ("localhost", True, True), ("shop.localhost", True, True),
    ("0.0.0.0", False, True), ("10.1.2.3", False, True), ("fd00::1", False, True), ("169.254.169.254", False, True),
    ("db.internal", False, True), ("sandbox", False, True), ("", False, True),
    ("1.1.1.1", False, False), ("api.stripe.com", False, False), ("localhost.example.com", False, False),
])  # fmt: skip
def test_whose_a_host_is(host: str, loopback: bool, inside: bool):
    assert (is_loopback(host), is_inside(host)) == (loopback, inside)


@pytest.mark.parametrize(("host", "here"), [
    ("127.1", True), ("0.0.0.0", True), ("::", True), ("localhost", True), (socket.gethostname().lower(), True),
    ("10.1.2.3", False), ("minio.internal", False), ("1.1.1.1", False),
])  # fmt: skip
def test_which_hosts_are_this_machine(host: str, here: bool):
    assert is_this_machine(host) is here


def test_a_host_is_within_its_domain_and_no_other():
    assert is_within("fal.ai", "fal.ai")
    assert is_within("api.fal.ai", "fal.ai")
    assert not is_within("notfal.ai", "fal.ai")


@pytest.mark.parametrize(("address", "host"), [
    ("https://API.fal.ai/v1", "api.fal.ai"), ("127.0.0.1:8001", "127.0.0.1"), ("[::1]:8001", "::1"),
    ("https://user:secret@host.example./x", "host.example"), ("", ""), ("http://[", ""),
])  # fmt: skip
def test_the_host_of_an_address(address: str, host: str):
    assert host_of(address) == host
