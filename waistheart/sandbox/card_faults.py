"""The card half's switches: what each does to a request, to a payment or to an event."""

from waistheart.sandbox.card_events import Manner
from waistheart.sandbox.faults import declare
from waistheart.sandbox.world import World

EVENT_FAULTS = {
    "event_lost": "lost",
    "event_doubled": "doubled",
    "event_late": "late",
    "event_bad_signature": "bad_signature",
    "event_unknown_type": "unknown_type",
    "event_lying": "lying",
    "event_other_version": "other_version",
}

declare("card_drop_before", "card: the connection closes before anything is done")
declare("card_drop_after", "card: the request is carried out, its answer is dropped")
declare("card_500", "card: HTTP 500, remembered for the idempotency key and replayed")
declare("card_error_503", "card: HTTP 503, nothing done, nothing remembered")
declare("card_429", "card: HTTP 429, too many requests")
declare("card_409", "card: HTTP 409, the key is in use by another request at this moment")
declare("card_403", "card: HTTP 403, the key may not do this")
declare("card_refuse_create", "card: HTTP 400 when a session is created")
declare("card_refuse_email", "card: HTTP 400, the customer's e-mail address is not taken")
declare("card_slow", "card: the request is carried out, its answer waits `seconds` (default 30)")
declare("card_garbage", "card: HTTP 200 with a page of HTML instead of JSON")
declare("wrong_amount", "card: the next payment takes `amount` instead of what was asked (default: 1 less)")
declare("wrong_currency", "card: the next payment is in `currency` instead (default: usd, or eur for usd)")
declare("event_lost", "card: the event is never sent")
declare("event_doubled", "card: the event is sent twice at once")
declare("event_late", "card: the event is sent after `seconds` (default 10)")
declare("event_bad_signature", "card: the event is signed with another secret")
declare("event_unknown_type", "card: the event has a type that nobody knows")
declare("event_lying", "card: an event says paid while it is not; also sent when a session is created")
declare("event_other_version", "card: the event is rendered in another API version and holds little more than ids")


def manner_of(world: World, *texts: str) -> Manner:
    """How the next event travels: plainly, or as the oldest fault that fits says."""
    fault = world.faults.take(*EVENT_FAULTS, texts=texts)
    if fault is None:
        return Manner()
    late = fault.name == "event_late"
    return Manner(EVENT_FAULTS[fault.name], fault.seconds("seconds", 10.0) if late else 0.0)
