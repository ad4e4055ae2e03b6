"""Bad days of answers: those that seem to refuse and do not, those that cannot be kept, and requests that no wire can carry."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from billing.models import Grant
from generation import own_address, review, runner
from generation.models import ProviderAccount, Submission
from tests.generation.bad_days import alarms, generations, last, now, posts, sweep, until
from tests.generation.between import Between, between, json_answer
from tests.generation.rude_server import head
from tests.generation.stories import provider_ends
from tests.shop import Shop

IMAGE_TROUBLE = json_answer("422 No", b'{"detail": [{"type": "file_download_error", "msg": "could not load"}]}')


@pytest.fixture
def middle(shop: Shop, settings: Any) -> Iterator[Between]:
    """Somebody between the shop and the provider's queue."""
    with between(f"{shop.sandbox.url}/fal/queue") as middle:
        settings.FAL_QUEUE_URL = middle.url
        yield middle


# --- answers that are no refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", ["102 Processing", "103 Early Hints"])
def test_an_interim_answer_is_not_paid_again(shop: Shop, middle: Between, status: str) -> None:
    middle.change = lambda method, path, answer: head(status, Link="</x>") + answer if method == "POST" else answer
    job = shop.paid()
    assert runner.advance(job.pk) in {"running", "final"}
    sweep(shop, minutes=4, seconds=901)
    assert (now(job).status, len(generations(shop, job)), Submission.objects.count()) == ("completed", 1, 1)


@pytest.mark.parametrize("status", ["303 See Other", "405 Method Not Allowed", "409 Conflict", "418 Teapot", "451 Law"])
def test_an_answer_that_is_in_no_table_is_not_paid_again(shop: Shop, middle: Between, status: str) -> None:
    """The provider took it; somebody in between says what nobody here knows."""
    middle.change = lambda method, path, answer: json_answer(status, b"{}") if method == "POST" else answer
    job = shop.paid()
    assert runner.advance(job.pk) == "UnknownOutcome"
    assert last(job).status == "unknown"
    sweep(shop, minutes=4, seconds=901)
    assert (now(job).status, len(generations(shop, job)), Submission.objects.count()) == ("completed", 1, 1)


GATEWAY = b"<html><h1>Bad Request</h1>Request Header Or Cookie Too Large<hr>cloudflare</html>"
GATEWAY_SAYS = ["400 Bad Request", "413 Content Too Large", "422 Odd"]


@pytest.mark.parametrize("status", GATEWAY_SAYS)
def test_a_gateways_page_does_not_refuse_the_photo(shop: Shop, middle: Between, status: str) -> None:
    """The provider took it, and a gateway says a status that is the provider's own for "we cannot use this photo"."""
    middle.change = lambda method, path, answer: json_answer(status, GATEWAY) if method == "POST" else answer
    job = shop.paid()
    assert runner.advance(job.pk) == "UnknownOutcome"
    assert (now(job).status, last(job).status) == ("queued", "unknown")
    sweep(shop, minutes=4, seconds=901)
    assert (now(job).status, len(generations(shop, job)), Submission.objects.count()) == ("completed", 1, 1)


@pytest.mark.parametrize("status", [*GATEWAY_SAYS, "404 Not Found"])
@pytest.mark.parametrize("body", [GATEWAY, b'{"detail": "Request is still in progress"}'], ids=["page", "words"])
def test_a_gateways_page_instead_of_the_result(shop: Shop, middle: Between, status: str, body: bytes) -> None:
    """It is paid and done: what says nothing of the work is read again."""
    if status.startswith("404") and body != GATEWAY:
        pytest.skip("that is their own word for gone")
    job = shop.paid()
    assert runner.step(job, actor="runner") == "submitted"
    provider_ends(shop)
    middle.change = lambda method, path, answer: answer if path.endswith("/status") else json_answer(status, body)
    assert runner.advance(job.pk) == "waits"
    assert (now(job).status, last(job).status) == ("processing", "accepted")
    middle.change = lambda method, path, answer: answer
    until(shop, job)
    assert len(generations(shop, job)) == 1


