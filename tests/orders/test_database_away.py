"""A database that is away, or locked for too long, is nobody's error page: the next try may succeed, and a hint is sent again."""

import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.db import InterfaceError, OperationalError, connection
from django.test import Client

from tests.orders import shop
from tests.orders.test_pages_photo import NEW, send, upload

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("a_shop")]

ASKS: dict[str, Callable[[Client, str], Any]] = {
    "the poses": lambda client, key: client.get("/"),
    "a draft": lambda client, key: client.get(f"/make/{key}/photo/"),
    "a photo": lambda client, key: send(client, NEW, photo=upload(), email=shop.ADA),
    "the staff": lambda client, key: client.post("/admin/login/", {"username": "a", "password": "b"}),
    "a provider's hint": lambda client, key: client.post(f"/hints/fal/{uuid.uuid4().hex}/", b"{}", content_type="application/json"),
}  # fmt: skip


@pytest.mark.parametrize("ask", ASKS)
@pytest.mark.parametrize("error", [OperationalError, InterfaceError])
def test_a_database_that_is_away_asks_for_patience(
    client: Client, ask: str, error: type[Exception], caplog: pytest.LogCaptureFixture
) -> None:
    def away(*_: object) -> None:
        raise error("database is locked")

    key = shop.draft().key
    with connection.execute_wrapper(away):
        answer = ASKS[ask](client, key)
    assert (answer.status_code, answer["Cache-Control"], answer["Retry-After"]) == (503, "no-store", "60")
    assert b"cannot get at our records" in answer.content
    assert "the database is away or busy" in caplog.text
    assert "Traceback" not in caplog.text
