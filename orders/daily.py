"""Once a day: recompute the ledger, delete what is past its time, and delete bytes that no row points at."""

import logging
from datetime import timedelta

from django.conf import settings

import generation.sweep
from billing import audit
from generation.models import Job, Submission
from orders.models import Photo, Pose
from waistheart import clock, guards, storage
from waistheart.installation import ident
from waistheart.sweeping import Part, each, is_due, run

log = logging.getLogger(__name__)
DAY_SECONDS = 86400


def when_due() -> dict[str, object] | None:
    """Run the day's work if the last began a day ago or never, so that beat may forget its schedule as often as it likes."""
    return every_day() if is_due("daily", seconds=DAY_SECONDS) else None


def every_day() -> dict[str, object]:
    """Run the day's work; a second run on the same day finds little to do and does no harm. One part that fails stops no other."""
    parts: dict[str, Part] = {
        "differences": report_differences,
        "videos": generation.sweep.delete_old_videos,
        "orphans": delete_orphans,
        "uploads": lambda: storage.abort_stale_uploads(prefix=f"{ident()}/", older_than=timedelta(days=1)),
    }
    return {name: run(name, part) for name, part in parts.items()}


def report_differences() -> int:
    """Recompute every balance; each difference is an alarm."""
    differences = audit.differences()
    for difference in differences:
        log.error("ALARM audit: %s", difference)
        guards.count("alarm.audit")
    return len(differences)


def delete_orphans() -> int:
    """Delete blobs of this installation that no row points at and that are older than every deadline; how many went.

    One that cannot be deleted stops no other: it is logged and counted, and tried again the next day.
    """
    over = clock.read().timestamp() - settings.ORPHAN_WINDOW_SECONDS
    old = (blob.key for blob in storage.list_keys(prefix=f"{ident()}/") if blob.modified.timestamp() < over)
    return each("orphans", old, _delete_orphan)


def _delete_orphan(key: str) -> bool:
    if has_owner(key):
        return False
    storage.delete(key=key)
    return True


def has_owner(key: str) -> bool:
    """Whether any row points at the key."""
    return (
        Photo.objects.filter(key=key, deleted_at__isnull=True).exists()
        or Submission.objects.filter(image_key=key, image_deleted_at__isnull=True).exists()
        or Job.objects.filter(video_key=key, deleted_at__isnull=True).exists()
        or Job.objects.filter(poster_key=key, deleted_at__isnull=True).exists()
        or Pose.objects.filter(sample_key=key).exists()
        or Pose.objects.filter(poster_key=key).exists()
    )
