"""Where the customer pays: the address of a session's page, as long as it lies with the processor we talk to now."""

import logging
from urllib.parse import urlsplit

from django.conf import settings

from billing import looks
from billing.gateway import get_gateway
from billing.gateway_errors import GatewayError
from billing.models import Payment
from waistheart.hosts import host_of, is_within

log = logging.getLogger(__name__)
REAL = "stripe.com"


def address(payment: Payment) -> str:
    """The address of an open payment's page; empty when it cannot be had now, or the session has none any more.

    One that was kept leads elsewhere after a start at another port: then the session is read again, over the network, and what it
    says is kept. On a domain of the seller's own, which only the processor knows to be one of its own, that is every time.
    """
    if is_theirs(payment.session_url):
        return payment.session_url
    if not payment.session_id:
        return ""
    try:
        with looks.asking(payment):
            found = get_gateway().look_up(session_id=payment.session_id)
    except GatewayError as error:
        log.error("the page of payment %s is not known now: %s", payment.key, error)
        return ""
    if found.status != "open" or not found.url:
        return ""
    if found.url != payment.session_url:
        Payment.objects.filter(pk=payment.pk, session_id=payment.session_id).update(session_url=found.url)
    return found.url


def is_theirs(url: str) -> bool:
    """Whether a page's address lies with the processor of today: on its very host and port, or below the real one's domain."""
    try:
        page, ours = urlsplit(url), urlsplit(settings.STRIPE_API_BASE)
    except ValueError:
        return False
    if is_within(host_of(settings.STRIPE_API_BASE), REAL):
        return page.scheme == "https" and is_within(host_of(url), REAL)
    return bool(page.netloc) and page[:2] == ours[:2]
