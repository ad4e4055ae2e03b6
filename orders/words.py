"""What a customer reads in each state of an order (headings and sentences)."""

import re
from datetime import timedelta

from django.conf import settings
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from generation import watch
from orders import kept
from orders.came_words import money_not_seen, money_that_came
from orders.models import Order
from orders.moments import moment, span
from orders.progress import ItemProgress, Progress, State

SAID_NO = "Your last payment did not go through."
HEADINGS = {
    State.UNPAID: "Review and pay",
    State.OPEN: "Payment not finished yet",
    State.PENDING: "We are waiting for your bank",
    State.QUEUED: "Your video is in the queue",
    State.MAKING: "We are making your video",
    State.SAVING: "Almost ready",
    State.READY: "Your video is ready",
    State.HELD: "Your video is delayed",
    State.STAFF: "A person is checking your order",
    State.FAILED: "We could not make this video",
    State.PHOTO: "We cannot use this photo",
    State.CANCELLED: "Order cancelled",
    State.DELETED: "This video has been deleted",
}
HEADINGS_MANY = {
    State.QUEUED: "Your videos are in the queue",
    State.MAKING: "We are making your videos",
    State.HELD: "Your videos are delayed",
    State.READY: "Your videos are ready",
    State.FAILED: "We could not make these videos",
    State.PHOTO: "We cannot use these photos",
    State.DELETED: "These videos have been deleted",
}
LABELS = {
    State.UNPAID: "Not paid yet",
    State.OPEN: "Payment not seen yet",
    State.PENDING: "Waiting for your bank",
    State.QUEUED: "In the queue",
    State.MAKING: "Being made",
    State.SAVING: "Almost ready",
    State.READY: "Ready",
    State.HELD: "Delayed",
    State.STAFF: "A person is checking it",
    State.FAILED: "Could not be made",
    State.PHOTO: "Photo not usable",
    State.CANCELLED: "Cancelled",
    State.DELETED: "Deleted",
}
REASONS = {
    "moderation": "The rules against harmful pictures did not allow it",
    "invalid_input": "The photo could not be read well enough to make a video from it",
    "cancelled": "It was stopped before it was finished",
    "closed": "A person looked at it, and the video could not be made",
    "gave_back": "It took far too long, so we stopped waiting for it",
}
NO_REASON = {
    State.FAILED: "The video did not come out",
    State.PHOTO: "The photo was not accepted for this kind of video",
}
SLOW = "This is taking longer than usual. We are still working on it and will e-mail you."
STEP_NAMES = ("Payment received", "In the queue", "Making your video", "Ready")


def heading(progress: Progress) -> str:
    """The one heading of the order page."""
    count, ready = len(progress.items), len(progress.ready)
    if progress.state == State.OPEN and progress.slow:
        return "We have not seen your payment yet"
    if count == 1:
        return HEADINGS[progress.state]
    if progress.state == State.READY and ready < count:
        return f"{ready} of your {count} videos {'is' if ready == 1 else 'are'} ready"
    return HEADINGS_MANY.get(progress.state, HEADINGS[progress.state])


def sentence(order: Order, progress: Progress) -> SafeString | str:
    """The sentence under it."""
    if progress.slow:
        return money_not_seen(order.code) if progress.state in (State.OPEN, State.PENDING) else SLOW
    if progress.state == State.MAKING and len(progress.items) > 1:
        return f"{len(progress.ready)} of {len(progress.items)} are ready. You can close this page; we e-mail you."
    return {
        State.UNPAID: _unpaid(order, progress),
        State.OPEN: "If you have just paid, this page shows it in a minute or two.",
        State.PENDING: "Some banks take a few minutes. You can close this page.",
        State.QUEUED: format_html("Videos usually take 1 to 5 minutes. {}", _close(order)),
        State.MAKING: _close(order),
        State.SAVING: "We are checking and saving your video.",
        State.HELD: _held(progress),
        State.STAFF: _staff(progress),
    }.get(progress.state, "")


def left(progress: Progress) -> str:
    """The words beside the bar; empty when nothing honest can be said."""
    if progress.minutes is None or progress.slow:
        return ""
    if progress.minutes == 0:
        return "Any moment now"
    return f"About {progress.minutes} minute{'' if progress.minutes == 1 else 's'} left"


def queue_place(progress: Progress) -> str:
    """How many are before this one; empty when it is next."""
    if progress.place <= 0:
        return ""
    if progress.place >= 200:
        return "The queue is long today: 200 videos or more are before yours."
    return f"At most {progress.place} video{'' if progress.place == 1 else 's'} before yours."


def reason(item: ItemProgress) -> str:
    """Why there is no video, from a closed list and in plain words."""
    return REASONS.get(item.reason) or NO_REASON.get(item.state, "")


def address(value: str) -> SafeString:
    """An e-mail address that stays in one line if it can, and else goes on at its @ or a dot, not inside a word."""
    parts = format_html_join("", "{}<wbr>", ((part,) for part in re.findall(r"[@.]?[^@.]+|[@.]", value)))
    return format_html('<span class="address">{}</span>', parts)


def _unpaid(order: Order, progress: Progress) -> SafeString | str:
    fate = kept.of(order) if progress.state == State.UNPAID else None
    if fate:
        return money_that_came(order.code, fate)
    if progress.state != State.UNPAID:
        return ""
    if kept.said_no(order):
        return SAID_NO
    return "No money has been taken yet." if kept.untaken(order) else ""


def _close(order: Order) -> SafeString:
    return format_html("You can close this page; we will e-mail {}.", address(order.email))


def _held(progress: Progress) -> SafeString:
    """A job queued again by a person counts anew, as its deadline does."""
    since = [item.job.state_since for item in progress.items if item.state == State.HELD and item.job]
    until = min(since, default=timezone.now()) + timedelta(seconds=settings.QUEUE_DEADLINE_SECONDS)
    return format_html(
        "The delay is on our side. We try again automatically every {}. {}", span(settings.OUT_OF_CREDITS_RETRY_SECONDS),
        format_html("If it is not ready by {} a person takes over.", moment(until)) if until > timezone.now() else "A person takes over now.",
    )  # fmt: skip


def _staff(progress: Progress) -> SafeString | str:
    """The promise counts from when the first video came to a person, and ends when the shop gives back by itself: not before that
    is late, and not where it never does."""
    jobs = [item.job for item in progress.items if item.state == State.STAFF and item.job]
    if not jobs:
        return ""
    until = min(job.state_since for job in jobs) + timedelta(seconds=settings.REVIEW_GIVE_BACK_SECONDS)
    dated = until > timezone.now() and all(watch.gives_back(job) for job in jobs)
    return format_html(
        "We will e-mail you{} with the video, or to say that what you paid for it is yours again.",
        format_html(" by {}", moment(until)) if dated else "",
    )
