"""Make .venv and install one set of locked requirements into it; a second call with nothing changed does nothing.

    python requirements/install.py base     what the shop needs to run
    python requirements/install.py dev      that, and what its tests and checks need

Uses the standard library only: it runs before anything is installed.
"""

import hashlib
import importlib.util
import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
VENV = HERE.parent / ".venv"
PYTHON = VENV / "bin" / "python"
LOCKS = {"base": ["base.txt"], "dev": ["base.txt", "dev.txt"]}


def main(name: str) -> None:
    """Leave .venv with the named set installed, or exit with one plain line that says what is missing."""
    if not venv_works():
        make_venv()
    if not is_installed(name):
        install(name)


def venv_works() -> bool:
    """Tell whether .venv can install; one left half made by an interrupted run cannot."""
    if not PYTHON.exists():
        return False
    return subprocess.run([PYTHON, "-m", "pip", "--version"], capture_output=True, check=False).returncode == 0


def make_venv() -> None:
    if importlib.util.find_spec("ensurepip") is None:
        sys.exit("Python's venv module is not complete here: install python3-venv (apt-get install python3-venv).")
    print("Making the virtual environment .venv ...", flush=True)
    venv.create(VENV, clear=True, with_pip=True)


def is_installed(name: str) -> bool:
    stamp = stamp_file(name)
    return stamp.exists() and stamp.read_text() == fingerprint(name)


def install(name: str) -> None:
    print(f"Installing the {name} requirements into .venv (a minute the first time) ...", flush=True)
    files = [argument for lock in LOCKS[name] for argument in ("--requirement", str(HERE / lock))]
    command = [PYTHON, "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--require-hashes"]
    done = subprocess.run([*command, "-qq", *files], check=False)
    if done.returncode:
        sys.exit(f"The {name} requirements could not be installed; pip's own words are above.")
    stamp_file(name).write_text(fingerprint(name))


def stamp_file(name: str) -> Path:
    return VENV / f"installed-{name}"


def fingerprint(name: str) -> str:
    """Name what is installed: the locks' content under this Python."""
    locks = b"".join((HERE / lock).read_bytes() for lock in LOCKS[name])
    return hashlib.sha256(locks + sys.version.encode()).hexdigest()


if __name__ == "__main__":
    main(sys.argv[1])
