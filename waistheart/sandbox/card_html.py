"""The HTML of the hosted payment page: phone first, light and dark, no script."""

from html import escape
from urllib.parse import urlsplit

from waistheart.sandbox.card_money import money
from waistheart.sandbox.card_objects import JsonObject
from waistheart.sandbox.card_style import STYLE

SELLER = "WaistHeart (sandbox)"  # the real processor shows the name in the account
BAD_DAYS = (
    ("pay_event_twice", "Pay, and send the webhook twice"),
    ("pay_event_late", "Pay, and send the webhook 20 seconds late"),
    ("pay_event_forged", "Pay, and sign the webhook with a wrong secret"),
    ("pay_event_unknown", "Pay, and send an event nobody knows"),
    ("pay_wrong_amount", "Pay, but with another amount"),
    ("pay_wrong_currency", "Pay, but in another currency"),
    ("bank_fails", "Pay by bank, which then refuses"),
    ("lie", "Send “paid” without paying"),
    ("expire", "Let this page expire"),
)


def payable(session: JsonObject, item: JsonObject, *, declined: bool) -> str:
    """The page of an open session, with a notice after a declined card."""
    total = money(session["amount_total"], session["currency"])
    notice = '<p class="notice" role="alert"><b>Your card was declined.</b> No money was taken. Try again.</p>'
    return _page(
        f"Pay {total}",
        f"""
{_summary(session, item, total)}
{notice if declined else ""}
<form method="post" class="card">
<h2>How would you like to pay?</h2>
{_email(session)}
<div class="row"><span class="label">Card</span><span class="value">4242 4242 4242 4242
<small>Test card, already filled in</small></span></div>
<button class="main" name="do" value="pay">Pay {escape(total)}</button>
<button name="do" value="pay_by_bank">Pay later by bank</button>
{_cancel(session)}
</form>
<form method="post" class="card bench">
<h2>Rehearse a bad day</h2>
<button name="do" value="decline">Decline the card</button>
<button name="do" value="pay_lose_event">Pay, but lose the webhook</button>
<button name="do" value="pay_close_tab">Pay, but close the tab</button>
<details><summary>More ways to go wrong</summary>
{"".join(f'<button name="do" value="{word}">{label}</button>' for word, label in BAD_DAYS)}
</details>
</form>""",
    )


def ended(session: JsonObject) -> str:
    """What became of a session that can no longer be paid; never a way to pay twice."""
    if session["status"] == "expired":
        return _page(
            "This payment page has expired", _end("–", EXPIRED, _link(session["cancel_url"], "Back to the shop"))
        )
    total = escape(money(session["amount_total"], session["currency"]))
    back = _link(session["success_url"].replace("{CHECKOUT_SESSION_ID}", session["id"]), "Go to your order")
    if session["payment_status"] == "paid":
        return _page("Payment received", _end("✓", PAID.format(total=total), back))
    return _page("Your bank is working on it", _end("…", PENDING.format(total=total), back))


def not_found() -> str:
    return _page("Page not found", _end("?", "<p>There is no such payment page. Check the address.</p>", ""))


EXPIRED = "<p>It can no longer be paid, and no money was taken.</p>"
PAID = "<p>{total} was paid. You can close this tab: your order goes on by itself.</p>"
PENDING = "<p>{total} is on its way. You can close this tab.</p>"


def _summary(session: JsonObject, item: JsonObject, total: str) -> str:
    host = escape(urlsplit(session["success_url"]).netloc)
    quantity = f" × {item['quantity']}" if item["quantity"] > 1 else ""
    return f"""<header class="summary">
<p class="shop"><svg viewBox="0 0 24 24" width="22" height="22" aria-hidden="true"><path fill="currentColor"
d="M12 21S3 14.6 3 8.6A4.9 4.9 0 0 1 12 6a4.9 4.9 0 0 1 9 2.6C21 14.6 12 21 12 21z"/></svg> {SELLER}</p>
<h1>{escape(total)}</h1>
<p class="item">{escape(str(item["description"]))}{quantity}</p>
<p class="host">{host}</p>
</header>"""


def _email(session: JsonObject) -> str:
    if not session["customer_email"]:
        return ""
    email = escape(session["customer_email"]).replace("@", "<wbr>@").replace(".", "<wbr>.")
    return f'<div class="row"><span class="label">E-mail</span><span class="value">{email}</span></div>'


def _cancel(session: JsonObject) -> str:
    return _link(session["cancel_url"], "Cancel and go back", kind="quiet")


def _link(address: str | None, text: str, *, kind: str = "main") -> str:
    return f'<a class="{kind}" href="{escape(address)}">{escape(text)}</a>' if address else ""


def _end(sign: str, sentences: str, link: str) -> str:
    sign = f'<div class="sign{" good" if sign == "✓" else ""}" aria-hidden="true">{sign}</div>'
    return f'<div class="card end">{sign}<h1>{{title}}</h1>{sentences}{link}</div>'


def _page(title: str, main: str) -> str:
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex"><meta name="color-scheme" content="light dark">
<title>{escape(title)} – Sandbox payment</title><style>{STYLE}</style></head>
<body><aside class="band"><b>Sandbox</b> No money moves</aside>
<main>{main.replace("{title}", escape(title))}</main>
<footer>This page stands in for the card processor’s. It takes no card number and keeps none.</footer>
</body></html>"""
