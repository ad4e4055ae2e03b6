"""The whole shop as real processes, started the way `make run` starts it, on ports and in a folder of its own."""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from waistheart.run.environment import demo_environment
from waistheart.run.ports import is_free

ROOT = Path(__file__).resolve().parent.parent
READY_SECONDS = 90.0
T = TypeVar("T")


@dataclass
class Shop:
    """One running shop. `lines` grows with what its processes print."""

    port: int
    var_dir: Path
    environ: dict[str, str]
    process: "subprocess.Popen[str]"
    lines: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def sandbox_url(self) -> str:
        return f"http://127.0.0.1:{self.port + 1}"

    @property
    def output(self) -> str:
        return "\n".join(self.lines)

    def pids(self, name: str) -> list[int]:
        """The processes of this shop whose command line contains `name`, oldest first."""
        processes = [folder for folder in Path("/proc").iterdir() if folder.name.isdecimal()]
        ours = [folder for folder in processes if name in command_line(folder) and belongs_to(folder, self.var_dir)]
        return sorted(int(folder.name) for folder in ours)

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Ask the run to stop as the terminal would, wait for it, return its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(30)


@contextmanager
def running_shop(var_dir: Path, **settings: str) -> Iterator[Shop]:
    """Start everything, wait until it is ready, stop everything; `settings` are added to the environment."""
    port = free_pair()
    base = {name: value for name, value in os.environ.items() if name in {"PATH", "HOME", "LANG", "TMPDIR"}}
    # The environment that manage.py commands of the tests need to see the same shop.
    environ = demo_environment({**base, **settings}, web_port=port, sandbox_port=port + 1, var_dir=str(var_dir))
    started = {**base, "PORT": str(port), "VAR_DIR": str(var_dir), "READ_DOT_ENV": "0", **settings}
    process = subprocess.Popen(
        [sys.executable, "-m", "waistheart.run"],
        cwd=ROOT,
        env=started,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    shop = Shop(port, var_dir, environ, process)
    threading.Thread(target=collect, args=(shop,), daemon=True).start()
    try:
        eventually(lambda: "WaistHeart is ready at" in shop.output or ended(shop), seconds=READY_SECONDS, shop=shop)
        yield shop
    finally:
        shop.stop()


def prepare(var_dir: Path) -> None:
    """Do what every start of the shop does first, and stop there."""
    base = {name: value for name, value in os.environ.items() if name in {"PATH", "HOME", "LANG", "TMPDIR"}}
    base |= {"DJANGO_SETTINGS_MODULE": "waistheart.settings", "READ_DOT_ENV": "0"}
    environ = demo_environment(base, web_port=8000, sandbox_port=8001, var_dir=str(var_dir))
    done = subprocess.run([sys.executable, "-m", "waistheart.run.prepare"], cwd=ROOT, env=environ, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()


def eventually(look: Callable[[], T], *, seconds: float, shop: Shop, pause: float = 0.2) -> T:
    """Call `look` until it returns something true; AssertionError with the shop's last lines after `seconds`."""
    deadline = time.monotonic() + seconds
    while not (seen := look()):
        assert time.monotonic() < deadline, "nothing after {}s; the shop said:\n{}".format(
            seconds, "\n".join(shop.lines[-60:])
        )
        time.sleep(pause)
    return seen


def ended(shop: Shop) -> bool:
    assert shop.process.poll() is None, f"the shop ended with {shop.process.returncode}:\n{shop.output}"
    return False


def collect(shop: Shop) -> None:
    assert shop.process.stdout is not None
    for line in shop.process.stdout:
        shop.lines.append(re.sub(r"\x1b\[[0-9;]*m", "", line.rstrip("\n")))


def free_pair() -> int:
    """A free port whose next one is free as well."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        if port < 65535 and is_free(port) and is_free(port + 1):
            return port


def command_line(folder: Path) -> str:
    try:
        return (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
    except OSError:
        return ""


def belongs_to(folder: Path, var_dir: Path) -> bool:
    try:
        return f"VAR_DIR={var_dir}\0".encode() in (folder / "environ").read_bytes()
    except OSError:
        return False
