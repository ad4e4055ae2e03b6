"""Both sides real, or both sandbox: what is refused, with which id, and what becomes of those who wait meanwhile."""

import logging
import os
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
from tests.floor.live_settings import ids, real
from tests.shop import DECLARED, Shop
from tests.shop_fixture import wait_for
from waistheart import live
from waistheart.models import Installation

__all__ = ["real"]


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
