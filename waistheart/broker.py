"""The demo's broker: kombu's folder of files, in which nobody sees half a message.

kombu writes a message under its final name and reads without asking the writer: a reader that comes between raises what ends the
whole worker, and a half-written table of queues does so at every later start. Here a message appears whole or not at all, and
what cannot be read is thrown away: its row stays due (design section 2, rule 15).
"""

import fcntl
import logging
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import time_ns
from typing import Any

from kombu.transport import filesystem
from kombu.utils.json import dumps

log = logging.getLogger(__name__)


class Channel(filesystem.Channel):
    """One process's view of the folder."""

    def _put(self, queue: str, payload: Any, **_: Any) -> None:  # type: ignore[override]  # its parents name it differently
        """Add a message in one step; a disk without room for it leaves nothing behind."""
        folder = Path(self.data_folder_out)
        name = f"{time_ns()}_{uuid.uuid4()}.{queue}.msg"
        draft = folder / f".{name}.new"
        try:
            draft.write_text(dumps(payload))
            draft.replace(folder / name)
        finally:
            draft.unlink(missing_ok=True)

    def _get(self, queue: str, timeout: float | None = None) -> Any:
        """Take the oldest message that can be read; `queue.Empty` when there is none."""
        while True:
            try:
                return super()._get(queue)
            except ValueError:
                log.warning("a message of %s could not be read and is thrown away", queue)

    def get_table(self, exchange: str) -> list[Any]:
        """The queues of an exchange; none when that cannot be read, until somebody binds again."""
        with self._tables():
            try:
                return list(super().get_table(exchange))
            except ValueError:
                return []

    def _queue_bind(self, exchange: str, routing_key: str, pattern: str | None, queue: str) -> None:
        with self._tables():
            try:
                super()._queue_bind(exchange, routing_key, pattern, queue)
            except ValueError:
                self._forget_table(exchange)
                super()._queue_bind(exchange, routing_key, pattern, queue)

    def _delete(self, queue: str, exchange: str, *args: Any, **kwargs: Any) -> None:
        with self._tables():
            try:
                super()._delete(queue, exchange, *args, **kwargs)
            except ValueError:
                self._forget_table(exchange)

    def _forget_table(self, exchange: str) -> None:
        (self.control_folder / f"{exchange}.exchange").unlink(missing_ok=True)

    @contextmanager
    def _tables(self) -> Iterator[None]:
        """Be alone with the tables of queues."""
        self.control_folder.mkdir(parents=True, exist_ok=True)
        with (self.control_folder / "lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


class Transport(filesystem.Transport):
    """What `filesystem://` means in this house."""

    Channel = Channel
