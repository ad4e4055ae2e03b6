"""The shop's words as template filters."""

from django import template
from django.conf import settings

from orders import came_words, moments, money_words, progress, words
from orders.models import Order, OrderItem
from orders.progress import ItemProgress, State
from waistheart import money

register = template.Library()
register.filter("moment", moments.moment)
register.filter("written", moments.written)
register.filter("clock", moments.clock)
register.filter("day", moments.day)
register.filter("span", moments.span)
register.filter("reason", words.reason)
register.filter("address", words.address)
register.filter("money_sentence", money_words.money)
register.filter("money_ways", money_words.money_ways)
register.filter("money_that_came", came_words.money_that_came)
register.filter("money_heading", came_words.money_heading)
register.filter("promise", money_words.promise)
register.filter("stays_yours", money_words.stays_yours)


@register.filter
def outcome(item: OrderItem) -> ItemProgress:
    """How one item of an order stands now, for a mail that must say the same as the page."""
    return next(each for each in progress.of(order=item.order).items if each.number == item.number)


@register.filter
def label(item: ItemProgress) -> str:
    """The state of one video in two or three words."""
    return words.LABELS[State(item.state)]


@register.filter
def price(order: Order) -> str:
    """The order's price in words."""
    return money.words(amount=order.price, currency=order.currency)


@register.filter
def megabytes(value: int) -> str:
    """Bytes as a person reads a file's size: "2.4 MB", "380 KB"."""
    return f"{value / 1_000_000:.1f} MB" if value >= 1_000_000 else f"{max(1, round(value / 1000))} KB"


@register.filter
def kept(what: str) -> str:
    """How long a "photo" or a "video" is kept, in words."""
    return moments.span({"photo": settings.PHOTO_KEPT_SECONDS, "video": settings.VIDEO_KEPT_SECONDS}[what])
