"""What the sandbox knows: one object in memory, written down now and then so that a restart forgets no work."""

import base64
import json
import os
import tempfile
import threading
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from waistheart.sandbox.faults import FaultQueue


@dataclass
class Settings:
    """How this sandbox is set up; `delay_seconds` is the shortest time a video takes."""

    delay_seconds: float = 3.0
    shop_url: str = "http://127.0.0.1:8000"
    fal_key: str = "sandbox-fal-key"
    stripe_key: str = "sk_test_sandbox"
    stripe_webhook_secret: str = "whsec_sandbox"

    @property
    def stripe_webhook_url(self) -> str:
        """Where signed card events go."""
        return f"{self.shop_url.rstrip('/')}/hints/stripe/"


@dataclass
class FalRequest:
    """One accepted request of the video queue. Times are seconds since 1970; `outcome` is what it comes to.

    outcome: "" (still open), done, failed, refused, image_error, cancelled.
    """

    request_id: str
    endpoint: str
    input: dict[str, Any]
    webhook_url: str
    sent_at: float
    ready_at: float
    started_at: float | None = None
    ended_at: float | None = None
    outcome: str = ""
    detail: list[dict[str, Any]] | dict[str, Any] | None = None
    status_code: int | None = None
    file_name: str = ""
    file_size: int = 0
    billed: bool = False
    never_ends: bool = False
    quirks: dict[str, Any] = field(default_factory=dict)

    @property
    def app(self) -> str:
        """The owner and app of the endpoint, without the path below them."""
        return "/".join(self.endpoint.split("/")[:2])

    @property
    def status(self) -> str:
        """The queue's own word for where it stands."""
        if self.ended_at is not None:
            return "COMPLETED"
        return "IN_QUEUE" if self.started_at is None else "IN_PROGRESS"


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
        self._state_file = state_file
        self._changed = threading.Event()
        self._temporary = None if state_file else tempfile.TemporaryDirectory(prefix="sandbox-")
        self.media_dir = Path(self._temporary.name) if self._temporary else _beside(state_file)
        if state_file:
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
            return json.loads(
                json.dumps(
                    {
                        "delay_seconds": self.settings.delay_seconds,
                        "accepted": len(requests),
                        "billed": sum(request["billed"] for request in requests),
                        "fal": requests,
                        "card": self.card,
                        "events": self.events,
                        "faults": self.faults.as_json(),
                    }
                )
            )

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
        os.replace(draft, self._state_file)

    def _load(self, path: Path) -> None:
        if not path.exists():
            return
        state = json.loads(path.read_text())
        self.signing_key = Ed25519PrivateKey.from_private_bytes(base64.b64decode(state["signing_key"]))
        self.fal = {row["request_id"]: FalRequest(**row) for row in state["fal"]}
        self.card, self.events = state["card"], state["events"]

    def _keep(self) -> None:
        while self._changed.wait():
            self._changed.clear()
            self.save()
            time.sleep(0.25)


def _beside(state_file: Path | None) -> Path:
    assert state_file is not None
    folder = state_file.parent / f"{state_file.stem}-media"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
