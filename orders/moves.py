"""The only code that writes `Order.status` and `Mail.status`. What moves an order stands inside a block."""

from typing import Any

from django.db.models import F, QuerySet

from orders.models import Mail, Order
from orders.states import MAIL, ORDER
from waistheart import clock, guards


def move_order(name: str, *, order_id: int, payment_id: int | None = None, **fields: Any) -> None:
    """Make one declared move, or raise LostRace. `payment_id`: only while the order names this payment."""
    guards.must(f"order.{name}", _rows(name, order_id, payment_id).update(**_written(name, fields)))


def may_move_order(name: str, *, order_id: int, payment_id: int, **fields: Any) -> bool:
    """The same as an optional guard, for news of a payment the order may no longer wait for: whether it moved."""
    return guards.may(f"order.{name}", _rows(name, order_id, payment_id).update(**_written(name, fields)))


def write_draft(*, order_id: int, writes: int | None = None, **fields: Any) -> None:
    """Write the anchor of an order's photos, crops, poses and items, while it is a draft.

    `writes` is the evidence: nothing of the order has been changed since it was read with that number. LostRace otherwise.
    """
    rows = Order.objects.filter(pk=order_id, status=Order.Status.DRAFT)
    if writes is not None:
        rows = rows.filter(writes=writes)
    guards.must("order.draft", rows.update(writes=F("writes") + 1, touched_at=clock.now(), **fields))


def touch(*, order_id: int) -> None:
    """The customer is at an order that waits for payment: once it is a draft again, its time counts from now."""
    Order.objects.filter(pk=order_id, status=Order.Status.AWAITING_PAYMENT).update(touched_at=clock.now())


def write_order(*, order_id: int) -> None:
    """Write the anchor of an order's items and photos, in whatever state, without counting as a change of what was approved."""
    guards.must("order.anchor", Order.objects.filter(pk=order_id).update(writes=F("writes")))


def move_mail(name: str, rows: QuerySet[Mail], **fields: Any) -> bool:
    """Make one declared move of the one mail that `rows` means; whether it was still where that move starts.

    It stands alone, outside of any block: a mail server is spoken with between two moves of a mail.
    """
    move = MAIL.by_name[name]
    moved = rows.filter(status__in=move.sources).update(status=move.target, state_since=clock.now(), **fields)
    if moved > 1:
        raise guards.GuardBroken(f"mail.{name} matched {moved} rows")
    return moved == 1


def _rows(name: str, order_id: int, payment_id: int | None) -> Any:
    rows = Order.objects.filter(pk=order_id, status__in=ORDER.by_name[name].sources)
    return rows.filter(payment_id=payment_id) if payment_id is not None else rows


def _written(name: str, fields: dict[str, Any]) -> dict[str, Any]:
    return {
        "status": ORDER.by_name[name].target,
        "state_since": clock.now(),
        "writes": F("writes") + 1,
        **fields,
    }
