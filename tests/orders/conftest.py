"""Fixtures of the shop's tests."""

from tests.sandbox_process import ear, sandbox, sandbox_process
from tests.shop_fixture import shop

__all__ = ["ear", "sandbox", "sandbox_process", "shop"]
