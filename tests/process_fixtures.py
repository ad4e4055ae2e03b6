"""Fixtures: a shop of real processes."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.shop_process import Shop, prepare, running_shop


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a first start leaves behind, made once: drawing the sample clips takes longer than starting the shop."""
    folder = tmp_path_factory.mktemp("prepared") / "var"
    prepare(folder)
    return folder


@pytest.fixture
def var_dir(prepared: Path, tmp_path: Path) -> Path:
    """A folder of its own for one shop that has been started before."""
    return Path(shutil.copytree(prepared, tmp_path / "var"))


@pytest.fixture(scope="session")
def shop(prepared: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """One shop on SQLite and the filesystem broker for all tests that leave it running."""
    folder = Path(shutil.copytree(prepared, tmp_path_factory.mktemp("shop") / "var"))
    with running_shop(folder, SANDBOX_DELAY_SECONDS="1", SWEEP_SECONDS="5") as shop:
        yield shop
