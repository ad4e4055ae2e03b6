"""The day's work: one part that fails stops no other, and old blobs without an owner go."""

import os
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.files.storage import default_storage

from orders import daily
from tests.shop import Shop
from waistheart import storage
from waistheart.installation import ident


def test_one_part_that_fails_stops_no_other(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> Any:
        raise storage.StorageError("away")

    monkeypatch.setattr("generation.sweep.delete_old_videos", broken)
    done = daily.every_day()
    assert done["videos"] == "failed"
    assert done["differences"] == done["orphans"] == done["uploads"] == 0


def test_only_old_blobs_without_an_owner_go(shop: Shop) -> None:
    job = shop.paid()
    young, old = (storage.fresh_key(installation=ident(), kind="photos", suffix=".jpg") for _ in range(2))
    for key in (young, old):
        storage.save_bytes(key=key, data=b"nobody's", content_type="image/jpeg")
    for key in (old, job.photo_key):
        past = Path(default_storage.path(key)).stat().st_mtime - settings.ORPHAN_WINDOW_SECONDS - 60
        os.utime(default_storage.path(key), (past, past))
    assert daily.every_day()["orphans"] == 1
    assert storage.size(key=old) is None
    assert storage.size(key=young)
    assert storage.size(key=job.photo_key)
