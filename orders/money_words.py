"""What a customer reads about money: what becomes of it without a video, and what the ledger says has come back."""

from django.conf import settings
from django.utils.html import format_html
from django.utils.safestring import SafeString

from orders.moments import day
from orders.progress import ItemProgress, State


def promise(price: str) -> SafeString:
    """What becomes of the money when there is no video: the one sentence of shop window, forms, help and receipt.

    `price` is an amount in words, empty where no single one is meant. The answer is HTML with an address to write to.
    """
    return format_html("If we cannot make your video, {}.", stays_yours(price))


def stays_yours(price: str) -> SafeString:
    """The second half of the promise, for other beginnings. Paying back is a person's act, so the customer asks for it."""
    return format_html(
        '{} stays yours: kept as a credit for another video, or paid back if you write to <a href="mailto:{}">{}</a>',
        f"your {price}" if price else "what you paid", settings.HELP_EMAIL, settings.HELP_EMAIL,
    )  # fmt: skip


def money(item: ItemProgress) -> SafeString | str:
    """What happened to the credit, and only what the ledger says; empty while the video is on its way."""
    if item.state not in (State.FAILED, State.PHOTO, State.CANCELLED):
        return ""
    if item.returned is None:
        return "A person is checking the payment for this video."
    available, credits = item.returned.available, item.returned.credits
    if item.returned.lapsed_at:
        came = "Your credit came back and was" if credits == 1 else f"Your {credits} credits came back and were"
        return format_html(
            "{} kept for you until {}. Nobody used what was left, and it has lapsed.",
            came,
            day(item.returned.lapsed_at),
        )
    if available <= 0:
        return "The payment for this video is disputed or was taken back by the bank, so its credit cannot be used now."
    if available < credits:
        back = f"{available} of your {credits} credits are back. They are"
    elif available == 1:
        back = "Your credit is back: what you paid for this video is"
    else:
        back = f"Your {available} credits are back: what you paid for this video is"
    return format_html("{} kept for you until {}.", back, day(item.returned.expires_at))


def money_ways(item: ItemProgress, code: str) -> SafeString:
    """How to use a credit that is back or to get the money instead: by e-mail, quoting the order's code."""
    usable = item.returned is not None and item.returned.available > 0
    return format_html(
        '{} write to <a href="mailto:{}?subject=Order%20{}">{}</a> and quote order {}. A person answers.',
        "To use it for another video, or to have the money paid back instead," if usable else "To ask about it,",
        settings.HELP_EMAIL, code, settings.HELP_EMAIL, code,
    )  # fmt: skip
