"""Ports and answers: is it free, does it answer yet."""

import socket
import time
from collections.abc import Callable
from http.client import HTTPException
from urllib.error import URLError
from urllib.request import urlopen


class NotReady(Exception):
    """An address that should have answered did not, in the time it had or before somebody asked to stop."""


def is_free(port: int) -> bool:
    """Tell whether a server could listen on `port` of this machine now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def wait_for(url: str, *, seconds: float, stopped: Callable[[], bool] = lambda: False) -> None:
    """Return once `url` answers with a 2xx; NotReady after `seconds`, or as soon as `stopped()` says so."""
    deadline = time.monotonic() + seconds
    while not answers(url):
        if stopped() or time.monotonic() > deadline:
            raise NotReady(url)
        time.sleep(0.2)


def answers(url: str) -> bool:
    """Tell whether `url` (http, this machine) answers with a 2xx within three seconds."""
    try:
        with urlopen(url, timeout=3) as answer:  # noqa: S310  (the addresses are our own)
            return bool(200 <= answer.status < 300)
    except (URLError, HTTPException, OSError):
        return False
