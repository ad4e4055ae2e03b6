"""Both sides real, or both sandbox: what is refused, with which id, and what becomes of those who wait meanwhile."""

import logging
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.urls import reverse

from billing.gateway import get_gateway
from billing.gateway_errors import GatewayError, GatewayMisconfigured
from billing.models import Payment
from generation import runner
from generation.models import Job
from generation.providers import get_provider
from orders import flow
from tests.sandbox_process import sandbox, sandbox_process
from tests.shop import DECLARED, Shop
from tests.shop_fixture import shop, wait_for
from waistheart import ages, live
from waistheart.hosts import host_of, is_inside, is_loopback, is_this_machine, is_within
from waistheart.models import Installation

__all__ = ["sandbox", "sandbox_process", "shop"]

REAL_SETTINGS: dict[str, Any] = {
    "LIVE": True,
    "DEBUG": False,
    "SECRET_KEY": "a-secret-of-the-operator",
    "PUBLIC_URL": "https://shop.waistheart.example",
    "STRIPE_SECRET_KEY": "sk_live_abc",
    "STRIPE_WEBHOOK_SECRET": "whsec_abc",
    "STRIPE_API_BASE": "https://api.stripe.com",
    "FAL_KEY": "fal-key",
    "FAL_QUEUE_URL": "https://queue.fal.run",
    "FAL_API_URL": "https://api.fal.ai/v1",
    "FAL_JWKS_URL": "https://rest.fal.ai/.well-known/jwks.json",
    "FAL_MEDIA_HOSTS": ["v3.fal.media", "v3b.fal.media"],
    "CELERY_BROKER_URL": "redis://broker.example:6379/0",
    "EMAIL_BACKEND": "django.core.mail.backends.smtp.EmailBackend",
}


@pytest.fixture
def real(settings: Any, monkeypatch: Any) -> Any:
    """Settings of a live shop in which everything is right."""
    for name, value in REAL_SETTINGS.items():
        setattr(settings, name, value)
    settings.STORAGES = {**settings.STORAGES, "default": bucket()}
    monkeypatch.setitem(settings.DATABASES["default"], "ENGINE", "django.db.backends.postgresql")
    return settings


def bucket(**options: Any) -> dict[str, Any]:
    return {
        "BACKEND": "storages.backends.s3.S3Storage",
        "OPTIONS": {
            "bucket_name": "videos",
            "access_key": "id",
            "secret_key": "secret",
            "querystring_auth": True,
            **options,
        },
    }


def ids() -> set[str]:
    return {problem.id for problem in [*live.problems(), *ages.problems()]}


def test_what_is_right_is_not_refused(real: Any):
    assert live.problems() == []


def test_the_sandbox_settings_are_right():
    assert live.problems() == []


# --- the stories -----------------------------------------------------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.parametrize("key", ["sk_live_abc", "rk_live_abc"])
def test_live_key_without_live(settings: Any, key: str):
    settings.STRIPE_SECRET_KEY = key
    assert ids() == {"waistheart.E011"}
    with pytest.raises(SystemCheckError, match=r"(?s)waistheart\.E011.*HINT: Use a test key"):
        call_command("check")
    with pytest.raises(ImproperlyConfigured, match="E011"):
        live.refuse_to_start_inconsistent()
    with pytest.raises(GatewayMisconfigured, match="E011") as refused:
        get_gateway()
    with pytest.raises(ImproperlyConfigured, match="E011"):
        get_provider()
    assert key not in str(refused.value)


@pytest.mark.parametrize("name", ["FAL_KEY", "STRIPE_SECRET_KEY", "STRIPE_WEBHOOK_SECRET", "SECRET_KEY"])
@pytest.mark.parametrize("empty", ["", "  "])
@pytest.mark.django_db
def test_live_without_keys(real: Any, name: str, empty: str):
    setattr(real, name, empty)
    assert [p.message for p in live.problems()] == [f"LIVE is set, {name} is missing"]
    with pytest.raises(SystemCheckError, match=rf"(?s)waistheart\.E001\) .*{name} is missing.*HINT: Set it"):
        call_command("check")
    with pytest.raises(ImproperlyConfigured, match=f"E001.*{name}"):
        live.refuse_to_start_inconsistent()
    with pytest.raises(ImproperlyConfigured, match=f"E001.*{name}"):
        get_provider()
    with pytest.raises(ImproperlyConfigured, match=f"E001.*{name}"):
        get_gateway()


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["FAL_KEY", "STRIPE_SECRET_KEY", "STRIPE_WEBHOOK_SECRET"])
@pytest.mark.parametrize("inside", [" ", "\n", "\0", "\u00e9", "\u2026", "\udc80"])
def test_a_key_that_no_header_can_carry(real: Any, name: str, inside: str):
    setattr(real, name, f"sk_live_a{inside}b")
    assert [p.message for p in live.problems()] == [f"{name} holds a character that no key has"]
    with pytest.raises(SystemCheckError, match=r"waistheart\.E021"):
        call_command("check")
    with pytest.raises(ImproperlyConfigured, match=f"E021.*{name}"):
        live.refuse_to_start_inconsistent()


def test_several_keys_and_the_line_end_of_a_secret_file(real: Any):
    real.FAL_KEY = "new-key, old-key\n"
    assert live.problems() == []
    real.FAL_KEY = " ,\n"
    assert [p.message for p in live.problems()] == ["LIVE is set, FAL_KEY is missing"]


