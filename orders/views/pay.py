"""Step 3: to the payment page."""

from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from orders import flow, forms, freeze, kept
from orders.forms import Fault
from orders.freeze import Shown
from orders.models import Order
from orders.views import common, review
from orders.views.common import SeeOther, owner_only

DECLARATIONS = {
    "may_use": ("The person in this photo is me, or an adult who agreed to this.", forms.NOT_DECLARED),
    "start_now": (
        "Start now. I understand I lose the 14-day right to withdraw once my video is delivered.",
        forms.NOT_STARTED,
    ),
}
TEXT_VERSION = "2026-12-01"


@require_http_methods(["GET", "HEAD", "POST"])
@owner_only
def pay(request: HttpRequest, key: str) -> HttpResponse:
    """Ask for the payment of exactly what the review page showed, and go to the payment page."""
    order = common.draft(key=key)
    if order.status == Order.Status.PAID:
        return common.to_the_order(request, order)
    if kept.is_coming(order):
        return SeeOther(common.order_url(order))
    if request.method != "POST":
        return SeeOther(common.draft_url("review", order))
    if order.status == Order.Status.EXPIRED:
        return common.conflict(request, order)
    if common.closed():
        return common.closed_page(request, order=order)
    seen, now = _seen(request), freeze.shown(order)
    if seen != now:
        return review.page(request, order, notice="came" if seen.approved == now.approved else "changed")
    if order.status == Order.Status.AWAITING_PAYMENT:
        return _ask(request, order, seen, declarations=order.declarations, price=_number(request, "price"))
    faults = [Fault(name, words) for name, (_, words) in DECLARATIONS.items() if not request.POST.get(name)]
    if faults:
        return review.page(request, order, faults=faults)
    return _ask(request, order, seen, declarations=_declared(request), price=_number(request, "price"))


@require_POST
@owner_only
def reopen(request: HttpRequest, key: str) -> HttpResponse:
    """Close the payment page, so that the order can be changed."""
    order = common.draft(key=key)
    outcome = flow.reopen(order=order) if order.status == Order.Status.AWAITING_PAYMENT else "reopened"
    if order.status == Order.Status.PAID:
        return common.to_the_order(request, order)
    if outcome == "pending":
        return SeeOther(common.order_url(order))
    return SeeOther(common.draft_url("review", order) + ("?notice=down" if outcome == "gateway_down" else ""))


def _ask(request: HttpRequest, order: Order, seen: Shown, *, declarations: dict[str, Any], price: int) -> HttpResponse:
    asked = flow.ask_payment(order=order, declarations=declarations, expected_price=price, seen=seen)
    if not asked.problem:
        return SeeOther(asked.url)
    order = common.draft(key=order.key)
    if asked.problem == "incomplete":
        return SeeOther(common.draft_url("draft-photo", order))
    if asked.problem == "price_changed":
        return review.page(request, order, price_was=price)
    if asked.problem == "pose_retired":
        return SeeOther(common.draft_url("draft-pose", order) + "?notice=pose")
    if asked.problem == "gateway_down":
        return SeeOther(common.draft_url("review", order) + "?notice=down")
    if asked.problem == "email_refused":
        return SeeOther(common.draft_url("review", order) + "?notice=email")
    if asked.problem == "money_came":
        return review.page(request, order, notice="came")
    if order.status == Order.Status.PAID or asked.problem == "pending":
        return SeeOther(common.order_url(order))
    if order.status == Order.Status.DRAFT:
        return review.page(request, order, notice="changed")
    return common.conflict(request, order)


def _seen(request: HttpRequest) -> Shown:
    """What the page showed on which Pay was pressed."""
    approved, _, came = request.POST.get("shown", "").partition(".")
    return Shown(approved, came)


def _declared(request: HttpRequest) -> dict[str, Any]:
    """Each tick with its words, their version, the time and where it came from."""
    fact = {"version": TEXT_VERSION, "at": timezone.now().isoformat(timespec="seconds"), "ip": _address(request)}
    return {name: {"text": text, **fact} for name, (text, _) in DECLARATIONS.items()}


def _address(request: HttpRequest) -> str:
    """The customer's address. The proxy's own header counts only when the shop was told that it stands behind one."""
    if settings.SECURE_PROXY_SSL_HEADER:
        forwarded = request.META.get("HTTP_X_FORWARDED_FOR", "").rpartition(",")[2].strip()
        if forwarded:
            return str(forwarded[:45])
    return str(request.META.get("REMOTE_ADDR", ""))


def _number(request: HttpRequest, name: str) -> int:
    value = request.POST.get(name, "")
    return int(value) if value.isascii() and value.isdigit() and len(value) < 19 else -1
