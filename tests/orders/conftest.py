"""Fixtures of the shop's tests."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.core.cache import cache

from tests.orders import shop as rows
from tests.orders.smtp_server import MailServer, mail_server


@pytest.fixture
def a_shop(db: None) -> None:
    """A shop that sells one pose and remembers nobody's pages, made of rows alone."""
    cache.clear()
    rows.pose()


@pytest.fixture
def server(settings: Any) -> Iterator[MailServer]:
    """A mail server that the shop hands its mail to."""
    with mail_server() as server:
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT, settings.EMAIL_TIMEOUT = "127.0.0.1", server.port, 0.5
        settings.EMAIL_USE_TLS = settings.EMAIL_USE_SSL = False
        settings.EMAIL_HOST_USER = settings.EMAIL_HOST_PASSWORD = ""
        yield server
