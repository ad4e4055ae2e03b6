"""Mails that cannot be made or written: told apart from lost answers, counted, and in the end in front of a person."""

from typing import Any

import pytest
from django.core.mail.backends.smtp import EmailBackend

from orders import console, mail, outbox
from orders.models import Mail
from tests.orders import shop
from tests.orders.smtp_server import MailServer
from tests.shop import age_everything

pytestmark = pytest.mark.django_db(transaction=True)


def a_mail(**fields: Any) -> Mail:
    order = shop.paid("queued")
    return Mail.objects.create(
        **{"reference": f"order:{order.code}", "kind": "order_received", "occasion": "x", "order": order, "to": shop.ADA,
           "message_id": "<1@shop.example>", **fields}
    )  # fmt: skip


def pass_quarters(count: int) -> None:
    """Let quarters of an hour pass, with a look at the outbox after each."""
    for _ in range(count):
        age_everything(3601)
        for mail_id in list(outbox.claim()):
            outbox.hand_over(mail_id)


def unhanded() -> tuple[str, bool]:
    """What the console says of mails that were not handed over."""
    return next((tile.figure, tile.look) for tile in console.today() if tile.name == "Mails not handed over")


def given_up(row: Mail) -> None:
    row.refresh_from_db()
    assert (row.status, row.next_step_at, row.handed_over) == ("failed", None, 0)
    assert row.last_error
    assert unhanded() == ("1", True)


@pytest.mark.parametrize("fields", [{"kind": "from_the_future"}, {"to": "a@" + "ü" * 60 + ".com"}])
def test_a_mail_that_cannot_be_made_comes_to_a_person(server: MailServer, fields: dict[str, str]) -> None:
    row = a_mail(**fields)
    pass_quarters(3)
    row.refresh_from_db()
    assert (row.status, row.tries, row.handed_over) == ("due", 3, 0)
    assert unhanded() == ("0", False)
    pass_quarters(mail.MAX_TRIES)
    given_up(row)
    assert server.taken == []


def test_a_mail_that_cannot_be_written_was_not_sent(server: MailServer, monkeypatch: pytest.MonkeyPatch) -> None:
    def cannot(self: EmailBackend, messages: Any) -> int:
        raise UnicodeEncodeError("ascii", "ü", 0, 1, "ordinal not in range(128)")

    row = a_mail()
    monkeypatch.setattr(EmailBackend, "send_messages", cannot)
    pass_quarters(1)
    row.refresh_from_db()
    assert (row.status, row.handed_over) == ("due", 0)
    pass_quarters(mail.MAX_TRIES)
    given_up(row)


def test_a_repeat_that_cannot_be_made_any_more_comes_to_a_person_too(
    server: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer to the first was lost; what it said cannot be made again, so nobody will ever know."""
    server.behave("drop_after_text")
    row = a_mail()
    pass_quarters(1)
    monkeypatch.setattr(mail, "message_of", lambda row: 1 / 0)
    pass_quarters(mail.MAX_TRIES + 1)
    row.refresh_from_db()
    assert (row.status, row.next_step_at, row.handed_over) == ("unknown", None, 1)
    assert unhanded() == ("1", True)


def test_wrong_settings_of_ours_use_no_hand_over_up(server: MailServer, settings: Any) -> None:
    row = a_mail()
    settings.EMAIL_HOST = "smtp..example.com"
    pass_quarters(3)
    row.refresh_from_db()
    assert (row.status, row.handed_over) == ("due", 0)
    settings.EMAIL_HOST = "127.0.0.1"
    pass_quarters(1)
    row.refresh_from_db()
    assert row.status == "sent"
