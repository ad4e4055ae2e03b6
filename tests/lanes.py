"""Everything that proves the shop, lane by lane: `python -m tests.lanes [LANE ...]`, which is what `make test` calls.

Says at the end which lanes ran and which did not and why. With CI set a lane that could not run is a failure.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

from tests.chromium import chromium
from tests.postgresql import NoServer, own_server

ROOT = Path(__file__).resolve().parent.parent
UNIT = ["-m", "not processes and not browser", "-n", os.environ.get("TEST_WORKERS", "3")]
LANES = {
    "unit-sqlite": UNIT,
    "unit-postgresql": UNIT,
    "processes": ["-m", "processes", "-n", "3", "--dist", "loadfile"],
    "browser": ["-m", "browser"],
}
# These wait for clocks and for each other more than they compute, so they share the machine; the units fill it alone.
TURNS = [["unit-sqlite"], ["unit-postgresql"], ["processes", "browser"]]
# The last one would have each of some hundred processes compile the whole shop again, and each worker the tests.
NOT_HANDED_ON = {"DATABASE_URL", "TESTS_VAR_DIR", "PYTHONDONTWRITEBYTECODE"}


class CannotRun(Exception):
    """This machine lacks what a lane needs; the text says what, in one line."""


@dataclass
class Result:
    """How a lane ended: its counts, or the reason why it did not run."""

    lane: str
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0
    not_run: str = ""


def main(wanted: list[str]) -> int:
    """Run the named lanes, or all of them; 0 only when nothing failed and something ran."""
    if unknown := [name for name in wanted if name not in LANES]:
        sys.exit(f"There is no lane {unknown[0]!r}; there are: {', '.join(LANES)}.")
    results: list[Result] = []
    for turn in TURNS:
        with ThreadPoolExecutor() as pool:
            results += pool.map(run, [lane for lane in turn if lane in (wanted or LANES)], [True, False])
    passed, failed = sum(result.passed for result in results), sum(result.failed for result in results)
    print_table(results)
    missing_fails = in_ci() and any(result.not_run for result in results)
    if missing_fails:
        print("A lane that could not run is a failure here, since CI is set.")
    print(f"\n{passed} passed, {failed} failed")
    return 1 if failed or missing_fails or not passed else 0


def run(lane: str, aloud: bool) -> Result:
    """Run one lane to its end; never raises for a lane that cannot run. What is not said aloud is said when it ended."""
    print(f"\n=== lane {lane} ===", flush=True)
    started = time.monotonic()
    try:
        with world(lane) as environ:
            result = pytest(lane, environ, aloud)
    except CannotRun as reason:
        result = Result(lane, not_run=str(reason))
        print(f"not run: {reason}")
    result.seconds = time.monotonic() - started
    return result


@contextmanager
def world(lane: str) -> Iterator[dict[str, str]]:
    """Give the environment of a lane, with a database server when it needs one."""
    environ = {name: value for name, value in os.environ.items() if name not in NOT_HANDED_ON}
    if lane == "browser" and chromium() is None:
        raise CannotRun("no Chromium in PATH (apt-get install chromium)")
    if lane != "unit-postgresql":
        yield environ
    elif url := os.environ.get("TEST_DATABASE_URL"):
        yield environ | {"DATABASE_URL": url}
    else:
        try:
            with own_server() as own_url:
                yield environ | {"DATABASE_URL": own_url}
        except NoServer as reason:
            raise CannotRun(f"no PostgreSQL: set TEST_DATABASE_URL ({reason})") from reason


def pytest(lane: str, environ: dict[str, str], aloud: bool) -> Result:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", f"--junit-xml={report}", *LANES[lane]]
        words = None if aloud else subprocess.PIPE
        done = subprocess.run(
            command, env=environ, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=words, stderr=words, text=True, check=False
        )
        if not aloud:
            print(f"\n=== what lane {lane} said ===\n{done.stdout}{done.stderr}", flush=True)
        if not report.exists():
            return Result(lane, failed=1)
        result = counted(lane, report)
    if not (result.passed or result.failed):
        raise CannotRun("no test of this lane was found")
    # A crash after the report, or a collection that failed, must not look like success.
    if done.returncode and not result.failed:
        result.failed = 1
    return result


def counted(lane: str, report: Path) -> Result:
    """Read the counts out of pytest's report; a test with an error beside its failure is one failed test."""
    cases = ET.parse(report).getroot().iter("testcase")
    kinds = [{child.tag for child in case} for case in cases]
    failed = sum(bool(kind & {"failure", "error"}) for kind in kinds)
    skipped = sum("skipped" in kind and not kind & {"failure", "error"} for kind in kinds)
    return Result(lane, passed=len(kinds) - failed - skipped, failed=failed, skipped=skipped)


def print_table(results: list[Result]) -> None:
    print(f"\n{'lane':<18}{'passed':>8}{'failed':>8}{'skipped':>9}{'seconds':>9}")
    for result in results:
        counts = f"{result.passed:>8}{result.failed:>8}{result.skipped:>9}{result.seconds:>9.1f}"
        print(f"{result.lane:<18}{counts if not result.not_run else '  did not run: ' + result.not_run}")


def in_ci() -> bool:
    return os.environ.get("CI", "").lower() not in {"", "0", "false", "no"}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
