"""Celery tasks of the shop. Each carries an id or nothing, and makes one call."""

from celery import shared_task

from orders import daily as daily_work
from orders import outbox
from orders import sweep as sweeps


@shared_task(name="orders.look")
def look(payment_id: int) -> None:
    """Look one payment up: the sweep or a hint asked for it."""
    sweeps.look_up(payment_id)


@shared_task(name="orders.find_paid")
def find_paid() -> None:
    """Look for paid sessions of ours that nobody told us of; every ten minutes, however often it is called."""
    sweeps.adopt_recent_paid()


@shared_task(name="orders.hand_over")
def hand_over(mail_id: int) -> None:
    """Hand one mail to the mail server."""
    outbox.hand_over(mail_id)


@shared_task(name="orders.sweep")
def sweep() -> None:
    """The minute."""
    sweeps.every_minute()


@shared_task(name="orders.daily")
def daily() -> None:
    """The day: audit and retention; asked for more often than it is due."""
    daily_work.when_due()
