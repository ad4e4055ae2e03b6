"""The card processor's callbacks. A signed event may only cause a look at the payment it names; the truth is read with our key."""

import logging

from celery import current_app
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from billing.gateway import get_gateway
from billing.gateway_errors import BadSignature, GatewayError
from billing.models import Payment
from billing.receipts import EventRef
from waistheart import guards
from waistheart.models import Hint

log = logging.getLogger(__name__)


@csrf_exempt
@require_POST
def stripe(request: HttpRequest) -> HttpResponse:
    """Verify, store once, have the payment looked at, answer. A repeat is answered like the first."""
    try:
        event = get_gateway().verify(body=request.body, signature=request.headers.get("Stripe-Signature", ""))
    except BadSignature as error:
        guards.count("hint.unverified.stripe")
        log.warning("stripe hint refused: %s", error)
        return HttpResponse("bad signature\n", status=401, content_type="text/plain")
    except GatewayError as error:
        # Nobody can tell now what it is: they send it again, and the sweep looks anyway.
        log.error("stripe hint not read: %s", error)
        return HttpResponse("not now\n", status=503, content_type="text/plain")
    payment = Payment.objects.filter(session_id=event.session_id).first() if event.session_id else None
    if keep(event, payment) and payment is not None:
        guards.nudge(lambda: current_app.send_task("orders.look", args=[payment.pk]))
    return HttpResponse("ok\n", content_type="text/plain")


def keep(event: EventRef, payment: Payment | None) -> bool:
    """Store the hint; False for one that was stored before."""
    try:
        with transaction.atomic():
            Hint.objects.create(
                source="stripe",
                event_id=event.id,
                kind=event.kind[:80],
                reference=f"payment:{payment.pk}"
                if payment
                else (event.session_id or event.payment_intent or "")[:255],
                outcome="looked at" if payment else "no such payment",
            )
    except IntegrityError:
        return False
    return True
