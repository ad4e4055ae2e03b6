"""How many statements lie between a paid receipt and the queued job: as many for fifty items as for one."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from billing.audit import differences
from billing.gateway import get_gateway
from billing.models import Grant
from generation.models import Job, JobEvent
from orders import flow
from orders.models import Order, OrderItem
from tests.shop import DECLARED, Shop

MOST = 13
NOT_COUNTED = ("BEGIN", "COMMIT", "SAVEPOINT", "RELEASE SAVEPOINT")


def test_settling_takes_as_many_statements_for_fifty_items_as_for_one(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    counted = {items: statements_to_settle(shop, items=items) for items in (1, 50)}
    with capsys.disabled():
        print("\nstatements from a paid receipt to the queued job:", {n: len(found) for n, found in counted.items()})
    assert len(counted[1]) <= MOST, "\n".join(counted[1])
    assert shapes(counted[50]) == shapes(counted[1])


def statements_to_settle(shop: Shop, *, items: int) -> list[str]:
    """Settle one order of so many items; every statement from the receipt to the commit that queues its jobs."""
    order = asked(shop, items=items)
    payment = shop.pay(order)
    receipt = get_gateway().look_up(session_id=str(payment.session_id))
    with CaptureQueriesContext(connection) as captured:
        assert flow.apply(payment, receipt) == "received"
    said = [query["sql"] for query in captured.captured_queries]
    before_commit = said[: max(n for n, sql in enumerate(said) if sql == "COMMIT")]
    jobs = Job.objects.filter(lot=order.lot, status="queued")
    assert jobs.count() == JobEvent.objects.filter(job__in=jobs).count() == items
    assert Grant.objects.get(payment=payment).held == items
    assert differences() == []
    return [sql for sql in before_commit if not sql.startswith(NOT_COUNTED)]


def asked(shop: Shop, *, items: int) -> Order:
    """An order of several videos of one photo whose payment page is open."""
    order = shop.draft()
    first = order.items.get()
    OrderItem.objects.bulk_create(
        OrderItem(order=order, number=n, pose=first.pose, photo=first.photo) for n in range(2, items + 1)
    )
    assert flow.ask_payment(order=order, declarations=DECLARED, expected_price=400 * items).url
    order.refresh_from_db()
    return order


def shapes(statements: list[str]) -> list[str]:
    """Verb and table of each. On SQLite Django cuts an insert into parts of 999 parameters; there the parts count as one."""
    words = [" ".join(sql.split()[: 3 if sql.startswith("INSERT") else 2]) for sql in statements]
    cut = connection.vendor == "sqlite"
    return [
        word for n, word in enumerate(words) if not (cut and n and word.startswith("INSERT") and word == words[n - 1])
    ]
