"""What happens once and alone before any process of the shop starts: migrations, static files, the demo's content."""

import hashlib
import sys
from pathlib import Path

import django
from django.conf import settings
from django.contrib.staticfiles import finders
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.utils.module_loading import import_string


def main() -> None:
    """Bring the database and the static files up to date; load the demo unless the shop is live. Safe to repeat."""
    django.setup()
    check_settings()
    print("Migrating the database ...", flush=True)
    call_command("migrate", interactive=False, verbosity=0)
    collect_static()
    if not settings.LIVE:
        print("Loading poses and the staff user ...", flush=True)
        call_command("demo")


def check_settings() -> None:
    """Say once, before anything is touched, what each process would refuse to start with."""
    try:
        import_string("waistheart.live.refuse_unfit_settings")()
    except ImproperlyConfigured as error:
        sys.exit(f"The settings do not fit together:{error}")


def collect_static() -> None:
    """Collect the static files, but only when one of them has changed since the last time."""
    stamp = Path(settings.STATIC_ROOT) / ".collected"
    now = static_fingerprint()
    if stamp.exists() and stamp.read_text() == now:
        return
    print("Collecting static files ...", flush=True)
    call_command("collectstatic", interactive=False, verbosity=0)
    stamp.write_text(now)


def static_fingerprint() -> str:
    """Name the set of static files as it is now: each path with its size and time of change."""
    seen = hashlib.sha256(repr(settings.STORAGES["staticfiles"]).encode())
    for finder in finders.get_finders():
        for path, storage in finder.list([]):
            about = Path(storage.path(path)).stat()
            seen.update(f"{path} {about.st_size} {about.st_mtime_ns}\n".encode())
    return seen.hexdigest()


if __name__ == "__main__":
    main()
