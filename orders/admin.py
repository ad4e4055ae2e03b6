"""The shop in the staff console: orders with all that belongs to them, poses, mails, and whose job each job is."""

from typing import Any

from django.contrib import admin
from django.db.models import Prefetch, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.decorators import method_decorator
from django.utils.html import format_html
from django.views.decorators.csrf import csrf_protect

from generation.admin import JobAdmin
from generation.models import Job, JobInReview
from generation.states import JOB
from orders import admin_timeline
from orders.admin_mail import MailAdmin
from orders.admin_money import MoneyListAdmin
from orders.admin_pose import PoseForm
from orders.admin_review import ShopReviewAdmin, WhoseJob
from orders.models import Mail, Order, OrderItem, Photo, Pose
from orders.views.common import order_url
from waistheart import console, money

__all__ = ["MailAdmin", "MoneyListAdmin", "ShopReviewAdmin"]


class HowItIs(admin.SimpleListFilter):
    """Orders by how their jobs are doing, which no order stores."""

    title, parameter_name = "its videos", "videos"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [
            ("review", "In review"),
            ("way", "On their way"),
            ("completed", "Delivered"),
            ("failed", "Failed, given back"),
        ]

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        states = {"way": ("queued", "processing", "storing")}.get(self.value() or "", (self.value(),))
        jobs = OrderItem.objects.filter(job__status__in=states).values("order")
        return queryset.filter(pk__in=jobs) if self.value() else queryset


class ItemInline(console.WindowInline):
    model = OrderItem
    fields = ("number", "pose_name", "job_link", "model", "credits", "crop", "frozen_at", "told_at")

    def get_queryset(self, request: HttpRequest) -> QuerySet:
        return super().get_queryset(request).select_related("job")

    @admin.display(description="job")
    def job_link(self, item: OrderItem) -> str:
        return console.link(item.job)


class PhotoInline(console.WindowInline):
    model = Photo
    fields = ("id", "name", "format_seen", "width", "height", "size", "created_at", "keep_until", "deleted_at")


class MailInline(console.WindowInline):
    model = Mail
    fields = ("created_at", "kind", "to", "status", "handed_over", "last_error")


@admin.register(Order)
class OrderAdmin(console.Window):
    list_display = ("code", "status", "videos", "poses", "email", "amount", "paid_at", "took", "created_at")
    list_filter = ("status", HowItIs, "items__pose", "paid_at")
    search_fields = ("code", "email")
    search_help_text = "Exactly: a code, an e-mail address, cs_… or pi_… of the payment, the provider's id"
    inlines = (ItemInline, PhotoInline, MailInline)
    computed = ("pictures", "videos", "amount", "payment_link", "as_customer", "timeline")
    fieldsets = (
        (None, {"fields": ("pictures", "status", "videos", "amount", "email", "payment_link", "as_customer")}),
        ("Timeline", {"fields": ("timeline",)}),
        ("Details", {"classes": ("collapse",), "fields": (
            "owner", "credits", "lot", "request_key", "declarations", "created_at", "paid_at", "seen_at", "state_since",
        )}),
    )  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> QuerySet[Order]:
        items = OrderItem.objects.select_related("job", "pose").order_by("number")
        return super().get_queryset(request).select_related("payment").prefetch_related(Prefetch("items", items))

    def find(self, term: str) -> Q:
        if "@" in term:
            return Q(email=term.lower())
        if term.startswith("cs_"):
            return Q(payment__session_id=term)
        if term.startswith(("pi_", "ch_", "py_")):
            return Q(payment__payment_intent=term) | Q(payment__charge=term)
        if len(term) == 8:
            return Q(code=term.upper())
        return Q(pk__in=OrderItem.objects.filter(job__submissions__external_id=term).values("order")) | Q(lot=term)

    @admin.display(description="its videos")
    def videos(self, order: Order) -> str:
        """How its jobs are doing, as counts when there are several."""
        states = [item.job.status for item in order.items.all() if item.job]
        if "review" in states:
            return format_html('<strong class="late">{}</strong>', _counted(states))
        return _counted(states) or "–"

    @admin.display(description="pose")
    def poses(self, order: Order) -> str:
        return ", ".join(dict.fromkeys(item.pose_name or item.pose.name for item in order.items.all()))

    @admin.display(description="amount", ordering="price")
    def amount(self, order: Order) -> str:
        words = money.words(amount=order.price, currency=order.currency) if order.currency else "–"
        return format_html('<span class="money">{}</span>', words)

    @admin.display(description="delivered after")
    def took(self, order: Order) -> str:
        jobs = [item.job for item in order.items.all() if item.job]
        if not jobs or not order.paid_at or any(job.status not in JOB.final for job in jobs):
            return "–"
        return console.span(max((job.state_since - order.paid_at).total_seconds() for job in jobs))

    @admin.display(description="payment")
    def payment_link(self, order: Order) -> str:
        return console.link(order.payment)

    @admin.display(description="as its customer sees it")
    def as_customer(self, order: Order) -> str:
        return format_html('<a href="{}" target="_blank" rel="noreferrer">the order page</a>', order_url(order))

    @admin.display(description="pictures")
    def pictures(self, order: Order) -> str:
        return console.pictures(
            [figure for item in order.items.all() for figure in admin_timeline.pictures(order, item)]
        )

    @admin.display(description="what happened")
    def timeline(self, order: Order) -> str:
        return admin_timeline.of(order)


@admin.register(Job)
class ShopJobAdmin(WhoseJob):
    """A job, and which order it belongs to."""

    list_display = ("id", "order_link", *JobAdmin.list_display[1:])
    fieldsets = (("Whose", {"fields": (("order_link", "customer"), "portrait")}), *JobAdmin.fieldsets)


@admin.register(Pose)
class PoseAdmin(console.Console):
    """Edited freely: what is ordered holds copies. A pose is retired, never deleted."""

    form = PoseForm
    list_display = ("name", "active", "credits", "sort", "model", "sample_size")
    list_filter = ("active",)
    search_fields = ("name",)
    ordering = ("sort", "pk")
    prepopulated_fields = {"slug": ("name",)}

    def find(self, term: str) -> Q:
        return Q(name__iexact=term) | Q(slug=term.lower())

    def has_delete_permission(self, *_: Any, **__: Any) -> bool:
        return False

    @method_decorator(csrf_protect)
    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Without Django's transaction around it: the sample is decoded and stored while the form is checked, which takes
        seconds and on SQLite would hold the only write lock. One row is written, so there is nothing to hold together."""
        return self._changeform_view(request, object_id, form_url, extra_context)  # type: ignore[attr-defined, no-any-return]

    def save_model(self, request: HttpRequest, obj: Pose, form: Any, change: bool) -> None:
        form.put_sample(obj)
        super().save_model(request, obj, form, change)


admin.site.register(JobInReview, ShopReviewAdmin)


def _counted(states: list[str]) -> str:
    counts = {state: states.count(state) for state in dict.fromkeys(states)}
    return ", ".join(state if len(states) == 1 else f"{count} {state}" for state, count in counts.items())
