"""A shop of real processes for the tests of this folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.shop_process import Shop, running_shop


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """One shop on SQLite and the filesystem broker for all tests that leave it running."""
    folder: Path = tmp_path_factory.mktemp("shop") / "var"
    with running_shop(folder, SANDBOX_DELAY_SECONDS="1", SWEEP_SECONDS="5") as shop:
        yield shop
