"""Blobs in files and in a real S3 server of our own: whole, counted, never overwritten, never held."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import boto3
import pytest
from moto.server import ThreadedMotoServer

from tests.floor.bodies import MIB, broken, pieces
from waistheart import storage
from waistheart.storage_base import Promised
from waistheart.storage_s3 import PART_BYTES, S3Backend, _client

KEY = "shop1/videos/2026/01/02/abc.mp4"
ACCESS = {"access_key": "testing", "secret_key": "testing", "region_name": "us-east-1"}


@pytest.fixture(scope="module")
def s3_address() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(params=["files", "s3"])
def blobs(request: pytest.FixtureRequest, settings, tmp_path: Path) -> str:
    """The default storage, once as files and once as S3."""
    if request.param == "files":
        chosen = {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": {"location": str(tmp_path)}}
    else:
        chosen = s3_storage(request.getfixturevalue("s3_address"), f"bucket-{os.urandom(6).hex()}")
    settings.STORAGES = {**settings.STORAGES, "default": chosen}
    return request.param


def s3_storage(address: str, bucket: str) -> dict:
    _client(address, *ACCESS.values()).create_bucket(Bucket=bucket)
    options = {"bucket_name": bucket, "endpoint_url": address, **ACCESS}
    return {"BACKEND": "storages.backends.s3.S3Storage", "OPTIONS": options}


def s3_backend() -> S3Backend:
    backend = storage._backend()
    assert isinstance(backend, S3Backend)
    return backend


def test_fresh_keys_begin_with_the_installation_and_never_repeat():
    keys = {storage.fresh_key(installation="shop1", kind="photos", suffix=".jpg") for _ in range(1000)}
    assert len(keys) == 1000
    for key in keys:
        installation, kind, year, month, day, name = key.split("/")
        assert (installation, kind) == ("shop1", "photos")
        assert datetime(int(year), int(month), int(day), tzinfo=UTC) <= datetime.now(UTC)
        assert name.endswith(".jpg")
        assert len(name) == 44


@pytest.mark.parametrize(
    "parts", [("a/b", "photos", ".jpg"), ("a", "..", ".jpg"), ("a", "photos", "/../x"), ("", "p", "")]
)
def test_a_key_is_made_of_plain_words_only(parts: tuple[str, str, str]):
    with pytest.raises(ValueError, match="key"):
        storage.fresh_key(installation=parts[0], kind=parts[1], suffix=parts[2])


@pytest.mark.parametrize("key", ["../secret", "a/../../etc/passwd", "/etc/passwd", "a/./b", "a//b", "a", "", "a/b\x00"])
def test_a_key_never_leaves_its_folder(blobs: str, key: str):
    for act in (storage.read, storage.size, storage.delete, storage.open_range):
        with pytest.raises(ValueError, match="not a key"):
            act(key=key)


def test_bytes_come_back_as_they_went_in(blobs: str):
    storage.save_bytes(key=KEY, data=b"heart", content_type="video/mp4")
    assert storage.read(key=KEY) == b"heart"
    assert storage.size(key=KEY) == 5


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("length", [0, 1, 1000, PART_BYTES - 1, PART_BYTES, PART_BYTES + 1, 2 * PART_BYTES + 4321])
def test_a_stream_is_stored_whole_whatever_its_chunks(blobs: str, length: int, known: bool):
    data = os.urandom(length)
    heard: list[int] = []
    chunks = [data[at : at + 70_001] for at in range(0, length, 70_001)]
    stored = storage.save_stream(
        key=KEY,
        chunks=iter([b"", *chunks, b""]),
        length=length if known else None,
        content_type="video/mp4",
        on_progress=heard.append,
    )
    assert stored == length == storage.size(key=KEY)
    assert storage.read(key=KEY) == data
    assert heard == sorted(heard)
    assert (heard or [0])[-1] == length


def test_the_content_type_is_kept(blobs: str):
    if blobs == "files":
        pytest.skip("a file has no content type")
    storage.save_stream(key=KEY, chunks=[b"x"], length=1, content_type="video/mp4")
    storage.save_stream(key=KEY + "2", chunks=pieces(9 * MIB), length=None, content_type="video/mp4")
    for key in (KEY, KEY + "2"):
        assert s3_backend().client.head_object(Bucket=s3_backend().bucket, Key=key)["ContentType"] == "video/mp4"


@pytest.mark.parametrize("kind", ["bytes", "known", "unknown"])
def test_saving_to_a_taken_key_raises_and_changes_nothing(blobs: str, kind: str):
    storage.save_bytes(key=KEY, data=b"first", content_type="text/plain")
    with pytest.raises(storage.BlobExists):
        save_again(kind)
    assert storage.read(key=KEY) == b"first"


@pytest.mark.parametrize("kind", ["bytes", "known", "unknown"])
def test_a_key_taken_while_we_save_is_not_overwritten(blobs: str, kind: str, monkeypatch: pytest.MonkeyPatch):
    """The rival acts after our look: the storage itself must decide."""
    storage.save_bytes(key=KEY, data=b"first", content_type="text/plain")
    monkeypatch.setattr(S3Backend, "_refuse_taken", lambda self, key: None)
    if blobs == "files":
        monkeypatch.setattr(Path, "exists", lambda self, **more: False)
    with pytest.raises(storage.BlobExists):
        save_again(kind)
    assert storage.read(key=KEY) == b"first"


def save_again(kind: str) -> None:
    if kind == "bytes":
        storage.save_bytes(key=KEY, data=b"second", content_type="text/plain")
    else:
        length = 9 * MIB if kind == "known" else None
        storage.save_stream(key=KEY, chunks=pieces(9 * MIB), length=length, content_type="text/plain")


@pytest.mark.parametrize("told", [9, 11])
def test_a_body_of_another_length_is_not_stored(blobs: str, told: int):
    with pytest.raises(storage.LengthMismatch):
        storage.save_stream(key=KEY, chunks=[b"12345", b"67890"], length=told, content_type="video/mp4")
    assert storage.size(key=KEY) is None
    assert list(storage.list_keys(prefix="shop1/")) == []


@pytest.mark.parametrize("length", [10 * MIB, None])
def test_an_error_of_the_source_passes_through_and_leaves_nothing(blobs: str, length: int | None):
    with pytest.raises(KeyError, match="the provider hung up"):
        storage.save_stream(
            key=KEY, chunks=broken(9 * MIB, KeyError("the provider hung up")), length=length, content_type="video/mp4"
        )
    nothing_is_left(blobs)


@pytest.mark.parametrize("length", [20 * MIB, None])
def test_progress_may_stop_the_save(blobs: str, length: int | None):
    def lease_lost(total: int) -> None:
        if total > 9 * MIB:
            raise TimeoutError("lease")

    with pytest.raises(TimeoutError, match="lease"):
        storage.save_stream(
            key=KEY, chunks=pieces(20 * MIB), length=length, content_type="video/mp4", on_progress=lease_lost
        )
    nothing_is_left(blobs)


def nothing_is_left(blobs: str) -> None:
    assert storage.size(key=KEY) is None
    assert list(storage.list_keys(prefix="shop1/")) == []
    if blobs == "s3":
        assert s3_backend().client.list_multipart_uploads(Bucket=s3_backend().bucket).get("Uploads", []) == []


@pytest.mark.parametrize(
    ("start", "end"), [(0, None), (0, 1), (3, 7), (9, 10), (9, None), (4, 4), (5, 999), (10, None), (50, 60)]
)
def test_a_range_is_a_slice(blobs: str, start: int, end: int | None):
    storage.save_bytes(key=KEY, data=b"0123456789", content_type="text/plain")
    assert b"".join(storage.open_range(key=KEY, start=start, end=end)) == b"0123456789"[start:end]


@pytest.mark.parametrize("end", [None, 0, 5])
def test_missing_bytes_are_told_at_once(blobs: str, end: int | None):
    with pytest.raises(storage.BlobMissing):
        storage.open_range(key=KEY, end=end)
    assert storage.size(key=KEY) is None


def test_a_body_nobody_reads_can_be_closed(blobs: str):
    storage.save_bytes(key=KEY, data=b"0123456789", content_type="text/plain")
    body = storage.open_range(key=KEY)
    body.close()
    body.close()


def test_delete_twice_is_fine(blobs: str):
    storage.save_bytes(key=KEY, data=b"x", content_type="text/plain")
    storage.delete(key=KEY)
    storage.delete(key=KEY)
    assert storage.size(key=KEY) is None


def test_the_listing_shows_what_begins_with_the_prefix(blobs: str):
    before = datetime.now(UTC) - timedelta(seconds=5)
    for key in (
        "shop1/photos/a.jpg",
        "shop1/photos/b.jpg",
        "shop1/videos/c.mp4",
        "shop2/photos/d.jpg",
        "shop10/photos/e.jpg",
    ):
        storage.save_bytes(key=key, data=b"xx", content_type="text/plain")
    assert sorted(entry.key for entry in storage.list_keys(prefix="shop1/")) == [
        "shop1/photos/a.jpg",
        "shop1/photos/b.jpg",
        "shop1/videos/c.mp4",
    ]
    [(key, size, modified)] = storage.list_keys(prefix="shop1/photos/b")
    assert (key, size) == ("shop1/photos/b.jpg", 2)
    assert before < modified < datetime.now(UTC) + timedelta(seconds=5)
    assert list(storage.list_keys(prefix="nobody/")) == []


def test_what_a_killed_save_left_is_listed_and_can_be_deleted(settings, tmp_path: Path):
    settings.STORAGES = {
        **settings.STORAGES,
        "default": {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": {"location": str(tmp_path)}},
    }
    script = """
