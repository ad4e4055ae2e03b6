"""How an order is doing, as its customer may know it. Nothing here is stored: it is derived from the jobs and the ledger."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from django.conf import settings
from django.utils import timezone

from billing.models import Payment
from generation.models import Job, JobEvent
from generation.states import JobStatus
from orders import estimates, job_facts
from orders.job_facts import Returned
from orders.models import Order, OrderItem

SLOW_SECONDS = 360
SEEN_SECONDS = 600  # by then the sweep has looked six times; after that it looks ever less often
PENDING_SECONDS = 7 * 86400  # longer than banks take for money that is on its way
POLLS = ((60, 2), (300, 5), (1800, 15))
LONGEST_POLL = 60


class State(StrEnum):
    """The states a customer can see; slow and "money on its way" are words about a state, not states of their own."""

    UNPAID = "unpaid"
    OPEN = "open"
    PENDING = "pending"
    QUEUED = "queued"
    MAKING = "making"
    SAVING = "saving"
    READY = "ready"
    HELD = "held"
    STAFF = "staff"
    FAILED = "failed"
    PHOTO = "photo"
    CANCELLED = "cancelled"
    DELETED = "deleted"


WORKING = (State.MAKING, State.SAVING, State.QUEUED, State.HELD, State.STAFF)
ENDED = (State.READY, State.FAILED, State.PHOTO, State.CANCELLED, State.DELETED)
STEPS = {
    State.PENDING: 1, State.QUEUED: 2, State.HELD: 2, State.STAFF: 2, State.MAKING: 3, State.SAVING: 3, State.READY: 4,
}  # fmt: skip
BY_STATUS: dict[str, State] = {
    JobStatus.QUEUED: State.QUEUED,
    JobStatus.PROCESSING: State.MAKING,
    JobStatus.STORING: State.SAVING,
    JobStatus.REVIEW: State.STAFF,
    JobStatus.COMPLETED: State.READY,
}


@dataclass(frozen=True, kw_only=True)
class ItemProgress:
    """One video of the order. `reason` is the shop's own short word, `returned` is None unless the ledger has the row."""

    number: int
    pose_name: str
    state: State
    job: Job | None
    photo_deleted_at: datetime | None = None
    reason: str = ""
    returned: Returned | None = None


@dataclass(frozen=True, kw_only=True)
class Progress:
    """The whole order. `poll` is in seconds, 0 when nothing will change by itself; `share` None until it can be known."""

    state: State
    items: tuple[ItemProgress, ...]
    slow: bool = False
    share: int | None = None
    minutes: int | None = None
    place: int = 0
    poll: int = 0

    @property
    def step(self) -> int:
        return STEPS.get(self.state, 0)

    @property
    def ready(self) -> tuple[ItemProgress, ...]:
        return tuple(item for item in self.items if item.state == State.READY)

    @property
    def working(self) -> bool:
        return self.state in WORKING


def of(*, order: Order) -> Progress:
    """Read how the order is doing now: two statements while all is well, up to five on a bad day, whatever its size."""
    rows = list(order.items.select_related("job", "photo").order_by("number"))
    if order.status != Order.Status.PAID:
        return _unpaid(order, rows)
    jobs = [row.job for row in rows if row.job]
    ends, returned = job_facts.ends(jobs), job_facts.returned(jobs)
    held = job_facts.held(jobs)
    items = tuple(_item(row, ends, returned, held) for row in rows)
    state = _overall(items)
    if state not in WORKING:
        return Progress(state=state, items=items)
    return _waiting(order, rows, items, state)


def poll_seconds(age: float) -> int:
    """How often a page that is `age` seconds into its wait asks again."""
    return next((pause for limit, pause in POLLS if age < limit), LONGEST_POLL)


