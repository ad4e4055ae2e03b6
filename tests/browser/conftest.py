"""A headless Chromium of this machine against a shop of real processes."""

import itertools
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.chromium import chromium
from tests.process_fixtures import prepared, shop

__all__ = ["prepared", "shop"]
expect.set_options(timeout=30_000)
PHONE = {"width": 390, "height": 844}
Shoot = Callable[[Page, str], None]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = chromium()
    if path is None:
        pytest.skip("no Chromium in PATH")
    # Chromium's own sandbox refuses to start for root, and containers often are root.
    options = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=path, args=[*options, "--disable-dev-shm-usage"])
        yield browser
        browser.close()


@pytest.fixture
def new_page(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Open a page of a phone's size in a profile of its own; `complaints` of it collects what the browser says."""
    contexts = []

    def make(**options: Any) -> Page:
        context = browser.new_context(**{"viewport": PHONE, "locale": "en-GB", **options})
        context.set_default_timeout(60_000)
        contexts.append(context)
        return context.new_page()

    yield make
    for context in contexts:
        context.close()


@pytest.fixture
def shoot(request: pytest.FixtureRequest) -> Shoot:
    """Keep a picture of a page, numbered, in the folder that SCREENSHOTS names; without it, do nothing."""
    folder = os.environ.get("SCREENSHOTS")
    test = re.sub(r"\W+", "-", request.node.name.removeprefix("test_")).strip("-")
    numbers = itertools.count(1)

    def keep(page: Page, name: str) -> None:
        if folder:
            page.screenshot(path=Path(folder, f"{test}-{next(numbers)}-{name}.png"), full_page=True)

    return keep
