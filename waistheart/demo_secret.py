"""Secrets of the demo: made once, kept in var/, never used when LIVE is on."""

import os
import secrets
from pathlib import Path


def demo_secret(var_dir: Path, name: str) -> str:
    """Return the secret kept in `var_dir/name`, making it (mode 600) at the first call; every later call returns the same."""
    path = var_dir / name
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        pass
    var_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Written whole under a private name and linked into place: a process that starts in the same moment reads a whole secret.
    draft = var_dir / f".{name}.{os.getpid()}.{secrets.token_hex(4)}"
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(secrets.token_urlsafe(48))
    try:
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()
    return path.read_text().strip()
