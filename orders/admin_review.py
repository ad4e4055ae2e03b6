"""The review list with what the shop knows of a job: its order, customer, pose and portrait."""

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html

from generation.admin import JobAdmin
from generation.admin_review import RED_AFTER_SECONDS, ReviewAdmin, why
from generation.models import Job
from orders.models import Order, OrderItem
from waistheart import console, money


class WhoseJob(JobAdmin):
    """What both lists of jobs have: columns and search of the order that a job belongs to."""

    search_fields = ("id", "item__order__code")
    search_help_text = "Exactly: an order's code, an e-mail address, a job's number, the provider's id"
    computed = (*JobAdmin.computed, "order_link", "customer", "portrait")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Job]:
        return super().get_queryset(request).select_related("item__order", "owner")

    def find(self, term: str) -> Q:
        if "@" in term:
            return Q(owner__email=term.lower())
        if len(term) == 8 and not console.is_number(term):
            return Q(pk__in=OrderItem.objects.filter(order__code=term.upper()).values("job"))
        return super().find(term)

    @admin.display(description="order")
    def order_link(self, job: Job) -> str:
        return console.link(order_of(job))

    @admin.display(description="customer")
    def customer(self, job: Job) -> str:
        return job.owner.email

    @admin.display(description="portrait")
    def portrait(self, job: Job) -> str:
        return (
            format_html('<div class="pictures"><img src="{}" alt="The crop that is sent"></div>', portrait_url(job))
            if order_of(job)
            else "–"
        )


class ShopReviewAdmin(WhoseJob, ReviewAdmin):
    list_display = (
        "thumbnail", "order_code", "why", "since", "pose", "at_provider", "tried", "amount", "customer",
    )  # fmt: skip
    list_display_links = ("order_code",)
    fieldsets = (("Whose", {"fields": (("order_link", "customer"), "portrait")}), *ReviewAdmin.fieldsets)

    def facts(self, row: Job) -> str:
        order = order_of(row)
        ages = console.age(row.state_since, red_after=RED_AFTER_SECONDS)
        if order is None:
            return super().facts(row)
        return format_html(
            "{}, job {}: {}, in this state for {}, {}", order.code, row.pk, why(row), ages, row.owner.email
        )

    @admin.display(description="")
    def thumbnail(self, job: Job) -> str:
        if order_of(job) is None:
            return ""
        return format_html('<img class="thumb" loading="lazy" alt="" src="{}">', portrait_url(job))

    @admin.display(description="order")
    def order_code(self, job: Job) -> str:
        order = order_of(job)
        return order.code if order else f"job {job.pk}"

    @admin.display(description="pose")
    def pose(self, job: Job) -> str:
        item: OrderItem | None = getattr(job, "item", None)
        return item.pose_name if item else "–"

    @admin.display(description="amount")
    def amount(self, job: Job) -> str:
        order = order_of(job)
        return money.words(amount=order.price, currency=order.currency) if order and order.currency else "–"


def order_of(job: Job) -> Order | None:
    """The order a job belongs to."""
    item: OrderItem | None = getattr(job, "item", None)
    return item.order if item else None


def portrait_url(job: Job) -> str:
    """Where the crop of the customer's photo is shown."""
    order = order_of(job)
    if order is None:
        return ""
    return reverse("item-photo", kwargs={"code": order.code, "key": order.key, "number": job.lot_number})
