"""One line a thing to the terminal that the sandbox runs in."""

import sys


def say(text: str) -> None:
    """Write one line to the error output, named as ours."""
    sys.stderr.write(f"sandbox: {text}\n")
