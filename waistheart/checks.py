"""Django's system checks of the shop: `manage.py check` fails with the id and the hint of each rule that is broken.

Web servers and Celery do not run these by themselves: `waistheart/wsgi.py` and `waistheart/celery.py` ask `live.py` instead.
"""

from typing import Any

from django.core.checks import CheckMessage, Error, Tags, register
from django.db import connection

from waistheart import ages, live
from waistheart.models import Installation
from waistheart.problems import Problem


@register
def live_or_sandbox(**_: Any) -> list[CheckMessage]:
    """Both sides real, or both sandbox."""
    return [_error(problem) for problem in live.problems()]


@register
def ages_fit(**_: Any) -> list[CheckMessage]:
    """Ages and limits fit together."""
    return [_error(problem) for problem in ages.problems()]


@register(Tags.database)
def database_of_this_mode(*, databases: Any = None, **_: Any) -> list[CheckMessage]:
    """The database belongs to the mode of the settings; only where the command names a database (`check --database default`)."""
    if not databases or "default" not in databases:
        return []
    if Installation._meta.db_table not in connection.introspection.table_names():  # noqa: SLF001  (public by its documentation)
        return []  # an empty database belongs to nobody yet, and the first migration must not be refused
    return [_error(problem) for problem in live.database_problems()]


def _error(problem: Problem) -> CheckMessage:
    return Error(problem.message, hint=problem.hint, id=problem.id)
