"""The lock on the door of the test suite itself."""

import socket

import pytest


def test_a_connection_that_leaves_this_machine_is_refused():
    with pytest.raises(AssertionError, match=r"192\.0\.2\.1"):
        socket.create_connection(("192.0.2.1", 80), timeout=1)


def test_a_connection_on_this_machine_passes():
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname()[:2], timeout=2).close()
