"""What the ledger, the events and the provider accounts say about an order's jobs: one statement each, and only on bad days."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.core.exceptions import ImproperlyConfigured
from django.db.models import OuterRef, Q, Subquery
from django.utils import timezone

from billing.models import Entry
from generation.models import Job, JobEvent, ProviderAccount
from generation.providers import get_provider
from generation.providers.base import ProviderError
from generation.states import JobStatus


@dataclass(frozen=True, kw_only=True)
class Returned:
    """What the ledger says came back for one job: credits released, those of them that can be spent now, and until when.

    When none can be spent because they lapsed, `available` is 0 and `lapsed_at` says when they did.
    """

    credits: int
    available: int
    expires_at: datetime
    lapsed_at: datetime | None = None


@dataclass(frozen=True)
class _Part:
    """What came back into one grant, and when that lapsed."""

    credits: int
    available: int
    expires_at: datetime
    lapsed_at: datetime | None


def ends(jobs: Sequence[Job]) -> dict[int, JobEvent]:
    """The move that failed each failed job."""
    failed = [job.pk for job in jobs if job.status == JobStatus.FAILED]
    if not failed:
        return {}
    return {event.job_id: event for event in JobEvent.objects.filter(job__in=failed, target=JobStatus.FAILED)}


def returned(jobs: Sequence[Job]) -> dict[int, Returned]:
    """What the ledger says was released, by hold. A hold without such a row is not in it: nothing is claimed for it."""
    holds = {f"hold:{job.hold_id}": job.hold_id for job in jobs if job.status == JobStatus.FAILED}
    if not holds:
        return {}
    # "granted" under a hold's name: staff replaced what could not be put back.
    kinds = (Entry.Kind.RELEASED, Entry.Kind.GRANTED)
    # An expiry takes all that is available in its grant: what came back before it has lapsed with it, whatever came later.
    later = Entry.objects.filter(kind=Entry.Kind.EXPIRED, grant=OuterRef("grant"), pk__gt=OuterRef("pk")).order_by("pk")
    rows = Entry.objects.filter(kind__in=kinds, occasion__in=holds).select_related("grant")
    found: dict[int, list[_Part]] = {}
    for row in rows.annotate(lapse=Subquery(later.values("at")[:1])):
        found.setdefault(holds[row.occasion], []).append(_part(row, row.lapse))
    return {hold: _whole(parts) for hold, parts in found.items()}


def _part(row: Entry, lapse: datetime | None) -> _Part:
    ends = row.grant.expires_at
    over = ends <= timezone.now()  # also when the sweep has not yet written the line
    # A grant that took credits back later has another end by now, and the line tells; else the line is only a little late.
    lapsed_at = min(lapse, ends) if lapse else ends if over else None
    return _Part(row.credits, row.available, ends, lapsed_at if row.available else None)


def _whole(parts: Sequence[_Part]) -> Returned:
    living = [part for part in parts if not part.lapsed_at]
    available = sum(part.available for part in living)
    lapses = [part.lapsed_at for part in parts if part.lapsed_at]
    return Returned(
        credits=sum(part.credits for part in parts),
        available=available,
        expires_at=min(part.expires_at for part in living or parts),
        lapsed_at=max(lapses) if lapses and not available else None,
    )


def held(jobs: Sequence[Job]) -> set[tuple[str, str]]:
    """The (provider, model) pairs among the queued jobs that take no work now; model empty: the whole account."""
    queued = [job for job in jobs if job.status == JobStatus.QUEUED]
    if not queued:
        return set()
    prints = {name: _key_print(name) for name in {job.provider for job in queued}}
    models = {"", *(job.model for job in queued)}
    rows = ProviderAccount.objects.filter(~Q(state="ok"), provider__in=list(prints), model__in=models)
    stopped = {(row.provider, row.model) for row in rows if row.key_print == prints[row.provider]}
    return stopped | {(name, "") for name, known in prints.items() if not known}


def _key_print(provider: str) -> str:
    """Which of a provider's accounts is ours now; empty while the configuration keeps us from working there."""
    try:
        return get_provider(provider).key_print()
    except (ImproperlyConfigured, ProviderError):
        return ""
