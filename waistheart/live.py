"""Both sides real, or both sandbox (design section 7). Asked by the system checks, at start-up and at the moment of use.

Each rule is a line of `RULES` here (what holds in both modes), in `live_rules.py` or in `sandbox_rules.py`; its breaches are found in
the settings as they are at that moment.
"""

import logging
from collections.abc import Iterator

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, connection

from waistheart import ages, live_rules, outside, sandbox_rules
from waistheart.installation import installation, mode_of_database, mode_of_settings
from waistheart.outside import PROVIDERS, given, text
from waistheart.problems import Problem, Rule, broken
from waistheart.wire import is_model, is_visible, keys

__all__ = [
    "Problem", "database_problems", "problems", "problems_now", "refuse_to_start_inconsistent", "refuse_unfit_settings",
    "require_consistent",
]  # fmt: skip

log = logging.getLogger(__name__)


def problems() -> list[Problem]:
    """Every contradiction in the settings as they are now, without asking the database; empty when the shop may work."""
    return broken(RULES, live=settings.LIVE)


def problems_now() -> list[Problem]:
    """The same, and whether the database belongs to the other mode: what must hold at the moment of use (one statement)."""
    return [*problems(), *database_problems()]


def database_problems() -> list[Problem]:
    """Whether the database belongs to the other mode."""
    return broken((DATABASE,), live=settings.LIVE)


def require_consistent() -> None:
    """Raise ImproperlyConfigured, naming every problem, when live and sandbox are mixed."""
    found = problems_now()
    if found:
        raise ImproperlyConfigured("; ".join(map(str, found)))


def refuse_unfit_settings() -> None:
    """Raise ImproperlyConfigured, with each problem and its hint, when the settings contradict each other; asks no database."""
    found = [*problems(), *ages.problems()]
    if found:
        raise ImproperlyConfigured("".join(f"\n  {problem}\n    {problem.hint}" for problem in found))


def refuse_to_start_inconsistent() -> None:
    """What web, worker and beat ask before they serve: the question of the moment of use, and whether the ages fit together.

    A new database is claimed for the mode of the settings here. One that does not answer yet is asked again at every use.
    """
    refuse_unfit_settings()
    try:
        installation()
    except DatabaseError as error:
        log.warning("the database cannot say yet which mode it belongs to: %s", error)
    finally:
        if not connection.in_atomic_block:
            connection.close()  # a connection made here must not be inherited by forked workers


# --- in both modes ----------------------------------------------------------------------------------------------------


def _unknown_provider() -> Iterator[str]:
    if settings.VIDEO_PROVIDER not in PROVIDERS:
        yield f"VIDEO_PROVIDER is {settings.VIDEO_PROVIDER!r}, which nobody here speaks to"


def _not_a_key() -> Iterator[str]:
    """What no header can carry is found here, not by the first customer."""
    several = {name: keys(text(name)) for name in (*outside.provider()[0], "STRIPE_WEBHOOK_SECRET")}
    single = {"STRIPE_SECRET_KEY": [text("STRIPE_SECRET_KEY")] if given("STRIPE_SECRET_KEY") else []}
    for name, found in (several | single).items():
        if not all(is_visible(key) for key in found):
            yield f"{name} holds a character that no key has"


def _not_a_model() -> Iterator[str]:
    if not is_model(settings.VIDEO_MODEL):
        yield f"VIDEO_MODEL is {settings.VIDEO_MODEL!r}, which is no model's name"


def _other_database() -> Iterator[str]:
    mode = mode_of_database()
    if mode and mode != mode_of_settings():
        yield f"this database belongs to a {mode} installation for ever, and LIVE says {mode_of_settings()}"


RULES = (
    *live_rules.RULES,
    *sandbox_rules.RULES,
    Rule("waistheart.E020", None, _unknown_provider, f"Choose one of: {', '.join(PROVIDERS)}"),
    Rule("waistheart.E021", None, _not_a_key, "Copy it again: letters, digits and signs, without blanks and line ends"),
    Rule("waistheart.E022", None, _not_a_model, "Name it as the provider does: owner/app or owner/app/path"),
)
DATABASE = Rule("waistheart.E040", None, _other_database, "Use a database of its own for each mode")
