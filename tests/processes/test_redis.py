"""The same shop on Redis, which is emptied while a paid order waits in it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from tests.customer import Customer
from tests.processes.asleep import worker_asleep
from tests.processes.test_purchase import assert_books_balance, paid_work, wait_until_delivered
from tests.shop_process import Shop, eventually, running_shop

pytestmark = [pytest.mark.processes, pytest.mark.timeout(300)]
# A database of its own: it is emptied.
URL = os.environ.get("TEST_REDIS_URL", "redis://127.0.0.1:6379/9")


@pytest.fixture
def server() -> redis.Redis:
    server = redis.Redis.from_url(URL)
    try:
        server.flushdb()
    except redis.ConnectionError:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"no Redis answers at {URL}: this test did not run")
    return server


@pytest.fixture
def on_redis(server: redis.Redis, var_dir: Path) -> Iterator[Shop]:
    with running_shop(var_dir, BROKER_URL=URL, SANDBOX_DELAY_SECONDS="1", SWEEP_SECONDS="5") as shop:
        yield shop


def test_redis_emptied_costs_time_and_nothing_else(on_redis: Shop, server: redis.Redis):
    before = paid_work(on_redis, "cheek")
    customer = Customer(on_redis.url)
    customer.order(pose="cheek-heart", photo="ok_portrait.jpg", email="redis@example.com")
    with worker_asleep(on_redis):
        eventually(lambda: not asking(server), seconds=60, shop=on_redis)
        customer.pay()
        eventually(lambda: "generation.advance" in waiting(server), seconds=60, shop=on_redis)
        server.flushdb()
        assert "generation.advance" not in waiting(server)
    wait_until_delivered(on_redis, customer, customer.page.url)
    assert paid_work(on_redis, "cheek") == before + 1
    assert_books_balance(on_redis)


def waiting(server: redis.Redis) -> str:
    """The messages that wait for the worker."""
    return " ".join(str(message) for message in server.lrange("waistheart", 0, -1))  # type: ignore[union-attr]


def asking(server: redis.Redis) -> bool:
    """Whether somebody waits inside Redis for the next message: it would be handed to him, asleep or not, and never lie there."""
    ours = str(server.connection_pool.connection_kwargs["db"])
    return any(client["db"] == ours and "b" in client["flags"] for client in server.client_list())  # type: ignore[union-attr]
