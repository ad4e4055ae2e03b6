"""The only code that writes `Job.status` and `Submission.status`. Every function stands inside a block.

A job's guard is the first statement of its block: it names the state it was seen in, and where the move was decided on something
read earlier, the version read; the lease rule comes from the table. The move's event is written with it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import F, Q

from generation.models import Job, JobEvent, Submission
from generation.states import JOB, LIVE_SUBMISSION, SUBMISSION, JobStatus
from waistheart import clock, guards
from waistheart.machine import FREE, FREE_OR_MINE, MINE


@dataclass(frozen=True)
class Seen:
    """What a decision was based on: the job's id, and the state and version it was read in."""

    job_id: int
    status: str
    version: int

    @classmethod
    def of(cls, job: Job) -> "Seen":
        return cls(job.pk, job.status, job.version)


def move_job(
    name: str, *, seen: Seen, actor: str, reason: str = "", lease_id: UUID | None = None, **fields: Any
) -> None:
    """Make one declared move, or raise LostRace: another state, another version, or a lease that is not as the table wants it.

    `fields` go into the same UPDATE. The lease is cleared, tries and put-offs start anew, and the move's event is written.
    """
    move = JOB.move(name, seen.status)
    rows = Job.objects.filter(pk=seen.job_id, status=seen.status, version=seen.version).filter(
        _lease(move.lease, lease_id)
    )
    final = move.target in JOB.final
    guards.must(
        f"job.{name}",
        rows.update(
            status=move.target,
            version=F("version") + 1,
            state_since=clock.now(),
            lease_id=None,
            lease_until=None,
            next_step_at=None if final else clock.now(),
            tries=0,
            failures=0,
            put_offs=0,
            reason=reason[:40],
            **{"not_before": None, **fields},
        ),
    )
    JobEvent.objects.create(
        job_id=seen.job_id, move=name, source=seen.status, target=move.target, version=seen.version + 1,
        reason=(fields.get("last_error") or reason)[:300], actor=actor,
    )  # fmt: skip


def bear(jobs: Sequence[Job], *, actor: str) -> list[Job]:
    """Insert new jobs and their birth events: two statements whatever their number."""
    born = Job.objects.bulk_create(jobs)
    JobEvent.objects.bulk_create(
        [JobEvent(job=job, move="birth", target=JobStatus.QUEUED, version=1, actor=actor) for job in born]
    )
    return born


def write_job(*, job_id: int) -> None:
    """Write the anchor under which submissions change, whatever state the job is in."""
    guards.must("job.anchor", Job.objects.filter(pk=job_id).update(writes=F("writes") + 1))


def move_submission(name: str, *, submission_id: int, **fields: Any) -> None:
    """Make one declared move of a submission, or raise LostRace. The block has written its job before."""
    rows = Submission.objects.filter(pk=submission_id, status__in=SUBMISSION.by_name[name].sources)
    guards.must(f"submission.{name}", rows.update(**_submission_fields(name, fields)))


def may_move_submission(name: str, *, submission_id: int, **fields: Any) -> bool:
    """The same as an optional guard: whether it moved."""
    rows = Submission.objects.filter(pk=submission_id, status__in=SUBMISSION.by_name[name].sources)
    return guards.may(f"submission.{name}", rows.update(**_submission_fields(name, fields)))


def _submission_fields(name: str, fields: dict[str, Any]) -> dict[str, Any]:
    target = SUBMISSION.by_name[name].target
    look = {} if target in LIVE_SUBMISSION else {"next_look_at": None}
    return {"status": target, "state_since": clock.now(), **look, **fields}


def _lease(rule: str, lease_id: UUID | None) -> Q:
    """The lease rule as a condition. An expired lease that nobody took is still mine."""
    free = Q(lease_id__isnull=True) | Q(lease_until__lte=clock.now())
    mine = Q(lease_id=lease_id) if lease_id else Q(pk__in=[])
    if rule == MINE:
        return mine
    if rule == FREE:
        return free
    if rule == FREE_OR_MINE:
        return free | mine if lease_id else free
    return Q()
