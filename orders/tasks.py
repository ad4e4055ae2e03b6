"""Celery tasks of the shop. Each carries an id or nothing, and makes one call."""

from celery import shared_task

from billing.models import Payment
from orders import daily as daily_work
from orders import flow
from orders import sweep as sweeps


@shared_task(name="orders.look")
def look(payment_id: int) -> None:
    """Look one payment up: a hint, or somebody at the door, asked for it."""
    flow.settle(Payment.objects.get(pk=payment_id))


@shared_task(name="orders.sweep")
def sweep() -> None:
    """The minute."""
    sweeps.every_minute()


@shared_task(name="orders.daily")
def daily() -> None:
    """The day: audit and retention."""
    daily_work.every_day()
