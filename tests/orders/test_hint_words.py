"""Well signed events of the card processor with words in them that no row can hold."""

import json
from typing import Any

import pytest

from billing.receipts import event_ref, ident, ident_of
from tests.orders.facts import send_event
from tests.shop import Shop
from waistheart.models import Hint

UNFIT = ["\ud800", "a\0b", "a\nb", "", "e" * 300, "e" * 70_000, 7, None, {"x": 1}, ["\0"], True]


def named(given: Any, place: str) -> bytes:
    """An event that says this at one place."""
    thing = {"id": "cs_1", "object": "checkout.session"}
    event = {"id": "evt_1", "type": "some.thing", "data": {"object": thing}}
    if place == "intent":
        thing |= {"object": "charge", "payment_intent": given}
    elif place == "session":
        thing["id"] = given
    else:
        event[place] = given
    return json.dumps(event).encode()


@pytest.mark.parametrize("place", ["id", "type", "session", "intent"])
def test_what_no_row_can_hold_is_no_error_of_ours(shop: Shop, place: str) -> None:
    for given in UNFIT:
        answer = send_event(shop, named(given, place))
        assert answer.status_code == 200, given
    for hint in Hint.objects.all():
        assert (hint.event_id + hint.kind + hint.reference).isprintable()
        assert hint.outcome == "no such payment"


@pytest.mark.parametrize("given", UNFIT)
def test_an_id_that_cannot_be_kept_is_none(given: Any) -> None:
    event = json.loads(named(given, "session"))
    assert event_ref(event).session_id is None
    assert ident(given) is None
    with pytest.raises(ValueError, match="without an id"):
        ident_of(type("Session", (), {"id": given}))
