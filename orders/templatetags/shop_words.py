"""The shop's words as template filters."""

from datetime import datetime, timedelta

from django import template
from django.conf import settings
from django.utils.safestring import SafeString

from orders import money, words
from orders.models import Order
from orders.progress import ItemProgress, State

register = template.Library()
register.filter("moment", words.moment)
register.filter("clock", words.clock)
register.filter("day", words.day)
register.filter("span", words.span)
register.filter("reason", words.reason)
register.filter("money_sentence", words.money)


@register.filter
def label(item: ItemProgress) -> str:
    """The state of one video in two or three words."""
    return words.LABELS[State(item.state)]


@register.filter
def price(order: Order) -> str:
    """The order's price in words."""
    return money.words(amount=order.price, currency=order.currency)


@register.filter
def photo_kept_until(value: datetime) -> SafeString:
    """The day the photo goes, counted from the given end."""
    return words.day(value + timedelta(seconds=settings.PHOTO_KEPT_SECONDS))


@register.filter
def megabytes(value: int) -> str:
    """Bytes as a person reads a file's size: "2.4 MB", "380 KB"."""
    return f"{value / 1_000_000:.1f} MB" if value >= 1_000_000 else f"{max(1, round(value / 1000))} KB"
