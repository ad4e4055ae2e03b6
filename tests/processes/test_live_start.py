"""Web servers and Celery run no system checks by themselves: real processes must refuse a mixed configuration all the same."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.shop_process import ROOT, free_pair
from waistheart.run.environment import demo_environment

pytestmark = [pytest.mark.processes, pytest.mark.timeout(120)]
PROGRAMS = Path(sys.executable).parent
LONGEST = 40.0
COMMANDS = {
    "web": [f"{PROGRAMS}/gunicorn", "waistheart.wsgi", "--bind", "127.0.0.1:{port}", "--workers", "1", "--no-control-socket"],
    "worker": [f"{PROGRAMS}/celery", "--app", "waistheart.celery", "worker", "--concurrency", "1", "--loglevel", "info"],
    "beat": [f"{PROGRAMS}/celery", "--app", "waistheart.celery", "beat", "--pidfile=", "--loglevel", "info"],
    "check": [sys.executable, "manage.py", "check"],
}  # fmt: skip
MIXED = {
    "live without anything": ({"LIVE": "1"}, "waistheart.E001"),
    "a live card key in the sandbox": ({"STRIPE_SECRET_KEY": "sk_live_abc"}, "waistheart.E011"),
    "a foreign provider in the sandbox": ({"FAL_QUEUE_URL": "https://queue.fal.run"}, "waistheart.E012"),
    "a lease shorter than a submit": ({"LEASE_SECONDS": "60"}, "waistheart.E032"),
}


@pytest.mark.parametrize("mixed", MIXED)
@pytest.mark.parametrize("process", COMMANDS)
def test_a_mixed_configuration_is_refused_at_start(process: str, mixed: str, tmp_path: Path):
    added, problem = MIXED[mixed]
    code, said = run(process, environment(tmp_path, **added))
    assert code not in (0, None), said
    assert problem in said
    assert "sk_live_abc" not in said


@pytest.mark.parametrize("process", ["web", "worker", "beat"])
def test_a_database_of_the_other_mode_is_refused_at_start(process: str, var_dir: Path):
    environ = environment(var_dir)
    became_live = "from waistheart.models import Installation; Installation.objects.update(mode='live')"
    subprocess.run(
        [sys.executable, "manage.py", "shell", "--no-imports", "--command", became_live],
        cwd=ROOT, env=environ, check=True, timeout=LONGEST,
    )  # fmt: skip
    code, said = run(process, environ)
    assert code not in (0, None), said
    assert "belongs to a live installation" in said


@pytest.mark.parametrize(
    ("process", "word"), [("web", "Booting worker"), ("worker", " ready."), ("beat", "beat: Starting")]
)
def test_what_is_right_starts(process: str, word: str, var_dir: Path):
    code, said = run(process, environment(var_dir), seconds=8)
    assert code is None, said
    assert word in said
    assert "waistheart.E" not in said


def environment(var_dir: Path, **added: str) -> dict[str, str]:
    base = {name: value for name, value in os.environ.items() if name in {"PATH", "HOME", "LANG", "TMPDIR"}}
    base |= {"DJANGO_SETTINGS_MODULE": "waistheart.settings", "READ_DOT_ENV": "0", "PYTHONUNBUFFERED": "1"}
    base |= {"PYTHONWARNINGS": "ignore:You're running the worker with superuser privileges"}
    if "LIVE" in added:
        return base | {"VAR_DIR": str(var_dir)} | added
    return demo_environment(base, web_port=8000, sandbox_port=8001, var_dir=str(var_dir)) | added


def run(process: str, environ: dict[str, str], *, seconds: float = LONGEST) -> tuple[int | None, str]:
    """Start a process and wait for its end; None as its code when it went on running."""
    with child(process, environ) as running:
        try:
            said, _ = running.communicate(timeout=seconds)
            return running.returncode, said
        except subprocess.TimeoutExpired:
            running.terminate()
            return None, running.communicate()[0]


@contextmanager
def child(process: str, environ: dict[str, str]) -> Iterator["subprocess.Popen[str]"]:
    """A process of the shop for the time of a with block."""
    running = subprocess.Popen(
        [part.format(port=free_pair()) for part in COMMANDS[process]], cwd=ROOT, env=environ,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        yield running
    finally:
        if running.poll() is None:
            running.terminate()
            running.wait(20)
