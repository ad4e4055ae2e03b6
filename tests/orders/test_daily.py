"""The day's work: one part that fails stops no other, and old blobs without an owner go."""

import os
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.files.storage import default_storage

import generation.sweep
from generation.models import Job
from orders import daily, tasks
from tests.generation.test_bad_days_rows import crowd
from tests.orders.rivals import lost
from tests.shop import Shop
from waistheart import clock, storage
from waistheart.installation import ident


def test_one_part_that_fails_stops_no_other(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> Any:
        raise storage.StorageError("away")

    monkeypatch.setattr("generation.sweep.delete_old_videos", broken)
    done = daily.every_day()
    assert done["videos"] == "failed"
    assert done["differences"] == done["orphans"] == done["uploads"] == 0


def test_the_day_is_begun_once_a_day_however_often_it_is_asked_for(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beat begins to count anew wherever its schedule's file is lost, so it only asks; the database knows."""
    begun: list[int] = []
    monkeypatch.setattr(daily, "every_day", lambda: begun.append(1))
    tasks.daily()
    tasks.daily()
    assert len(begun) == 1
    shop.age(daily.DAY_SECONDS - 60)
    tasks.daily()
    assert len(begun) == 1
    shop.age(61)
    tasks.daily()
    assert len(begun) == 2


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


def test_an_orphan_that_cannot_go_stops_no_other(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    keys = [storage.fresh_key(installation=ident(), kind="photos", suffix=".jpg") for _ in range(4)]
    past = clock.read().timestamp() - settings.ORPHAN_WINDOW_SECONDS - 60
    for key in keys:
        storage.save_bytes(key=key, data=b"nobody's", content_type="image/jpeg")
        os.utime(default_storage.path(key), (past, past))
    strange = Path(default_storage.path(keys[0])).with_name("not a key.jpg")
    strange.write_bytes(b"x")
    os.utime(strange, (past, past))
    delete, asked = storage.delete, []

    def locked_for_the_first(*, key: str) -> None:
        asked.append(key)
        if len(asked) == 1:
            raise storage.StorageError("locked")
        delete(key=key)

    monkeypatch.setattr(storage, "delete", locked_for_the_first)
    done = daily.every_day()["orphans"]
    left = [key for key in keys if storage.size(key=key) is not None]
    assert strange.exists()
    assert len(asked) == 5
    assert done == 4 - len(left)
    assert len(left) == (asked[0] in keys)
    assert lost("sweep.raised.orphans") == 1 + len(left)
    assert any(record.getMessage().startswith("orphans: ") for record in caplog.records)


def test_every_old_video_goes_and_one_that_cannot_stops_no_other(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    job = shop.paid()
    first = storage.fresh_key(installation=ident(), kind="videos", suffix=".mp4")
    crowd(job, 251, status="completed", next_step_at=None, video_key="x/videos/1.mp4", poster_key="x/posters/1.jpg",
          video_size=1, video_sha256="0" * 64, keep_until=clock.ago(60))  # fmt: skip
    Job.objects.filter(pk=Job.objects.filter(status="completed").order_by("pk")[0].pk).update(video_key=first)
    delete = storage.delete

    def away_for_one(*, key: str) -> None:
        if key == first:
            raise storage.StorageError("away")
        delete(key=key)

    with monkeypatch.context() as patch:
        patch.setattr(storage, "delete", away_for_one)
        assert generation.sweep.delete_old_videos() == 250
    assert Job.objects.get(status="completed", deleted_at__isnull=True).video_key == first
    assert generation.sweep.delete_old_videos() == 1
    assert generation.sweep.delete_old_videos() == 0
