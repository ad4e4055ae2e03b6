"""The switches: named faults, each for the next N acts it fits or for all of them.

A half of the sandbox declares its faults by name; the code at the place of the fault asks `take`. Nothing happens
by chance: a fault that was not pushed does not occur.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

KNOWN: dict[str, str] = {}
_DEFAULTS: dict[str, dict[str, Any]] = {}
NUMBERS = ("seconds", "pause_seconds", "share", "amount", "status")  # parameters that are a number wherever they occur


def declare(name: str, meaning: str, **defaults: Any) -> None:
    """Make a fault known under its name, with a line for the people who look at `/control/`, and its parameters."""
    KNOWN[name] = meaning
    _DEFAULTS[name] = defaults


class UnknownFaultError(ValueError):
    """Somebody asked for a fault that no part of the sandbox declares."""


@dataclass
class Fault:
    """One pushed fault. `times` is what is left of it (None: for all); `match` narrows it to texts that contain it."""

    name: str
    times: int | None = 1
    match: str = ""
    params: dict[str, Any] = field(default_factory=dict)
    used: int = 0

    def seconds(self, name: str, default: float) -> float:
        """A parameter as a number of seconds."""
        return float(self.params.get(name, default))

    def as_json(self) -> dict[str, Any]:
        times = "all" if self.times is None else self.times
        return {"fault": self.name, "times": times, "match": self.match, "used": self.used, **self.params}

    def fits(self, names: tuple[str, ...], texts: tuple[str, ...], params: dict[str, Any]) -> bool:
        if self.name not in names or self.times == 0:
            return False
        if self.match and not any(self.match in text for text in texts):
            return False
        return all(self.params.get(key, value) in (value, "any") for key, value in params.items())


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value) and value >= 0


class FaultQueue:
    """All faults in force, oldest first; safe to use from every thread."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []
        self._lock = threading.Lock()

    def push(self, body: dict[str, Any]) -> Fault:
        """Add one from its JSON: `fault`, `times` (a number or "all", default 1), `match`, and its parameters."""
        name, times = str(body.get("fault", "")), body.get("times", 1)
        given = {key: value for key, value in body.items() if key not in ("fault", "times", "match")}
        params = {**_DEFAULTS.get(name, {}), **given}
        if name not in KNOWN:
            raise UnknownFaultError(f"unknown fault {name!r}; known: {', '.join(sorted(KNOWN))}")
        if wrong := [key for key, value in params.items() if key in NUMBERS and not _is_number(value)]:
            raise ValueError(f"no number: {', '.join(sorted(wrong))}")
        fault = Fault(name, None if times == "all" else int(times), str(body.get("match", "")), params)
        with self._lock:
            self._faults.append(fault)
        return fault

    def take(
        self,
        *names: str,
        texts: tuple[str, ...] = (),
        only: Callable[[Fault], bool] | None = None,
        **params: Any,
    ) -> Fault | None:
        """Use up one occasion of the oldest fault with one of these names, or return None.

        `texts` is what `match` is looked for in. A keyword must equal the fault's parameter where the fault has it
        ("any" equals all). `only` may look at the fault and leave it for another occasion.
        """
        with self._lock:
            for fault in self._faults:
                if fault.fits(names, texts, params) and (only is None or only(fault)):
                    fault.used += 1
                    fault.times = None if fault.times is None else fault.times - 1
                    return fault
        return None

    def clear(self, *names: str) -> None:
        """Forget the faults with these names, or all of them."""
        with self._lock:
            self._faults = [fault for fault in self._faults if names and fault.name not in names]

    def as_json(self) -> list[dict[str, Any]]:
        """Every fault pushed and not cleared; a used-up one stays with `times` 0, so that its use can be counted."""
        with self._lock:
            return [fault.as_json() for fault in self._faults]
