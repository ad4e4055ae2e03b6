"""The process itself: it stops when it is told to, leaves nothing behind, and says why it cannot start."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.sandbox.fal_client import Fal, Listener
from tests.sandbox_process import ROOT, Sandbox


def start(port: int, temporary: Path) -> "subprocess.Popen[str]":
    command = [sys.executable, "manage.py", "sandbox", "--port", str(port), "--delay", "0"]
    environ = {**os.environ, "DJANGO_SETTINGS_MODULE": "waistheart.settings", "TMPDIR": str(temporary)}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=ROOT, env=environ, stdout=pipe, stderr=pipe, text=True)


@pytest.mark.parametrize("order", [signal.SIGINT, signal.SIGTERM])
def test_it_stops_at_once_even_while_rendering(listener: Listener, tmp_path: Path, order: signal.Signals) -> None:
    process = start(0, tmp_path)
    assert process.stdout is not None
    url = process.stdout.readline().removeprefix("sandbox: ").strip().removesuffix("/control/")
    fal = Fal(Sandbox(url), listener.photo("ok_portrait.jpg"))
    fal.submit()
    while not fal.only_request()["started_at"]:
        time.sleep(0.02)
    told = time.monotonic()
    process.send_signal(order)
    process.communicate(timeout=30)
    assert process.returncode == 0
    assert time.monotonic() - told < 2
    assert not [path for path in tmp_path.iterdir() if path.is_dir()]


def test_a_taken_port_is_said_in_one_line(sandbox: Sandbox, tmp_path: Path) -> None:
    port = sandbox.url.rpartition(":")[2]
    _, error = start(int(port), tmp_path).communicate(timeout=60)
    assert error.strip() == f"sandbox: cannot listen on 127.0.0.1:{port}: Address already in use"
