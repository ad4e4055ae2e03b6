"""Bodies from servers that misbehave, over real sockets: whole, or refused with the right word; never from a wrong place."""

import gzip
import hashlib
import os
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from generation.transfer import TransferFailed, fetch, store_result
from tests.generation.rude_server import RudeServer, chunked, head, rude
from waistheart import storage

DATA = b"\0\0\0\x18ftypmp42" + os.urandom(300_000)
KEY = "shop1/videos/2026/01/02/abc.mp4"


def get(server: RudeServer, path: str = "/video.mp4", **more) -> bytes:
    options = {"allowed_hosts": [server.host], "live": False, "max_bytes": 1_000_000, "deadline_seconds": 10, **more}
    with fetch(url=server.url(path), **options) as body:
        return b"".join(body.chunks)


def why(*script: bytes | float, stays: bool = False, **more) -> str:
    """The word for what went wrong with this answer."""
    with rude(*script, stays=stays) as server, pytest.raises(TransferFailed) as caught:
        get(server, **more)
    return caught.value.reason


def test_a_body_arrives_whole_and_its_length_is_known():
    heard: list[int] = []
    with (
        rude(head(Content_Length=len(DATA), Content_Type="video/mp4"), DATA) as server,
        fetch(
            url=server.url("/a/b.mp4?x=1&y=%20"), allowed_hosts=[server.host], live=False, max_bytes=len(DATA),
            deadline_seconds=10, on_progress=heard.append,
        ) as body,
    ):  # fmt: skip
        assert (body.length, body.content_type) == (len(DATA), "video/mp4")
        assert b"".join(body.chunks) == DATA
    assert heard == sorted(heard)
    assert heard[-1] == len(DATA)
    asked = server.requests[0].decode()
    assert asked.startswith("GET /a/b.mp4?x=1&y=%20 HTTP/1.1\r\n")
    assert "Accept-Encoding: identity\r\n" in asked
    assert f"Host: {server.host}\r\n" in asked
    assert "authorization" not in asked.lower()


def test_a_body_without_a_length_arrives():
    with (
        rude(head(), DATA) as server,
        fetch(url=server.url(), allowed_hosts=[server.host], live=False, max_bytes=10**6, deadline_seconds=5) as body,
    ):
        assert body.length is None
        assert b"".join(body.chunks) == DATA


def test_a_chunked_body_arrives_and_its_other_length_is_not_believed():
    for headers in ({}, {"Content_Length": 5}):
        with rude(head(Transfer_Encoding="chunked", **headers), chunked(DATA[:70_000], DATA[70_000:])) as server:
            assert get(server) == DATA


def deflated(data: bytes, window: int) -> bytes:
    packer = zlib.compressobj(wbits=window)
    return packer.compress(data) + packer.flush()


@pytest.mark.parametrize(
    ("name", "packed"),
    [
        ("gzip", gzip.compress(DATA)),
        ("GZIP", gzip.compress(DATA)),
        ("deflate", deflated(DATA, 15)),
        ("deflate", deflated(DATA, -15)),
        ("identity", DATA),
    ],
)
@pytest.mark.parametrize("told", ["packed", "plain", "none", "chunked"])
def test_an_encoded_body_is_decoded_whatever_its_length_says(name: str, packed: bytes, told: str):
    lengths = {"packed": len(packed), "plain": len(DATA)}
    headers: dict[str, str | int] = {"Content_Encoding": name}
    if told in lengths:
        headers["Content_Length"] = lengths[told]
    if told == "chunked":
        headers["Transfer_Encoding"] = "chunked"
    with rude(head(**headers), chunked(packed) if told == "chunked" else packed) as server:
        assert get(server) == DATA


@pytest.mark.parametrize("share", [0, 0.01, 0.6, 0.99])
def test_a_body_that_breaks_off_is_short(share: float):
    part = DATA[: int(len(DATA) * share)]
    assert why(head(Content_Length=len(DATA)), part) == "short"
    assert why(head(Transfer_Encoding="chunked"), chunked(part, ends=False) if part else b"") == "short"
    packed = gzip.compress(DATA)
    cut = packed[: int(len(packed) * share)]
    assert why(head(Content_Encoding="gzip", Content_Length=len(packed)), cut) == "short"
    assert why(head(Content_Encoding="gzip"), cut) == "short"


@pytest.mark.parametrize("extra", [1, 100_000])
def test_a_body_that_goes_on_is_long(extra: int):
    assert why(head(Content_Length=len(DATA) - extra), DATA) == "long"


