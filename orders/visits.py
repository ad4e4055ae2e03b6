"""Whether the customer has seen the order page after paying."""

from orders.models import Order
from waistheart import clock


def first(*, order: Order) -> bool:
    """Note that the page of a paid order is being shown; True for the first time alone, whoever asks how often."""
    if order.seen_at is not None or order.status != Order.Status.PAID:
        return False
    return Order.objects.filter(pk=order.pk, seen_at__isnull=True).update(seen_at=clock.now()) == 1
