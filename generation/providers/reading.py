"""Reads of the outside: bounded as a whole in time and bytes, however slowly the bytes come. What fails is Unavailable."""

import time
from collections.abc import Mapping

from generation.exchange import Answer, NoAnswer, NothingSent, exchange
from generation.providers.base import Unavailable

SECONDS = 30.0
BYTES = 1024 * 1024
LIST_SECONDS = 120.0
LIST_BYTES = 20 * 1024 * 1024


def read(
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    method: str = "GET",
    seconds: float | None = None,
    limit: int | None = None,
) -> Answer:
    """One whole answer of any status, or Unavailable. Redirects are not followed: a key goes to nobody else."""
    seconds, limit = SECONDS if seconds is None else seconds, BYTES if limit is None else limit
    try:
        return exchange(method, url, headers=headers or {}, seconds=seconds, limit=limit)
    except (NothingSent, NoAnswer) as error:
        raise Unavailable(str(error)) from error


class Pages:
    """The reads of one list: each bounded like any read, and all of them together."""

    def __init__(self) -> None:
        self._ends = time.monotonic() + LIST_SECONDS

    def read(self, url: str, *, headers: Mapping[str, str]) -> Answer:
        """The next page; Unavailable when the list's time is over."""
        return read(url, headers=headers, seconds=min(SECONDS, self._ends - time.monotonic()), limit=LIST_BYTES)
