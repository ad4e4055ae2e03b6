"""What happens to money when nobody calls: payments without an end are claimed, grants expire, paid sessions are found again.

Settling starts orders, which stand above: so this sweep claims and answers rows, and the shop's sweep settles them.
"""

import logging
from collections.abc import Iterator
from datetime import timedelta

from django.db.models import F, Q
from django.utils import timezone

from billing import ledger, looks
from billing.gateway import get_gateway
from billing.gateway_errors import GatewayError
from billing.models import Grant, Payment
from waistheart import clock, guards
from waistheart.sweeping import each, is_due

log = logging.getLogger(__name__)
PAGE = 100
# Somebody who pays does it soon; an abandoned page is looked at ever less often, until its session expires.
WAITS = (60, 60, 60, 120, 300, 600, 900)
LIST_EVERY_SECONDS = 600
LIST_BACK = timedelta(hours=48)
POISON = 10


def claim_payments() -> Iterator[int]:
    """Claim one page of payments without an end, oldest look first: each id is answered to one sweep only."""
    due = Payment.objects.filter(status__in=["open", "pending"], next_look_at__lte=clock.now(), failures__lt=POISON)
    for payment_id, tries in due.order_by("next_look_at", "id").values_list("id", "tries")[:PAGE]:
        wait = WAITS[min(tries, len(WAITS) - 1)]
        rows = Payment.objects.filter(pk=payment_id, tries=tries, next_look_at__lte=clock.now())
        if rows.update(next_look_at=clock.after(wait), tries=F("tries") + 1):
            yield payment_id


def postpone(payment: Payment, error: Exception) -> None:
    """A payment that raised what nobody explains waits a quarter of an hour; after ten times it is on the money list only."""
    rows = Payment.objects.filter(pk=payment.pk)
    rows.update(failures=F("failures") + 1, last_error=f"{type(error).__name__}: {error}"[:300])
    rows.filter(status__in=["open", "pending"]).update(next_look_at=clock.after(900))


def looked_up(payment: Payment) -> None:
    """A look that raised nothing: what failed before is over."""
    if payment.failures:
        Payment.objects.filter(pk=payment.pk).update(failures=0)


def paid_but_not_received() -> list[Payment]:
    """At most every ten minutes: our payments whose sessions the processor lists as paid, and that we do not call received."""
    if not is_due("listing", seconds=LIST_EVERY_SECONDS):
        return []
    try:
        ids = list(get_gateway().recent_paid(since=timezone.now() - LIST_BACK))
    except GatewayError as error:
        log.warning("could not list paid sessions: %s", error)
        looks.unanswered(error)
        return []
    found: list[Payment] = []
    for at in range(0, len(ids), PAGE):
        rows = Payment.objects.filter(session_id__in=ids[at : at + PAGE])
        found += rows.filter(~Q(status__in=["received", "mismatched", "returned"]))
    return found


def expire_grants() -> int:
    """Expire one page of grants whose time is over; each is a block of its own, with its ledger row."""
    due = Grant.objects.filter(available__gt=0, expires_at__lte=clock.now()).order_by("expires_at", "id")
    return each("grants", due[: 10 * PAGE], expire_grant, enough=PAGE)


def expire_grant(grant: Grant) -> bool:
    """Expire what is available of one grant; False when there was nothing to expire any more."""
    return _expire(grant).won


@guards.block("billing.expire")
def _expire(grant: Grant) -> None:
    ledger.expire_grant(grant_id=grant.pk, owner_id=grant.owner_id)
