"""How the shop logs: lines to the error output, without what opens an order and without anybody's address.

Whoever reads a log must not be able to read customers' photos. An order's code stays: it opens nothing and finds everything.
"""

import copy
import logging
import re
from typing import Any

GONE = "…"
SECRETS = (
    # Each keeps its first group: the path up to an order's key, a token of a picture or of a callback.
    re.compile(r"(/o/[A-Z0-9]{8}-)[\w-]+"),
    re.compile(r"(/make/)[\w-]{24}(?![\w-])"),
    # A payment's key opens its order for a day, on the way back from its page; eight letters find it as well.
    re.compile(r"(/pay/cancelled/)[\w-]+"),
    re.compile(r"(\bpayment [0-9a-f]{8})[0-9a-f]{24}\b"),
    re.compile(r"(/portraits/)[\w:-]+"),
    re.compile(r"(/hints/[\w-]+/)[\w-]+"),
    # A session of the card processor opens the order it pays for.
    re.compile(r"(\bsession=)[^&\s\"']+"),
    re.compile(r"(\bcs_(?:live|test)_)\w+"),
    re.compile(r"()[^\s@<>\"'=(\[{]+@[\w-]+(?:\.[\w-]+)+"),
)
# They log whole addresses, keys of blobs among them, at the levels below.
QUIETER = {"stripe": "WARNING", "urllib3": "INFO", "botocore": "INFO", "boto3": "INFO", "s3transfer": "INFO"}
GUNICORN = ("gunicorn.error", "gunicorn.access")


def masked(text: str) -> str:
    """The text without keys, tokens, sessions and e-mail addresses; masking it again changes nothing."""
    for secret in SECRETS:
        text = secret.sub(rf"\g<1>{GONE}", text)
    return text


class Discreet(logging.Formatter):
    """Masks the whole line, its traceback included. A request that was refused has none: anybody could fill the log with them."""

    def format(self, record: logging.LogRecord) -> str:
        if getattr(record, "status_code", 500) < 500:
            record = copy.copy(record)
            record.exc_info = record.exc_text = None
        return masked(super().format(record))


class Masked(logging.Filter):
    """Masks the message of a logger whose handlers are not ours."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = masked(record.getMessage()), None
        return True


def configuration(*, level: str) -> dict[str, Any]:
    """Django's LOGGING: everything of this level and above through one handler, Django's own messages included."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"()": Discreet, "format": "%(asctime)s %(levelname)s %(name)s %(message)s"}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line", "level": level}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            "django": {"handlers": [], "level": level, "propagate": True},
            "django.server": {"handlers": [], "level": level, "propagate": True},
            **{name: {"level": least} for name, least in QUIETER.items()},
        },
    }


def mask_gunicorn() -> None:
    """Mask what the web server logs by itself: it has handlers of its own. A second call changes nothing."""
    for name in GUNICORN:
        logger = logging.getLogger(name)
        if not any(isinstance(one, Masked) for one in logger.filters):
            logger.addFilter(Masked())
