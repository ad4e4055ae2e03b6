"""Every mail in both parts: the same links, nothing unresolved, and only what the ledger says."""

import re
from email.message import Message

import pytest

from billing.models import Entry
from orders import mail
from orders.models import Mail, Order
from tests.orders import shop

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("a_shop")]


def written(kind: str, order: Order, *, about_job: bool = False) -> tuple[str, str, str]:
    """Subject, text and HTML of a mail about this order."""
    item = order.items.get()
    occasion = f"job:{item.job_id}" if about_job else "paid"
    row = Mail(
        reference=f"order:{order.code}", kind=kind, occasion=occasion, order=order, to=shop.ADA, message_id="<1@x>"
    )
    message = mail.message_of(row)
    parts = [part for part in message.message().walk() if not part.is_multipart()]
    text, html = (decoded(part) for part in parts)
    return str(message.subject), text, html


def decoded(part: Message) -> str:
    data = part.get_payload(decode=True)
    assert isinstance(data, bytes)
    return data.decode()


def received() -> Order:
    order = shop.paid("queued")
    order.declarations = {"may_use": {"text": "It is me & I agree.", "at": "2026-12-01T10:00:00+00:00"}}
    return order


MAILS = {
    "order_received": (received, False, "received: waist heart"),
    "ready": (lambda: shop.paid("completed"), True, "Your waist heart video is ready"),
    "could_not_make_it": (lambda: shop.paid("failed", move="fail"), True, "Your credit is back"),
    "credits_kept": (shop.draft, False, "Your credit is kept for you"),
}


@pytest.mark.parametrize(("kind", "made"), MAILS.items(), ids=MAILS.keys())
def test_both_parts_of_every_mail_are_whole(kind: str, made):
    make, about_job, fact = made
    order = make()
    subject, text, html = written(kind, order, about_job=about_job)
    assert subject.startswith("[Demo] ")
    assert fact in subject
    assert order.code in subject
    assert len(subject) < 70
    for part in (text, html):
        assert "{{" not in part
        assert "{%" not in part
        assert "None" not in part
        assert order.code in part
        assert "help@waistheart.example" in part
        assert "demo seller" in part
    links = set(re.findall(r'href="(http[^"]+)"', html))
    assert len(links) == 1, "one thing to press"
    assert all(link in text for link in links)
    assert "&amp;" not in text
    assert "&#x27;" not in text
    assert "<" not in text
    assert len(html.encode()) < 60_000


def test_a_receipt_has_what_a_receipt_needs():
    _, text, _ = written("order_received", received())
    for words in (
        "£4.00, tax included",
        "your £4.00 stays yours: kept as",
        "Sold by: WaistHeart",
        "It is me & I agree.",
        "24 hours",
        "30 days",
    ):
        assert words in text
    assert "ready" not in text.lower()


def test_no_mail_says_that_a_credit_is_back_when_it_is_not():
    order = shop.paid("failed", move="fail")
    Entry.objects.filter(kind="released").update(available=0, owed=-1)
    subject, text, html = written("could_not_make_it", order, about_job=True)
    assert f"About your order {order.code}" in subject
    assert "credit is back" not in subject + text + html
    assert "paid back instead" not in text + html


def test_the_reason_is_the_one_on_the_page():
    order = shop.paid("failed", move="refuse", reason="moderation")
    _, text, _ = written("could_not_make_it", order, about_job=True)
    assert "The rules against harmful pictures did not allow it." in text
    assert "Your credit is back: what you paid for this video is kept for you until" in text
    assert f"paid back instead, write to help@waistheart.example and quote order {order.code}." in text
