"""The ways back from a payment page. Their addresses name the payment, never the order, and nothing in them is believed."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from billing.models import Payment
from billing.states import PAYMENT
from orders import flow, kept
from orders.models import Order
from orders.views import common, review
from orders.views.common import SeeOther, owner_only

NO_MONEY = ("open", "expired", "failed")


@require_safe
@owner_only
def returned(request: HttpRequest) -> HttpResponse:
    """The customer came back from the payment page; whether they paid, the processor is asked."""
    session = request.GET.get("session", "")
    sound = session.isprintable() and 0 < len(session) <= 255
    payment = Payment.objects.filter(session_id=session).first() if sound else None
    if payment is None:
        return render(request, "pages/unmatched.html", {"now": timezone.now()}, status=404)
    known = flow.look(payment)
    payment.refresh_from_db()
    code = payment.reference.removeprefix("order:")
    if payment.created_at < timezone.now() - common.WAY_BACK:
        return common.way_back_closed(request, code=code)
    order = kept.order_of(payment)
    fate = kept.of_payment(payment, order)
    if fate is not None:
        context = {"fate": fate, "order": order, "code": code}
        return render(request, "pages/money_came.html", context)
    if order is None:
        return render(request, "pages/unmatched.html", {"now": timezone.now()}, status=404)
    if order.status in (Order.Status.PAID, Order.Status.AWAITING_PAYMENT):
        return SeeOther(common.order_url(order))
    return common.moved_on(request, order) or review.page(
        request, order, notice="cancelled" if known in NO_MONEY else ""
    )


@require_safe
@owner_only
def cancelled(request: HttpRequest, key: str) -> HttpResponse:
    """The customer came back without paying. Their payment is looked at, never closed: they may have its page open still.

    A day after it was made this leads nowhere, whatever became of it: the address stays in the processor's records.
    """
    payment = Payment.objects.filter(key=key).first()
    if payment is None:
        raise Http404
    over = payment.created_at < timezone.now() - common.WAY_BACK
    known = _look(payment) if request.method == "GET" else ""
    if over:
        return common.way_back_closed(request, code=payment.reference.removeprefix("order:"))
    order = kept.order_of(payment)
    if order is None:
        raise Http404
    if order.status == Order.Status.PAID or kept.is_coming(order):
        return SeeOther(common.order_url(order))
    if order.status == Order.Status.EXPIRED:
        return common.expired(request, order)
    if request.method == "HEAD" or (order.payment_id and order.payment_id != payment.pk):
        # Another payment page stands for the order by now: what this one says proves nothing about that.
        return SeeOther(common.draft_url("review", order))
    return review.page(request, order, notice=_notice(order, known))


def _look(payment: Payment) -> str:
    """How the payment stands; "" when it could not be looked up. A payment without a session is the sweep's, and one that ended tells all."""
    if payment.session_id is None or payment.status in PAYMENT.final:
        return ""
    return flow.look(payment)


def _notice(order: Order, known: str) -> str:
    if known in NO_MONEY:
        return "cancelled"
    return "open" if order.status == Order.Status.AWAITING_PAYMENT else ""
