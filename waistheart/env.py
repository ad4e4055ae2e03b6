"""The environment, read strictly. A file `.env` beside `manage.py` is read first; what the environment sets itself wins."""

from pathlib import Path

import environ

BASE_DIR = Path(__file__).resolve().parent.parent
env = environ.Env()
if env.bool("READ_DOT_ENV", default=True) and (BASE_DIR / ".env").exists():
    environ.Env.read_env(BASE_DIR / ".env")


def strict_bool(name: str, default: bool = False) -> bool:
    """Only 1/0, true/false, yes/no: a typo in a switch must stop the start, not flip it."""
    word = env.str(name, default="1" if default else "0").strip().lower()
    if word in {"1", "true", "yes"}:
        return True
    if word in {"0", "false", "no", ""}:
        return False
    raise environ.ImproperlyConfigured(f"{name} must be 1 or 0, not {word!r}")
