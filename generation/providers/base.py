"""Our words for what a provider can do, say and fail at. An adapter translates; nobody else reads its HTTP codes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol

from waistheart.wire import plain


class ProviderError(Exception):
    """Root of what an adapter raises. `detail` is the provider's own text, for staff only, never a key."""

    def __init__(self, detail: str = "") -> None:
        detail = plain(detail)
        super().__init__(detail)
        self.detail = detail[:300]


class OutOfCredits(ProviderError):
    """Our account there has no money. Not the customer's failure."""


class RateLimited(ProviderError):
    """Not accepted: too fast or too many. `retry_after` in seconds, when the provider says."""

    def __init__(self, detail: str = "", *, retry_after: float | None = None) -> None:
        super().__init__(detail)
        self.retry_after = retry_after


class Rejected(ProviderError):
    """The photo or prompt was refused: `kind` is moderation or invalid_input. Trying the same again does not help."""

    def __init__(self, detail: str = "", *, kind: str) -> None:
        super().__init__(detail)
        self.kind = kind


class Misconfigured(ProviderError):
    """Wrong key, address or model; `model_only` when just this model is refused. An operator must act; the job waits."""

    def __init__(self, detail: str = "", *, model_only: bool = False) -> None:
        super().__init__(detail)
        self.model_only = model_only


class ForeignHost(Misconfigured):
    """A finished result lies on a host that we do not pin: theirs moved, or our list is wrong. The video is paid and waits."""


class Unavailable(ProviderError):
    """A read failed, or a POST was definitely not accepted, for passing reasons. `image`: it could not load our image address;
    `this_only`: it answered, about this one request, so the account is none the worse."""

    def __init__(self, detail: str = "", *, image: bool = False, this_only: bool = False) -> None:
        super().__init__(detail)
        self.image = image
        self.this_only = this_only


class NotSent(ProviderError):
    """Not one byte of the POST left us: the connection never came up, or the lease was too old."""


class UnknownOutcome(ProviderError):
    """Bytes left us and no answer that we know came: it may have been accepted. `server_error`: it did answer, with a 5xx or any
    other status that is neither an acceptance nor one of its known refusals; that counts as a failure of the account."""

    def __init__(self, detail: str = "", *, server_error: bool = False) -> None:
        super().__init__(detail)
        self.server_error = server_error


class BadSignature(ProviderError):
    """A callback that does not carry the provider's signature, or is too old."""


class State(StrEnum):
    """What the provider says of a submission, in our words."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    REFUSED = "refused"
    CANCELLED = "cancelled"
    GONE = "gone"


@dataclass(frozen=True)
class Ask:
    """Everything one paid POST says. The image address is unique to it, which is how a lost one is found again."""

    key: str
    model: str
    prompt: str
    parameters: Mapping[str, Any]
    image_url: str
    callback_url: str


@dataclass(frozen=True)
class Handle:
    """How the provider knows an accepted submission."""

    external_id: str
    status_url: str = ""
    result_url: str = ""
    cancel_url: str = ""


@dataclass(frozen=True)
class Snapshot:
    """One reading: the state, the provider's own words, whether a failure is known not to be billed, and where the video lies.

    `unknown_word`: a status that nobody here knows; it is taken for running, and somebody is told.
    """

    state: State
    detail: str = ""
    kind: str = ""
    unbilled: bool = False
    url: str = ""
    unknown_word: str = ""


@dataclass(frozen=True)
class HintRef:
    """What a verified callback may tell: its own id, and which external id it speaks of."""

    event_id: str
    external_id: str


class Provider(Protocol):
    """One adapter. Reads may be repeated at will; `submit` is called once per committed submission."""

    name: str
    media_hosts: list[str]

    def key_print(self) -> str:
        """A short fingerprint of the key in use, to tell accounts apart."""

    def submit(self, ask: Ask, *, may_send: Callable[[], bool]) -> Handle:
        """Send the one paid POST. `may_send` is asked when the connection stands, just before the first byte; False raises NotSent."""

    def recover(self, ask: Ask, *, since: datetime) -> Handle | None:
        """Look whether the provider knows a submission with this image address; None: cannot tell."""

    def fetch_status(self, handle: Handle, *, model: str) -> Snapshot:
        """Read how it is doing, and where done, the result's address."""

    def cancel(self, handle: Handle, *, model: str) -> None:
        """Ask to cancel; the answer decides nothing."""

    def probe(self, *, model: str) -> None:
        """A free read that shows whether the provider answers us; raises like any other read."""

    def verify_hint(self, headers: Mapping[str, str], raw: bytes) -> HintRef:
        """Check a callback's signature over its raw body; BadSignature otherwise."""
