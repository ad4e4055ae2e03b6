"""A question to the card processor that got no answer: written on its payment, counted, and an alarm when only a person can mend it."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from billing.gateway_errors import GatewayError, GatewayMisconfigured, GatewayUnavailable, GatewayUnreadable
from billing.models import Payment
from billing.states import PAYMENT, PaymentStatus
from waistheart import guards
from waistheart.sweeping import is_due

log = logging.getLogger(__name__)
MISSING = "resource_missing"  # the processor's word for a session that it does not know
ALARM_SECONDS = 3600


@contextmanager
def asking(payment: Payment) -> Iterator[None]:
    """Ask the processor about a payment in here: an error is written on its row and goes on, an answer clears the last one.

    What ended as failed keeps why: no page of ours may say of it what the processor did not.
    """
    try:
        yield
    except GatewayError as error:
        unanswered(error, payment)
        raise
    if payment.last_error:
        Payment.objects.filter(pk=payment.pk).exclude(status=PaymentStatus.FAILED).update(last_error="")


def known_after_all(payment: Payment) -> None:
    """The processor says of a payment that staff ended as missing that no money came: nobody is told any more that we cannot know."""
    rows = Payment.objects.filter(pk=payment.pk, status=PaymentStatus.FAILED, last_error__startswith=MISSING)
    rows.update(last_error="")


def unanswered(error: GatewayError, payment: Payment | None = None) -> None:
    """Write down and count that the processor told us nothing.

    One that is away comes back by itself. A key or an account that is not ours any more does not, nor do answers that we cannot
    read: one alarm an hour for each kind, however many payments wait for it. One that has ended waits for nothing, and keeps why.
    """
    guards.count("payment.not_looked_up")
    if payment is not None:
        rows = Payment.objects.filter(pk=payment.pk).exclude(status__in=[*PAYMENT.final, PaymentStatus.FAILED])
        if not rows.update(last_error=str(error)[:300]):
            return
    kind = _kind(error)
    if not kind:
        return
    if is_due(f"alarm.{kind}", seconds=ALARM_SECONDS):
        log.error("ALARM the card processor tells us nothing about %s: %s", payment or "any payment", error)
        guards.count(f"alarm.{kind}")


def _kind(error: GatewayError) -> str:
    """Which alarm this is; empty for a processor that is only away."""
    if isinstance(error, GatewayUnreadable):
        return "gateway_unreadable"
    if isinstance(error, GatewayUnavailable):
        return ""
    return "gateway_misconfigured" if isinstance(error, GatewayMisconfigured) else "gateway_refused"
