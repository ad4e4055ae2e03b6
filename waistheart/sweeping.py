"""What every sweep is made of: parts that stand alone, and rows that stand alone within one."""

import logging
from collections.abc import Callable, Iterable
from typing import TypeVar

from waistheart import clock, guards
from waistheart.models import Heartbeat

log = logging.getLogger(__name__)
Row = TypeVar("Row")
Part = Callable[[], object]
Publish = Callable[[str, int], None]


def run(name: str, part: Part) -> object:
    """One part; what it raises is logged and counted, and the others go on."""
    try:
        return part()
    except Exception:
        log.exception("sweep part %r failed", name)
        guards.count(f"sweep.failed.{name}"[:80])
        return "failed"


def each(
    name: str,
    rows: Iterable[Row],
    act: Callable[[Row], object],
    *,
    postpone: Callable[[Row], object] | None = None,
    enough: int | None = None,
) -> int:
    """Act on every row; answers for how many `act` said something true. What one raises is logged and counted, and that row alone
    is postponed, so that it holds up neither the rest of its page nor the next one.

    Rows that cannot be postponed are given as several pages, of which `enough` ends the work: those that raise use up none of it.
    """
    count = 0
    for row in rows:
        try:
            count += bool(act(row))
        except Exception:
            log.exception("%s: %s raised", name, row)
            guards.count(f"sweep.raised.{name}"[:80])
            if postpone is not None:
                postpone(row)
        if enough is not None and count >= enough:
            break
    return count


def is_due(name: str, *, seconds: float) -> bool:
    """Claim something regular: True at most once in so many seconds, at the first call ever, and whoever calls."""
    beat, made = Heartbeat.objects.get_or_create(name=name)
    rows = Heartbeat.objects.filter(pk=beat.pk, at__lte=clock.ago(seconds))
    return made or rows.update(at=clock.now()) == 1


def publish_all(publish: Publish, task: str, ids: Iterable[int]) -> int:
    """Publish each claimed id; a broker that is away loses messages, never rows."""
    count = 0
    for row_id in ids:
        count += 1
        try:
            publish(task, row_id)
        except Exception:
            log.warning("could not publish %s(%s); the row stays due", task, row_id, exc_info=True)
    return count
