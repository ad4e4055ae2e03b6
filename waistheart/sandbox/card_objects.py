"""The card processor's objects as plain dicts, with every field the shop may ask for."""

import secrets
from typing import Any

JsonObject = dict[str, Any]


def new_id(prefix: str, *, length: int = 24) -> str:
    alphabet = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"
    return prefix + "".join(secrets.choice(alphabet) for _ in range(length))


def session_object(
    *, ident: str, params: JsonObject, amount: int, currency: str, expires_at: int, now: int, url: str
) -> JsonObject:
    """An open Checkout Session: nothing paid, and no payment intent before the first attempt."""
    email = params.get("customer_email")
    return {
        "id": ident,
        "object": "checkout.session",
        "adaptive_pricing": {"enabled": False},
        "after_expiration": None,
        "allow_promotion_codes": None,
        "amount_subtotal": amount,
        "amount_total": amount,
        "automatic_tax": {"enabled": False, "liability": None, "provider": None, "status": None},
        "billing_address_collection": None,
        "cancel_url": params.get("cancel_url"),
        "client_reference_id": params.get("client_reference_id"),
        "client_secret": None,
        "consent": None,
        "consent_collection": None,
        "created": now,
        "currency": currency,
        "currency_conversion": None,
        "custom_fields": [],
        "custom_text": {"after_submit": None, "shipping_address": None, "submit": None},
        "customer": None,
        "customer_creation": "if_required",
        "customer_details": {"email": email, "name": None, "phone": None, "tax_ids": None} if email else None,
        "customer_email": email,
        "discounts": [],
        "expires_at": expires_at,
        "invoice": None,
        "livemode": False,
        "locale": params.get("locale"),
        "metadata": params.get("metadata", {}),
        "mode": "payment",
        "payment_intent": None,
        "payment_link": None,
        "payment_method_collection": "if_required",
        "payment_method_options": {},
        "payment_method_types": ["card", "sepa_debit"],
        "payment_status": "unpaid",
        "recovered_from": None,
        "setup_intent": None,
        "shipping_options": [],
        "status": "open",
        "submit_type": params.get("submit_type"),
        "subscription": None,
        "success_url": params["success_url"],
        "total_details": {"amount_discount": 0, "amount_shipping": 0, "amount_tax": 0},
        "ui_mode": "hosted_page",
        "url": url,
    }


def line_item_object(*, name: str, amount: int, currency: str, quantity: int) -> JsonObject:
    return {
        "id": new_id("li_"),
        "object": "item",
        "amount_discount": 0,
        "amount_subtotal": amount * quantity,
        "amount_tax": 0,
        "amount_total": amount * quantity,
        "currency": currency,
        "description": name,
        "quantity": quantity,
        "price": {
            "id": new_id("price_"),
            "object": "price",
            "active": False,
            "currency": currency,
            "livemode": False,
            "type": "one_time",
            "unit_amount": amount,
        },
    }


def intent_object(*, session: JsonObject, metadata: JsonObject, now: int) -> JsonObject:
    ident = new_id("pi_")
    return {
        "id": ident,
        "object": "payment_intent",
        "amount": session["amount_total"],
        "amount_capturable": 0,
        "amount_received": 0,
        "canceled_at": None,
        "cancellation_reason": None,
        "capture_method": "automatic_async",
        "client_secret": f"{ident}_secret_{secrets.token_hex(12)}",
        "confirmation_method": "automatic",
        "created": now,
        "currency": session["currency"],
        "customer": None,
        "description": None,
        "last_payment_error": None,
        "latest_charge": None,
        "livemode": False,
        "metadata": metadata,
        "next_action": None,
        "payment_method": None,
        "payment_method_types": ["card", "sepa_debit"],
        "processing": None,
        "receipt_email": session["customer_email"],
        "status": "requires_payment_method",
    }


def charge_object(*, intent: JsonObject, status: str, way: str, now: int) -> JsonObject:
    """`status` is succeeded, pending or failed; `way` is card or sepa_debit."""
    paid = status != "failed"
    return {
        "id": new_id("ch_" if way == "card" else "py_"),
        "object": "charge",
        "amount": intent["amount"],
        "amount_captured": intent["amount"] if status == "succeeded" else 0,
        "amount_refunded": 0,
        "balance_transaction": None,
        "billing_details": {"address": None, "email": intent["receipt_email"], "name": None, "phone": None},
        "captured": paid,
        "created": now,
        "currency": intent["currency"],
        "customer": None,
        "description": None,
        "disputed": False,
        "failure_code": None if paid else "card_declined",
        "failure_message": None if paid else "Your card was declined.",
        "livemode": False,
        "metadata": intent["metadata"],
        "outcome": {"network_status": "approved_by_network" if paid else "declined_by_network", "type": "authorized"},
        "paid": paid,
        "payment_intent": intent["id"],
        "payment_method": new_id("pm_"),
        "payment_method_details": {"type": way, way: {"last4": "4242" if way == "card" else "3000"}},
        "receipt_email": intent["receipt_email"],
        "refunded": False,
        "status": status,
    }


def refund_object(*, charge: JsonObject, amount: int, params: JsonObject, status: str, now: int) -> JsonObject:
    return {
        "id": new_id("re_"),
        "object": "refund",
        "amount": amount,
        "balance_transaction": None,
        "charge": charge["id"],
        "created": now,
        "currency": charge["currency"],
        "description": None,
        "failure_reason": None,
        "metadata": params.get("metadata", {}),
        "payment_intent": charge["payment_intent"],
        "pending_reason": "processing" if status == "pending" else None,
        "reason": params.get("reason"),
        "receipt_number": None,
        "status": status,
    }


def dispute_object(*, charge: JsonObject, amount: int, now: int) -> JsonObject:
    """A dispute that has just come; the money is away while it lasts."""
    return {
        "id": new_id("du_"),
        "object": "dispute",
        "amount": amount,
        "balance_transactions": [],
        "charge": charge["id"],
        "created": now,
        "currency": charge["currency"],
        "enhanced_eligibility_types": [],
        "is_charge_refundable": False,
        "livemode": False,
        "metadata": {},
        "payment_intent": charge["payment_intent"],
        "reason": "fraudulent",
        "status": "needs_response",
    }


def event_object(*, kind: str, thing: JsonObject, key: str | None, version: str, now: int) -> JsonObject:
    return {
        "id": new_id("evt_"),
        "object": "event",
        "account": None,
        "api_version": version,
        "created": now,
        "data": {"object": thing},
        "livemode": False,
        "pending_webhooks": 1,
        "request": {"id": None, "idempotency_key": key},
        "type": kind,
    }


def list_object(*, url: str, items: list[JsonObject], has_more: bool) -> JsonObject:
    return {"object": "list", "data": items, "has_more": has_more, "url": url}
