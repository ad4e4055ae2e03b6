"""What a customer reads about money that came for an order and did not start it."""

from django.conf import settings
from django.utils.html import format_html
from django.utils.safestring import SafeString

from orders import kept
from orders.kept import Fate
from orders.moments import day

CAME = {
    Fate.KEPT: "We have received a payment for order {code}. No video was begun with it, and it is kept for you: write to {mail} "
    "and quote order {code} to have the video made, or the money paid back. There is no need to pay again.",
    Fate.MISMATCHED: "We have received a payment for order {code}, but not the sum we asked for. A person looks at it before "
    "anything is made. To ask about it, write to {mail} and quote order {code}. There is no need to pay again.",
    Fate.EXPIRED: "We received a payment for order {code}. No video was begun with it, and what you paid was kept for you as credit "
    "until {until}. It has lapsed since. To ask about it, write to {mail} and quote order {code}.",
    Fate.RETURNED: "We received a payment for order {code}, and it went back to where it came from. No video was begun with it. "
    "To ask about it, write to {mail} and quote order {code}.",
}
HEADINGS = {
    Fate.KEPT: "We have your payment",
    Fate.MISMATCHED: "We have your payment",
    Fate.EXPIRED: "Your credit has lapsed",
    Fate.RETURNED: "Your payment went back",
}


def money_that_came(code: str, fate: Fate) -> SafeString:
    """What became of money that came for an order and did not start it, and whom to write to."""
    address = format_html('<a href="mailto:{0}?subject=Order%20{1}">{0}</a>', settings.HELP_EMAIL, code)
    lapse = kept.lapsed_at(code) if fate == Fate.EXPIRED else None
    return format_html(CAME[fate], code=code, mail=address, until=day(lapse) if lapse else "its time was over")


def money_heading(fate: Fate) -> str:
    """The same in four words."""
    return HEADINGS[fate]
