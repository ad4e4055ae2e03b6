"""The work in the staff console, to look at. What staff may do with a job in review stands in `admin_review.py`.

The shop above registers jobs and the review list itself: it adds which order and customer a job belongs to.
"""

from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import Exists, OuterRef, Q, QuerySet, Sum
from django.db.models.functions import Coalesce
from django.http import HttpRequest
from django.utils.html import format_html

from generation import accounts
from generation.models import Job, JobEvent, ProviderAccount, Submission
from generation.states import LIVE_SUBMISSION
from waistheart import clock, console
from waistheart.console_acts import Act, Refused, WithActs


class Flag(admin.SimpleListFilter):
    """A yes/no filter over a condition."""

    condition: Q = Q()

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("yes", "Yes"), ("no", "No")]

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        if self.value() not in {"yes", "no"}:
            return queryset
        return queryset.filter(self.condition if self.value() == "yes" else ~self.condition)


class LeaseExpired(Flag):
    title, parameter_name = "lease has run out", "lease_expired"

    @property
    def condition(self) -> Q:  # type: ignore[override]
        return Q(lease_id__isnull=False, lease_until__lte=clock.now())


class LateSuccess(Flag):
    title, parameter_name = "late success", "late_success"
    condition = Q(late_success=True)


class SubmissionInline(console.WindowInline):
    model = Submission
    ordering = ("number",)
    fields = (
        "number", "status", "sent_at", "state_since", "external_id", "refusal", "refusal_kind", "detail",
        "read_error", "cost_microdollars", "late_success_at", "resumes",
    )  # fmt: skip


class EventInline(console.WindowInline):
    model = JobEvent
    ordering = ("version",)
    fields = ("version", "at", "move", "source", "target", "actor", "reason")


class JobAdmin(console.Window):
    """Jobs as rows: their state, lease, clocks and what they were made from."""

    list_display: Any = (
        "id", "status", "model", "reason", "since", "lease", "next_step_at", "tries", "cost", "late",
    )  # fmt: skip
    list_filter: ClassVar[Any] = ("status", "provider", "model", "reason", LeaseExpired, LateSuccess)
    search_fields: ClassVar[Any] = ("id",)
    search_help_text: ClassVar[Any] = "Exactly: a job's number, the provider's id, a lot"
    inlines = (SubmissionInline, EventInline)
    computed: ClassVar[tuple[str, ...]] = ("since", "lease", "late")
    fieldsets: ClassVar[Any] = (
        ("How it is doing", {"fields": (
            "status", "reason", "last_error", "since", "late", "version", "lease", "next_step_at",
            ("tries", "failures", "bad_bytes", "accepted"), ("not_before", "put_offs"),
        )}),
        ("What it is made from", {"fields": (
            "owner", "hold", "credits", ("lot", "lot_number", "lot_size"), ("photo_key", "crop"), "photo_sha256", "prompt",
            "provider", "model", "parameters",
        )}),
        ("Result", {"fields": (
            "video_key", ("video_size", "video_ms", "video_width", "video_height"), "video_sha256", "keep_until", "deleted_at",
        )}),
    )  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> QuerySet[Job]:
        own = Submission.objects.filter(job=OuterRef("pk")).order_by()
        cost = own.values("job").annotate(n=Sum("cost_microdollars")).values("n")
        rows: QuerySet[Job] = super().get_queryset(request)
        return rows.annotate(
            late_success=Exists(own.filter(late_success_at__isnull=False)),
            live_submission=Exists(own.filter(status__in=LIVE_SUBMISSION)),
            cost_sum=Coalesce(cost, 0),
        )

    def find(self, term: str) -> Q:
        if console.is_number(term):
            return Q(pk=int(term))
        return Q(pk__in=Submission.objects.filter(external_id=term).values("job")) | Q(lot=term)

    @admin.display(description="in state", ordering="state_since")
    def since(self, job: Job) -> str:
        return console.age(job.state_since, red_after=3600 if job.status == "review" else 0)

    @admin.display(description="lease")
    def lease(self, job: Job) -> str:
        return f"{str(job.lease_id)[:8]} until {job.lease_until:%H:%M:%S}" if job.lease_id else "–"

    @admin.display(description="cost", ordering="cost_sum")
    def cost(self, job: Any) -> str:
        return f"${job.cost_sum / 1_000_000:.3f}" if job.cost_sum else "–"

    @admin.display(description="late success")
    def late(self, job: Any) -> str:
        """The provider finished after the credit went back: shown, and nothing else."""
        return format_html('<strong class="late">{}</strong>', "late success") if job.late_success else "–"


@admin.register(Submission)
class SubmissionAdmin(console.Window):
    """Every paid request to a provider."""

    list_display = (
        "id", "job", "number", "status", "provider", "model", "external_id", "sent_at", "next_look_at", "looks", "refusal",
        "cost_microdollars", "late_success_at",
    )  # fmt: skip
    list_filter = ("status", "provider", "refusal", "sent_at", ("late_success_at", admin.EmptyFieldListFilter))
    list_select_related = ("job",)
    search_fields = ("external_id", "key")
    search_help_text = "Exactly: the provider's id, our key, or a job's number"

    def find(self, term: str) -> Q:
        return Q(job_id=int(term)) if console.is_number(term) else Q(external_id=term) | Q(key=term)


def probe(row: ProviderAccount) -> bool:
    """Ask again soon; of a key that was replaced nothing is asked any more."""
    if not accounts.in_use().filter(pk=row.pk).exists():
        raise Refused("its key takes no new work any more, so nothing is asked of it")
    return accounts.probe_now(row)


PROBE_NOW = Act(
    "probe", "Ask again now",
    "The next sweep, within a minute, tries this account with one request; if it is accepted, everything that waits resumes. "
    "Without this it is tried every 15 minutes.",
    "Are not told; their videos go on.", "Nothing needs undoing: a refusal changes nothing.",
    lambda row, actor, reason: probe(row), done="asked again within a minute",
)  # fmt: skip


@admin.register(ProviderAccount)
class ProviderAccountAdmin(WithActs):
    """How our accounts are doing; one that is not ok makes its jobs wait, and is probed by itself, or sooner by hand."""

    acts = (PROBE_NOW,)
    list_display = (
        "provider", "whole_or_model", "doing", "since", "detail", "next_probe_at", "not_before", "failures",
        "in_flight_limit", "key_print",
    )  # fmt: skip
    list_filter = ("state", "provider")
    ordering = ("state", "provider", "model")

    def version_of(self, row: ProviderAccount) -> int:
        return row.writes

    def row_now(self, row_id: int) -> ProviderAccount | None:
        return ProviderAccount.objects.filter(pk=row_id).first()

    def facts(self, row: ProviderAccount) -> str:
        return f"{row.provider} {self.whole_or_model(row)}: {row.get_state_display()}"

    @admin.display(description="model", ordering="model")
    def whole_or_model(self, row: ProviderAccount) -> str:
        return row.model or "(whole account)"

    @admin.display(description="state", ordering="state")
    def doing(self, row: ProviderAccount) -> str:
        if row.state == ProviderAccount.State.OK:
            return "ok"
        return format_html('<strong class="late">{}</strong>', row.get_state_display())
