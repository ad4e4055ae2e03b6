"""The worker stopped where it stands, so that messages lie where a test can count and lose them."""

import fcntl
import os
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from tests.shop_process import Shop, eventually

WORKER = "celery --app waistheart.celery --quiet worker"


@contextmanager
def worker_asleep(shop: Shop) -> Iterator[None]:
    """Stop the worker's processes, and let them go on at the end."""
    pids = shop.pids(WORKER)
    assert pids
    eventually(lambda: stopped_with_empty_hands(shop.var_dir, pids), seconds=60, shop=shop)
    try:
        yield
    finally:
        tell(pids, signal.SIGCONT)


def stopped_with_empty_hands(var_dir: Path, pids: list[int]) -> bool:
    """Stop them; where they hold what the whole shop would wait for, let them go on and answer False."""
    tell(pids, signal.SIGSTOP)
    if all(is_stopped(pid) for pid in pids) and is_free(var_dir):
        return True
    tell(pids, signal.SIGCONT)
    return False


def is_stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def is_free(var_dir: Path) -> bool:
    """Whether anybody may write to the database and to the broker's tables now."""
    tables = var_dir / "broker-control" / "lock"
    try:
        with closing(sqlite3.connect(var_dir / "waistheart.db", timeout=0)) as database:
            database.execute("BEGIN IMMEDIATE")
            database.rollback()
        if tables.exists():
            with tables.open("w") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (sqlite3.OperationalError, BlockingIOError):
        return False
    return True


def tell(pids: list[int], number: int) -> None:
    for pid in pids:
        os.kill(pid, number)