@pytest.mark.parametrize("given", ["r" * 300, "a\0b", 7, ["r"]], ids=["long", "nul", "number", "list"])
def test_an_id_that_cannot_be_kept(shop: Shop, middle: Between, given: object) -> None:
    middle.change = lambda method, path, answer: (
        json_answer("200 OK", json.dumps({"request_id": given}).encode()) if method == "POST" else answer
    )
    job = shop.paid()
    assert runner.advance(job.pk) == "UnknownOutcome"
    assert last(job).status == "unknown"
    until(shop, job)
    assert (len(generations(shop, job)), Submission.objects.count()) == (1, 1)


def test_a_detail_that_no_row_can_hold(shop: Shop, middle: Between) -> None:
    middle.change = lambda method, path, answer: (
        json_answer("402 Pay", b'{"detail": "empty\\u0000\\ud800!"}') if method == "POST" else answer
    )
    job = shop.paid()
    assert runner.advance(job.pk) == "OutOfCredits"
    assert (last(job).status, last(job).detail) == ("refused", "402 empty  !")
    assert ProviderAccount.objects.get().detail == "402 empty  !"


# --- requests that cannot be sent ------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["k\u00e9y\u2026", "sandbox fal key", "sandbox\nfal"])
def test_a_key_that_no_header_can_carry(shop: Shop, settings: Any, key: str) -> None:
    job = shop.paid()
    right, settings.FAL_KEY = settings.FAL_KEY, key
    assert runner.advance(job.pk) == "waits"
    sweep(shop, minutes=12, seconds=400)
    assert (now(job).status, now(job).failures, Submission.objects.count()) == ("queued", 0, 0)
    settings.FAL_KEY = f"{right}\n"
    until(shop, job)
    assert len(generations(shop, job)) == 1


def test_a_model_that_no_path_can_carry_stops_that_model_only(shop: Shop) -> None:
    bad = shop.add_pose("bad", model="fal-ai/heart pose/x")
    waiting = [shop.paid(pose=bad, email=f"{n}@example.com") for n in range(2)]
    well = shop.paid(email="well@example.com")
    assert runner.advance(waiting[0].pk) == "Misconfigured"
    assert (last(waiting[0]).status, posts(shop)) == ("refused", 0)
    until(shop, well, minutes=3)
    sweep(shop, minutes=12, seconds=400)
    assert [now(job).status for job in waiting] == ["queued", "queued"]
    assert list(ProviderAccount.objects.exclude(state="ok").values_list("model", "state")) == [
        ("fal-ai/heart pose/x", "misconfigured")
    ]
    assert (alarms("misconfigured"), posts(shop)) == (1, 1)


# --- whose fault an image is -----------------------------------------------------------------------------------------


def flapping(monkeypatch: pytest.MonkeyPatch, answers: list[bool]) -> list[bool]:
    """Our own addresses answer like this, one look after the other, and are reachable after that; the looks that are left."""
    monkeypatch.setattr(own_address, "shows", lambda url, picture: answers.pop(0) if answers else True)
    return answers


def test_refusals_while_our_address_was_down_are_not_the_photos(
    shop: Shop, middle: Between, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Down when the provider tried, up again whenever we probe: such refusals say nothing of the photo."""
    middle.change = lambda method, path, answer: IMAGE_TROUBLE if method == "POST" else answer
    left = flapping(monkeypatch, [False, True, False, True, False, True, True])
    job = shop.paid()
    while left:
        runner.advance(job.pk)
        shop.age(61)
    assert now(job).status == "queued"
    assert list(Submission.objects.order_by("number").values_list("refusal_kind", flat=True)) == [
        "image", "image", "image", "image_ok",
    ]  # fmt: skip
    for _ in range(4):
        runner.advance(job.pk)
        shop.age(61)
    assert (now(job).status, now(job).reason, Submission.objects.count()) == ("failed", "image", 6)
    assert Grant.objects.get().available == 1


def test_results_while_our_address_was_down_are_not_the_photos(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.sandbox.fault("image_unreachable", times="all")
    left = flapping(monkeypatch, [True, False, True, False])
    job = shop.paid()
    while left:
        runner.advance(job.pk)
        provider_ends(shop)
        shop.age(61)
    assert (now(job).status, now(job).reason, now(job).accepted) == ("review", "unavailable", 3)
    assert Grant.objects.get().held == 1

    # A new start counts anew: the one that counted before it does not.
    sweep(shop)
    assert review.requeue(job=now(job), actor="staff")
    until(shop, job, status="failed")
    assert (now(job).reason, len(generations(shop, job))) == ("image", 6)
