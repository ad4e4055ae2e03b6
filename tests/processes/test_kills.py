"""A worker is killed by SIGKILL after each step of submit and store; whatever it left behind, the sweep finishes the job.

The worker is a process of its own (`worker_step.py`) on this test's database and storage. Afterwards only sweeps run, and time
moves on. Runs in both database lanes.
"""

import hashlib
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import connection

from billing.audit import differences
from billing.models import Entry, Grant
from generation import review
from generation.models import Job, Submission
from orders import daily
from orders.models import Mail, Photo
from tests import sandbox_process as sandboxes
from tests import shop_fixture
from tests.processes.worker_step import INSTRUMENTS
from tests.shop import Shop
from tests.shop_process import ROOT
from waistheart import storage
from waistheart.installation import ident

# This folder's other tests know a shop of real processes under the same name.
shop = shop_fixture.shop
sandbox = sandboxes.sandbox
sandbox_process = sandboxes.sandbox_process

# A lease of two minutes, and a few sweeps: that is all that a kill may cost.
SOON = 8
# A row that is looked at in vain waits longer each time, so much at most.
LONGEST_WAIT = 15
FROM_SETTINGS = (
    "PUBLIC_URL", "FAL_QUEUE_URL", "FAL_API_URL", "FAL_JWKS_URL", "FAL_KEY", "STRIPE_API_BASE", "STRIPE_SECRET_KEY",
    "SECRET_KEY", "VAR_DIR",
)  # fmt: skip


@dataclass(frozen=True)
class Left:
    """What a worker leaves that dies at a step: the job's state, its lease, its submission, and blobs that no row will ever own."""

    status: str
    leased: bool
    submission: str = ""
    requests: int = 0
    orphans: list[str] = field(default_factory=list)
    by_a_person: bool = False


LEFT = {
    "the lease is taken": Left("queued", True),
    "the image is stored": Left("queued", True, orphans=["images"]),
    # Whether the POST left is not to be known, and an empty list at the provider proves nothing: a person decides (rule 11).
    "I am sending is committed": Left("queued", True, "sending", by_a_person=True),
    "the POST was accepted": Left("queued", True, "sending", 1),
    "the id is kept": Left("queued", True, "sending", 1),
    "the acceptance is recorded": Left("queued", True, "accepted", 1),
    "the submit move": Left("processing", False, "accepted", 1),
    "the finish move": Left("storing", False, "accepted", 1),
    "the lease of the download is taken": Left("storing", True, "accepted", 1),
    "half of the download": Left("storing", True, "accepted", 1, ["videos"]),
    "the bytes are stored": Left("storing", True, "accepted", 1, ["videos"]),
    "every frame is decoded": Left("storing", True, "accepted", 1, ["videos"]),
    "the poster is stored": Left("storing", True, "accepted", 1, ["posters", "videos"]),
    "all of store but its COMMIT": Left("storing", True, "accepted", 1, ["posters", "videos"]),
    "COMMIT of store": Left("completed", False, "done", 1),
}


def test_every_step_is_told() -> None:
    assert LEFT.keys() == INSTRUMENTS.keys()


@pytest.mark.parametrize("step", LEFT)
def test_worker_killed_after_each_step(shop: Shop, step: str) -> None:
    left = LEFT[step]
    job = shop.paid()
    work_until_killed(job, step)
    assert what_is_left(shop, job) == (left.status, left.leased, left.submission, left.requests)

    heal(shop, job, left)
    assert_delivered_once(shop, job)
    assert orphans() == left.orphans
    assert_only_orphans_are_swept(job, left)


def work_until_killed(job: Job, step: str) -> None:
    """Run a worker of its own on this test's database and files until the step kills it."""
    environ = {**os.environ, **{name: str(getattr(settings, name)) for name in FROM_SETTINGS}}
    environ |= {"DJANGO_SETTINGS_MODULE": "waistheart.settings", "DATABASE_URL": database_url(), "READ_DOT_ENV": "0"}
    environ["FAL_MEDIA_HOSTS"] = ",".join(settings.FAL_MEDIA_HOSTS)
    command = [sys.executable, "-m", "tests.processes.worker_step", str(job.pk), step]
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=60)
    assert done.returncode == -signal.SIGKILL, f"{done.returncode}: {done.stdout}{done.stderr}"


