"""`manage.py states`: every machine as tables and diagrams, from the same data that the moves use. `docs/states.md` is its output."""

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from django.core.management.base import BaseCommand

from billing.states import HOLD, PAYMENT
from generation.states import JOB, SUBMISSION
from orders.states import MAIL, ORDER
from waistheart.machine import Machine

MACHINES = (JOB, SUBMISSION, ORDER, PAYMENT, HOLD, MAIL)
COLUMNS = ("move", "from -> to", "lease", "credits", "submission", "by")
HEAD = """\
<!-- Generated: `manage.py states > docs/states.md`. Change the tables in states.py, never this file; `make check` compares. -->

# States and moves

Every state of every kind of row, and every move between them. What is not in a table is refused, by the code and by a test that
walks all ordered pairs.
"""


class Command(BaseCommand):
    """Reads no database, so that it also answers where nothing is set up."""

    help = "Print every state machine as Markdown tables and Mermaid diagrams: the text of docs/states.md."
    requires_system_checks: list[str] = []
    requires_migrations_checks = False

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(document(), ending="")


def document() -> str:
    """The whole text, ending with a line break."""
    return "\n".join([HEAD, *("\n".join(chapter(machine)) for machine in MACHINES)])


def chapter(machine: Machine) -> Iterator[str]:
    """One machine: what counts, its moves, its picture."""
    yield f"## {machine.name}\n"
    yield f"{counts(machine)}\n"
    if machine.note:
        yield f"{machine.note}\n"
    yield from table(machine)
    yield ""
    yield from diagram(machine)
    yield ""


def counts(machine: Machine) -> str:
    """How many states, ordered pairs, declared and refused ones there are, and which states are final."""
    pairs, declared = len(list(machine.pairs())), len(machine.declared())
    final = [state for state in machine.states if state in machine.final]
    return (
        f"{len(machine.states)} states, {pairs} ordered pairs: {declared} declared by {len(machine.moves)} moves, "
        f"{pairs - declared} refused. First: {machine.initial}. Final: {', '.join(final)}."
    )


def table(machine: Machine) -> Iterator[str]:
    """The moves, in the order of the code."""
    yield f"| {' | '.join(COLUMNS)} |"
    yield f"|{'---|' * len(COLUMNS)}"
    for move in machine.moves:
        path = f"{', '.join(move.sources)} -> {move.target}"
        cells = (f"`{move.name}`", path, move.lease, move.credits, move.submission, move.by or "-")
        yield f"| {' | '.join(cells)} |"


def diagram(machine: Machine) -> Iterator[str]:
    """A Mermaid picture with one arrow for each declared pair; moves that share a pair share its arrow."""
    arrows = [(source, move.target, move.name) for move in machine.moves for source in move.sources]
    yield "```mermaid\nstateDiagram-v2"
    yield f"    [*] --> {machine.initial}"
    ordered = sorted(arrows, key=lambda arrow: (machine.states.index(arrow[0]), machine.states.index(arrow[1])))
    for (source, target), same in groupby(ordered, key=lambda arrow: arrow[:2]):
        yield f"    {source} --> {target}: {', '.join(name for _, _, name in same)}"
    yield from (f"    {state} --> [*]" for state in machine.states if state in machine.final)
    yield "```"
