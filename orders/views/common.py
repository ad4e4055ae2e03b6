"""What the views share: caching rules, the two kinds of lookups, and the pages that say no."""

import logging
from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from typing import Any

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone

from billing.models import CreditPack
from generation import accounts
from orders import drafts, flow, kept
from orders.models import Order, Pose
from waistheart import live, money

log = logging.getLogger(__name__)

View = Callable[..., HttpResponseBase]
# The card processor is given two ways back, with a session and with the payment's key; nothing that it is given names the order's key.
# They stay in the browser's history, in the processor's logs and in their support's mails: they open the order no longer than it can be
# paid, which is a day at most, and the way back from the page. Whether money came, or is on its way still, makes no difference.
WAY_BACK = timedelta(hours=25)
SLOW_AFTER = timedelta(minutes=15)


class SeeOther(HttpResponseRedirect):
    """303: whatever was posted, look there now."""

    status_code = 303


def public(seconds: int) -> Callable[[View], View]:
    """Everybody gets the same answer, and caches may keep it that long. A page that is not there may not be kept."""

    def decorate(view: View) -> View:
        @wraps(view)
        def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            response = view(request, *args, **kwargs)
            if response.status_code in (200, 206, 304):
                response["Cache-Control"] = f"public, max-age={seconds}"
            return response

        return wrapped

    return decorate


def owner_only(view: View) -> View:
    """Behind an unguessable address: no cache keeps it, no search engine lists it."""

    @wraps(view)
    def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        response = view(request, *args, **kwargs)
        response["X-Robots-Tag"] = "noindex, nofollow"
        if not response.has_header("Cache-Control"):
            response["Cache-Control"] = "no-store"
        return response

    return wrapped


def placed_order(*, code: str, key: str) -> Order:
    """The order at this address. Http404, the same for an unknown code and for a wrong key."""
    try:
        return Order.objects.select_related("payment").get(code=code, key=key)
    except Order.DoesNotExist:
        raise Http404 from None


def draft(*, key: str) -> Order:
    """The order whose draft has this key, whatever its status now. Http404 when there is none."""
    try:
        return drafts.find(key=key)
    except Order.DoesNotExist:
        raise Http404 from None


def order_url(order: Order) -> str:
    """The address that shows the order from payment to download."""
    return reverse("order", kwargs={"code": order.code, "key": order.key})


def draft_url(name: str, order: Order) -> str:
    """The address of one of a draft's pages."""
    return reverse(name, kwargs={"key": order.key})


def moved_on(request: HttpRequest, order: Order) -> HttpResponse | None:
    """What to answer instead of a draft's page when the order is paid, being paid or gone; None for a draft."""
    if order.status == Order.Status.DRAFT:
        return None
    if order.status == Order.Status.EXPIRED:
        return expired(request, order)
    if request.method not in ("GET", "HEAD"):
        return conflict(request, order)
    return to_the_order(request, order) if order.status == Order.Status.PAID else SeeOther(draft_url("review", order))


def to_the_order(request: HttpRequest, order: Order) -> HttpResponse:
    """From one of a draft's addresses to the order that it has become; closed, and silent about its code, when that is long ago."""
    return way_back_closed(request) if way_back_is_over(order) else SeeOther(order_url(order))


def way_back_is_over(order: Order) -> bool:
    """Whether this order was paid so long ago that its draft's addresses lead nowhere."""
    since = order.payment.created_at if order.payment else order.paid_at
    return order.status == Order.Status.PAID and since is not None and since < timezone.now() - WAY_BACK


def way_back_closed(request: HttpRequest, *, code: str = "") -> HttpResponse:
    """410: the card processor's way back has closed. The code is said only where nothing else in the address opens the order."""
    return render(request, "pages/return_closed.html", {"code": code}, status=410)


def conflict(request: HttpRequest, order: Order) -> HttpResponse:
    """409: something was posted that this order no longer allows."""
    order.refresh_from_db(fields=["status", "payment", "paid_at"])
    if way_back_is_over(order):
        return way_back_closed(request)
    if order.status == Order.Status.EXPIRED:
        return expired(request, order)
    context = {"order": order, "order_url": order_url(order), "paid": order.status == Order.Status.PAID}
    return render(request, "pages/conflict.html", context, status=409)


def expired(request: HttpRequest, order: Order) -> HttpResponse:
    """410: the draft ended, and its photo is gone."""
    context = {"pose": first_pose(order), "order": order, "fate": kept.of(order), "untaken": kept.untaken(order)}
    return render(request, "pages/expired.html", context, status=410)


def first_pose(order: Order) -> Pose | None:
    """The pose of the order's first item, or None."""
    item = order.items.select_related("pose").first()
    return item.pose if item else None


def sold(pose: Pose) -> dict[str, Any]:
    """A pose with its price, as number and in words; both empty while the shop has no price."""
    try:
        amount, currency = flow.price(pose)
    except CreditPack.DoesNotExist:
        return {"pose": pose, "amount": 0, "price": ""}
    return {"pose": pose, "amount": amount, "price": money.words(amount=amount, currency=currency)}


def closed() -> bool:
    """Whether the shop must not sell now: live and sandbox are mixed, something needed is missing, or there is no price."""
    found = live.problems_now()
    for problem in found:
        log.error("selling is closed: %s %s", problem.id, problem.message)
    return bool(found) or not CreditPack.objects.filter(credits=1, currency=settings.CURRENCY, active=True).exists()


def slow() -> bool:
    """Whether an account that new work goes to has taken none for a quarter of an hour."""
    return accounts.in_use().exclude(state=accounts.STATE.OK).filter(since__lt=timezone.now() - SLOW_AFTER).exists()


def closed_page(request: HttpRequest, *, order: Order | None = None) -> HttpResponse:
    """503: buying is closed, also for the draft `order`, whose photo is kept; order pages keep working."""
    context = {
        "photo_is_kept": order is not None,
        "order": order,
        "fate": kept.of(order) if order else None,
        "untaken": order is None or kept.untaken(order),
    }
    response = render(request, "pages/closed.html", context, status=503)
    response["Retry-After"] = "900"
    return response
