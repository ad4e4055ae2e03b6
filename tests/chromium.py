"""Where this machine keeps a Chromium; the tests bring none of their own."""

import os
import shutil

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def chromium() -> str | None:
    """Return the path of a Chromium: the one that CHROMIUM names, else the first in PATH, else None."""
    if named := os.environ.get("CHROMIUM"):
        return named
    return next((path for name in NAMES if (path := shutil.which(name))), None)
