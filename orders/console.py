"""What the console's first page says: what needs a person now, each with its age. Six statements, whatever the shop's size."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, Min
from django.utils import timezone

from billing.models import Payment
from generation import accounts
from generation.models import Job, Submission
from orders import money_list, outbox
from orders.models import Mail
from waistheart import console
from waistheart.models import Heartbeat

BEAT_LATE = timedelta(minutes=5)
DAY_LATE = timedelta(hours=25)
LATE_SUCCESS_SHOWN = timedelta(days=7)


@dataclass(frozen=True)
class Tile:
    """One figure: where it leads, and whether somebody should look."""

    name: str
    figure: str
    detail: str
    path: str
    look: bool


def today() -> list[Tile]:
    """Review list, money list, what waits, our accounts, late successes, mails and the sweep's pulse, in an order that never changes."""
    now = timezone.now()
    open_jobs = Job.objects.exclude(status__in=["completed", "failed"]).order_by()
    by_state = open_jobs.values_list("status").annotate(n=Count("pk"), oldest=Min("state_since"))
    jobs: dict[str, tuple[int, datetime | None]] = {status: (n, oldest) for status, n, oldest in by_state}
    review, oldest = jobs.pop("review", (0, None))
    on_their_way = min((since for _, since in jobs.values() if since), default=None)
    money = Payment.objects.filter(money_list.needs_a_person()).aggregate(n=Count("pk"), oldest=Min("state_since"))
    late = Submission.objects.filter(late_success_at__gt=now - LATE_SUCCESS_SHOWN).count()
    mails = Mail.objects.filter(outbox.needs_a_person()).count()
    return [
        _tile("Needs review", review, _oldest(oldest), "generation/jobinreview/"),
        _tile("Money list", money["n"], _oldest(money["oldest"]), "billing/mismatchedpayment/"),
        Tile(
            "On their way", str(sum(n for n, _ in jobs.values())), _oldest(on_their_way), "generation/job/", look=False
        ),
        _accounts(),
        _tile("Late successes", late, "in seven days" if late else "", "generation/job/?late_success=yes"),
        _tile("Mails not handed over", mails, "", "orders/mail/?needs=person"),
        _pulse(now, "sweep", "Sweep ran", late_after=BEAT_LATE),
        _pulse(now, "daily", "Daily work began", late_after=DAY_LATE),
    ]


def _accounts() -> Tile:
    """The accounts and models that take no work now, by name."""
    rows = list(accounts.in_use().exclude(state=accounts.STATE.OK).order_by("since")[:20])
    words = ", ".join(f"{row.provider} {row.model} {row.get_state_display()}".replace("  ", " ") for row in rows)
    since = f" for {console.age(rows[0].since)}" if rows else ""
    return Tile("Accounts", str(len(rows) or "ok"), words + since, "generation/provideraccount/", look=bool(rows))


def _pulse(now: datetime, name: str, words: str, *, late_after: timedelta) -> Tile:
    beat = Heartbeat.objects.filter(name=name).first()
    late = beat is None or now - beat.at > late_after
    figure = console.span((now - beat.at).total_seconds()) if beat else "never"
    return Tile(words, figure, "ago" if beat else "is beat running?", "waistheart/heartbeat/", look=late)


def _tile(name: str, count: int, detail: str, path: str) -> Tile:
    return Tile(name, str(count), detail, path, look=count > 0)


def _oldest(since: datetime | None) -> str:
    return f"oldest {console.age(since)}" if since else ""