def test_a_server_that_does_not_hang_up_is_not_waited_for():
    began = time.monotonic()
    with rude(head(Content_Length=len(DATA)), DATA, stays=True) as server:
        assert get(server) == DATA
    with rude(head(Content_Encoding="gzip"), gzip.compress(DATA), stays=True) as server:
        assert get(server) == DATA
    assert time.monotonic() - began < 5


def test_damaged_encodings_are_named():
    assert why(head(Content_Encoding="gzip"), DATA) == "encoding"
    assert why(head(Content_Encoding="br"), DATA) == "encoding"
    assert why(head(Content_Encoding="gzip, gzip"), DATA) == "encoding"
    hurt = bytearray(gzip.compress(DATA))
    hurt[-6] ^= 1
    assert why(head(Content_Encoding="gzip"), bytes(hurt)) == "encoding"


def test_the_limit_holds_before_and_while_reading():
    assert why(head(Content_Length=len(DATA)), DATA, max_bytes=len(DATA) - 1) == "too_big"
    assert why(head(), DATA, max_bytes=len(DATA) - 1) == "too_big"
    assert why(head(Transfer_Encoding="chunked"), chunked(DATA), max_bytes=len(DATA) - 1) == "too_big"
    with rude(head(), DATA) as server:
        assert get(server, max_bytes=len(DATA)) == DATA


def test_a_small_body_that_unpacks_to_a_gigabyte_is_stopped_at_the_limit():
    packer = zlib.compressobj(wbits=31)
    bomb = b"".join(packer.compress(bytes(1 << 20)) for _ in range(1024)) + packer.flush()
    heard: list[int] = []
    assert why(head(Content_Encoding="gzip"), bomb, on_progress=heard.append) == "too_big"
    assert heard[-1] <= 1_000_000


@pytest.mark.parametrize(
    ("status", "word"),
    [
        ("404 Not Found", "gone"),
        ("410 Gone", "gone"),
        ("403 Forbidden", "gone"),
        ("500 Oops", "status:500"),
        ("503 Busy", "status:503"),
        ("401 Who", "status:401"),
        ("429 Slow down", "status:429"),
        ("206 Part", "status:206"),
        ("204 None", "status:204"),
        ("301 Moved", "redirect"),
        ("302 Found", "redirect"),
        ("307 There", "redirect"),
        ("308 There", "redirect"),
        ("304 Same", "redirect"),
    ],
)
def test_every_other_status_has_its_word(status: str, word: str):
    assert why(head(status, Content_Length=len(DATA), Location="http://127.0.0.1:1/x"), DATA) == word


@pytest.mark.parametrize("status", ["100 Continue", "102 Processing", "103 Early Hints"])
@pytest.mark.parametrize("times", [1, 3])
def test_an_interim_answer_is_read_past(status: str, times: int):
    """Three early hints would use up all tries of a whole video that is on its way."""
    interim = head(status, Link="</x>; rel=preload")
    with rude(interim * times, 0.05, head(Content_Length=len(DATA)), DATA) as server:
        assert get(server) == DATA


def test_a_word_that_no_row_can_hold():
    with rude(head(Content_Encoding="z\0p"), DATA) as server, pytest.raises(TransferFailed) as caught:
        get(server)
    assert str(caught.value) == "encoding: z p"


def test_no_redirect_is_followed_anywhere():
    with (
        rude(head(Content_Length=4), b"evil") as elsewhere,
        rude(head("302 Found", Location=elsewhere.url(), Content_Length=0)) as server,
    ):
        with pytest.raises(TransferFailed, match="redirect"):
            get(server, allowed_hosts=[server.host, elsewhere.host])
        assert elsewhere.requests == []


@pytest.mark.parametrize("page", [b"<!DOCTYPE html><p>expired", b"\n\n  <html>", b"\xef\xbb\xbf<?xml?><Error/>"])
def test_a_web_page_is_not_a_video(page: bytes):
    assert why(head(Content_Length=len(page), Content_Type="video/mp4"), page) == "html"
    assert why(head(Content_Type="video/mp4"), page[:1], 0.1, page[1:]) == "html"
    assert why(head(Content_Encoding="gzip"), gzip.compress(page)) == "html"
    assert why(head(Content_Length=len(DATA), Content_Type="Text/HTML; charset=utf-8"), DATA) == "html"


def test_silence_is_slow():
    assert why(20.0, read_seconds=0.3) == "slow"
    assert why(head(Content_Length=len(DATA)), DATA[:1000], 20.0, read_seconds=0.3) == "slow"


DRIPS: list[bytes | float] = [part for _ in range(200) for part in (b"x", 0.1)]


