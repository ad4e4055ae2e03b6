"""Bad days of a shop that was started again at another port, or with another address of the provider, while work runs."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from generation import watch
from generation.models import Job, ProviderAccount, Submission
from generation.providers import get_provider
from generation.providers.base import Handle, State
from tests.generation.bad_days import last, now, posts, until
from tests.generation.stories import assert_delivered, made, step
from tests.sandbox_process import Sandbox, running_sandbox
from tests.shop import MODEL, Shop
from tests.shop_fixture import join

NAMES = ("status_url", "result_url", "cancel_url")


@contextmanager
def started_at(shop: Shop, settings: Any, state: Path) -> Iterator[Sandbox]:
    """The shop with a sandbox at a port of its own, over what is kept in `state`."""
    with running_sandbox("--state", str(state), delay_seconds=0.5) as sandbox, pytest.MonkeyPatch.context() as patch:
        sandbox.settings(film_height=448)
        join(settings, sandbox)
        patch.setattr(shop, "sandbox", sandbox)
        yield sandbox


@contextmanager
def strangers() -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
    """Who listens at the old address now: its host, and what it was told, with the key if there was one."""
    heard: list[tuple[str, str, str]] = []

    class Stranger(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            heard.append((self.command, self.path, self.headers.get("Authorization", "")))
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def do_PUT(self) -> None:
            self.do_GET()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Stranger)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        yield f"127.0.0.1:{server.server_port}", heard
    finally:
        server.shutdown()
        server.server_close()


def move(job: Job, host: str) -> Handle:
    """The addresses that were kept lie on another host than the provider's address of today."""
    row = last(job)
    moved = {name: urlsplit(getattr(row, name))._replace(netloc=host).geturl() for name in NAMES}
    Submission.objects.filter(pk=row.pk).update(**moved)
    return Handle(row.external_id or "", *moved.values())


def test_a_video_that_was_made_is_found_after_a_start_at_another_port(
    shop: Shop, settings: Any, tmp_path: Path
) -> None:
    """The kept addresses led to a port where nobody was: parked after two hours, and given back although it was made."""
    with started_at(shop, settings, tmp_path / "sandbox.json"):
        job = made(shop)
        kept = last(job).status_url
    with started_at(shop, settings, tmp_path / "sandbox.json") as sandbox:
        assert sandbox.host not in kept
        until(shop, job, minutes=3)
        assert posts(shop) == 1
        assert_delivered(shop, job)
    assert {account.state for account in ProviderAccount.objects.all()} == {"ok"}


def test_the_old_address_hears_no_key_and_the_video_comes(shop: Shop) -> None:
    job = made(shop)
    with strangers() as (host, heard):
        move(job, host)
        assert step(job).status == "completed"
    assert heard == []
    assert_delivered(shop, job)


def test_a_cancel_goes_to_the_provider_of_today(shop: Shop) -> None:
    shop.sandbox.fault("never_finishing")
    job = shop.submitted()
    with strangers() as (host, heard):
        handle = move(job, host)
        assert get_provider().fetch_status(handle, model=MODEL).state == State.RUNNING
        watch.ask_to_cancel(now(job))
        assert get_provider().fetch_status(handle, model=MODEL).state == State.CANCELLED
    assert heard == []


@pytest.mark.parametrize("kept", ["", "http://[", "https://queue.fal.run/x", "//127.0.0.1:9/x", "file:///etc/passwd"])
def test_whatever_was_kept_only_the_host_of_today_is_asked(shop: Shop, kept: str) -> None:
    job = made(shop)
    handle = Handle(last(job).external_id or "", kept, kept, kept)
    assert get_provider().fetch_status(handle, model=MODEL).state == State.DONE
