"""Bad days of the bytes: each story of docs/failures.md about what comes instead of a video. Told against the provider's process."""

import functools
import io
from typing import IO

import pytest
from django.conf import settings

from generation import runner, store
from generation.models import Job
from tests.generation.bad_days import assert_books_balance, generations, now
from tests.generation.stories import (
    GIVEN_BACK,
    a_minute_later,
    assert_delivered,
    assert_no_orphans,
    at,
    blobs,
    broken,
    entries,
    force,
    made,
    purse,
    step,
    sweep_orphans,
)
from tests.shop import Shop
from waistheart import storage


def assert_refused_once(shop: Shop, job: Job, why: str) -> None:
    """The first try was refused for this reason and left nothing; the next is whole."""
    job = step(job)
    assert (job.status, job.bad_bytes, entries()) == ("storing", 1, ["granted", "held"])
    assert job.last_error.startswith(why)
    assert not blobs("videos")
    assert a_minute_later(shop, job).status == "completed"
    assert_delivered(shop, job)


# --- bodies ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.5, 0.999])
def test_truncated_body(shop: Shop, share: float) -> None:
    job = made(shop)
    shop.sandbox.fault("truncated_body", share=share)
    assert_refused_once(shop, job, "short")


def test_truncated_body_without_a_length(shop: Shop) -> None:
    job = made(shop)
    shop.sandbox.fault("no_content_length", share=0.5)
    assert_refused_once(shop, job, "container")


def test_gzip_body(shop: Shop) -> None:
    job = made(shop)
    shop.sandbox.fault("gzip_body")
    assert step(job).status == "completed"
    assert now(job).bad_bytes == 0
    assert [r["reads"]["media"] for r in generations(shop, job)] == [1]
    assert_delivered(shop, job)


@pytest.mark.parametrize("content_type", ["text/html", "video/mp4"])
def test_html_instead_of_video(shop: Shop, content_type: str) -> None:
    job = made(shop)
    shop.sandbox.fault("html_instead_of_video", content_type=content_type)
    assert_refused_once(shop, job, "html")


@pytest.mark.parametrize(("fault", "why"), [("corrupt_frames", "frames"), ("wrong_aspect", "aspect")])
def test_corrupt_frames(shop: Shop, fault: str, why: str) -> None:
    shop.sandbox.fault(fault)
    job = made(shop)
    for _ in range(2):
        job = a_minute_later(shop, job)
        assert (job.status, job.last_error.split(":")[0]) == ("storing", why)
    job = a_minute_later(shop, job)
    assert (job.status, job.reason, job.lease_id) == ("review", "bad_bytes", None)
    assert (purse(job), entries()) == ((0, 1), ["granted", "held"])
    assert not blobs("videos")
    assert not blobs("posters")
    assert_no_orphans()


@pytest.mark.parametrize("fault", ["corrupt_frames", "result_without_url"])
def test_hints_within_seconds_do_not_use_the_tries_up(shop: Shop, fault: str) -> None:
    shop.sandbox.fault(fault)
    job = step(made(shop))
    state, read = job.status, [dict(r["reads"]) for r in generations(shop, job)]
    for _ in range(5):
        job = step(job)
    assert (job.status, job.bad_bytes, job.lease_id) == (state, 1, None)
    assert [dict(r["reads"]) for r in generations(shop, job)] == read

    # A sweep that has just claimed the row is no reason to wait longer.
    assert at(shop, job, 1).bad_bytes == 2
    assert (now(job).status, now(job).reason) == (state, "")


def test_index_at_the_end_is_stored_once_with_it_first(shop: Shop) -> None:
    shop.sandbox.fault("moov_last")
    job = step(made(shop))
    film = storage.read(key=job.video_key)
    assert film.index(b"moov") < film.index(b"mdat")
    assert_delivered(shop, job)


def test_a_copy_that_fails_its_proof_counts_as_bad_bytes(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.sandbox.fault("moov_last")
    job = made(shop)
    monkeypatch.setattr(store.verify, "faststart", cut)
    job = step(job)
    assert (job.status, job.bad_bytes) == ("storing", 1)
    assert not blobs("videos")
    monkeypatch.undo()
    assert a_minute_later(shop, job).status == "completed"
    assert_delivered(shop, job)


def cut(film: IO[bytes]) -> IO[bytes]:
    """What a broken remux would leave."""
    return io.BytesIO(film.read()[:-1000])


# --- addresses -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [403, 404])
def test_result_address_expires(shop: Shop, status: int) -> None:
    job = made(shop)
    shop.sandbox.fault("media_expires", status=status)
    job = step(job)
    assert (job.status, job.bad_bytes) == ("storing", 1)
    assert a_minute_later(shop, job).status == "completed"
    assert_delivered(shop, job)


def test_redirect_to_another_host(shop: Shop) -> None:
    job = made(shop)
    elsewhere = f"{shop.sandbox.url}/control/topup-is-not-this"
    shop.sandbox.fault("redirect_other_host", url=elsewhere)
    assert_refused_once(shop, job, "redirect")


def test_result_gone(shop: Shop) -> None:
    job = made(shop)
    force(shop, job, "gone")
    job = step(job)
    assert (job.status, job.reason, purse(job)) == ("review", "gone", (0, 1))
    job = at(shop, job, settings.REVIEW_GIVE_BACK_SECONDS)
    assert (job.status, purse(job), entries()) == ("failed", (1, 0), GIVEN_BACK)
    assert_books_balance()


def test_storage_fails_for_an_hour_and_the_address_expires_meanwhile(shop: Shop) -> None:
    job = made(shop)
    with broken(storage, "save_stream", functools.partial(storage.StorageError, "no room")):
        for _ in range(4):
            job = at(shop, job, 900)
        assert (job.status, job.bad_bytes, job.lease_id) == ("storing", 0, None)
        assert "no room" in job.last_error
    shop.sandbox.fault("media_expires")
    for _ in range(2):
        job = at(shop, job, 900)
    assert_delivered(shop, job)


def test_storage_fails_until_the_result_is_gone(shop: Shop) -> None:
    job = made(shop)
    with broken(storage, "save_stream", functools.partial(storage.StorageError, "no room")):
        shop.sweep(minutes=5)
    force(shop, job, "gone")
    for _ in range(3):
        job = a_minute_later(shop, job)
    assert (job.status, job.reason, purse(job)) == ("review", "gone", (0, 1))
    job = at(shop, job, settings.REVIEW_GIVE_BACK_SECONDS)
    assert (job.status, purse(job), entries()) == ("failed", (1, 0), GIVEN_BACK)
    assert_no_orphans()


def test_storage_fails_after_the_video_is_stored(shop: Shop) -> None:
    job = made(shop)
    with broken(storage, "save_bytes", functools.partial(storage.StorageError, "no room")):
        assert runner.advance(job.pk) == "waits"
    assert (now(job).status, now(job).bad_bytes, entries()) == ("storing", 0, ["granted", "held"])
    (first,) = blobs("videos")
    assert step(job).status == "completed"
    assert blobs("videos") == {first, now(job).video_key}
    assert sweep_orphans() == 1
    assert_delivered(shop, job)