@pytest.mark.parametrize(
    "script",
    [
        [b"HTTP/1.1 200 OK\r\nX-Long: ", *DRIPS],
        [head(Content_Length=len(DATA)), *DRIPS],
        [head(), *DRIPS],
        [head(Transfer_Encoding="chunked"), b"0", *[b"0", 0.1] * 200],
        [head(Content_Encoding="gzip"), gzip.compress(DATA)[:100], *DRIPS],
    ],
)
def test_drips_end_at_the_deadline(script: list[bytes | float]):
    began = time.monotonic()
    assert why(*script, deadline_seconds=0.8, read_seconds=5) == "slow"
    assert time.monotonic() - began < 3


def test_an_unknown_length_cut_by_the_deadline_is_not_taken_for_whole():
    assert why(head(), DATA, 20.0, deadline_seconds=0.8, read_seconds=5) == "slow"


def test_a_dead_or_senseless_server_is_the_networks_trouble():
    with rude() as server:
        pass
    with pytest.raises(TransferFailed, match="network"):
        get(server)
    assert why(b"SSH-2.0-OpenSSH\r\n") == "network"
    assert why() == "network"


def test_what_the_caller_raises_is_not_renamed():
    with rude(head(Content_Length=len(DATA)), DATA) as server:
        options = {"allowed_hosts": [server.host], "live": False, "max_bytes": 10**6, "deadline_seconds": 5}
        with pytest.raises(OSError, match="mine"), fetch(url=server.url(), **options):
            raise OSError("mine")

        def lease_lost(total: int) -> None:
            raise ValueError("lease")

        with (
            pytest.raises(ValueError, match="lease"),
            fetch(url=server.url(), on_progress=lease_lost, **options) as body,
        ):
            list(body.chunks)


# --- into storage ----------------------------------------------------------------------------------------------------


@pytest.fixture
def files(settings, tmp_path: Path) -> Path:
    files = {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": {"location": str(tmp_path)}}
    settings.STORAGES = {**settings.STORAGES, "default": files}
    return tmp_path


def test_a_body_lies_in_storage_and_in_a_nameless_file(files: Path):
    with (
        rude(head(Content_Length=len(DATA)), DATA) as server,
        fetch(url=server.url(), allowed_hosts=[server.host], live=False, max_bytes=10**6, deadline_seconds=9) as body,
    ):
        stored = store_result(chunks=body.chunks, key=KEY, length=body.length)
    with stored.file as file:
        assert file.read() == storage.read(key=KEY) == DATA
        assert os.fstat(file.fileno()).st_nlink == 0
    assert (stored.size, stored.sha256) == (len(DATA), hashlib.sha256(DATA).hexdigest())


@pytest.mark.parametrize("script", [(head(Content_Length=len(DATA)), DATA[:100_000]), (head(Transfer_Encoding="chunked"),
                                    chunked(DATA[:100_000], ends=False))])  # fmt: skip
def test_a_cut_body_leaves_nothing_in_storage(files: Path, script: tuple[bytes, ...]):
    options = {"live": False, "max_bytes": 10**6, "deadline_seconds": 9}
    with (
        rude(*script) as server,
        pytest.raises(TransferFailed, match="short"),
        fetch(url=server.url(), allowed_hosts=[server.host], **options) as body,
    ):
        store_result(chunks=body.chunks, key=KEY, length=body.length)
    assert storage.size(key=KEY) is None
    assert list(storage.list_keys(prefix="shop1/")) == []


def test_a_storage_that_lost_bytes_is_not_believed(files: Path, monkeypatch: pytest.MonkeyPatch):
    for held in (None, 5):
        monkeypatch.setattr(storage, "size", lambda *, key, held=held: held)
        with pytest.raises(storage.StorageError, match="holds"):
            store_result(chunks=[b"four"], key=f"{KEY}{held}")


def test_no_file_stays_open_after_an_error(files: Path):
    def broken() -> Iterator[bytes]:
        yield b"x"
        raise TransferFailed("short")

    open_before = len(list(Path("/proc/self/fd").iterdir()))
    for number in range(20):
        with suppress(TransferFailed):
            store_result(chunks=broken(), key=f"{KEY}{number}")
    assert len(list(Path("/proc/self/fd").iterdir())) <= open_before


def test_64_mb_from_a_server_into_storage_pass_through_little_memory(tmp_path: Path):
    """In a process of its own: fetch, hash, temporary file and storage together."""
    measure = [sys.executable, "-m", "tests.generation.measure_transfer", str(tmp_path)]
    grown = int(subprocess.run(measure, check=True, capture_output=True, text=True).stdout)
    assert grown < 2 * 1024 * 1024, f"grew by {grown / 1024 / 1024:.1f} MiB"
