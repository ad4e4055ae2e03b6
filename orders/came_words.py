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
    Fate.UNCONFIRMED: "We could not find out from the card processor whether a payment for order {code} was made. If you paid, do "
    "not pay again: write to {mail} and quote order {code}.",
}
# For somebody whose payment page is open, or was: we do not know of any money, and that proves nothing.
NOT_SEEN = (
    "If you have paid, there is no need to pay again. We go on asking the card processor; if this page still does not show it, write "
    "to {mail} and quote order {code}."
)
HEADINGS = {
    Fate.KEPT: "We have your payment",
    Fate.MISMATCHED: "We have your payment",
    Fate.EXPIRED: "Your credit has lapsed",
    Fate.RETURNED: "Your payment went back",
    Fate.UNCONFIRMED: "We could not confirm your payment",
}


def money_that_came(code: str, fate: Fate) -> SafeString:
    """What became of money that came for an order and did not start it, and whom to write to."""
    lapse = kept.lapsed_at(code) if fate == Fate.EXPIRED else None
    return format_html(CAME[fate], code=code, mail=_address(code), until=day(lapse) if lapse else "its time was over")


def money_not_seen(code: str) -> SafeString:
    """What somebody reads who may have paid, when the processor did not tell us so for longer than it should take."""
    return format_html(NOT_SEEN, code=code, mail=_address(code))


def money_heading(fate: Fate) -> str:
    """The same in four words."""
    return HEADINGS[fate]


def _address(code: str) -> SafeString:
    return format_html('<a href="mailto:{0}?subject=Order%20{1}">{0}</a>', settings.HELP_EMAIL, code)
