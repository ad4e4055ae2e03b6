"""A video that staff bring themselves: proven like any result before it is stored, so that a person cannot deliver a broken file."""

from collections.abc import Iterator
from typing import IO

from django.conf import settings

from generation import transfer, verify
from generation.store import MAX_SECONDS, MIN_SECONDS, Stored
from waistheart import storage
from waistheart.installation import ident


def store_upload(file: IO[bytes]) -> Stored:
    """Verify every frame, put the index first, and store video and poster under fresh keys; NotAVideo for anything else.

    Nothing points at the keys until the job is delivered; a second call stores a second copy. StorageError passes through.
    """
    if file.seek(0, 2) > settings.MAX_VIDEO_BYTES:
        raise verify.NotAVideo("container", f"larger than {settings.MAX_VIDEO_BYTES} bytes")
    verify.verify(file, min_seconds=MIN_SECONDS, max_seconds=MAX_SECONDS)
    ordered = verify.faststart(file)
    try:
        facts = verify.verify(ordered, min_seconds=MIN_SECONDS, max_seconds=MAX_SECONDS)
        poster = verify.poster(ordered)
        key = storage.fresh_key(installation=ident(), kind="videos", suffix=".mp4")
        got = transfer.store_result(chunks=_chunks(ordered), key=key)
    finally:
        if ordered is not file:
            ordered.close()
    got.file.close()
    poster_key = storage.fresh_key(installation=ident(), kind="posters", suffix=".jpg")
    storage.save_bytes(key=poster_key, data=poster, content_type="image/jpeg")
    return Stored(key, got.size, got.sha256, facts.duration_ms, facts.width, facts.height, poster_key)


def _chunks(file: IO[bytes]) -> Iterator[bytes]:
    file.seek(0)
    return iter(lambda: file.read(65536), b"")
