"""Several processes in one terminal: started together, their lines named, stopped together, none left behind."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO

GRACE_SECONDS = 12.0


@dataclass
class Child:
    """One process of the Procfile, leader of a process group of its own."""

    name: str
    process: "subprocess.Popen[str]"


class Children:
    """The processes of one run. `names` only sets the width of the first column."""

    def __init__(self, *, names: list[str]) -> None:
        self._width = max(map(len, names))
        self._children: list[Child] = []
        self._printing = threading.Lock()

    def start(self, *, name: str, command: str, environ: Mapping[str, str], cwd: str, lock: int) -> None:
        """Start one shell command in a process group of its own and pass its lines on, named; it holds the descriptor `lock` too."""
        process = subprocess.Popen(  # noqa: S602  (the line stands in our Procfile and uses variables)
            command,
            shell=True,
            env=dict(environ),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
            pass_fds=(lock,),
        )
        self._children.append(Child(name, process))
        threading.Thread(target=self._pass_on, args=(name, process.stdout), daemon=True).start()

    def first_dead(self) -> Child | None:
        """Return a child that has ended, or None while all of them run."""
        return next((child for child in self._children if child.process.poll() is not None), None)

    def stop(self) -> None:
        """Ask all of them to end, wait, kill what is left with all it started; a second call does nothing."""
        for child in self._children:
            # Only the leader is asked: a worker's own children must be let finish by it.
            if child.process.poll() is None:
                child.process.terminate()
        deadline = time.monotonic() + GRACE_SECONDS
        for child in self._children:
            self._wait(child, deadline)
            kill_group(child.process.pid)
        self._children.clear()

    def say(self, line: str, *, name: str = "run") -> None:
        """Print one whole line, also while children print theirs."""
        with self._printing:
            print(f"{name:<{self._width}} | {line}", flush=True)

    def say_alone(self, line: str) -> None:
        """Print one whole line without a name before it."""
        with self._printing:
            print(line, flush=True)

    def _wait(self, child: Child, deadline: float) -> None:
        try:
            child.process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.say(f"{child.name} did not stop in time and is killed")
            kill_group(child.process.pid)
            child.process.wait()

    def _pass_on(self, name: str, lines: IO[str]) -> None:
        for line in lines:
            self.say(line.rstrip("\n"), name=name)


def kill_group(leader: int) -> None:
    """Kill whatever still lives in the process group of `leader`; nothing left is fine."""
    try:
        os.killpg(leader, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def describe_end(child: Child) -> str:
    """Say in words how a child ended."""
    code = child.process.returncode
    if code is not None and code < 0:
        return f"{child.name} was ended by {signal.Signals(-code).name}"
    return f"{child.name} ended by itself with exit code {code}"
