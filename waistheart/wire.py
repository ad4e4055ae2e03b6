"""What may stand in a header or a path of a request: settings and forms are asked before anything is sent with it."""

import re

# Owner, app, and as many steps below it as they like; a step of dots alone would lead elsewhere.
MODEL = re.compile(r"(?!.*(?:^|/)\.+(?:/|$))[A-Za-z0-9._-]+(?:/[A-Za-z0-9._-]+)+")
VISIBLE = re.compile(r"[!-~]+")


def is_model(name: str) -> bool:
    """Whether a model's name is one that an address can carry: owner/app, with or without a path below."""
    return bool(MODEL.fullmatch(name))


def is_visible(text: str) -> bool:
    """Whether a key or an address can stand in a request as it is: visible ASCII, not empty, no spaces."""
    return bool(VISIBLE.fullmatch(text))


def keys(setting: str) -> list[str]:
    """The keys of a setting that may hold several, separated by commas; the blanks and newlines of secret files are no part of one."""
    return [key for key in (part.strip() for part in setting.split(",")) if key]


def plain(text: str) -> str:
    """A stranger's text as a row can hold it: control characters, NUL above all, and halves of characters become spaces."""
    return "".join(letter if letter.isprintable() else " " for letter in text)
