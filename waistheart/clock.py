"""The database's clock, the only one that ages and leases are measured by.

On PostgreSQL it is `clock_timestamp()`: `now()` is the start of the transaction, which lies before a wait for a row lock, so a
lease computed from it would already be old when it is written.
"""

from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import DateTimeField, Func, Value


class After(Func):
    """The database's clock moved on by a number of seconds (negative: back)."""

    output_field = DateTimeField()

    def __init__(self, seconds: float = 0, **extra: Any) -> None:
        self.seconds = float(seconds)
        super().__init__(Value(self.seconds), **extra)

    def as_postgresql(self, compiler: Any, connection: Any, **extra: Any) -> Any:
        return super().as_sql(
            compiler, connection, template="(clock_timestamp() + make_interval(secs => %(expressions)s))", **extra
        )

    def as_sqlite(self, compiler: Any, connection: Any, **extra: Any) -> Any:
        return "STRFTIME('%%Y-%%m-%%d %%H:%%M:%%f', 'now', %s)", [f"{self.seconds:+.3f} seconds"]


def now() -> After:
    """The present moment, as an expression for UPDATE and WHERE."""
    return After(0)


def after(seconds: float) -> After:
    """The moment `seconds` from now, computed by the database at the moment it is used."""
    return After(seconds)


def ago(seconds: float) -> After:
    """The moment `seconds` before now."""
    return After(-seconds)


def read() -> datetime:
    """Ask the database what time it is (one statement)."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SELECT clock_timestamp()")
            moment: datetime = cursor.fetchone()[0]
            return moment
        cursor.execute("SELECT STRFTIME('%Y-%m-%d %H:%M:%f', 'now')")
        return datetime.fromisoformat(cursor.fetchone()[0] + "+00:00")
