"""`manage.py sandbox`: the video provider and the card processor of the demo and the tests, in one process."""

import os
import signal
import sys
import threading
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand

from waistheart.sandbox.app import serve
from waistheart.sandbox.world import Settings, World


class Command(BaseCommand):
    """Runs until Ctrl+C or SIGTERM; needs no database and none of the shop's settings."""

    help = "Run the sandbox: fal's queue API and Stripe's API on this machine, with switches for every fault."
    requires_system_checks: list[str] = []
    requires_migrations_checks = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        delay = float(os.environ.get("SANDBOX_DELAY_SECONDS", "3"))
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument("--port", type=int, default=8001, help="0 takes any free port and prints it")
        parser.add_argument("--delay", type=float, default=delay, help="shortest time a video takes, in seconds")
        parser.add_argument("--shop-url", default="http://127.0.0.1:8000", help="where card events are sent")
        parser.add_argument("--state", type=Path, help="a file that keeps requests and sessions over a restart")

    def handle(self, *args: Any, **options: Any) -> None:
        world = World(_settings(options), state_file=options["state"])
        stop = threading.Event()
        for signal_number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(signal_number, lambda *_: stop.set())
        try:
            server = serve(world, options["host"], options["port"])
        except OSError as error:
            sys.exit(f"sandbox: cannot listen on {options['host']}:{options['port']}: {error.strerror}")
        print(f"sandbox: {server.url}/control/", flush=True)
        stop.wait()
        world.close()
        sys.stdout.flush()
        sys.stderr.flush()
        # Threads of the renderer may be deep in native code; what matters is on disk, so nobody waits for them.
        os._exit(0)


def _settings(options: dict[str, Any]) -> Settings:
    settings = Settings(delay_seconds=options["delay"], shop_url=options["shop_url"])
    settings.fal_key = os.environ.get("FAL_KEY") or settings.fal_key
    settings.stripe_key = os.environ.get("STRIPE_SECRET_KEY") or settings.stripe_key
    settings.stripe_webhook_secret = os.environ.get("STRIPE_WEBHOOK_SECRET") or settings.stripe_webhook_secret
    return settings
