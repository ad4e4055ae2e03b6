"""A state machine as data: named moves from states to a state. The code that moves, the documents and the tests read the same table."""

from collections.abc import Iterator
from dataclasses import dataclass, field

MINE, FREE, FREE_OR_MINE, ANY = "mine", "free", "free or mine", "-"


@dataclass(frozen=True)
class Move:
    """One named move. `lease` says which lease the guard demands; the other words tell what happens with it, for people."""

    name: str
    sources: tuple[str, ...]
    target: str
    lease: str = ANY
    credits: str = "-"
    submission: str = "-"
    by: str = ""


@dataclass(frozen=True)
class Machine:
    """All states of one kind of row, and every move between them. What is not declared is refused."""

    name: str
    states: tuple[str, ...]
    initial: str
    final: frozenset[str]
    moves: tuple[Move, ...]
    note: str = ""
    by_name: dict[str, Move] = field(init=False, repr=False, hash=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_name", {move.name: move for move in self.moves})
        if len(self.by_name) != len(self.moves):
            raise ValueError(f"{self.name}: two moves share a name")
        for move in self.moves:
            unknown = {*move.sources, move.target} - set(self.states)
            if unknown or move.target in move.sources or self.final & set(move.sources):
                raise ValueError(f"{self.name}.{move.name}: impossible move")

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Every ordered pair of different states."""
        return ((a, b) for a in self.states for b in self.states if a != b)

    def declared(self) -> set[tuple[str, str]]:
        """The pairs some move covers."""
        return {(source, move.target) for move in self.moves for source in move.sources}

    def allows(self, source: str, target: str) -> bool:
        """Whether any move leads from `source` to `target`."""
        return (source, target) in self.declared()

    def move(self, name: str, source: str) -> Move:
        """The declared move of that name from that source; KeyError for an unknown name, ValueError for a refused pair."""
        move = self.by_name[name]
        if source not in move.sources:
            raise ValueError(f"{self.name}: {name} does not start from {source}")
        return move
