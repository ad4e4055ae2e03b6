"""`python -m waistheart.run`, which is what `make run` calls: starts everything, keeps everything, leaves nothing."""

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import requests

from tests.shop_process import ROOT, Shop, eventually, free_pair, running_shop

pytestmark = pytest.mark.processes
NAMES = {"web": "gunicorn", "worker": "celery --app waistheart.celery --quiet worker", "beat": "--quiet beat"}


def test_every_address_that_is_printed_answers(shop: Shop):
    assert requests.get(f"{shop.url}/livez", timeout=30).ok
    assert requests.get(f"{shop.url}/readyz", timeout=30).ok
    assert requests.get(f"{shop.url}/admin/login/", timeout=30).ok
    assert requests.get(f"{shop.sandbox_url}/control/", timeout=30).ok
    for address in (f"{shop.url}/admin/", f"{shop.sandbox_url}/control/", f"{shop.var_dir}/mail/"):
        assert address in shop.output


def test_secrets_of_the_demo_are_for_their_owner_alone(shop: Shop):
    assert (shop.var_dir / "secret_key").stat().st_mode & 0o077 == 0


def test_stopping_leaves_no_process_and_a_second_run_keeps_the_data(tmp_path: Path):
    with running_shop(tmp_path / "var") as first:
        password = re.search(r"password\W+(\S{12,})", first.output)
        assert password, f"no staff password printed:\n{first.output}"
        assert all(first.pids(command) for command in NAMES.values())
        assert first.stop(signal.SIGINT) == 0
        assert first.pids("") == []
    with running_shop(tmp_path / "var") as second:
        assert password[1] not in second.output
        assert "password" not in second.output.lower()
        assert signs_in(second, password[1])
        assert second.stop(signal.SIGTERM) == 0
        assert second.pids("") == []


@pytest.mark.parametrize("name", NAMES)
def test_a_process_that_dies_is_named_and_stops_the_whole(var_dir: Path, name: str):
    with running_shop(var_dir) as shop:
        os.kill(shop.pids(NAMES[name])[0], signal.SIGKILL)
        assert shop.process.wait(30) == 1
        assert f"{name} was ended by SIGKILL" in shop.output
        eventually(lambda: shop.pids("") == [], seconds=15, shop=shop)


def test_what_a_killed_run_leaves_keeps_the_folder(var_dir: Path):
    with running_shop(var_dir) as shop:
        shop.process.kill()
        shop.process.wait(10)
        left = shop.pids("")
        try:
            done = run_briefly(var_dir, PORT=str(free_pair()))
            assert (done.returncode, done.stdout) == (1, "")
            assert done.stderr.startswith(f"A shop already runs in {var_dir}")
        finally:
            for pid in left:
                os.kill(pid, signal.SIGKILL)
    assert left


def test_a_port_in_use_is_said_in_one_line_before_anything_starts(tmp_path: Path):
    port = free_pair()
    for taken in (port, port + 1):
        with socket.create_server(("127.0.0.1", taken)):
            done = run_briefly(tmp_path / "var", PORT=str(port))
        assert done.returncode == 1
        assert done.stderr.startswith(f"Port {taken}, which ")
        assert (len(done.stderr.splitlines()), done.stdout) == (1, "")


def test_a_port_that_is_no_number_is_said_in_one_line(tmp_path: Path):
    done = run_briefly(tmp_path / "var", PORT="eighty")
    assert (done.returncode, done.stderr) == (1, "PORT must be a number from 1 to 65534, not 'eighty'.\n")


def test_settings_that_do_not_fit_are_said_once_before_anything_starts(tmp_path: Path):
    done = run_briefly(tmp_path / "var", PORT=str(free_pair()), PROCESSING_DEADLINE_SECONDS="20")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("The settings do not fit together:\n  waistheart.E033: ")
    assert done.stderr.count("PROCESSING_DEADLINE_SECONDS") <= 3
    assert "Traceback" not in done.stderr
    assert not list((tmp_path / "var").glob("*.db"))


def test_a_second_shop_in_the_same_folder_is_refused_in_one_line(shop: Shop):
    done = run_briefly(shop.var_dir, PORT=str(free_pair()))
    assert done.returncode == 1
    assert done.stderr.startswith(f"A shop already runs in {shop.var_dir}")
    assert (len(done.stderr.splitlines()), done.stdout) == (1, "")


def test_the_worker_is_one_process_so_that_no_child_of_its_can_die_unseen(shop: Shop):
    assert len(shop.pids(NAMES["worker"])) == 1


def run_briefly(var_dir: Path, **settings: str) -> "subprocess.CompletedProcess[str]":
    environ = {"PATH": os.environ["PATH"], "VAR_DIR": str(var_dir), **settings}
    command = [sys.executable, "-m", "waistheart.run"]
    return subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=30)


def signs_in(shop: Shop, password: str) -> bool:
    """Sign in at the staff console with this password."""
    browser = requests.Session()
    page = browser.get(f"{shop.url}/admin/login/", timeout=30)
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page.text)
    assert token
    form = {"username": "staff@localhost", "password": password, "csrfmiddlewaretoken": token[1]}
    answer = browser.post(f"{shop.url}/admin/login/?next=/admin/", data=form, timeout=30)
    return answer.ok and answer.url.endswith("/admin/")
