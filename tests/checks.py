"""Everything about the code that is checked without running the shop: `python -m tests.checks`, behind `make check`.

All checks run, also after one has failed, so that one call shows all there is to repair.
"""

import difflib
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from waistheart.run.environment import demo_environment

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = Path(sys.executable).parent
MANAGE = [sys.executable, "manage.py"]
CHECKS: dict[str, list[str]] = {
    "format": [f"{PROGRAMS}/ruff", "format", "--check", "--quiet", "."],
    "lint": [f"{PROGRAMS}/ruff", "check", "--quiet", "."],
    "types": [f"{PROGRAMS}/mypy"],
    "import contract": [f"{PROGRAMS}/lint-imports", "--no-cache"],
    "migrations": [*MANAGE, "makemigrations", "--check", "--dry-run"],
    "system checks": [*MANAGE, "check", "--fail-level", "WARNING"],
}
STATES = ROOT / "docs" / "states.md"


def main() -> int:
    """Run all checks; 0 when every one of them is green."""
    with tempfile.TemporaryDirectory() as folder:
        environ = world(folder)
        red = [name for name, command in CHECKS.items() if not is_green(name, command, environ)]
        if not states_are_documented(environ):
            red.append("states")
    print(f"\nchecks: {', '.join(red)} failed" if red else "\nchecks: all green")
    return 1 if red else 0


def world(folder: str) -> dict[str, str]:
    """Give the demo's settings over a folder of its own, whatever the caller's environment says about a live shop."""
    kept = {name: value for name, value in os.environ.items() if name in {"PATH", "HOME", "LANG", "TMPDIR", "CI"}}
    environ = demo_environment(kept, web_port=8000, sandbox_port=8001, var_dir=folder)
    return environ | {"READ_DOT_ENV": "0", "SECRET_KEY": "only-for-checks", "PYTHONPATH": str(ROOT)}


def is_green(name: str, command: list[str], environ: Mapping[str, str]) -> bool:
    """Run one check; a green one says a word, a red one all it has to say."""
    done = subprocess.run(
        command, cwd=ROOT, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    print(f"{name:<18}{'ok' if done.returncode == 0 else 'FAILED'}", flush=True)
    if done.returncode:
        print(done.stdout + done.stderr, flush=True)
    return done.returncode == 0


def states_are_documented(environ: Mapping[str, str]) -> bool:
    """Compare docs/states.md with what `manage.py states` prints now."""
    done = subprocess.run(
        [*MANAGE, "states"],
        cwd=ROOT,
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    written = STATES.read_text() if STATES.exists() else ""
    green = done.returncode == 0 and done.stdout == written
    print(f"{'states':<18}{'ok' if green else 'FAILED: manage.py states > docs/states.md'}", flush=True)
    if not green:
        changed = difflib.unified_diff(written.splitlines(), done.stdout.splitlines(), "docs/states.md", "now", n=1)
        print("\n".join([done.stderr, *changed][:40]), flush=True)
    return green


if __name__ == "__main__":
    sys.exit(main())
