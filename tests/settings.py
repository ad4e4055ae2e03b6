"""The shop's settings under test: a folder of its own, no address that leads anywhere, a database chosen by the lane.

`DATABASE_URL` decides the database; without it SQLite in a file, as in the demo. Processes that tests start use
`waistheart.settings`, never this file.
"""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

from waistheart.run.environment import sandbox_settings

# Port 9 discards: a test that forgot to start its sandbox fails at once instead of reaching one that happens to run.
NOWHERE = 9


def own_folder() -> Path:
    """Make the folder of this run, or join the one that the run above us (xdist) has made and will remove."""
    if "TESTS_VAR_DIR" not in os.environ:
        folder = tempfile.mkdtemp(prefix="waistheart-tests-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        os.environ["TESTS_VAR_DIR"] = folder
    folder = Path(os.environ["TESTS_VAR_DIR"]) / os.environ.get("PYTEST_XDIST_WORKER", "main")
    folder.mkdir(exist_ok=True)
    return folder


VAR = own_folder()
for name in (
    "LIVE",
    "DEBUG",
    "EMAIL_URL",
    "BROKER_URL",
    "S3_BUCKET",
    "S3_ENDPOINT_URL",
    "SANDBOX_HOSTS",
    "ALLOWED_HOSTS",
):
    os.environ.pop(name, None)
os.environ |= sandbox_settings(NOWHERE)["fal"] | sandbox_settings(NOWHERE)["stripe"]
os.environ |= {
    "READ_DOT_ENV": "0",
    "VAR_DIR": str(VAR),
    "SECRET_KEY": "only-for-tests",
    "PUBLIC_URL": "http://127.0.0.1:8000",
}

from waistheart.settings import *  # noqa: E402, F403  (the settings read what was set above)
from waistheart.settings import DATABASES, STORAGES  # noqa: E402

(VAR / "static").mkdir(exist_ok=True)
if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    # A file, not memory: locks, WAL and a second connection must be those of the real thing.
    DATABASES["default"]["TEST"] = {"NAME": str(VAR / "test.sqlite3")}
    # The data dies with the run: what is tested is locking, not the disk.
    options = DATABASES["default"]["OPTIONS"]
    options["init_command"] = options["init_command"].replace("synchronous=FULL", "synchronous=OFF")
else:
    DATABASES["default"]["CONN_MAX_AGE"] = 0
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
STORAGES["staticfiles"] = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
CELERY_BROKER_URL = BROKER_URL = "memory://"
CELERY_BROKER_TRANSPORT_OPTIONS: dict[str, object] = {}
