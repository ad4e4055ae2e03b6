"""The folder of files that is the demo's broker: messages are whole or absent, and what cannot be read ends nobody."""

import multiprocessing
from collections.abc import Iterator
from pathlib import Path
from queue import Empty
from typing import Any

import pytest
from kombu import Connection

import waistheart.celery  # noqa: F401  (what `filesystem://` means is said there)

QUEUE = "waistheart"
MESSAGES = 400


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "messages").mkdir()
    return tmp_path


@pytest.fixture
def channel(folder: Path) -> Iterator[Any]:
    with connect(folder) as connection:
        yield connection.channel()


def connect(folder: Path) -> Connection:
    messages = str(folder / "messages")
    options = {"data_folder_in": messages, "data_folder_out": messages, "control_folder": str(folder / "control")}
    return Connection("filesystem://localhost", transport_options=options)


def write(folder: Path, payload: object) -> None:
    """What a writer's process does."""
    with connect(folder) as connection:
        channel = connection.channel()
        for _ in range(MESSAGES):
            channel._put(QUEUE, payload)


def test_no_reader_sees_half_a_message(folder: Path, channel: Any) -> None:
    """Writers of other processes and a reader at once: everything that was written is read, once and whole."""
    payload = {"body": "x" * 20_000}
    writers = [multiprocessing.get_context("spawn").Process(target=write, args=(folder, payload)) for _ in range(2)]
    for writer in writers:
        writer.start()
    read = 0
    while read < len(writers) * MESSAGES:
        alive = any(writer.is_alive() for writer in writers)
        try:
            assert channel._get(QUEUE) == payload
            read += 1
        except Empty:
            assert alive, f"only {read} messages arrived"
    with pytest.raises(Empty):
        channel._get(QUEUE)
    assert list((folder / "messages").iterdir()) == []


@pytest.mark.parametrize("half", [b"", b'{"body": "W1', b"\xff\xfe"])
def test_what_cannot_be_read_is_thrown_away(folder: Path, channel: Any, half: bytes) -> None:
    (folder / "messages" / f"0_a.{QUEUE}.msg").write_bytes(half)
    channel._put(QUEUE, {"body": "whole"})
    assert channel._get(QUEUE) == {"body": "whole"}
    with pytest.raises(Empty):
        channel._get(QUEUE)


def test_messages_come_in_the_order_they_were_written(channel: Any) -> None:
    for number in range(20):
        channel._put(QUEUE, number)
    assert [channel._get(QUEUE) for _ in range(20)] == list(range(20))


@pytest.mark.parametrize("half", [b"", b'[["waist'])
def test_half_a_table_of_queues_is_made_anew(folder: Path, channel: Any, half: bytes) -> None:
    (folder / "control").mkdir(exist_ok=True)
    (folder / "control" / f"{QUEUE}.exchange").write_bytes(half)
    assert channel.get_table(QUEUE) == []
    channel._queue_bind(QUEUE, QUEUE, "", QUEUE)
    assert [bound.queue for bound in channel.get_table(QUEUE)] == [QUEUE]
    channel._delete(QUEUE, QUEUE, QUEUE, "")
    assert channel.get_table(QUEUE) == []
