"""Messages carry an id and may all be lost: the broker's folder is emptied twice in the middle of a job."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.customer import Customer
from tests.processes.asleep import WORKER, worker_asleep
from tests.processes.test_purchase import assert_books_balance, paid_work, wait_until_delivered
from tests.shop_process import Shop, eventually

pytestmark = [pytest.mark.processes, pytest.mark.timeout(300)]


def test_an_emptied_broker_costs_time_and_nothing_else(shop: Shop):
    before = paid_work(shop, "overhead")
    customer = Customer(shop.url)
    customer.order(pose="overhead-heart", photo="ok_portrait.jpg", email="emptied@example.com")
    with sandbox_delay(shop, 5):
        with worker_asleep(shop):
            customer.pay()
            order_url = customer.page.url
            lose_messages(shop, "generation.advance")
        # The sweep's own message comes anew, and finds the job that nobody was told of.
        eventually(lambda: newest(shop)["status"] != "COMPLETED", seconds=60, shop=shop)
        with worker_asleep(shop):
            eventually(lambda: newest(shop)["status"] == "COMPLETED", seconds=60, shop=shop)
            lose_messages(shop, "generation.advance")
    wait_until_delivered(shop, customer, order_url)
    assert paid_work(shop, "overhead") == before + 1
    assert_books_balance(shop)


def test_a_message_that_cannot_be_read_ends_nobody(shop: Shop):
    before = shop.pids(WORKER)
    folder = shop.var_dir / "broker"
    for number, half in enumerate((b"", b'{"body": "W1')):
        (folder / f"0_{number}.waistheart.msg").write_bytes(half)
    eventually(lambda: not list(folder.glob("0_*.msg")), seconds=60, shop=shop)
    eventually(lambda: "thrown away" in shop.output, seconds=60, shop=shop)
    assert shop.pids(WORKER) == before


@contextmanager
def sandbox_delay(shop: Shop, seconds: float) -> Iterator[None]:
    """Let the provider work for longer."""
    address = f"{shop.sandbox_url}/control/settings"
    requests.post(address, json={"delay_seconds": seconds}, timeout=30).raise_for_status()
    try:
        yield
    finally:
        requests.post(address, json={"delay_seconds": 1}, timeout=30).raise_for_status()


def lose_messages(shop: Shop, task: str) -> None:
    """Wait until a message of this task lies in the broker's folder, then empty the folder."""
    folder = shop.var_dir / "broker"
    eventually(
        lambda: any(task.encode() in message.read_bytes() for message in messages(folder)), seconds=60, shop=shop
    )
    for message in messages(folder):
        message.unlink()
    assert messages(folder) == []


def messages(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.is_file()]


def newest(shop: Shop) -> dict[str, Any]:
    """The last request that the provider has taken for this pose; a finished one when there is none."""
    requests_ = requests.get(f"{shop.sandbox_url}/control/state", timeout=30).json()["fal"]
    ours = [request for request in requests_ if "overhead" in str(request["input"])]
    return ours[-1] if ours else {"status": "COMPLETED"}
