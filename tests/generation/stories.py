"""What the stories after a submit share: waiting for the provider, one step at a time, and the bytes that lie in storage."""

import hashlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import requests
from django.conf import settings
from django.core.files.storage import default_storage

from billing.models import Entry, Grant
from generation import runner
from generation.models import Job, JobEvent, Submission
from orders import daily
from orders.models import Photo
from tests.generation.bad_days import assert_books_balance, now, page_of
from tests.shop import Shop
from tests.shop_fixture import wait_for
from waistheart import storage
from waistheart.installation import ident

DELIVERED = ["granted", "held", "settled"]
GIVEN_BACK = ["granted", "held", "released"]


def made(shop: Shop, **draft: Any) -> Job:
    """A job whose provider has ended, well or badly; the shop has not looked yet."""
    job = shop.paid(**draft)
    assert runner.step(job, actor="runner") == "submitted"
    provider_ends(shop)
    return now(job)


def provider_ends(shop: Shop) -> None:
    """Wait until the provider has ended all that ends."""
    wait_for(lambda: all(request["ended_at"] or request["never_ends"] for request in shop.provider()), seconds=60)


def force(shop: Shop, job: Job, outcome: str) -> None:
    """Make the provider come to an outcome for the job's newest submission, and wait until it has."""
    external_id = Submission.objects.filter(job=job).latest("number").external_id
    shop.sandbox.post(f"/control/fal/{external_id}", {"status": outcome})
    if outcome not in ("gone", "running"):
        wait_for(lambda: next(r for r in shop.provider() if r["request_id"] == external_id)["ended_at"], seconds=60)


def step(job: Job) -> Job:
    """One look of a worker, and the job afterwards."""
    runner.advance(job.pk)
    return now(job)


def a_minute_later(shop: Shop, job: Job) -> Job:
    """One look of a worker once the job has rested from bad bytes, and the job afterwards."""
    shop.age(61)
    return step(job)


def at(shop: Shop, job: Job, seconds: float) -> Job:
    """The job after the sweep that runs so many seconds later."""
    shop.age(seconds)
    shop.sweep()
    return now(job)


def page(shop: Shop, job: Job) -> str:
    """What the customer reads."""
    return requests.get(shop.url + page_of(job), timeout=30).text


def moves(job: Job) -> list[str]:
    """The names of its moves since birth, in order."""
    return list(
        JobEvent.objects.filter(job=job).exclude(move="birth").order_by("version").values_list("move", flat=True)
    )


def entries() -> list[str]:
    """The kinds of the ledger's lines, in order."""
    return list(Entry.objects.order_by("id").values_list("kind", flat=True))


def purse(job: Job) -> tuple[int, int]:
    """What the grant that paid for the job has available and held."""
    grant = Grant.objects.get(hold_parts__hold_id=job.hold_id)
    return grant.available, grant.held


def blobs(kind: str) -> set[str]:
    """The keys of one kind that lie in storage."""
    return {blob.key for blob in storage.list_keys(prefix=f"{ident()}/{kind}/")}


def assert_no_orphans() -> None:
    """Every byte in storage has its row, and every row its bytes."""
    jobs = Job.objects.filter(deleted_at__isnull=True).exclude(video_key="")
    assert blobs("videos") == set(jobs.values_list("video_key", flat=True))
    assert blobs("posters") == set(jobs.values_list("poster_key", flat=True))
    images = Submission.objects.filter(image_deleted_at__isnull=True)
    assert blobs("images") == set(images.values_list("image_key", flat=True))
    assert blobs("photos") == set(Photo.objects.filter(deleted_at__isnull=True).values_list("key", flat=True))


def sweep_orphans() -> int:
    """Make all bytes older than the orphan window, and sweep."""
    old = time.time() - settings.ORPHAN_WINDOW_SECONDS - 60
    for blob in storage.list_keys(prefix=f"{ident()}/"):
        os.utime(default_storage.path(blob.key), (old, old))
    return daily.delete_orphans()


def assert_delivered(shop: Shop, job: Job) -> None:
    """Completed and settled once, and the customer's page gives out exactly the bytes that were verified."""
    job = now(job)
    assert (job.status, purse(job), entries()) == ("completed", (0, 0), DELIVERED)
    video = requests.get(shop.url + page_of(job) + "video.mp4", timeout=30)
    assert (video.status_code, hashlib.sha256(video.content).hexdigest()) == (200, job.video_sha256)
    poster = requests.get(shop.url + page_of(job) + "poster.jpg", timeout=30)
    assert (poster.status_code, poster.headers["Content-Type"]) == (200, "image/jpeg")
    assert_no_orphans()
    assert_books_balance()


@contextmanager
def broken(owner: Any, name: str, error: Callable[[], Exception]) -> Iterator[None]:
    """While the block lasts, every call of this function raises."""

    def fail(*args: Any, **kwargs: Any) -> Any:
        raise error()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, fail)
        yield