def database_url() -> str:
    """The address of the database this test runs on."""
    known: dict[str, Any] = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{known['NAME']}"
    secret = f":{known['PASSWORD']}" if known["PASSWORD"] else ""
    return f"postgres://{known['USER']}{secret}@{known['HOST']}:{known['PORT'] or 5432}/{known['NAME']}"


def what_is_left(shop: Shop, job: Job) -> tuple[str, bool, str, int]:
    """The job's state, whether a lease stands, its submission's state, and how many requests the provider has taken."""
    now = Job.objects.get(pk=job.pk)
    submission = Submission.objects.filter(job=job).first()
    return now.status, now.lease_id is not None, submission.status if submission else "", len(shop.provider())


def heal(shop: Shop, job: Job, left: Left) -> None:
    """Nothing but sweeps while time moves on; where nobody can know, the one act of staff that the design asks for."""
    if left.by_a_person:
        parked = sweep_until_idle(shop, job, minutes=settings.UNKNOWN_SUBMIT_REVIEW_SECONDS // 60 + LONGEST_WAIT)
        assert (parked.status, parked.reason) == ("review", "unknown_submit")
        assert shop.provider() == []
        assert review.requeue(job=parked, actor="staff")
    ended = sweep_until_idle(shop, job, minutes=SOON)
    assert ended.status == "completed", f"{ended.status}: {ended.reason}, {ended.last_error}"
    shop.sweep(minutes=3)  # mails, and the crops that nobody needs any more


def sweep_until_idle(shop: Shop, job: Job, *, minutes: int) -> Job:
    """Sweep until the job has ended or waits for a person, at most so many minutes of the shop's time."""
    for _ in range(minutes):
        now = Job.objects.get(pk=job.pk)
        if now.status in ("completed", "failed", "review"):
            return now
        shop.sweep()
        # The provider works in real time, the sweeps do not: it is done before the shop's next minute.
        shop_fixture.wait_for(lambda: {request["status"] for request in shop.provider()} <= {"COMPLETED"})
    return Job.objects.get(pk=job.pk)


def assert_delivered_once(shop: Shop, job: Job) -> None:
    """One video whose bytes are the ones it says, one generation billed, one credit settled, one mail of each kind."""
    done = Job.objects.get()
    assert (done.pk, done.status, done.lease_id) == (job.pk, "completed", None)
    assert_bytes_are_right(done)
    assert [(request["billed"], request["status"]) for request in shop.provider()] == [(True, "COMPLETED")]
    grant = Grant.objects.get()
    assert (grant.credits, grant.available, grant.held, grant.frozen) == (1, 0, 0, 0)
    assert list(Entry.objects.order_by("id").values_list("kind", flat=True)) == ["granted", "held", "settled"]
    assert differences() == []
    kinds = Mail.objects.order_by("id").values_list("kind", "status")
    assert list(kinds) == [("order_received", "sent"), ("ready", "sent")]


def assert_bytes_are_right(job: Job) -> None:
    data = storage.read(key=job.video_key)
    assert (len(data), hashlib.sha256(data).hexdigest()) == (job.video_size, job.video_sha256)
    assert storage.size(key=job.poster_key)


def orphans() -> list[str]:
    """The kinds of this installation's blobs that no row points at."""
    keys = [blob.key for blob in storage.list_keys(prefix=f"{ident()}/")]
    return sorted(key.split("/")[1] for key in keys if not daily.has_owner(key))


def assert_only_orphans_are_swept(job: Job, left: Left) -> None:
    """Young orphans stay, since a worker may still be about to own them; old ones go, and nothing that is owned does."""
    assert daily.delete_orphans() == 0
    make_files_old(settings.ORPHAN_WINDOW_SECONDS + 60)
    assert daily.delete_orphans() == len(left.orphans)
    assert orphans() == []
    assert_bytes_are_right(Job.objects.get(pk=job.pk))
    assert storage.size(key=Photo.objects.get().key)


def make_files_old(seconds: float) -> None:
    """Shift the times of every file of this installation into the past."""
    then = time.time() - seconds
    for path in Path(settings.VAR_DIR, "media", ident()).rglob("*"):
        if path.is_file():
            os.utime(path, (then, then))
