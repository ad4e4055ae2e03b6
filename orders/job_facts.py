"""What the ledger, the events and the provider accounts say about an order's jobs: one statement each, and only on bad days."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.core.exceptions import ImproperlyConfigured
from django.db.models import Q

from billing.models import Entry
from generation.models import Job, JobEvent, ProviderAccount
from generation.providers import get_provider
from generation.providers.base import ProviderError
from generation.states import JobStatus


@dataclass(frozen=True, kw_only=True)
class Returned:
    """What the ledger says came back for one job: credits released, those of them that can be spent, and until when."""

    credits: int
    available: int
    expires_at: datetime


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
    rows = Entry.objects.filter(kind__in=kinds, occasion__in=holds).select_related("grant")
    found: dict[int, list[Entry]] = {}
    for row in rows:
        found.setdefault(holds[row.occasion], []).append(row)
    return {
        hold: Returned(
            credits=sum(part.credits for part in parts),
            available=sum(part.available for part in parts),
            expires_at=min(part.grant.expires_at for part in parts),
        )
        for hold, parts in found.items()
    }


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
