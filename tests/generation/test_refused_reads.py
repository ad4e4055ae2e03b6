"""Bad days of refused reads: one request that we may not read, or a list that our key may not ask, never shuts the shop."""

from typing import Any

import pytest
import requests

from generation import accounts, review, runner
from generation import sweep as sweeps
from generation.models import Job, ProviderAccount
from generation.providers import get_provider
from tests.generation.bad_days import alarms, generations, last, now, posts, sweep, until
from tests.generation.stories import at, made
from tests.shop import Shop, run_now

REFUSALS = ["unauthorized_401", "locked_403"]


def account() -> ProviderAccount:
    """The account in use as it is now."""
    return accounts.account_of(get_provider())


def rings() -> int:
    """How often an account was said to need a person."""
    return alarms("misconfigured") + alarms("out_of_credits")


def working(shop: Shop, minutes: int) -> int:
    """Sweeps and probes as by the clock, and an order every eight minutes; for how many of the minutes the account took no work."""
    shut = 0
    for minute in range(minutes):
        if minute % 8 == 1:
            runner.advance(shop.paid(email=f"order-{Job.objects.count()}@example.com").pk)
        if minute % 15 == 0:
            sweeps.probe(run_now)
        sweep(shop)
        shut += account().state != "ok"
    return shut


def all_well_again(shop: Shop) -> None:
    """The provider refuses nothing any more."""
    requests.delete(f"{shop.sandbox.url}/control/faults", timeout=30)


# --- one request -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", REFUSALS)
@pytest.mark.parametrize("ended", [False, True])
def test_a_job_that_waits_for_a_person_shuts_nothing(shop: Shop, settings: Any, fault: str, ended: bool) -> None:
    shop.sandbox.fault("never_finishing")
    odd = at(shop, shop.submitted(email="odd@example.com"), settings.PROCESSING_DEADLINE_SECONDS)
    shop.sandbox.fault(fault, times="all", on="status", match=last(odd).image_token)
    if ended:
        assert review.close(job=odd, actor="staff", reason="a story")
    assert (working(shop, 20), rings()) == (0, 0)
    assert (now(odd).status, last(odd).status) == ("failed" if ended else "review", "accepted")
    assert last(odd).read_error.startswith(("Misconfigured: ", "OutOfCredits: "))
    others = Job.objects.exclude(pk=odd.pk)
    until(shop, *others)

    all_well_again(shop)
    shop.age(901)
    sweep(shop)
    assert last(odd).read_error == ""


@pytest.mark.parametrize("fault", ["error_503", "unauthorized_401"])
def test_a_list_read_for_a_job_in_review_shuts_nothing(shop: Shop, fault: str) -> None:
    shop.sandbox.fault("drop_before_accept")
    odd = at(shop, shop.submitted(email="odd@example.com"), 3600)
    assert (now(odd).status, now(odd).reason) == ("review", "unknown_submit")
    shop.sandbox.fault(fault, times="all", on="list")
    assert (working(shop, 12), rings(), alarms("unavailable")) == (0, 0, 0)
    assert last(odd).read_error


@pytest.mark.parametrize("fault", REFUSALS)
def test_one_waiting_request_rings_once(shop: Shop, fault: str) -> None:
    """Refused at each look for forty minutes, and a POST is accepted in between: it has told us so already."""
    shop.sandbox.fault("never_finishing")
    odd = shop.submitted(email="odd@example.com")
    shop.sandbox.fault(fault, times="all", on="status", match=last(odd).image_token)
    shut = working(shop, 40)
    assert (now(odd).status, rings()) == ("processing", 1)
    assert 1 <= shut <= 16
    until(shop, *Job.objects.exclude(pk=odd.pk))

    # It was never the key: a revoked one is told by the next that is asked, at once.
    shop.sandbox.fault("unauthorized_401", times="all")
    runner.advance(shop.paid(email="next@example.com").pk)
    assert (account().state, rings()) == ("misconfigured", 2)


def test_a_revoked_key_shuts_at_once_and_all_resumes(shop: Shop, settings: Any) -> None:
    settings.PROVIDER_MAX_IN_FLIGHT = 3
    shop.sandbox.fault("never_finishing", times="all")
    running = [shop.submitted(email=f"{n}@example.com") for n in range(2)]
    waiting = shop.paid(email="waiting@example.com")
    for revoked in (1, 2):
        for on in ("status", "submit"):
            shop.sandbox.fault("unauthorized_401", times="all", on=on)
        runner.advance(running[0].pk)
        assert (account().state, rings()) == ("misconfigured", revoked)
        sweep(shop, minutes=32)
        assert (account().state, rings()) == ("misconfigured", revoked)
        assert ({now(job).status for job in running}, now(waiting).status) == ({"processing"}, "queued")

        all_well_again(shop)
        shop.sandbox.fault("never_finishing", times="all")
        sweep(shop, minutes=16)
        assert (account().state, rings(), now(waiting).status) == ("ok", revoked, "processing")
        if revoked == 1:  # the second time, with one more that runs
            running.append(waiting)
            settings.PROVIDER_MAX_IN_FLIGHT = 4
            waiting = shop.paid(email="another@example.com")
    assert posts(shop) <= 4 + 2 * 3, "a probe every quarter of an hour"


# --- the list --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", REFUSALS)
def test_a_list_that_our_key_may_not_ask_is_its_own_alarm(shop: Shop, fault: str) -> None:
    shop.sandbox.fault(fault, times="all", on="list")
    shop.sandbox.fault("drop_before_accept")
    odd = shop.submitted(email="odd@example.com")
    assert (working(shop, 40), rings(), alarms("list_refused")) == (0, 0, 1)
    assert last(odd).status == "unknown"
    assert last(odd).read_error.startswith(("Misconfigured: ", "OutOfCredits: "))
    working(shop, 30)
    assert (now(odd).status, now(odd).reason, alarms("list_refused")) == ("review", "unknown_submit", 2)
    until(shop, *Job.objects.exclude(pk=odd.pk))


def test_the_read_before_a_probe_may_be_refused(shop: Shop) -> None:
    """The provider was away; that it refuses the list says that it answers again."""
    job = shop.paid()
    accounts.open_outage(account(), state="unavailable", detail="a story")
    shop.sandbox.fault("unauthorized_401", times="all", on="list")
    shop.age(61)
    runner.advance(job.pk)
    assert (account().state, rings(), alarms("list_refused")) == ("ok", 0, 1)
    until(shop, job)


def test_a_refused_read_and_then_a_video(shop: Shop) -> None:
    shop.sandbox.fault("webhook_lost", times="all")
    job = made(shop)
    shop.sandbox.fault("unauthorized_401", on="status", match=last(job).image_token)
    assert runner.advance(job.pk) == "waits"
    assert last(job).read_error.startswith("stopped the account: Misconfigured: ")
    until(shop, job)
    assert (last(job).read_error, len(generations(shop, job))) == ("", 1)
