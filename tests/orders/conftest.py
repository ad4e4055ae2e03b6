"""Fixtures of the shop's tests."""

import pytest
from django.core.cache import cache

from tests.orders import shop as rows
from tests.sandbox_process import ear, sandbox, sandbox_process
from tests.shop_fixture import shop

__all__ = ["ear", "sandbox", "sandbox_process", "shop"]


@pytest.fixture
def a_shop(db: None) -> None:
    """A shop that sells one pose and remembers nobody's pages, made of rows alone."""
    cache.clear()
    rows.pose()
