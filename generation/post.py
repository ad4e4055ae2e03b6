"""The one paid POST, in the words of its outcome: nothing was sent, an answer came, or nobody knows."""

from collections.abc import Callable, Mapping

from generation.exchange import Answer, NoAnswer, NothingSent, exchange
from generation.providers.base import NotSent, UnknownOutcome

MAX_ANSWER_BYTES = 1024 * 1024


def post_once(
    url: str, *, headers: Mapping[str, str], body: bytes, deadline_seconds: float, may_send: Callable[[], bool]
) -> Answer:
    """Send `body` once and read the whole answer. NotSent: not a byte left us. UnknownOutcome: bytes left, no whole answer came."""

    def ask() -> None:
        if not may_send():
            raise NotSent("the lease was too old to send")

    try:
        return exchange(
            "POST",
            url,
            headers=headers,
            body=body,
            seconds=deadline_seconds,
            limit=MAX_ANSWER_BYTES,
            before_first_byte=ask,
        )
    except NothingSent as error:
        raise NotSent(str(error)) from error
    except NoAnswer as error:
        raise UnknownOutcome(str(error)) from error
