"""Bad days of our accounts at the provider: told to slow down in an outage, trouble that changes its name, a key that is replaced."""

from typing import Any

import pytest
import requests

from generation import accounts, review, runner
from generation import sweep as sweeps
from generation.models import ProviderAccount, Submission
from generation.providers import get_provider
from tests.generation.bad_days import alarms, generations, last, now, posts, sweep, until
from tests.generation.between import between
from tests.generation.stories import made, provider_ends
from tests.shop import Shop
from tests.shop_fixture import wait_for
from waistheart.models import GuardTally, Hint


def account() -> ProviderAccount:
    """The account in use as it is now."""
    return accounts.account_of(get_provider())


# --- told to slow down -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["unavailable", "out_of_credits", "misconfigured"])
def test_429_is_honoured_in_an_outage(shop: Shop, state: str) -> None:
    job = shop.paid()
    accounts.open_outage(account(), state=state, detail="a story")
    shop.age(901)
    shop.sandbox.fault("rate_limited_429", times="all", retry_after=1800)
    assert runner.advance(job.pk) == "RateLimited"
    sweep(shop, minutes=28)
    assert (posts(shop), Submission.objects.count()) == (1, 1)
    assert runner.advance(job.pk) == "told to slow down"
    sweep(shop, minutes=3)
    assert posts(shop) == 2


def test_429_on_the_read_of_a_probe(shop: Shop) -> None:
    job = shop.paid()
    accounts.open_outage(account(), state="unavailable", detail="a story")
    shop.age(61)
    shop.sandbox.fault("rate_limited_429", on="list", retry_after=600)
    assert runner.advance(job.pk) == "unavailable"
    assert account().not_before is not None
    sweep(shop, minutes=8)
    assert posts(shop) == 0
    until(shop, job)


def test_an_acceptance_does_not_end_a_429(shop: Shop) -> None:
    shop.sandbox.fault("never_finishing", times="all")
    first, second = (shop.paid(email=f"{n}@example.com") for n in range(2))
    accounts.open_outage(account(), state="out_of_credits", detail="a story")
    shop.age(901)
    shop.sandbox.fault("drop_after_accept")
    assert runner.advance(first.pk) == "UnknownOutcome"
    accounts.slow_down(account(), seconds=900)
    assert runner.advance(first.pk) == "running"
    assert account().state == "ok"
    assert runner.advance(second.pk) == "told to slow down"


# --- one alarm per outage --------------------------------------------------------------------------------------------


def test_trouble_that_changes_its_name_is_one_outage(shop: Shop) -> None:
    """Reads say 401, submits say 402, again and again."""
    shop.sandbox.fault("never_finishing", times="all")
    shop.submitted()
    shop.paid(email="second@example.com")
    shop.sandbox.fault("unauthorized_401", times="all", on="status")
    shop.sandbox.fault("status_402", times="all")
    sweep(shop)
    since, states = account().since, set()
    for _ in range(60):
        sweep(shop)
        states.add(account().state)
    assert states == {"misconfigured", "out_of_credits"}
    assert alarms("misconfigured") + alarms("out_of_credits") == 1
    assert (since - account().since).total_seconds() == pytest.approx(60 * 61, abs=1)
    assert 3 <= posts(shop) <= 6, "the probe neither stands still nor hurries"


def test_a_new_outage_rings_anew(shop: Shop) -> None:
    row = account()
    for state in ("misconfigured", "out_of_credits", "misconfigured"):
        accounts.open_outage(row, state=state, detail=state)
    assert (account().state, account().detail) == ("misconfigured", "misconfigured")
    ProviderAccount.objects.update(state="ok")
    accounts.open_outage(row, state="out_of_credits", detail="again")
    assert (alarms("misconfigured"), alarms("out_of_credits")) == (1, 1)


# --- the key is replaced ---------------------------------------------------------------------------------------------


def test_a_running_job_keeps_its_key(shop: Shop, settings: Any) -> None:
    """Another account does not know the request and would call it gone: the video is paid for."""
    shop.sandbox.settings(delay_seconds=2)
    with (
        between(f"{shop.sandbox.url}/fal/queue", key=settings.FAL_KEY) as middle,
        between(f"{shop.sandbox.url}/fal/api/v1", key=settings.FAL_KEY) as lists,
    ):
        settings.FAL_QUEUE_URL, settings.FAL_API_URL = middle.url, lists.url
        settings.FAL_KEY = "old"
        shop.sandbox.fault("drop_after_accept")
        lost, running = (shop.paid(email=f"{n}@example.com") for n in range(2))
        shop.sandbox.fault("webhook_lost", times="all")
        assert [runner.advance(job.pk) for job in (lost, running)] == ["UnknownOutcome", "running"]
        settings.FAL_KEY = "new, old"
        provider_ends(shop)
        middle.passed.clear()
        until(shop, lost, running)
        assert {key for _, _, key in [*middle.passed, *lists.passed]} == {"old"}
        fresh = shop.paid(email="fresh@example.com")
        middle.passed.clear()
        until(shop, fresh)
        assert {key for _, _, key in middle.passed} == {"new"}


