"""The order's own page, from payment to download, and the fragment that keeps it fresh."""

from typing import Any
from zlib import crc32

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_http_methods, require_safe

from orders import flow, job_facts, visits, words
from orders import progress as progress_of
from orders.models import Order
from orders.progress import Progress, State
from orders.views import common
from orders.views.common import SeeOther, owner_only

MOST_PLAYERS = 4  # above that a list of links is quicker to use, and the page stays small
CANCELLABLE = (State.QUEUED, State.HELD, State.STAFF)


@require_safe
@owner_only
def order(request: HttpRequest, code: str, key: str) -> HttpResponse:
    placed = common.placed_order(code=code, key=key)
    if placed.status in (Order.Status.DRAFT, Order.Status.EXPIRED):
        return common.moved_on(request, placed) or SeeOther(common.draft_url("review", placed))
    context = _context(placed, seen=0)
    context["first_visit"] = request.method == "GET" and visits.first(order=placed)
    return render(request, "pages/order.html", context)


@require_safe
@owner_only
def progress(request: HttpRequest, code: str, key: str) -> HttpResponse:
    """The part of the page that changes. `seen` is the share shown before (the bar never falls), `state` what was said."""
    placed = common.placed_order(code=code, key=key)
    seen = request.GET.get("seen", "")
    context = _context(placed, seen=int(seen) if seen.isascii() and seen.isdigit() and len(seen) < 4 else 0)
    if request.GET.get("mark") == context["mark"]:
        return HttpResponse(
            status=204
        )  # nothing to repaint: the bar's motion goes on, and a screen reader keeps its place
    context["changed"] = request.GET.get("state") != context["said"]
    return render(request, "pages/order_progress.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@owner_only
def cancel(request: HttpRequest, code: str, key: str) -> HttpResponse:
    """Ask first, then cancel; only while it truly gives the credit back. A second click ends where the first one did."""
    placed = common.placed_order(code=code, key=key)
    context = {"order": placed, "order_url": common.order_url(placed)}
    can_cancel = placed.status == Order.Status.PAID and flow.can_cancel(placed)
    if request.method != "POST":
        return render(request, "pages/cancel.html" if can_cancel else "pages/cannot_cancel.html", context)
    if can_cancel and flow.cancel(order=placed, actor="customer"):
        return SeeOther(common.order_url(placed))
    if _was_cancelled(placed):
        return SeeOther(common.order_url(placed))
    return render(request, "pages/cannot_cancel.html", context, status=409)


def _was_cancelled(placed: Order) -> bool:
    """Whether its owner has cancelled any of it before."""
    jobs = [item.job for item in placed.items.select_related("job") if item.job]
    return any(end.move in ("cancel", "close") and end.actor == "customer" for end in job_facts.ends(jobs).values())


def _context(placed: Order, *, seen: int) -> dict[str, Any]:
    now: Progress = progress_of.of(order=placed)
    share = None if now.share is None else max(now.share, min(seen, 95))
    can_cancel = now.state in CANCELLABLE and flow.can_cancel(placed)
    return {
        "order": placed,
        "order_url": common.order_url(placed),
        "absolute_url": settings.PUBLIC_URL + common.order_url(placed),
        "progress": now,
        "one": now.items[0] if len(now.items) == 1 else None,
        "heading": words.heading(now),
        "sentence": words.sentence(placed, now),
        "left": words.left(now),
        "players": len(now.items) <= MOST_PLAYERS and not now.working,
        "place": words.queue_place(now),
        "steps": _steps(placed, now),
        "share": share,
        "said": f"{now.state}{'-slow' if now.slow else ''}-{len(now.ready)}",
        "deleted_by": next((progress_of.deleted_by(job=item.job) for item in now.ready if item.job), None),
        "can_cancel": can_cancel,
        "mark": _mark(now, share, can_cancel),
    }


def _mark(now: Progress, share: int | None, can_cancel: bool) -> str:
    """A short name for all that the fragment shows; the same name means that a page already shows it."""
    states = [item.state.value for item in now.items]
    shown = (now.state.value, now.slow, now.minutes, now.place, now.poll, share, can_cancel, states)
    return f"{crc32(repr(shown).encode()):x}"


def _steps(placed: Order, now: Progress) -> list[dict[str, Any]]:
    """Always four; empty for an order whose steps are over without a video."""
    if now.step == 0:
        return []
    steps = []
    for number, name in enumerate(words.STEP_NAMES, start=1):
        done = number < now.step or now.state == State.READY
        steps.append({"name": name, "done": done, "current": number == now.step and not done, "at": None})
    steps[0]["at"] = placed.paid_at
    ends = [item.job.state_since for item in now.ready if item.job]
    steps[3]["at"] = max(ends) if ends and now.state == State.READY else None
    return steps
