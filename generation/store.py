"""The result's bytes: streamed to a fresh key while the lease is renewed, proven to be a video, and never taken on trust.

Raises BadBytes for what is no video of ours (counted, three times at most), NotNow for what may pass by itself (not counted).
"""

import logging
from dataclasses import asdict, dataclass
from typing import IO, Any

from django.conf import settings

from generation import leases, transfer, verify
from generation.models import Job, Submission
from generation.outbound import TransferFailed
from generation.providers import provider_of
from generation.providers.base import Snapshot, State
from waistheart import clock, storage
from waistheart.installation import ident

log = logging.getLogger(__name__)
MIN_SECONDS, MAX_SECONDS = 2, 12
DOWNLOAD_SECONDS = 600
# Trouble on the way that may be over next time; everything else says that these bytes are not what was promised.
PASSING = ("network", "address", "slow", "status:5", "status:429", "status:408")


class BadBytes(Exception):
    """The result is not a whole video of ours. The text begins with the reason in a word."""


class NotNow(Exception):
    """The result could not be fetched this time, for reasons that may pass."""


@dataclass(frozen=True)
class Stored:
    """A verified video in storage, with its poster; nothing points at it until the job's guard has moved."""

    video_key: str
    video_size: int
    video_sha256: str
    video_ms: int
    video_width: int
    video_height: int
    poster_key: str

    def fields(self) -> dict[str, Any]:
        """What the completing UPDATE writes on the job."""
        return {**asdict(self), "keep_until": clock.after(settings.VIDEO_KEPT_SECONDS)}


def fetch_and_verify(job: Job, submission: Submission, lease: leases.Lease, snapshot: Snapshot) -> Stored:
    """Stream the result the provider's fresh reading names, verify it, and store its poster."""
    if snapshot.state == State.RUNNING:
        raise NotNow(f"the provider says that it still works on it: {snapshot.detail}")
    if snapshot.state == State.GONE:
        raise BadBytes("gone: the provider does not know the result any more")
    if snapshot.state != State.DONE or not snapshot.url:
        raise BadBytes(f"{snapshot.state}: no result to fetch")
    key = storage.fresh_key(installation=ident(), kind="videos", suffix=".mp4")
    with storage.own_disk():
        return fetch_and_keep(submission, snapshot.url, key, lease)


def fetch_and_keep(submission: Submission, url: str, key: str, lease: leases.Lease) -> Stored:
    """Download and keep; bytes that are not kept are deleted where nobody can know of them."""
    got = download(submission, url, key, leases.Renewer(lease))
    with got.file:
        try:
            leases.renew(lease)
            return keep(key, got, lease)
        except verify.NotAVideo as error:
            delete(key)
            raise BadBytes(str(error)) from error
        except leases.LeaseLost:
            # Definitely lost, and no row was ever told of the key.
            delete(key)
            raise


def download(submission: Submission, url: str, key: str, renew: leases.Renewer) -> transfer.Stored:
    """The body, from a pinned host into storage and a temporary file, counted and hashed on its way."""
    hosts = provider_of(submission).media_hosts
    try:
        with transfer.fetch(
            url=url,
            allowed_hosts=hosts,
            live=settings.LIVE,
            max_bytes=settings.MAX_VIDEO_BYTES,
            deadline_seconds=DOWNLOAD_SECONDS,
        ) as body:
            return transfer.store_result(chunks=body.chunks, key=key, length=body.length, on_progress=renew)
    except storage.LengthMismatch as error:
        raise BadBytes(f"short: {error}") from error
    except TransferFailed as error:
        if error.reason.startswith(PASSING):
            raise NotNow(str(error)) from error
        raise BadBytes(str(error)) from error


def keep(key: str, got: transfer.Stored, lease: leases.Lease) -> Stored:
    """Decode every frame; where the index comes last, store a copy with it first, so that phones play at once."""
    facts = proven(got.file, lease)
    size, sha256 = got.size, got.sha256
    poster = verify.poster(got.file, on_progress=leases.Renewer(lease))
    if not facts.faststart:
        moved = store_copy(verify.faststart(got.file), lease)
        delete(key)
        key, size, sha256 = moved
    poster_key = storage.fresh_key(installation=ident(), kind="posters", suffix=".jpg")
    storage.save_bytes(key=poster_key, data=poster, content_type="image/jpeg")
    return Stored(key, size, sha256, facts.duration_ms, facts.width, facts.height, poster_key)


def proven(file: IO[bytes], lease: leases.Lease) -> verify.VideoFacts:
    """Decode every frame, and renew the lease meanwhile: a slow proof must not hand the job to a rival who would be as slow."""
    return verify.verify(file, min_seconds=MIN_SECONDS, max_seconds=MAX_SECONDS, on_progress=leases.Renewer(lease))


def store_copy(file: IO[bytes], lease: leases.Lease) -> tuple[str, int, str]:
    """Store a remuxed file under a key of its own, and prove it again: key, size, hash."""
    key = storage.fresh_key(installation=ident(), kind="videos", suffix=".mp4")
    with file:
        proven(file, lease)
        leases.renew(lease)
        file.seek(0)
        chunks = iter(lambda: file.read(65536), b"")
        got = transfer.store_result(chunks=chunks, key=key, on_progress=leases.Renewer(lease))
        got.file.close()
    return key, got.size, got.sha256


def forget(stored: Stored) -> None:
    """After a definitely lost race: delete our bytes, once a fresh read shows that no row points at them."""
    if Job.objects.filter(video_key=stored.video_key).exists():
        return
    delete(stored.video_key)
    delete(stored.poster_key)


def delete(key: str) -> None:
    """Delete bytes that no row was told of; storage that is away leaves them to the orphan sweep."""
    try:
        storage.delete(key=key)
    except storage.StorageError:
        log.warning("%s not deleted now; the orphan sweep will", key, exc_info=True)
