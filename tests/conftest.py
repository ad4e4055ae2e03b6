"""What every test gets: no way out of this machine, the lane it runs in, one sandbox and the shop that it serves."""

import ipaddress
import socket
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from django.conf import settings
from django.db import connection, transaction
from django.test import TransactionTestCase

from tests.sandbox_process import ear, sandbox, sandbox_process
from tests.shop_fixture import shop

# Here and nowhere below, so that a run starts one sandbox and not one for each folder of tests.
__all__ = ["ear", "sandbox", "sandbox_process", "shop"]

DATABASE_FIXTURES = {"db", "transactional_db", "live_server"}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what holds on the other database only, and on PostgreSQL what no database can change; the lanes together
    run everything."""
    on_sqlite = settings.DATABASES["default"]["ENGINE"].endswith("sqlite3")
    other, name = ("postgres", "PostgreSQL") if on_sqlite else ("sqlite", "SQLite")
    for item in items:
        if item.get_closest_marker(other):
            item.add_marker(pytest.mark.skip(reason=f"holds on {name} only; that lane runs it"))
    if not on_sqlite:
        alike = [item for item in items if not touches_the_database(item)]
        config.hook.pytest_deselected(items=alike)
        items[:] = [item for item in items if touches_the_database(item)]


def touches_the_database(item: pytest.Item) -> bool:
    """Whether a test may ask the database anything; the others are the same in every lane."""
    return bool(item.get_closest_marker("django_db") or DATABASE_FIXTURES & set(getattr(item, "fixturenames", ())))


@pytest.fixture(scope="session", autouse=True)
def quick_emptying() -> Iterator[None]:
    """Empty the tables after a test row by row instead of with Django's `flush`.

    That truncates forty tables and makes content types and permissions anew: a quarter of a second after each test on PostgreSQL.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", lambda case: empty_tables())
        yield


def empty_tables() -> None:
    """Delete every row but the content types and permissions, which a migration makes once."""
    off = {"postgresql": "SET LOCAL session_replication_role = replica", "sqlite": "PRAGMA defer_foreign_keys = ON"}
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(off[connection.vendor])
        for table in tables():
            cursor.execute(f"DELETE FROM {connection.ops.quote_name(table)}")


@cache
def tables() -> list[str]:
    made_once = {"django_content_type", "auth_permission"}
    return sorted(set(connection.introspection.django_table_names(only_existing=True)) - made_once)


@pytest.fixture(scope="session", autouse=True)
def no_way_out() -> Iterator[None]:
    """Refuse every connection that leaves this machine, so that no test can depend on the outside world."""
    connect, connect_ex = socket.socket.connect, socket.socket.connect_ex

    def guarded_connect(self: socket.socket, address: Any) -> None:
        refuse_outside(address)
        connect(self, address)

    def guarded_connect_ex(self: socket.socket, address: Any) -> int:
        refuse_outside(address)
        return connect_ex(self, address)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", guarded_connect)
        patch.setattr(socket.socket, "connect_ex", guarded_connect_ex)
        yield


def refuse_outside(address: Any) -> None:
    """Raise for an address outside this machine; file sockets and the loopback range pass."""
    host = address[0] if isinstance(address, tuple) else ""
    if host in ("", "localhost") or not isinstance(host, str):
        return
    if not ipaddress.ip_address(host).is_loopback:
        raise AssertionError(f"a test tried to reach {host}: start a server on this machine instead")
