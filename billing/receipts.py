"""What the card processor tells us, in our words. The table from its words to ours is at the top."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from waistheart.wire import is_visible, plain

log = logging.getLogger(__name__)

Status = Literal["open", "pending", "paid", "expired", "failed"]

# (status, payment_status) of a Checkout Session; a complete unpaid one is "failed" when FAILED_INTENT says so.
STATUS: dict[tuple[str, str], Status] = {
    ("open", "unpaid"): "open",
    ("open", "paid"): "paid",
    ("complete", "paid"): "paid",
    ("complete", "no_payment_required"): "paid",
    ("complete", "unpaid"): "pending",
    ("expired", "unpaid"): "expired",
    ("expired", "paid"): "paid",
}
LONGEST_ID = 255  # what its column can hold
FAILED_INTENT = frozenset({"requires_payment_method", "canceled"})
# How a dispute ended: `lost` took its money for good, these took none. Every other word is one that is not over.
LOST, UNHARMED = "lost", frozenset({"won", "warning_closed", "prevented"})


@dataclass(frozen=True, kw_only=True)
class Session:
    """A checkout session that exists at the processor, and the address of its payment page."""

    id: str
    url: str


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """How one session stands at the processor at this moment.

    open: may still be paid. pending: completed, money on its way. paid: the money is there (see `refunded` and
    `disputed` for whether it stayed). expired: can no longer be paid. failed: completed, and the bank sent no money.
    Amounts are in the currency's smallest unit, `currency` in lower letters. `credits` and `reference` are what we
    gave along, None and "" when a foreign session has none.
    """

    session_id: str
    status: Status
    amount: int
    currency: str
    credits: int | None
    reference: str
    payment_intent: str | None
    charge: str | None
    refunded: int
    disputed: bool
    livemode: bool
    url: str | None


@dataclass(frozen=True, kw_only=True)
class Disputes:
    """What the disputes of one charge came to: money that its bank took for good, in the currency's smallest unit, and whether any
    may still take some."""

    taken: int
    over: bool


@dataclass(frozen=True, kw_only=True)
class EventRef:
    """The ids in a verified event. Nothing else of it is believed: read the objects."""

    id: str
    kind: str
    session_id: str | None
    payment_intent: str | None


def session_made(session: Any) -> Session:
    """Read a session that was just made; ValueError or AttributeError for an answer that names none."""
    return Session(id=ident_of(session), url=_address(session) or "")


def receipt(session: Any, *, session_id: str) -> Receipt:
    """Read a session object whose `payment_intent.latest_charge` is expanded; absent fields count as empty.

    ValueError, TypeError or AttributeError for what is not the session that was asked for, or holds sums that are no numbers.
    """
    if ident_of(session) != session_id:
        raise ValueError("an answer about another session")
    intent = field(session, "payment_intent")
    charge = field(intent, "latest_charge")
    metadata = field(session, "metadata")
    credits_given = str(field(metadata, "credits") or "")[:20]
    return Receipt(
        session_id=session_id,
        status=_status(session, intent),
        amount=_sum(field(session, "amount_total")),
        currency=plain(str(field(session, "currency") or "")).lower(),
        credits=int(credits_given) if credits_given.isascii() and credits_given.isdigit() else None,
        reference=field(session, "client_reference_id") or field(metadata, "reference") or "",
        payment_intent=ident(intent),
        charge=ident(charge),
        refunded=_sum(field(charge, "amount_refunded")),
        disputed=bool(field(charge, "disputed")),
        livemode=bool(field(session, "livemode")),
        url=_address(session),
    )


def disputes(found: Iterable[Any], *, currency: str) -> Disputes:
    """Read the disputes of a charge in this currency. None at all are not over: who asks has read that there is one.

    A loss in another currency cannot be compared with the charge; it counts as one that is not over. TypeError for sums that are no numbers.
    """
    taken, over = 0, []
    for one in found:
        status, same = field(one, "status"), str(field(one, "currency") or "").lower() == currency.lower()
        amount = _sum(field(one, "amount"))
        taken += amount if status == LOST and same else 0
        over.append(status in UNHARMED or (status == LOST and same))
    return Disputes(taken=taken, over=bool(over) and all(over))


def event_ref(event: dict[str, Any]) -> EventRef:
    """Take the ids out of an event's JSON, as rows can hold them; raises KeyError or TypeError for what is not an event.

    What cannot be the id of a session or of an intent is none: nothing of ours has it.
    """
    thing = event["data"]["object"]
    kind = thing.get("object")
    return EventRef(
        id=plain(str(event["id"]))[:LONGEST_ID],
        kind=plain(str(event["type"])),
        session_id=_usable(thing["id"]) if kind == "checkout.session" else None,
        payment_intent=_usable(thing["id"] if kind == "payment_intent" else thing.get("payment_intent")),
    )


def field(thing: Any, name: str) -> Any:
    """A field of a library object, or None: an absent one raises AttributeError there, an id alone has none."""
    return getattr(thing, name, None)


def ident_of(session: Any) -> str:
    """The id of a session, which no answer about one can lack."""
    found = _usable(session.id)
    if found is None:
        raise ValueError("a session without an id")
    return found


def ident(thing: Any) -> str | None:
    """The id of an object that may be expanded, an id alone, or missing."""
    return _usable(thing if isinstance(thing, str) else field(thing, "id"))


def _usable(given: Any) -> str | None:
    """An id as a row can hold it and a look can ask by it; None for anything else, which is no id."""
    return given if isinstance(given, str) and len(given) <= LONGEST_ID and is_visible(given) else None


def _address(session: Any) -> str | None:
    """Where a session's page is, if it says an address: one that has ended has none."""
    url = field(session, "url")
    return url if isinstance(url, str) and is_visible(url) else None


def _sum(value: Any) -> int:
    if value is not None and type(value) is not int:
        raise TypeError("a sum that is no whole number")
    return value or 0


def _status(session: Any, intent: Any) -> Status:
    words = (str(field(session, "status")), str(field(session, "payment_status")))
    if words not in STATUS:
        # Moves nothing, so that a new word costs a wait and an alarm, never money.
        log.error("unknown state of a checkout session: %s %s", session.id, words)
        return "pending" if words[0] == "complete" else "open"
    status = STATUS[words]
    if status == "pending" and field(intent, "status") in FAILED_INTENT:
        return "failed"
    return status