@pytest.mark.parametrize("name", ["", "heart", "a/heart pose", "/a/b", "a/../b", "a/b\n"])
def test_a_model_that_is_none(settings: Any, name: str):
    settings.VIDEO_MODEL = name
    assert ids() == {"waistheart.E022"}


def test_what_is_queued_waits_for_the_keys_and_is_then_delivered(shop: Shop, settings: Any, caplog: Any):
    job = shop.paid()
    settings.LIVE = True
    with caplog.at_level(logging.ERROR):
        assert runner.advance(job.pk) == "waits"
        shop.sweep(minutes=12)
    assert any(r.levelno == logging.ERROR and "waistheart.E002" in r.getMessage() for r in caplog.records)
    waiting = Job.objects.get(pk=job.pk)
    assert (waiting.status, waiting.failures) == ("queued", 0)
    assert "E002" in waiting.last_error
    assert shop.provider() == []
    settings.LIVE = False
    shop.until(job, "processing", minutes=16)
    wait_for(lambda: runner.advance(job.pk) == "final")
    assert Job.objects.get(pk=job.pk).status == "completed"
    assert len(shop.provider()) == 1


def test_after_a_day_without_keys_a_person_looks(shop: Shop, settings: Any):
    job = shop.paid()
    settings.LIVE = True
    shop.age(settings.QUEUE_DEADLINE_SECONDS + 1)
    shop.sweep()
    job.refresh_from_db()
    assert (job.status, job.reason) == ("review", "misconfigured")


def test_a_job_at_a_provider_nobody_may_ask_goes_to_review_at_its_deadline(shop: Shop, settings: Any):
    shop.sandbox.fault("never_finishing")
    job = shop.submitted()
    assert job.status == "processing"
    settings.LIVE = True
    shop.age(settings.PROCESSING_DEADLINE_SECONDS + 1)
    shop.sweep()
    job.refresh_from_db()
    assert (job.status, job.reason) == ("review", "misconfigured")


@pytest.mark.django_db
def test_database_of_the_other_mode(settings: Any):
    live.refuse_to_start_inconsistent()
    assert Installation.objects.get().mode == "sandbox", "the first start claims a new database"
    Installation.objects.update(mode="live")
    assert live.problems() == [], "no check without a database asks it"
    with pytest.raises(SystemCheckError, match=r"(?s)waistheart\.E040.*HINT"):
        call_command("check", databases=["default"])
    with pytest.raises(ImproperlyConfigured, match="live installation"):
        live.refuse_to_start_inconsistent()
    with pytest.raises(ImproperlyConfigured, match="E040"):
        get_provider()
    with pytest.raises(GatewayMisconfigured, match="E040"):
        get_gateway()
    assert Installation.objects.get().mode == "live"


def test_an_empty_database_may_be_checked_and_then_migrated(tmp_path: Path):
    command = [sys.executable, "manage.py", "check", "--database", "default"]
    environ = {"PATH": os.environ["PATH"], "READ_DOT_ENV": "0", "VAR_DIR": str(tmp_path / "var")}
    done = subprocess.run(command, env=environ, cwd=Path(__file__).resolve().parents[2], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "var").stat().st_mode & 0o777 == 0o700, "the photos and secrets there are for nobody else"


# --- money that waits ------------------------------------------------------------------------------------------------


def test_paid_money_is_settled_once_the_settings_are_right(shop: Shop, settings: Any):
    order = shop.asked()
    payment = shop.pay(order)
    settings.STRIPE_SECRET_KEY = "sk_live_oops"
    with pytest.raises(GatewayError):
        flow.settle(payment)
    assert flow.look(payment) == ""
    shop.sweep(minutes=15)
    payment.refresh_from_db()
    assert (payment.status, payment.failures) == ("open", 0), "an outage of ours is no fault of the row"
    settings.STRIPE_SECRET_KEY = "sk_test_sandbox"
    shop.sweep(minutes=16)
    payment.refresh_from_db()
    assert payment.status == "received"


def test_the_customer_never_sees_an_error_of_ours(shop: Shop, settings: Any, client: Any):
    asked, drafted = shop.asked(), shop.draft(email="bea@example.com")
    payment = shop.pay(asked)
    settings.STRIPE_SECRET_KEY = "sk_live_oops"
    back = client.get(f"/pay/return/?session={payment.session_id}", follow=True)
    assert back.status_code == 200
    assert back.redirect_chain[-1][0].startswith(f"/o/{asked.code}-")
    pay = client.post(reverse("pay", kwargs={"key": drafted.key}), {})
    assert pay.status_code == 503
    assert "No money was taken" in pay.content.decode()
    assert "Your photo is kept, for 24 hours" in pay.content.decode()
    answer = flow.ask_payment(order=drafted, declarations=DECLARED, expected_price=400)
    assert answer.problem == "gateway_down"
    assert client.post("/hints/stripe/", b"{}", content_type="application/json").status_code == 503
    settings.STRIPE_SECRET_KEY = "sk_test_sandbox"
    shop.sweep()
    assert Payment.objects.get(order=drafted).session_id, "the sweep made the page that could not be made"


# --- each rule -------------------------------------------------------------------------------------------------------


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