def test_a_key_that_is_gone_makes_its_jobs_wait(shop: Shop, settings: Any) -> None:
    shop.sandbox.fault("never_finishing")
    job = shop.submitted()
    old, settings.FAL_KEY = settings.FAL_KEY, "new"
    assert runner.advance(job.pk) == "waits"
    assert f"key {last(job).account.key_print}" in now(job).last_error
    sweep(shop, minutes=20)
    assert (now(job).status, alarms("misconfigured")) == ("processing", 0)
    settings.FAL_KEY = f"new,{old}"
    assert runner.advance(job.pk) == "running"
    shop.age(7200)
    sweep(shop)
    assert (now(job).status, now(job).reason) == ("review", "deadline")
    assert review.close(job=now(job), actor="staff", reason="too late")
    wait_for(lambda: shop.provider()[0]["ended_at"])
    assert len(generations(shop, job)) == 1


def test_a_key_that_is_gone_until_the_deadline_is_named(shop: Shop, settings: Any) -> None:
    """The list of staff says what to mend, and once it is mended the finished video comes by itself."""
    job = made(shop)
    old, settings.FAL_KEY = settings.FAL_KEY, "new"
    shop.age(7200)
    sweep(shop)
    assert (now(job).status, now(job).reason) == ("review", "misconfigured")
    assert f"key {last(job).account.key_print}" in now(job).last_error
    settings.FAL_KEY = f"new,{old}"
    until(shop, job)
    assert len(generations(shop, job)) == 1


def test_the_account_of_a_replaced_key_asks_nobody(shop: Shop, settings: Any) -> None:
    accounts.open_outage(account(), state=accounts.STATE.OUT_OF_CREDITS, detail="empty")
    settings.FAL_KEY = f"new,{settings.FAL_KEY}"
    job = shop.paid()
    shop.age(901)
    assert list(sweeps.whose_turn()) == []
    assert account().state == accounts.STATE.OK
    assert list(sweeps.whose_turn()) == [job.pk]


def test_the_hint_of_a_job_with_an_old_key(shop: Shop, settings: Any) -> None:
    shop.sandbox.settings(delay_seconds=0.5)
    job = shop.submitted()
    settings.FAL_KEY = f"new,{settings.FAL_KEY}"
    wait_for(Hint.objects.exists)
    assert runner.advance(job.pk) == "final"
    assert now(job).status == "completed"


# --- strangers -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["", "/"])
def test_strangers_fill_no_table(shop: Shop, end: str) -> None:
    token = "a" * 32
    before = GuardTally.objects.count()
    for n in range(5):
        assert requests.post(f"{shop.url}/hints/made-up-{n}/{token}{end}", timeout=30).status_code == 404
    assert GuardTally.objects.count() == before + 1
    assert GuardTally.objects.get(guard="hint.unknown").lost == 5


@pytest.mark.parametrize(
    "token", ["x", "x" * 19, "x" * 65, "a%00" * 8, "a%2F" * 8, "%F0%9F%92%99" * 8, "a" * 31 + "%0A"]
)
def test_a_token_of_another_shape_is_unknown(shop: Shop, token: str) -> None:
    for path in (f"/hints/fal/{token}", f"/hints/fal/{token}/"):
        assert requests.post(f"{shop.url}{path}", timeout=30).status_code in (400, 404)
    assert requests.get(f"{shop.url}/portraits/{token}.jpg", timeout=30).status_code in (400, 404)
    assert not GuardTally.objects.filter(guard__startswith="hint").exists()


def test_an_empty_account_rings_though_it_was_away_and_is_not_hidden_again(shop: Shop) -> None:
    row = account()
    assert accounts.open_outage(row, state="unavailable", detail="away")
    assert accounts.open_outage(row, state="out_of_credits", detail="402")
    assert not accounts.open_outage(row, state="unavailable", detail="away")
    assert not accounts.open_outage(row, state="out_of_credits", detail="402")
    assert account().state == "out_of_credits"
    assert (alarms("unavailable"), alarms("out_of_credits")) == (1, 1)
