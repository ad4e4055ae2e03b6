"""Four kinds of trouble with the card processor, and how its library's errors become one of them."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import stripe
from django.core.exceptions import ImproperlyConfigured

from waistheart.wire import plain

KEY = re.compile(r"\b(sk|rk|whsec)_\w+")


class GatewayError(Exception):
    """Root of what a gateway raises; never holds a key."""

    def __init__(self, message: str, *, code: str = "") -> None:
        super().__init__(f"{code}: {message}" if code else message)
        self.message = message
        self.code = code


class GatewayUnavailable(GatewayError):
    """No usable answer: try the same call again later, a creation under the same key.

    `replayed`: the processor keeps this answer under that key and repeats it for a day: only another key gets another one.
    """

    replayed = False


class GatewayRefused(GatewayError):
    """The processor read the request and will not do it; `code` is its word for why."""


class GatewayUnreadable(GatewayUnavailable):
    """An answer that we cannot read: something in between, another version of theirs, or a fault of ours. Asked again, and told."""


class GatewayMisconfigured(GatewayError, ImproperlyConfigured):
    """Our key or our settings are wrong, or live and sandbox are mixed: an operator's affair, never the customer's."""


class BadSignature(GatewayError):
    """An event that the processor did not sign, or signed too long ago."""


class UnreadableEvent(GatewayError):
    """A well signed event that we cannot read: answer with an error, so that it is sent again."""


@contextmanager
def translated() -> Iterator[None]:
    """Turn every error of the library, and of reading what it answered, into one of ours.

    An answer that is no object of theirs (a proxy's `{}`, a list, nothing) tells as little as none.
    """
    try:
        yield
    except stripe.StripeError as error:
        raise _ours(error) from error
    except (AttributeError, TypeError, ValueError, KeyError) as error:
        raise GatewayUnreadable(f"unreadable answer: {type(error).__name__}") from error


def _ours(error: stripe.StripeError) -> GatewayError:
    message = plain(KEY.sub(r"\1_***", error.user_message or "no message"))[:300]
    status = error.http_status or 0
    kind = error.error.type if error.error is not None else ""
    code = error.code or kind or ""
    if status in (401, 403):
        return GatewayMisconfigured(message, code=code)
    if 400 <= status < 500 and status != 409 and not isinstance(error, stripe.RateLimitError):
        return GatewayRefused(message, code=code)
    unavailable = GatewayUnavailable(message, code=code)
    headers = {name.lower(): value for name, value in (error.headers or {}).items()}
    unavailable.replayed = headers.get("idempotent-replayed") == "true"
    return unavailable
