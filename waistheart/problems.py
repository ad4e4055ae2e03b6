"""What a rule about the settings finds wrong."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """One reason why this installation must not sell: a stable id, what is wrong, and what to do."""

    id: str
    message: str
    hint: str

    def __str__(self) -> str:
        return f"{self.id}: {self.message}"


@dataclass(frozen=True)
class Rule:
    """One rule: its id, when it holds (with LIVE, without, or both), what finds its breaches, and what to do about one."""

    id: str
    live: bool | None
    find: Callable[[], Iterable[str]]
    hint: str


def broken(rules: Sequence[Rule], *, live: bool) -> list[Problem]:
    """Every breach of the rules that hold now, in their order; messages name settings and hosts, never a secret."""
    return [
        Problem(rule.id, message, rule.hint) for rule in rules if rule.live in (None, live) for message in rule.find()
    ]
