"""What a request to create a Checkout Session must look like; every other parameter is refused by name."""

import re
from typing import Any

from waistheart.sandbox import card_errors as errors
from waistheart.sandbox.card_form import mapping, whole_number
from waistheart.sandbox.card_objects import JsonObject, line_item_object

KNOWN = frozenset(
    {"mode", "line_items", "success_url", "cancel_url", "client_reference_id", "metadata", "customer_email"}
    | {"expires_at", "ui_mode", "payment_intent_data", "submit_type", "locale", "expand"}
)
SHORTEST_SECONDS, LONGEST_SECONDS = 30 * 60, 24 * 3600


def check_session(params: JsonObject) -> None:
    """Raise CardError for what the processor would refuse, in its words."""
    for name in params:
        if name not in KNOWN:  # payment_method_types among them, since API version 2026-09-30
            raise errors.unknown(name)
    if params.get("mode") is None:
        raise errors.required("mode")
    if params["mode"] != "payment":
        raise errors.invalid("mode", "The sandbox knows mode=payment only")
    if params.get("ui_mode", "hosted_page") != "hosted_page":
        raise errors.invalid("ui_mode", "Invalid ui_mode: must be one of elements, embedded_page, form, or hosted_page")
    check_address(params, "success_url", needed=True)
    check_address(params, "cancel_url", needed=False)
    check_email(params)
    check_metadata(params)
    if len(str(params.get("client_reference_id", ""))) > 200:
        raise errors.invalid("client_reference_id", "Invalid string: must be at most 200 characters")


def expiry(params: JsonObject, *, now: float) -> int:
    """When the session ends: as asked, between 30 minutes and 24 hours from now; 24 hours by default."""
    at = whole_number(params, "expires_at", default=int(now) + LONGEST_SECONDS)
    if not now + SHORTEST_SECONDS - 60 <= at <= now + LONGEST_SECONDS + 60:
        message = "The `expires_at` timestamp must be between 30 minutes and 24 hours from Checkout Session creation."
        raise errors.invalid("expires_at", message)
    return at


def line_items(params: JsonObject) -> list[JsonObject]:
    """The line items, at least one, all in one currency."""
    rows = params.get("line_items")
    if not isinstance(rows, list) or not rows:
        raise errors.required("line_items")
    items = [_line_item(row, f"line_items[{number}]") for number, row in enumerate(rows)]
    if len({item["currency"] for item in items}) > 1:
        raise errors.invalid("line_items", "All line items must have the same currency.")
    return items


def check_address(params: JsonObject, name: str, *, needed: bool) -> None:
    address = params.get(name)
    if address is None and needed:
        raise errors.required(name)
    if address is not None and not re.match(r"https?://[^/\s]+", str(address)):
        raise errors.CardError("Not a valid URL", code="url_invalid", param=name)


def check_email(params: JsonObject) -> None:
    email = params.get("customer_email")
    if email is not None and not re.fullmatch(r"[^@\s]+@[^@\s]+\.[^@\s]+", str(email)):
        raise errors.CardError(f"Invalid email address: {email}", code="email_invalid", param="customer_email")


def check_metadata(params: JsonObject) -> None:
    metadata = mapping(params, "metadata")
    if len(metadata) > 50:
        raise errors.invalid("metadata", "Metadata can have at most 50 keys")
    for key, value in metadata.items():
        if len(key) > 40 or len(str(value)) > 500:
            raise errors.invalid(f"metadata[{key}]", "Metadata keys have at most 40 characters, values at most 500")


def _line_item(row: Any, where: str) -> JsonObject:
    if not isinstance(row, dict):
        raise errors.invalid(where, "Invalid object")
    price = mapping(row, "price_data")
    for name in ("currency", "unit_amount"):
        if name not in price:
            raise errors.required(f"{where}[price_data][{name}]")
    title = mapping(price, "product_data").get("name")
    if not title:
        raise errors.required(f"{where}[price_data][product_data][name]")
    amount, quantity = whole_number(price, "unit_amount", default=0), whole_number(row, "quantity", default=1)
    if amount <= 0 or quantity <= 0:
        raise errors.CardError("Invalid positive integer", code="parameter_invalid_integer", param=where)
    if not re.fullmatch(r"[a-zA-Z]{3}", str(price["currency"])):
        raise errors.invalid(f"{where}[price_data][currency]", f"Invalid currency: {price['currency']}")
    return line_item_object(name=str(title), amount=amount, currency=price["currency"].lower(), quantity=quantity)
