"""Step 2: check everything, change what is wrong."""

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from generation.crop import crop_box
from orders import drafts, forms, freeze, kept, words
from orders.forms import Fault
from orders.models import Order, OrderItem, Pose
from orders.views import common
from orders.views.common import SeeOther, owner_only
from waistheart import money

MOVES = {"up": -10, "down": 10}
NOTICES = {
    "cancelled": "Payment was not completed. No money was taken.",
    "came": "We have heard of a payment since this page was shown. Read what became of it before you pay.",
    "changed": "This order has changed since this page was shown. Look at it again before you pay.",
    "down": "Card payment is not available right now.",
    "email": "The card processor does not take this e-mail address. Change it below, then pay.",
    "refused": words.SAID_NO,
    "open": "A payment page is open for this order. Go on there, or change the order here.",
    "unpaid": "This payment was not completed.",
    "pose": "This pose is not sold any more. Choose another one; your photo is kept.",
}


@require_safe
@owner_only
def review(request: HttpRequest, key: str) -> HttpResponse:
    order = common.draft(key=key)
    if order.status == Order.Status.AWAITING_PAYMENT:
        return page(request, order, notice="down" if request.GET.get("notice") == "down" else "open")
    elsewhere = common.moved_on(request, order)
    if elsewhere:
        return elsewhere
    item = shown_item(order)
    if item.photo is None or not order.email:
        return SeeOther(common.draft_url("draft-photo", order))
    asked = request.GET.get("notice", "")
    # That no money was taken is said only by a page that has just asked the processor.
    return page(request, order, notice="" if asked == "cancelled" else asked)


@require_POST
@owner_only
def crop(request: HttpRequest, key: str) -> HttpResponse:
    """Move the frame by ten per cent, or to a place."""
    order = common.draft(key=key)
    elsewhere = common.moved_on(request, order)
    if elsewhere:
        return elsewhere
    place = forms.position(request.POST.get("crop"))
    if place is None:
        place = shown_item(order).crop + MOVES.get(request.POST.get("move", ""), 0)
    if not drafts.set_crop(order=order, crop=min(100, max(0, place))):
        return common.conflict(request, order)
    return SeeOther(common.draft_url("review", order) + "#frame")


@require_http_methods(["GET", "HEAD", "POST"])
@owner_only
def pose(request: HttpRequest, key: str) -> HttpResponse:
    """Choose another pose for the same photo."""
    order = common.draft(key=key)
    elsewhere = common.moved_on(request, order)
    if elsewhere:
        return elsewhere
    if request.method != "POST":
        notice = NOTICES.get(request.GET.get("notice", ""), "")
        context = {
            "order": order,
            "poses": [common.sold(each) for each in Pose.objects.filter(active=True)],
            "item": shown_item(order),
            "notice": notice,
        }
        return render(request, "pages/choose_pose.html", context)
    chosen = get_object_or_404(Pose, slug=request.POST.get("pose", "").replace("\0", ""), active=True)
    if not drafts.set_pose(order=order, pose=chosen):
        return common.conflict(request, order)
    return SeeOther(common.draft_url("review", order))


@require_POST
@owner_only
def email(request: HttpRequest, key: str) -> HttpResponse:
    """Take the address we asked about ("Did you mean ...?")."""
    order = common.draft(key=key)
    elsewhere = common.moved_on(request, order)
    if elsewhere:
        return elsewhere
    address = request.POST.get("email", "").strip()
    if forms.email_fault(address):
        return SeeOther(common.draft_url("draft-photo", order) + "#email")
    if not drafts.set_email(order=order, email=address):
        return common.conflict(request, order)
    return SeeOther(common.draft_url("review", order))


def page(
    request: HttpRequest,
    order: Order,
    *,
    notice: str = "",
    faults: list[Fault] | None = None,
    price_was: int | None = None,
) -> HttpResponse:
    """The review page. What it shows goes along in its form, so that Pay means exactly that. Where money is known to be coming
    there is nothing to review: the order's own page says so.

    That no money was taken is said only of an order that never had a payment page, or as a notice by who has just asked.
    """
    if kept.is_coming(order):
        return SeeOther(common.order_url(order))
    # Read before what is rendered: a change in between makes this the word of an older page, which Pay refuses.
    seen = freeze.shown(order)
    item, fate = shown_item(order), kept.of(order)
    paying = order.status == Order.Status.AWAITING_PAYMENT
    if not notice and not fate and kept.said_no(order):
        notice = "refused"
    offer = common.sold(item.pose)
    amount = order.price if paying else offer["amount"]
    context: dict[str, Any] = {
        "order": order,
        "item": item,
        "pose_name": item.pose_name if paying else item.pose.name,
        "shown": ".".join(seen),
        "paying": paying,
        "amount": amount,
        "price": money.words(amount=amount, currency=order.currency) if paying else offer["price"],
        "price_changed": price_was is not None and price_was != amount,
        "notice": NOTICES.get("unpaid" if notice == "cancelled" and fate else notice, ""),
        "fate": fate,
        "down": notice == "down",
        "untaken": kept.untaken(order),
        "slow": common.slow(),
        "order_url": common.order_url(order) if paying and notice != "cancelled" else "",
        "kept_until": order.touched_at + timedelta(seconds=settings.DRAFT_SECONDS),
        "meant": "" if paying else forms.email_meant(order.email),
        "frame": _frame(item),
        "faults": faults or [],
        "fault": {fault.field: fault.message for fault in faults or []},
        "ticked": {name for name in ("may_use", "start_now") if request.POST.get(name)},
    }
    return render(request, "pages/review.html", context)


def shown_item(order: Order) -> OrderItem:
    """The one item of a draft made in these pages."""
    return order.items.select_related("pose", "photo").get(number=1)


def _frame(item: OrderItem) -> dict[str, bool]:
    """Whether the frame can move, and where to: only a picture taller than 9:16 has room above or below."""
    if item.photo is None:
        return {"moves": False, "up": False, "down": False}
    width, height = item.photo.width, item.photo.height
    box = crop_box(width, height, item.crop)
    return {"moves": box[3] - box[1] < height, "up": item.crop > 0, "down": item.crop < 100}
