"""How moments and lengths of time are written."""

from datetime import datetime

from django.conf import settings
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.safestring import SafeString


def moment(value: datetime) -> SafeString:
    """A date and time in the shop's zone with its name; a script rewrites it in the visitor's own."""
    local = timezone.localtime(value)
    return format_html(
        '<time datetime="{}" data-local="moment">{} {}</time>',
        value.isoformat(timespec="seconds"), date_format(local, "j F Y, H:i"), local.tzname() or settings.TIME_ZONE,
    )  # fmt: skip


def written(text: str) -> str:
    """A moment kept as text, in the shop's zone with its name, for a mail. What is none stays as it is: the mail must go."""
    try:
        local = timezone.localtime(datetime.fromisoformat(text))
    except (TypeError, ValueError):
        return str(text)
    return f"{date_format(local, 'j F Y, H:i')} {local.tzname() or settings.TIME_ZONE}"


def clock(value: datetime) -> SafeString:
    """The time of day in the shop's zone with its name, for something that happened a short while ago."""
    local = timezone.localtime(value)
    return format_html(
        '<time datetime="{}" data-local="clock">{} {}</time>',
        value.isoformat(timespec="seconds"),
        date_format(local, "H:i"),
        local.tzname() or settings.TIME_ZONE,
    )


def day(value: datetime) -> SafeString:
    """A date in the shop's zone."""
    return format_html(
        '<time datetime="{}">{}</time>', f"{value:%Y-%m-%d}", date_format(timezone.localtime(value), "j F Y")
    )


def span(seconds: float) -> str:
    """A length of time in the largest unit that fits: "24 hours", "30 days"."""
    for size, unit in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= 2 * size or (seconds >= size and unit == "minute"):
            count = round(seconds / size)
            return f"{count} {unit}{'' if count == 1 else 's'}"
    return f"{round(seconds)} seconds"