def _unpaid(order: Order, rows: Sequence[OrderItem]) -> Progress:
    waits = order.status == Order.Status.AWAITING_PAYMENT
    state = State.UNPAID
    if waits:
        state = State.PENDING if payment_pending(order=order) else State.OPEN
    items = tuple(
        ItemProgress(number=row.number, pose_name=row.pose_name or row.pose.name, state=state, job=None) for row in rows
    )
    age = _age(order.state_since)
    slow = state == State.OPEN and (age > SEEN_SECONDS or bool(order.payment and order.payment.last_error))
    if state == State.PENDING and order.payment:
        slow = _age(order.payment.state_since) > PENDING_SECONDS
    return Progress(state=state, items=items, slow=slow, poll=poll_seconds(age) if waits else 0)


def _waiting(order: Order, rows: Sequence[OrderItem], items: tuple[ItemProgress, ...], state: State) -> Progress:
    age = _age(order.paid_at or order.state_since)
    known = estimates.typical(pose_id=rows[0].pose_id) if len(rows) == 1 else None
    steady = state in (State.QUEUED, State.MAKING, State.SAVING)
    return Progress(
        state=state,
        items=items,
        slow=steady and age > max(known.slow if known else 0, SLOW_SECONDS),
        share=_share(items, age, known) if steady else None,
        minutes=estimates.minutes_left(elapsed=age, typical=known) if known and steady else None,
        place=_place(items) if state == State.QUEUED else 0,
        poll=poll_seconds(age),
    )


def _share(items: tuple[ItemProgress, ...], age: float, known: estimates.Typical | None) -> int | None:
    """Of many videos the share that has ended; of one, what the usual time says."""
    if len(items) > 1:
        return round(100 * sum(item.state in ENDED for item in items) / len(items))
    return estimates.share_done(elapsed=age, typical=known) if known else None


def _overall(items: Sequence[ItemProgress]) -> State:
    """While any video is on its way the order is; after that a delivered one decides, then the most telling end."""
    present = {item.state for item in items}
    order = (*WORKING, State.READY, State.FAILED, State.PHOTO, State.DELETED, State.CANCELLED)
    return next(state for state in order if state in present)


def _item(
    row: OrderItem, ends: dict[int, JobEvent], returned: dict[int, Returned], held: set[tuple[str, str]]
) -> ItemProgress:
    job = row.job
    if job is None:
        return ItemProgress(number=row.number, pose_name=row.pose_name, state=State.QUEUED, job=None)
    end = ends.get(job.pk)
    return ItemProgress(
        number=row.number,
        pose_name=row.pose_name,
        state=_state(job, end, held),
        job=job,
        photo_deleted_at=row.photo.deleted_at if row.photo else None,
        reason=job.reason,
        returned=returned.get(job.hold_id),
    )


def _state(job: Job, end: JobEvent | None, held: set[tuple[str, str]]) -> State:
    if job.status == JobStatus.COMPLETED and job.deleted_at:
        return State.DELETED
    if job.status == JobStatus.QUEUED and held & {(job.provider, ""), (job.provider, job.model)}:
        return State.HELD
    if job.status != JobStatus.FAILED:
        return BY_STATUS.get(job.status, State.QUEUED)
    if end and (end.move == "cancel" or (end.move == "close" and end.actor == "customer")):
        return State.CANCELLED
    return (
        State.PHOTO if (end and end.move == "refuse") or job.reason in ("moderation", "invalid_input") else State.FAILED
    )


def _place(items: Sequence[ItemProgress]) -> int:
    """How many queued videos are older than this order's first queued one, counted up to 200."""
    first = min((item.job.pk for item in items if item.job and item.state == State.QUEUED), default=0)
    return Job.objects.filter(status=JobStatus.QUEUED, pk__lt=first)[:200].count()


def _age(moment: datetime) -> float:
    return (timezone.now() - moment).total_seconds()


def deleted_by(*, job: Job) -> datetime | None:
    """When the video of a delivered job is deleted: today, where that is overdue."""
    if job.status != JobStatus.COMPLETED:
        return None
    until = job.keep_until or job.state_since + timedelta(seconds=settings.VIDEO_KEPT_SECONDS)
    return max(until, timezone.now())


def payment_pending(*, order: Order) -> bool:
    """Whether the processor said the customer has paid and the money is on its way."""
    return bool(order.payment and order.payment.status == Payment.Status.PENDING)
