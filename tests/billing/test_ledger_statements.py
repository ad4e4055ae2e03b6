"""How many statements the ledger's verbs take, and that none of them grows with what an order touched."""

import uuid
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from billing import ledger
from billing.models import Grant
from tests.rows import done, new_grant, new_owner, new_payment
from waistheart import clock

pytestmark = pytest.mark.django_db


def test_a_grant_for_fifty_jobs_takes_as_many_statements_as_for_one():
    def statements(count: int) -> int:
        payment = new_payment(status="received", credits=count)
        which = {"owner_id": payment.owner_id, "payment_id": payment.pk, "credits": count}
        with CaptureQueriesContext(connection) as queries:
            done(ledger.grant_bought, **which, holds=[1] * count)
        return len([query for query in queries if "SAVEPOINT" not in query["sql"]])

    assert statements(50) == statements(1) == 5


@pytest.mark.parametrize("verb", ["settle", "release", "release_what_is_left", "hold"])
def test_an_order_that_touches_300_grants_binds_as_many_parameters_as_one_of_two(verb: str):
    """The inserts of its rows aside, every statement of a verb has the same form whatever it touches."""
    assert statements(verb, grants=300) == statements(verb, grants=2)


def statements(verb: str, *, grants: int) -> list[tuple[str, int]]:
    """The statements of one verb that are no inserts, each with its number of bound parameters."""
    owner = new_owner()
    for _ in range(grants):
        new_grant(owner_id=owner, credits=1, days=1)
    seen: list[tuple[str, int]] = []

    def watch(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if not sql.startswith(("INSERT", "SAVEPOINT", "RELEASE")):
            seen.append((sql, len(params or ())))
        return execute(sql, params, many, context)

    if verb == "hold":
        with connection.execute_wrapper(watch):
            done(ledger.hold, owner_id=owner, credits=grants)
        return seen
    row = done(ledger.hold, owner_id=owner, credits=grants)
    Grant.objects.filter(owner_id=owner).update(expires_at=clock.ago(1))
    more = {"settle": {}, "release": {"note": "x"}}.get(verb, {"note": "x", "made_by": uuid.uuid4().hex})
    with connection.execute_wrapper(watch):
        done(getattr(ledger, verb), hold_id=row.pk, owner_id=owner, **more)
    return seen
