"""One answer per idempotency key: a repeat gets the saved one, other parameters under the same key are refused."""

import hashlib
import json
import time
from dataclasses import dataclass

from waistheart.sandbox import card_errors as errors
from waistheart.sandbox.card_objects import JsonObject
from waistheart.sandbox.world import World

REMEMBERED_SECONDS = 24 * 3600


@dataclass(frozen=True)
class SavedAnswer:
    """A status and body given before, and the request that got them first."""

    status: int
    body: JsonObject
    request_id: str


def recall(world: World, *, key: str, path: str, params: JsonObject) -> SavedAnswer | None:
    """The answer saved for this key, or None; raises CardError (400) for other parameters than the first time."""
    with world.lock:
        row = world.collection("answers").get(key)
        if row is None or row["at"] < time.time() - REMEMBERED_SECONDS:
            return None
        if row["print"] != _print(path, params):
            raise errors.CardError(
                "Keys for idempotent requests can only be used with the same parameters they were first used with. "
                f"Try using a key other than '{key}' if you meant to execute a different request.",
                kind="idempotency_error",
            )
        return SavedAnswer(row["status"], row["body"], row["request_id"])


def remember(world: World, *, key: str, path: str, params: JsonObject, answer: SavedAnswer) -> None:
    """Save the answer for this key, for 24 hours."""
    with world.lock:
        world.collection("answers")[key] = {
            "print": _print(path, params),
            "status": answer.status,
            "body": answer.body,
            "request_id": answer.request_id,
            "at": time.time(),
        }
        world.touch()


def _print(path: str, params: JsonObject) -> str:
    return hashlib.sha256(json.dumps([path, params], sort_keys=True).encode()).hexdigest()
