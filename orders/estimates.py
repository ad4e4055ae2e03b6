"""How long a video takes, from the shop's own last deliveries."""

from dataclasses import dataclass
from math import ceil
from statistics import median, quantiles

from django.core.cache import cache

from generation.states import JobStatus
from orders.models import OrderItem

SAMPLE = 50
ENOUGH = 3
KEPT_SECONDS = 60
HIGHEST_SHARE = 95


@dataclass(frozen=True)
class Typical:
    """Seconds from the birth of a job to its delivery: half were faster than `median`, 19 of 20 faster than `slow`."""

    median: float
    slow: float


def typical(*, pose_id: int) -> Typical | None:
    """What the last 50 deliveries of a pose took; None until there are three. Asked once a minute per process."""
    name = f"typical:{pose_id}"
    known: Typical | str | None = cache.get(name)
    if known is None:
        known = _measure(pose_id) or "unknown"
        cache.set(name, known, KEPT_SECONDS)
    return known if isinstance(known, Typical) else None


def share_done(*, elapsed: float, typical: Typical) -> int:
    """Per cent done as far as one can know: fast at first, then slower, and never above 95 before the end."""
    left = 1 - min(elapsed / typical.median, 1.0)
    return round(HIGHEST_SHARE * (1 - left**2))


def minutes_left(*, elapsed: float, typical: Typical) -> int:
    """Whole minutes, rounded up; 0 when the usual time is over."""
    return max(0, ceil((typical.median - elapsed) / 60))


def _measure(pose_id: int) -> Typical | None:
    rows = OrderItem.objects.filter(pose_id=pose_id, job__status=JobStatus.COMPLETED).order_by("-id")
    spans = [
        max((ready - born).total_seconds(), 1.0)
        for born, ready in rows.values_list("job__created_at", "job__state_since")[:SAMPLE]
    ]
    if len(spans) < ENOUGH:
        return None
    return Typical(median=median(spans), slow=quantiles(spans, n=20, method="inclusive")[-1])
