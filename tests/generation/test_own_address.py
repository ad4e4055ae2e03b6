"""Bad days of our own image address: whose fault it is when the provider cannot load the picture that a submission shows."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import requests

from billing.models import Entry, Grant
from generation import admin_review, own_address, runner, submit, views
from generation.models import ProviderAccount, Submission
from tests.generation.bad_days import alarms, generations, last, now, posts, sweep, until
from tests.generation.between import Between, between, json_answer
from tests.generation.stories import assert_no_orphans, blobs, made, provider_ends
from tests.shop import Shop
from waistheart import storage

IMAGE_TROUBLE = json_answer("422 No", b'{"detail": [{"type": "file_download_error", "msg": "could not load"}]}')


class WebStorage:
    """The storage as the web process sees it; the workers' own is well."""

    def __init__(self, **broken: Callable[..., Any]) -> None:
        self.broken = broken

    def __getattr__(self, name: str) -> Any:
        return self.broken.get(name) or getattr(storage, name)


def away(**which: Any) -> Any:
    raise storage.StorageError("the web process cannot reach the bucket")


def others(*, key: str) -> Iterator[bytes]:
    """As many bytes as there should be, and none of them right."""
    size = storage.size(key=key)
    assert size
    return iter([b"\0" * size])


BROKEN = {
    "503": WebStorage(size=away),
    "404": WebStorage(size=lambda key: None),
    "other bytes": WebStorage(open_range=others),
    "half": WebStorage(open_range=lambda key: storage.open_range(key=key, end=100)),
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_web_that_cannot_serve_the_picture_is_our_outage(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Every other page and every picture that is no blob is well, so nothing but the picture's own address can tell."""
    if how in ("other bytes", "half"):  # whatever their loader makes of it, they say that it did not load
        shop.sandbox.fault("image_unreachable", times="all")
    jobs = [shop.paid(email=f"{n}@example.com") for n in range(3)]
    with monkeypatch.context() as patch:
        patch.setattr(views, "storage", BROKEN[how])
        if how == "half":  # the rest is waited for
            patch.setattr(own_address, "SECONDS", 1)
        sweep(shop, minutes=10)
        assert {now(job).status for job in jobs} == {"queued"}
        assert posts(shop) <= 2, "more was bought than was in flight when it broke"
        assert alarms("unavailable") == 1
        account = ProviderAccount.objects.get()
        assert (account.state, account.detail) == ("unavailable", "our own image address is not reachable")
        assert Entry.objects.filter(kind="released").count() == 0

    requests.delete(f"{shop.sandbox.url}/control/faults", timeout=30)
    until(shop, *jobs)
    assert alarms("unavailable") == 1
    sweep(shop, minutes=2)
    assert_no_orphans()


def test_a_web_that_cannot_serve_the_picture_refused_at_once(
    shop: Shop, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same, said by the answer to the submit."""
    with between(f"{shop.sandbox.url}/fal/queue") as middle:
        settings.FAL_QUEUE_URL = middle.url
        fails_to_load(middle)
        job = shop.paid()
        with monkeypatch.context() as patch:
            patch.setattr(views, "storage", BROKEN["404"])
            sweep(shop, minutes=10)
            assert (now(job).status, Submission.objects.count(), alarms("unavailable")) == ("queued", 1, 1)
            assert (last(job).refusal, last(job).refusal_kind) == ("unreachable", "image")
        middle.change = lambda method, path, answer: answer
        until(shop, job)


def fails_to_load(middle: Between) -> None:
    middle.change = lambda method, path, answer: IMAGE_TROUBLE if method == "POST" else answer


def test_the_proof_leaves_nothing_and_opens_nothing(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    job = shop.paid()
    asked: list[str] = []
    shows = own_address.shows
    monkeypatch.setattr(own_address, "shows", lambda url, picture: asked.append(url) or shows(url, picture))
    picture = submit.portrait(job)
    assert own_address.proven(job, picture)
    assert blobs("images") == set()
    [url] = asked
    assert requests.get(url, timeout=30).status_code == 404

    # While its bytes are there it is an address like a submission's, and only as it was signed.
    with monkeypatch.context() as patch:
        patch.setattr(storage, "delete", away)
        assert own_address.proven(job, picture)
    answer = requests.get(asked[1], timeout=30)
    assert (answer.status_code, answer.headers["Content-Type"], answer.content) == (200, "image/jpeg", picture)
    assert requests.get(asked[1].replace(".jpg", "x.jpg"), timeout=30).status_code == 404
    runner.advance(job.pk)
    assert requests.get(asked[1], timeout=30).status_code == 404, "its job waits no more"


def test_a_picture_larger_than_an_answer_may_be_is_proven_as_well(shop: Shop) -> None:
    assert own_address.proven(shop.paid(), b"\xff" * 3_000_000)


def test_one_photo_that_cannot_be_read_does_not_keep_the_outage(shop: Shop, settings: Any) -> None:
    """Its turn to be the probe comes first; the others are not to wait for it."""
    bad, well = shop.paid(), shop.paid(email="well@example.com")
    settings.PUBLIC_URL = "http://127.0.0.1:9"
    sweep(shop, minutes=2)
    settings.PUBLIC_URL = shop.url
    storage.delete(key=bad.photo_key)
    until(shop, well, minutes=8)
    assert (now(bad).status, now(bad).last_error[:12]) == ("queued", "StorageError")


def test_an_address_whose_time_is_over_proves_nothing(shop: Shop, settings: Any) -> None:
    """The picture is not given out any more, as it should be: neither our outage nor the photo's fault."""
    shop.sandbox.fault("image_unreachable")
    job = made(shop)
    settings.IMAGE_URL_SECONDS = 30
    shop.age(61)
    assert runner.step(now(job), actor="runner") == "retried"
    assert (last(job).refusal_kind, alarms("unavailable")) == ("image_over", 0)
    settings.IMAGE_URL_SECONDS = 14400
    until(shop, job)


def test_a_picture_that_was_deleted_proves_nothing(shop: Shop) -> None:
    shop.sandbox.fault("image_unreachable")
    job = made(shop)
    storage.delete(key=last(job).image_key)
    Submission.objects.update(image_deleted_at=last(job).sent_at)
    assert runner.step(now(job), actor="runner") == "retried"
    assert (last(job).refusal_kind, alarms("unavailable")) == ("image_over", 0)


# --- the last try ----------------------------------------------------------------------------------------------------


def test_an_image_failure_after_two_other_failures(shop: Shop) -> None:
    """Our address was well all the time: a last try that failed, and nobody reads that it was our address or the photo."""
    shop.sandbox.fault("completed_with_error", times=2)
    shop.sandbox.fault("image_unreachable", times="all")
    job = shop.paid()
    tries_end(shop, job)
    assert (now(job).status, now(job).reason, now(job).accepted) == ("failed", "provider_failed", 3)
    assert "our own" not in now(job).last_error
    assert (Grant.objects.get().available, alarms("unavailable"), len(generations(shop, job))) == (1, 0, 3)


@pytest.mark.parametrize("answers", [[False, True, True, True], [True, True, False]], ids=["first", "last"])
def test_tries_that_our_address_took_are_not_the_customers(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, answers: list[bool]
) -> None:
    """The first look that is False opens the outage, and the look after it is the proof that ends it."""
    left = [*answers]
    monkeypatch.setattr(own_address, "shows", lambda url, picture: left.pop(0) if left else True)
    shop.sandbox.fault("image_unreachable", times="all")
    job = shop.paid()
    tries_end(shop, job)
    job = now(job)
    assert (job.status, job.reason, job.accepted) == ("review", "unavailable", 3)
    assert job.last_error == "our own image address was not reachable"
    assert "image address" in admin_review.why(job)
    assert (Grant.objects.get().held, Entry.objects.filter(kind="released").count()) == (1, 0)


def tries_end(shop: Shop, job: Any) -> None:
    """Minute after minute until the job is neither queued nor with the provider."""
    for _ in range(12):
        if now(job).status not in ("queued", "processing"):
            return
        runner.advance(job.pk)
        provider_ends(shop)
        shop.age(61)
