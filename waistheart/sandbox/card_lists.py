"""Lists of the card processor, newest first and paged by `starting_after`, and objects named by `expand[]`."""

import copy
from collections.abc import Iterable
from typing import Any

from waistheart.sandbox import card_errors as errors
from waistheart.sandbox.card_form import mapping, texts, whole_number
from waistheart.sandbox.card_objects import JsonObject, list_object
from waistheart.sandbox.world import World

PAGING = frozenset({"limit", "starting_after", "created", "expand"})
BOUNDS = {"gte": int.__ge__, "gt": int.__gt__, "lte": int.__le__, "lt": int.__lt__}


def page(params: JsonObject, things: Iterable[JsonObject], *, url: str, filters: frozenset[str]) -> JsonObject:
    """One page of these objects (given oldest first) that fit `created[...]` and each filter given as a parameter."""
    if unknown := set(params) - PAGING - filters:
        raise errors.unknown(min(unknown))
    limit = whole_number(params, "limit", default=10)
    if not 1 <= limit <= 100:
        raise errors.invalid("limit", "This value must be between 1 and 100")
    rows = [thing for thing in things if _fits(params, thing, filters)][::-1]
    rows = rows[_start(params, rows) :]
    return list_object(url=url, items=rows[:limit], has_more=len(rows) > limit)


def expanded(world: World, thing: JsonObject, params: JsonObject) -> JsonObject:
    """A copy with the objects in place that `expand[]` names, also by path (`payment_intent.latest_charge`)."""
    thing = copy.deepcopy(thing)
    for path in texts(params, "expand"):
        _expand(world, thing, path.split("."), path)
    return thing


def _fits(params: JsonObject, thing: JsonObject, filters: frozenset[str]) -> bool:
    created = params.get("created", {})
    bounds = {"gte": created, "lte": created} if isinstance(created, str) else mapping(params, "created")
    for name, value in bounds.items():
        if name not in BOUNDS or not str(value).isdigit():
            raise errors.invalid(f"created[{name}]", "Invalid timestamp")
        if not BOUNDS[name](thing["created"], int(value)):
            return False
    return all(thing.get(name) == params[name] for name in filters if name in params)


def _start(params: JsonObject, rows: list[JsonObject]) -> int:
    after = params.get("starting_after")
    if after is None:
        return 0
    for number, row in enumerate(rows):
        if row["id"] == after:
            return number + 1
    raise errors.missing("object", str(after), param="starting_after")


def _expand(world: World, thing: JsonObject, steps: list[str], path: str) -> None:
    name, rest = steps[0], steps[1:]
    if thing["object"] == "list" and name == "data" and rest:
        for row in thing["data"]:
            _expand(world, row, rest, path)
        return
    if name not in _EXPANDABLE:
        message = f"This property cannot be expanded ({path})."
        raise errors.CardError(message, code="property_cannot_be_expanded", param="expand")
    if name == "line_items" and thing["object"] == "checkout.session":
        items = world.collection("items")[thing["id"]]["items"]
        url = f"/v1/checkout/sessions/{thing['id']}/line_items"
        thing["line_items"] = list_object(url=url, items=copy.deepcopy(items), has_more=False)
        return
    value: Any = thing.get(name)
    if isinstance(value, str):
        thing[name] = copy.deepcopy(world.collection(_EXPANDABLE[name])[value])
    if rest and isinstance(thing.get(name), dict):
        _expand(world, thing[name], rest, path)


_EXPANDABLE = {
    "payment_intent": "intents",
    "latest_charge": "charges",
    "charge": "charges",
    "line_items": "items",
}
