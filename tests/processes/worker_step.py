"""A worker that is killed at one place: `python -m tests.processes.worker_step JOB_ID STEP`.

It runs `generation.runner.advance` over and over, as messages would make a worker do. At the step it sends SIGKILL to itself, so nothing
of it runs any more: no handler, no `finally`, no rollback of its own; its connections drop where they are. The functions at
those places are wrapped inside this process alone.
"""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import django
from django.apps import apps

if not apps.ready:  # the test imports the names of the steps from here
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "waistheart.settings")
    django.setup()

from django.conf import settings

from billing import ledger
from generation import blocks, exchange, leases, runner, store, submissions, submit, transfer, verify

PATIENCE_SECONDS = 40
NOT_REACHED = 3
Act = Callable[..., Any]


def main(job_id: int, step: str) -> int:
    """Advance the job until the step kills this process; NOT_REACHED when the job ended or nothing came of it."""
    INSTRUMENTS[step]()
    ends = time.monotonic() + PATIENCE_SECONDS
    said = ""
    while time.monotonic() < ends and said != "final":
        said = runner.advance(job_id)
        print(said, flush=True)
        time.sleep(0.1)
    return NOT_REACHED


def die(*_: object) -> None:
    """As the kernel's out-of-memory killer would."""
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)  # the signal is on its way


def after(where: ModuleType, name: str, *, when: Act = lambda *_args, **_kwargs: True) -> None:
    """Die as soon as a function has returned."""
    act: Act = getattr(where, name)

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        result = act(*args, **kwargs)
        if when(*args, **kwargs):
            die()
        return result

    setattr(where, name, wrapped)


def before(where: ModuleType, name: str) -> None:
    """Die where a function would begin."""
    getattr(where, name)
    setattr(where, name, die)


def after_the_answer_began() -> None:
    """The provider has accepted and its answer has begun to arrive; nobody reads what it says."""

    def die_before_reading(response: Any, limit: int) -> Any:
        assert response.status < 300
        die()

    # The POST is the first thing this worker reads.
    exchange._whole = die_before_reading


def in_the_middle_of_the_download() -> None:
    """Half of the video is on the disk."""
    keep = transfer.store_result

    def store_half(*, chunks: Iterable[bytes], length: int, **rest: Any) -> Any:
        return keep(chunks=half(chunks, length), length=length, **rest)

    def half(chunks: Iterable[bytes], length: int) -> Iterator[bytes]:
        sent = 0
        for chunk in chunks:
            rest = length // 2 - sent
            sent += len(chunk)
            yield chunk[:rest] if len(chunk) > rest else chunk
            if sent >= length // 2:
                die()

    transfer.store_result = store_half  # type: ignore[assignment]


def storing(seen: Any) -> bool:
    return bool(seen.status == "storing")


INSTRUMENTS: dict[str, Act] = {
    "the lease is taken": lambda: after(leases, "take"),
    "the image is stored": lambda: after(submit.storage, "save_bytes"),
    "I am sending is committed": lambda: after(submissions, "begin"),
    "the POST was accepted": after_the_answer_began,
    "the id is kept": lambda: after(submissions, "_keep_id"),
    "the acceptance is recorded": lambda: after(submissions, "record_accepted"),
    "the submit move": lambda: after(blocks, "submit"),
    "the finish move": lambda: after(blocks, "finish"),
    "the lease of the download is taken": lambda: after(leases, "take", when=storing),
    "half of the download": in_the_middle_of_the_download,
    "the bytes are stored": lambda: before(store, "keep"),
    "every frame is decoded": lambda: after(verify, "verify"),
    "the poster is stored": lambda: after(store, "keep"),
    "all of store but its COMMIT": lambda: after(ledger, "settle"),
    "COMMIT of store": lambda: after(blocks, "store"),
}

if __name__ == "__main__":
    assert not settings.LIVE, "a worker that dies on purpose is for sandbox shops"
    assert Path(settings.VAR_DIR).is_dir()
    sys.exit(main(int(sys.argv[1]), sys.argv[2]))
