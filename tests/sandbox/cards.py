"""Raw requests to the card processor's half, without its library."""

import time
from typing import Any

import requests

from tests.sandbox_process import Sandbox

KEY = {"Authorization": "Bearer sk_test_sandbox"}


def form(**changes: str | None) -> dict[str, str]:
    """A complete form for one session; None leaves a field out."""
    fields = {
        "mode": "payment",
        "line_items[0][quantity]": "1",
        "line_items[0][price_data][currency]": "EUR",
        "line_items[0][price_data][unit_amount]": "290",
        "line_items[0][price_data][product_data][name]": "Heart video: waist heart",
        "client_reference_id": "order-7",
        "metadata[credits]": "1",
        "customer_email": "anna@example.com",
        "success_url": "http://127.0.0.1:8000/back?s={CHECKOUT_SESSION_ID}",
        "cancel_url": "http://127.0.0.1:8000/order",
        "expires_at": str(int(time.time()) + 7200),
    }
    return {name: value for name, value in {**fields, **changes}.items() if value is not None}


def post(sandbox: Sandbox, path: str, fields: dict[str, str], *, key: str | None = None) -> requests.Response:
    headers = {**KEY, **({"Idempotency-Key": key} if key else {})}
    return requests.post(f"{sandbox.url}/stripe/v1/{path}", data=fields, headers=headers, timeout=30)


def get(sandbox: Sandbox, path: str, **params: str) -> requests.Response:
    return requests.get(f"{sandbox.url}/stripe/v1/{path}", params=params, headers=KEY, timeout=30)


def new_session(sandbox: Sandbox, **changes: str | None) -> dict[str, Any]:
    answer = post(sandbox, "checkout/sessions", form(**changes))
    assert answer.status_code == 200, answer.text
    return answer.json()
