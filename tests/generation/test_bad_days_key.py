"""Bad days of our key: it is taken away and put back, or for good, while jobs wait and run."""

import logging
from typing import Any

import pytest
import requests

from generation import runner
from tests.generation.bad_days import (
    generations,
    last,
    now,
    page_of,
    posts,
    until,
)
from tests.shop import Shop


@pytest.mark.parametrize("status", ["queued", "processing"])
def test_key_removed_and_put_back(shop: Shop, settings: Any, caplog: pytest.LogCaptureFixture, status: str) -> None:
    if status == "processing":
        shop.sandbox.fault("webhook_lost")
        shop.sandbox.settings(delay_seconds=1)
    job = shop.paid() if status == "queued" else shop.submitted()
    key, settings.FAL_KEY = settings.FAL_KEY, ""
    with caplog.at_level(logging.ERROR):
        assert runner.advance(job.pk) == "waits"
    assert "FAL_KEY" in caplog.text
    shop.sweep(minutes=30)
    assert (now(job).status, now(job).failures) == (status, 0)
    assert posts(shop) == (0 if status == "queued" else 1)
    assert requests.get(shop.url + page_of(job), timeout=30).status_code == 200

    settings.FAL_KEY = key
    until(shop, job)
    assert (len(generations(shop, job)), posts(shop)) == (1, 1)


@pytest.mark.parametrize("status", ["queued", "unknown", "processing"])
def test_key_removed_for_good_goes_to_review(shop: Shop, settings: Any, status: str) -> None:
    if status == "unknown":
        shop.sandbox.fault("drop_before_accept")
    shop.sandbox.fault("never_finishing")
    job = shop.paid() if status == "queued" else shop.submitted()
    settings.FAL_KEY = ""
    if status == "unknown":
        assert last(job).status == "unknown"
    shop.age({"queued": 86400, "unknown": 3600, "processing": 7200}[status])
    shop.sweep()
    reason = {"unknown": "unknown_submit"}.get(status, "misconfigured")
    assert (now(job).status, now(job).reason) == ("review", reason)
