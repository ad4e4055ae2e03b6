"""Prepare, start all processes of the Procfile, say where everything is, stop them together."""

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import environ as django_environ
from honcho.environ import parse_procfile

from waistheart.run.announce import announce
from waistheart.run.children import Children, describe_end
from waistheart.run.environment import demo_environment, sandbox_sides
from waistheart.run.ports import is_free

BASE_DIR = Path(__file__).resolve().parents[2]
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
POLL_SECONDS = 0.1


def main() -> int:
    """Run the shop until it is asked to stop (0 after Ctrl+C or SIGTERM) or one of its processes ends (1)."""
    asked = StopAsked()
    environ = environment()
    refuse_taken_ports(environ)
    with only_shop_of(Path(environ["VAR_DIR"])) as lock:
        prepare(environ, asked)
        return 0 if asked.name else serve(environ, asked, lock=lock)


@contextmanager
def only_shop_of(var_dir: Path) -> Iterator[int]:
    """Hold the folder's lock while we run: two shops over one database and one broker would do each other's work.

    The processes of the shop hold it too, so that a run that was killed leaves no room for a second one beside what it left.
    """
    with (var_dir / "run.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit(f"A shop already runs in {var_dir}: stop it, or give this one a folder of its own with VAR_DIR.")
        yield lock.fileno()


class StopAsked:
    """Remembers which signal asked us to stop. It only remembers: nothing may be interrupted half way."""

    def __init__(self) -> None:
        self.name = ""
        for number in STOP_SIGNALS:
            signal.signal(number, self._remember)

    def _remember(self, number: int, _frame: object) -> None:
        self.name = signal.Signals(number).name


def environment() -> dict[str, str]:
    """Give what is set, what .env adds, what the demo adds to both, and our own programs first on the path."""
    if (BASE_DIR / ".env").exists():
        django_environ.Env.read_env(str(BASE_DIR / ".env"))
    port = port_number(os.environ.get("PORT") or "8000")
    var_dir = Path(os.environ.get("VAR_DIR") or BASE_DIR / "var").resolve()
    var_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    environ = demo_environment(os.environ, web_port=port, sandbox_port=port + 1, var_dir=str(var_dir))
    environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environ.get("PATH", os.defpath)])
    environ |= {"DJANGO_SETTINGS_MODULE": "waistheart.settings", "PYTHONUNBUFFERED": "1"}
    # In a container the demo may well run as root; a production worker started otherwise still hears about it.
    environ.setdefault("PYTHONWARNINGS", "ignore:You're running the worker with superuser privileges")
    return environ


def port_number(word: str) -> int:
    if not word.isdecimal() or not 1 <= int(word) <= 65534:
        sys.exit(f"PORT must be a number from 1 to 65534, not {word!r}.")
    return int(word)


def refuse_taken_ports(environ: dict[str, str]) -> None:
    needed = {"the shop": environ["WEB_PORT"]}
    if sandbox_sides(os.environ):
        needed["its sandbox"] = environ["SANDBOX_PORT"]
    for what, port in needed.items():
        if not is_free(int(port)):
            sys.exit(f"Port {port}, which {what} needs, is already in use: stop what uses it, or choose another PORT.")


def prepare(environ: dict[str, str], asked: StopAsked) -> None:
    """Do what must be done alone; exits when it fails, returns early when we are asked to stop meanwhile."""
    child = subprocess.Popen([sys.executable, "-m", "waistheart.run.prepare"], env=environ, cwd=BASE_DIR)
    while child.poll() is None:
        if asked.name:
            child.terminate()
            child.wait()
            return
        time.sleep(POLL_SECONDS)
    if child.returncode and not asked.name:
        sys.exit("The database or the demo could not be prepared; the reason is above.")


def serve(environ: dict[str, str], asked: StopAsked, *, lock: int) -> int:
    commands = dict(parse_procfile((BASE_DIR / "Procfile").read_text()).processes)
    if not sandbox_sides(os.environ):
        del commands["sandbox"]
    children = Children(names=list(commands))
    try:
        for name, command in commands.items():
            children.start(name=name, command=command, environ=environ, cwd=str(BASE_DIR), lock=lock)
        announce(children=children, environ=environ, with_sandbox="sandbox" in commands)
        return watch(children, asked)
    finally:
        children.stop()


def watch(children: Children, asked: StopAsked) -> int:
    """Return 0 when asked to stop, 1 as soon as a child has ended, naming it. A run whose parent is gone stops too."""
    parent = os.getppid()
    while (dead := children.first_dead()) is None:
        if asked.name or os.getppid() != parent:
            children.say(f"{asked.name or 'what started this run is gone'}: stopping everything")
            return 0
        time.sleep(POLL_SECONDS)
    children.say(f"{describe_end(dead)}: stopping the others")
    return 1


if __name__ == "__main__":
    sys.exit(main())
