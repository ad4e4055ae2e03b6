"""Bad days of one model, one list or one moment: what is wrong there stops nobody else, and for no longer than it lasts."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
import requests

from generation import accounts, runner
from generation.models import Job, ProviderAccount
from generation.providers import get_provider
from generation.providers.base import Snapshot, State
from generation.providers.fal import Fal
from orders.models import Pose
from tests.generation.bad_days import alarms, generations, last, now, posts, sweep, until
from tests.generation.stories import at, made, provider_ends
from tests.shop import Shop

GATED = "fal-ai/gated/image-to-video"
QUARTER = 901


def account() -> ProviderAccount:
    """The account in use as it is now."""
    return accounts.account_of(get_provider())


@contextmanager
def a_list_that_answers(status: int, settings: Any) -> Iterator[None]:
    """Their list has moved: whatever we ask it is answered with this status, while their queue is well."""

    class List(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), List)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    settings.FAL_API_URL = f"http://127.0.0.1:{server.server_port}/v1"
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()


# --- one model -------------------------------------------------------------------------------------------------------


def a_gated_order(shop: Shop, fault: str, **params: Any) -> Job:
    pose = shop.add_pose("gated", model=GATED)
    shop.sandbox.fault(fault, times="all", on="submit", match="fal-ai/gated", **params)
    return shop.paid(email="odd@example.com", pose=pose)


def test_a_model_that_our_key_may_not_use_shuts_the_shop_for_two_probes_at_most(shop: Shop) -> None:
    """The oldest job is refused as if the key were wrong. Another one has the next probe, and from then on it is that model alone."""
    odd = a_gated_order(shop, "unauthorized_401")
    wells = [shop.paid(email=f"{n}@example.com") for n in range(2)]
    runner.advance(odd.pk)
    assert account().state == "misconfigured"
    sweep(shop, minutes=3, seconds=QUARTER)
    until(shop, *wells, minutes=5)
    for number in range(4):
        later = shop.paid(email=f"later-{number}@example.com")
        sweep(shop, seconds=QUARTER)
        until(shop, later, minutes=5)
    assert account().state == "ok"
    assert accounts.blocked_models(account()).keys() == {GATED}
    assert now(odd).status == "queued"
    assert alarms("misconfigured") <= 3

    sweep(shop, minutes=100, seconds=QUARTER)
    assert (now(odd).status, now(odd).reason) == ("review", "misconfigured")


@pytest.mark.parametrize(("odds", "seconds"), [(1, QUARTER), (2, QUARTER), (3, 61)])
def test_many_orders_of_such_a_model_do_not_hand_the_probes_to_each_other(shop: Shop, odds: int, seconds: int) -> None:
    odd = a_gated_order(shop, "unauthorized_401")
    pose = Pose.objects.get(slug="gated")
    others = [shop.paid(email=f"odd-{n}@example.com", pose=pose) for n in range(1, odds)]
    well = shop.paid(email="well@example.com")
    runner.advance(odd.pk)
    sweep(shop, minutes=3 * QUARTER // seconds, seconds=seconds)
    until(shop, well, minutes=5)
    assert {now(job).status for job in (odd, *others)} == {"queued"}


@pytest.mark.parametrize("wait", [{}, {"retry_after": 1200}])
def test_a_model_that_is_asked_too_fast_lets_others_go_first(shop: Shop, wait: dict[str, int]) -> None:
    odd = a_gated_order(shop, "rate_limited_429", **wait)
    wells = [shop.paid(email=f"{n}@example.com") for n in range(3)]
    runner.advance(odd.pk)
    shop.age(1201)
    until(shop, *wells, minutes=12 + 30 * len(wait))
    assert now(odd).status == "queued"


# --- their list ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [400, 404, 410, 503])
def test_a_list_that_has_moved_does_not_keep_an_outage_open(shop: Shop, settings: Any, status: int) -> None:
    """The read before the probe is of their list. That it may not be asked so says that they answer; and so does what runs."""
    shop.sandbox.fault("never_finishing")
    running = shop.submitted(email="running@example.com")
    jobs = [shop.paid(email=f"{n}@example.com") for n in range(2)]
    with a_list_that_answers(status, settings):
        accounts.open_outage(account(), state="unavailable", detail="a moment of 503")
        until(shop, *jobs)
    assert account().state == "ok"
    assert len(generations(shop, running)) == 1
    assert posts(shop) == 3


@pytest.mark.parametrize("fault", ["error_503", "rate_limited_429"])
@pytest.mark.parametrize("parked", [False, True])
def test_a_list_that_is_away_or_asked_too_often_stops_no_buying(shop: Shop, fault: str, parked: bool) -> None:
    shop.sandbox.fault("drop_before_accept")
    odd = shop.submitted(email="odd@example.com")
    if parked:
        at(shop, odd, 3600)
        assert (now(odd).status, now(odd).reason) == ("review", "unknown_submit")
    shop.sandbox.fault(fault, times="all", on="list", retry_after=3600)
    for number in range(4):
        job = shop.paid(email=f"{number}@example.com")
        until(shop, job, minutes=5)
        assert account().state == "ok"
    assert last(odd).read_error
    assert alarms("unavailable") == 0


# --- one moment ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["completed_with_error", "image_unreachable"])
def test_trouble_of_seconds_does_not_use_up_all_tries(shop: Shop, fault: str) -> None:
    """Each failure is told at once by its callback, and each new try would fail within the same second."""
    shop.sandbox.fault(fault, times="all")
    job = made(shop)
    for _ in range(5):
        runner.advance(job.pk)
        sweep(shop, seconds=1)
    assert (now(job).status, posts(shop)) == ("queued", 1)
    sweep(shop)
    provider_ends(shop)
    assert posts(shop) == 2
    requests.delete(f"{shop.sandbox.url}/control/faults", timeout=30)
    until(shop, job)


def test_a_passing_404_withholds_no_finished_video(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    job = made(shop)
    with monkeypatch.context() as patch:
        patch.setattr(Fal, "fetch_status", lambda *_, **__: Snapshot(State.GONE))
        runner.advance(job.pk)
    assert (now(job).status, now(job).reason) == ("review", "gone")
    shop.age(901)
    until(shop, job)
    assert len(generations(shop, job)) == 1
