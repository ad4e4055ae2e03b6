"""What the sandbox knows: one object in memory, written down now and then so that a restart forgets no work."""

import base64
import copy
import json
import queue
import tempfile
import threading
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from waistheart.sandbox.faults import FaultQueue
from waistheart.sandbox.say import say


@dataclass
class Settings:
    """How this sandbox is set up.

    `delay_seconds` is the shortest time a video takes, `film_height` how tall it is in pixels; its width is 9/16 of that.
    """

    delay_seconds: float = 3.0
    film_height: int = 1280
    shop_url: str = "http://127.0.0.1:8000"
    fal_key: str = "sandbox-fal-key"
    stripe_key: str = "sk_test_sandbox"
    stripe_webhook_secret: str = "whsec_sandbox"  # noqa: S105 - known to everybody, and worth nothing

    @property
    def stripe_webhook_url(self) -> str:
        """Where signed card events go."""
        return f"{self.shop_url.rstrip('/')}/hints/stripe/"


@dataclass
class FalRequest:
    """One accepted request of the video queue. Times are seconds since 1970.

    outcome: what it comes to: "" (not known yet), done, failed, refused, image_error, cancelled. It shows only once
    `ended_at` is set, never before `ready_at`. error: the body of the result when it is not a video. quirks: the faults
    that were decided when it was accepted, by name. expired: addresses of its file that no longer work.
    """

    request_id: str
    endpoint: str
    input: dict[str, Any]
    webhook_url: str
    base_url: str
    sent_at: float
    ready_at: float
    started_at: float | None = None
    ended_at: float | None = None
    outcome: str = ""
    status_code: int = 200
    error: dict[str, Any] = field(default_factory=dict)
    file_size: int = 0
    billed: bool = False
    never_ends: bool = False
    quirks: dict[str, dict[str, Any]] = field(default_factory=dict)
    expired: list[str] = field(default_factory=list)
    reads: dict[str, int] = field(default_factory=dict)

    @property
    def app(self) -> str:
        """The owner and app of the endpoint, without the path below them."""
        return "/".join(self.endpoint.split("/")[:2])

    @property
    def image_url(self) -> str:
        """The image address in the input."""
        return image_address(self.input)

    @property
    def status(self) -> str:
        """The queue's own word for where it stands."""
        if self.ended_at is not None:
            return "COMPLETED"
        return "IN_QUEUE" if self.started_at is None else "IN_PROGRESS"


def image_address(body: dict[str, Any]) -> str:
    """The image address in a model's input, under whatever name the model gives it; empty when there is none."""
    names = sorted(name for name in body if name.endswith("image_url") and isinstance(body[name], str))
    return str(body[names[0]]) if names else ""


class World:
    """Everything the sandbox remembers. Hold `lock` while changing it and call `touch()` after a change.

    `card` belongs to the card half: named collections of plain JSON objects by id. `events` lists every webhook and
    card event that was sent, with the shop's answer.
    """

    def __init__(self, settings: Settings | None = None, *, state_file: Path | None = None) -> None:
        self.lock = threading.RLock()
        self.settings = settings or Settings()
        self.faults = FaultQueue()
        self.fal: dict[str, FalRequest] = {}
        self.card: dict[str, dict[str, Any]] = {}
        self.events: list[dict[str, Any]] = []
        self.signing_key = Ed25519PrivateKey.generate()
        self.to_render: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.to_end: queue.PriorityQueue[tuple[float, str]] = queue.PriorityQueue()
        self._state_file = state_file
        self._changed = threading.Event()
        self._temporary = (
            None if state_file else tempfile.TemporaryDirectory(prefix="sandbox-", ignore_cleanup_errors=True)
        )
        self.media_dir = Path(self._temporary.name) if self._temporary else Path()
        if state_file:
            self.media_dir = state_file.parent / f"{state_file.stem}-media"
            self.media_dir.mkdir(parents=True, exist_ok=True)
            self._load(state_file)
            threading.Thread(target=self._keep, daemon=True, name="sandbox-state").start()

    def collection(self, name: str) -> dict[str, Any]:
        """One named collection of the card half, made empty on first use."""
        with self.lock:
            return self.card.setdefault(name, {})

    def record_event(self, **event: Any) -> None:
        """Remember one event that was sent (or deliberately not)."""
        with self.lock:
            self.events.append({"at": time.time(), **event})
            self.touch()

    def touch(self) -> None:
        """Say that something changed: it is written down within a quarter of a second."""
        self._changed.set()

    def reset(self) -> None:
        """Forget requests, card objects, events and faults; keys and settings stay."""
        with self.lock:
            self.fal.clear()
            self.card.clear()
            self.events.clear()
            self.faults.clear()
            self.touch()

    def as_json(self) -> dict[str, Any]:
        """All of it but keys, as `/control/state` shows it."""
        with self.lock:
            requests = [asdict(request) | {"status": request.status} for request in self.fal.values()]
            return {
                "delay_seconds": self.settings.delay_seconds,
                "accepted": len(requests),
                "billed": sum(request["billed"] for request in requests),
                "fal": requests,
                "card": copy.deepcopy(self.card),
                "events": list(self.events),
                "faults": self.faults.as_json(),
            }

    def save(self) -> None:
        """Write the state file, if there is one, in one step: a reader sees the old or the new file."""
        if self._state_file is None:
            return
        with self.lock:
            raw = self.signing_key.private_bytes_raw()
            state = {
                "signing_key": base64.b64encode(raw).decode(),
                "fal": [asdict(request) for request in self.fal.values()],
                "card": self.card,
                "events": self.events[-200:],
            }
            text = json.dumps(state)
        draft = self._state_file.with_suffix(".new")
        draft.touch(mode=0o600)
        draft.write_text(text)
        draft.replace(self._state_file)

    def close(self) -> None:
        """Write everything down and remove what was only for this run; nothing may be used afterwards."""
        self.save()
        if self._temporary is not None:
            self._temporary.cleanup()

    def _load(self, path: Path) -> None:
        if not path.exists():
            return
        try:
            state = json.loads(path.read_text())
            self.signing_key = Ed25519PrivateKey.from_private_bytes(base64.b64decode(state["signing_key"]))
            self.fal = {row["request_id"]: FalRequest(**row) for row in state["fal"]}
            self.card, self.events = state["card"], state["events"]
        except (ValueError, KeyError, TypeError) as error:
            # Written by another version: the demo starts with an empty memory rather than not at all.
            say(f"{path} cannot be read ({error!r}); starting empty")

    def _keep(self) -> None:
        while self._changed.wait():
            self._changed.clear()
            self.save()
            time.sleep(0.25)
