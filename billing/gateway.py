"""The card processor as the shop sees it: make a session, look at it and at its disputes, end it, verify its events.

Whether money came is decided by `look_up` alone; an event only says where to look. Adding another processor means
another class with these six verbs and another branch in `get_gateway`.
"""

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import requests
import stripe
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from billing.gateway_errors import BadSignature, GatewayMisconfigured, GatewayRefused, UnreadableEvent, translated
from billing.receipts import Disputes, EventRef, Receipt, Session, disputes, event_ref, ident_of, receipt, session_made
from waistheart.live import require_consistent

# Pinned together with the library in requirements/: a new library may ask for a new version, and read it differently.
API_VERSION = "2026-10-28.endive"
CONNECT_SECONDS, READ_SECONDS = 5.0, 20.0
SIGNATURE_SECONDS = 300
MOST_AMOUNT = 99_999_999  # the processor takes eight digits at most
LONGEST_SESSION = timedelta(hours=24)
EXPAND = ["payment_intent.latest_charge"]


def get_gateway() -> "StripeGateway":
    """The gateway for the settings as they are now; GatewayMisconfigured when live and sandbox are mixed or the key is missing."""
    try:
        require_consistent()
    except ImproperlyConfigured as error:
        raise GatewayMisconfigured(str(error)) from error
    return StripeGateway(
        api_key=settings.STRIPE_SECRET_KEY,
        webhook_secret=settings.STRIPE_WEBHOOK_SECRET,
        api_base=settings.STRIPE_API_BASE,
    )


class StripeGateway:
    """Stripe's Checkout. Every verb but `verify` is one or more calls over the network: never inside a transaction.

    Errors: GatewayUnavailable, GatewayRefused, GatewayMisconfigured. Nothing is retried in here.
    """

    def __init__(self, *, api_key: str, webhook_secret: str, api_base: str) -> None:
        if not api_key:
            raise GatewayMisconfigured("STRIPE_SECRET_KEY is empty")
        self._secrets = [secret.strip() for secret in webhook_secret.split(",") if secret.strip()]
        self._stripe = stripe.StripeClient(
            api_key,
            base_addresses={"api": api_base},
            max_network_retries=0,
            stripe_version=API_VERSION,
            http_client=_http_client(),
        )

    def create_session(
        self,
        *,
        key: str,
        amount: int,
        currency: str,
        credits: int,
        reference: str,
        name: str,
        email: str,
        success_url: str,
        cancel_url: str,
        expires_at: datetime,
    ) -> Session:
        """Make one payment page; a second call with the same arguments answers with the same session.

        `amount` is in the currency's smallest unit, `key` the idempotency key; other arguments under a key already
        used are refused. `expires_at` must lie between 30 minutes and 24 hours ahead.
        """
        facts = {"reference": reference, "credits": str(credits), "payment": key}
        price = {"currency": currency.lower(), "unit_amount": amount, "product_data": {"name": name}}
        params: Any = {
            "mode": "payment",
            "ui_mode": "hosted_page",
            "line_items": [{"quantity": 1, "price_data": price}],
            "client_reference_id": reference,
            "metadata": facts,
            "payment_intent_data": {"metadata": facts},
            "customer_email": email,
            "success_url": success_url,
            "cancel_url": cancel_url,
            "expires_at": int(expires_at.timestamp()),
        }
        with translated():
            made = self._stripe.v1.checkout.sessions.create(params=params, options={"idempotency_key": key})
            return session_made(made)

    def look_up(self, *, session_id: str) -> Receipt:
        """How the session stands now, with its charge; GatewayRefused with code `resource_missing` if there is none."""
        with translated():
            found = self._stripe.v1.checkout.sessions.retrieve(session_id, params={"expand": EXPAND})
            return receipt(found, session_id=session_id)

    def expire(self, *, session_id: str) -> Receipt:
        """End the session if it is still open, and say what is true afterwards: perhaps it was paid a moment before."""
        try:
            with translated():
                ended = self._stripe.v1.checkout.sessions.expire(session_id, params={"expand": EXPAND})
                return receipt(ended, session_id=session_id)
        except GatewayRefused:
            return self.look_up(session_id=session_id)

    def disputes(self, *, charge: str, currency: str) -> Disputes:
        """What became of the disputes of a charge: only what a bank took for good counts as taken."""
        with translated():
            found = self._stripe.v1.disputes.list(params={"charge": charge, "limit": 100})
            return disputes(found.auto_paging_iter(), currency=currency)

    def recent_paid(self, *, since: datetime) -> Iterator[str]:
        """Ids of sessions that are paid: all those paid by card since then, and some from up to a day before.

        The processor lists by creation, and a session may be paid until it expires. Money that comes days after
        completion is found by looking at the payment that waits for it.
        """
        created = {"gte": int((since - LONGEST_SESSION).timestamp())}
        params: Any = {"status": "complete", "created": created, "limit": 100}
        with translated():
            found = self._stripe.v1.checkout.sessions.list(params=params)
            for session in found.auto_paging_iter():
                if session.payment_status == "paid":
                    yield ident_of(session)

    def verify(self, *, body: bytes, signature: str) -> EventRef:
        """The ids in an event signed with one of our secrets at most 300 seconds ago; BadSignature for any other.

        UnreadableEvent is a well signed body that is no event. No network.
        """
        if not self._secrets:
            raise GatewayMisconfigured("STRIPE_WEBHOOK_SECRET is empty")
        if not any(_signed(body, signature, secret) for secret in self._secrets):
            raise BadSignature("no signature of ours fits this event")
        try:
            return event_ref(json.loads(body))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise UnreadableEvent(f"{type(error).__name__} in a signed event") from error


def _http_client() -> stripe.RequestsClient:
    session = requests.Session()
    session.max_redirects = 0  # the key goes to the configured address and nowhere else
    return stripe.RequestsClient(timeout=(CONNECT_SECONDS, READ_SECONDS), session=session)


def _signed(body: bytes, signature: str, secret: str) -> bool:
    try:
        stripe.WebhookSignature.verify_header(body, signature, secret, tolerance=SIGNATURE_SECONDS)
        return True
    except (stripe.SignatureVerificationError, ValueError, TypeError):
        # TypeError: the header is a stranger's, and the library compares only ASCII.
        return False
