"""Rules that the database itself keeps: which there are, and that a raw statement against one is refused by its name."""

from typing import Any

import pytest
from django.apps import apps
from django.db import IntegrityError, connection, models, transaction

POSITIVE = (models.PositiveIntegerField, models.PositiveSmallIntegerField, models.PositiveBigIntegerField)


def checks_of(*app_labels: str) -> set[str]:
    """The names of all CHECK constraints of some apps."""
    constraints = [rule for label in app_labels for model in apps.get_app_config(label).get_models()
                   for rule in model._meta.constraints]  # fmt: skip
    return {rule.name for rule in constraints if isinstance(rule, models.CheckConstraint)}


def refused(rule: str, row: models.Model, **columns: Any) -> None:
    """Write columns into a row past all code; the database must refuse it, and name the rule."""
    names = ", ".join(f'"{name}" = %s' for name in columns)
    statement = f'UPDATE "{row._meta.db_table}" SET {names} WHERE "{row._meta.pk.column}" = %s'
    with pytest.raises(IntegrityError, match=rule), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement, [*columns.values(), row.pk])


def negatives_are_refused(row: models.Model) -> int:
    """Write -1 into every column of a row that counts something; how many columns there are."""
    fields = [field for field in row._meta.concrete_fields if isinstance(field, POSITIVE)]
    for field in fields:
        refused(".", row, **{field.column: -1})
    return len(fields)