import os, sys
import django
from django.conf import settings
files = {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": {"location": sys.argv[1]}}
settings.configure(STORAGES={"default": files})
django.setup()
from waistheart import storage
def chunks():
    yield b"half"
    os.kill(os.getpid(), 9)
storage.save_stream(key="shop1/videos/x.mp4", chunks=chunks(), length=None, content_type="video/mp4")
"""
    assert subprocess.run([sys.executable, "-c", script, str(tmp_path)]).returncode == -9
    assert storage.size(key="shop1/videos/x.mp4") is None
    [left] = storage.list_keys(prefix="shop1/")
    storage.delete(key=left.key)
    assert list(storage.list_keys(prefix="shop1/")) == []


def test_uploads_in_parts_that_nobody_ends_are_ended(s3_address: str, settings):
    settings.STORAGES = {**settings.STORAGES, "default": s3_storage(s3_address, "stale-bucket")}
    client = boto3.client("s3", endpoint_url=s3_address, aws_access_key_id="testing", aws_secret_access_key="testing")
    client.create_multipart_upload(Bucket="stale-bucket", Key="shop1/videos/left.mp4")
    assert storage.abort_stale_uploads(prefix="shop1/", older_than=timedelta(days=9000)) == 0
    assert storage.abort_stale_uploads(prefix="shop1/", older_than=timedelta(seconds=-5)) == 1
    assert client.list_multipart_uploads(Bucket="stale-bucket").get("Uploads", []) == []


@pytest.mark.parametrize("act", ["save_bytes", "save_stream", "size", "read", "delete", "list"])
def test_a_storage_that_is_away_is_a_storage_error(settings, act: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("waistheart.storage_s3.CONNECT_SECONDS", 1)
    options = {"bucket_name": "gone", "endpoint_url": "http://127.0.0.1:9", **ACCESS}
    settings.STORAGES = {
        **settings.STORAGES,
        "default": {"BACKEND": "storages.backends.s3.S3Storage", "OPTIONS": options},
    }
    acts: dict[str, Callable[[], object]] = {
        "save_bytes": lambda: storage.save_bytes(key=KEY, data=b"x", content_type="a/b"),
        "save_stream": lambda: s3_backend()._put(KEY, one_byte(), "a/b"),
        "size": lambda: storage.size(key=KEY),
        "read": lambda: storage.read(key=KEY),
        "delete": lambda: storage.delete(key=KEY),
        "list": lambda: list(storage.list_keys(prefix="a/")),
    }
    with pytest.raises(storage.StorageError) as caught:
        acts[act]()
    assert not isinstance(caught.value, storage.BlobMissing)


def one_byte() -> Promised:
    return Promised([b"x"], 1, lambda total: None)


def test_a_folder_that_cannot_be_written_is_a_storage_error(settings, tmp_path: Path):
    (tmp_path / "shop1").write_text("a file where a folder should be")
    settings.STORAGES = {
        **settings.STORAGES,
        "default": {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": {"location": str(tmp_path)}},
    }
    with pytest.raises(storage.StorageError):
        storage.save_bytes(key=KEY, data=b"x", content_type="a/b")
    assert storage.size(key=KEY) is None
    with pytest.raises(storage.BlobMissing):
        storage.read(key=KEY)
    storage.delete(key=KEY)


@pytest.mark.parametrize(("where", "known", "limit_mib"), [("files", True, 2), ("s3", True, 2), ("s3", False, 12)])
def test_64_mb_pass_through_little_memory(where: str, known: bool, limit_mib: int, s3_address: str, tmp_path: Path):
    """Measured in a process of its own, after a small save has paid for imports and connections."""
    location, bucket = str(tmp_path), f"bucket-{os.urandom(6).hex()}"
    if where == "s3":
        s3_storage(s3_address, bucket)
        location = s3_address
    command = [
        sys.executable,
        "-m",
        "tests.floor.measure_storage",
        where,
        location,
        bucket,
        "known" if known else "unknown",
    ]
    grown = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert grown < limit_mib * MIB, f"grew by {grown / MIB:.1f} MiB"
