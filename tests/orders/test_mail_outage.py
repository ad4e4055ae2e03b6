"""A mail server that is away, or an account at it that is not ours any more: no mail is lost, one of them knocks, and an alarm says so."""

import re
import socket
from collections.abc import Callable
from typing import Any

import pytest
from django.db import OperationalError
from django.db.models import Sum

from orders import console, mail, outbox
from orders import mail_server as mail_server_of_ours
from orders.models import Mail
from tests.console import Console, inputs, text_of
from tests.orders import shop
from tests.orders.smtp_server import MailServer
from tests.shop import age_everything
from waistheart import clock
from waistheart.models import GuardTally

pytestmark = pytest.mark.django_db(transaction=True)
MAILS = "orders/mail/"
HOURS = 48


def a_mail(occasion: str = "x", **fields: Any) -> Mail:
    order = shop.paid("queued")
    return Mail.objects.create(
        **{"reference": f"order:{order.code}", "kind": "order_received", "occasion": occasion, "order": order,
           "to": shop.ADA, "message_id": f"<{occasion}@shop.example>", **fields}
    )  # fmt: skip


def pass_times(count: int, seconds: float = 901) -> None:
    """Let so many seconds pass so many times, with a look at the outbox after each."""
    for _ in range(count):
        age_everything(seconds)
        for mail_id in list(outbox.claim()):
            outbox.hand_over(mail_id)


def alarms() -> int:
    return GuardTally.objects.filter(guard="alarm.mail_server").aggregate(n=Sum("lost"))["n"] or 0


def nobody_listens(server: MailServer, settings: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        settings.EMAIL_PORT = closed.getsockname()[1]


def wrong_password(server: MailServer, settings: Any) -> None:
    settings.EMAIL_HOST_USER, settings.EMAIL_HOST_PASSWORD = "shop", "of last year"
    server.always = "refuse_login"


def no_encryption(server: MailServer, settings: Any) -> None:
    settings.EMAIL_USE_TLS = True


def behaves(manner: str) -> Callable[[MailServer, Any], None]:
    def begin(server: MailServer, settings: Any) -> None:
        server.always = manner

    return begin


OUTAGES: dict[str, Callable[[MailServer, Any], None]] = {
    "nobody listens": nobody_listens,
    "wrong password": wrong_password,
    "no encryption": no_encryption,
    "busy at the greeting": behaves("refuse_greeting"),
    "closing at hello": behaves("refuse_hello"),
    "takes no mail of ours now": behaves("refuse_sender"),
    "our sender is locked": behaves("lock_sender"),
    "closing before a recipient": behaves("close_at_recipient"),
    "closing at the text": behaves("closing_at_text"),
    "gone at the sender": behaves("drop_at_sender"),
    "gone at the recipient": behaves("drop_at_recipient"),
}


@pytest.mark.parametrize("begin", OUTAGES.values(), ids=OUTAGES.keys())
def test_an_outage_of_two_days_loses_no_mail(
    server: MailServer, settings: Any, begin: Callable[[MailServer, Any], None]
) -> None:
    """The customer has closed the tab: the mail is his only way to the video."""
    row = a_mail()
    begin(server, settings)
    pass_times(HOURS, 3601)
    row.refresh_from_db()
    assert (row.status, row.tries, row.handed_over) == ("due", 0, 0)
    assert row.last_error
    assert server.taken == []
    assert alarms() == HOURS, "one an hour"
    pass_times(1, 901)
    assert alarms() == HOURS
    settings.EMAIL_PORT, settings.EMAIL_USE_TLS = server.port, False
    settings.EMAIL_HOST_USER = settings.EMAIL_HOST_PASSWORD = ""
    server.always = "take"
    pass_times(1)
    row.refresh_from_db()
    assert (row.status, row.tries, row.handed_over, row.last_error) == ("sent", 1, 1, "")
    assert [message["Message-ID"] for message in server.taken] == [row.message_id]


def test_while_the_server_is_away_one_mail_knocks_for_all(server: MailServer, settings: Any) -> None:
    """A hundred mails that each wait for a server's silence would keep the workers from paid jobs."""
    for number in range(5):
        a_mail(f"m{number}")
    server.always = "refuse_greeting"
    pass_times(1, 61)
    assert server.connections == 5, "nobody knew"
    before = server.connections
    pass_times(4, 901)
    assert server.connections == before + 4
    server.always = "take"
    pass_times(1, 901)
    pass_times(1, 61)
    assert set(Mail.objects.values_list("status", flat=True)) == {"sent"}


def test_a_short_outage_costs_a_new_mail_a_minute(server: MailServer) -> None:
    row = a_mail()
    server.behave("refuse_greeting")
    pass_times(2, 61)
    row.refresh_from_db()
    assert row.status == "sent"


def test_an_outage_at_the_repeat_costs_no_repeat(server: MailServer) -> None:
    """The answer to the first was lost; the server is away for two days; then it is repeated once, never twice."""
    server.behave("drop_after_text")
    row = a_mail()
    pass_times(1)
    server.always = "refuse_greeting"
    pass_times(HOURS, 3601)
    server.always = "drop_after_text"
    pass_times(10)
    row.refresh_from_db()
    assert (row.status, row.handed_over, row.next_step_at) == ("unknown", 2, None)
    assert [message["Message-ID"] for message in server.taken] == [row.message_id] * 2


@pytest.mark.parametrize("manner", ["close_at_recipient", "drop_at_recipient", "hang_at_recipient", "closing_at_text"])
def test_one_recipient_that_cannot_be_reached_is_no_outage(server: MailServer, settings: Any, manner: str) -> None:
    """The relay asks a dead server about it, and looks like one that is away: to this one mail, while it takes all others."""
    settings.EMAIL_TIMEOUT = 0.2
    row = a_mail(to="ada@dead.example")
    server.at["ada@dead.example"] = manner
    for number in range(2 * mail.MAX_TRIES):
        a_mail(f"well-{number}")
        pass_times(1, 1801)
    row.refresh_from_db()
    assert (row.status, row.handed_over, row.next_step_at) == ("failed", 0, None)
    assert Mail.objects.filter(outbox.needs_a_person()).get() == row
    assert alarms() <= 2, "it was said that no mail can be handed over"
    assert Mail.objects.filter(status="sent").count() >= 2 * mail.MAX_TRIES - 1
    assert not mail_server_of_ours.is_away()


@pytest.mark.parametrize("manner", ["refuse_recipient", "refuse_text"])
def test_a_mail_that_the_server_refuses_ends(server: MailServer, manner: str) -> None:
    row = a_mail()
    server.always = manner
    pass_times(mail.MAX_TRIES + 1, 3601)
    row.refresh_from_db()
    assert (row.status, row.tries, row.next_step_at) == ("failed", mail.MAX_TRIES, None)
    assert alarms() == 0


# --- staff -----------------------------------------------------------------------------------------------------------


def test_staff_hand_a_failed_mail_over_again(server: MailServer) -> None:
    row = a_mail(status="failed", next_step_at=None, tries=30, last_error="550 no such box")
    staff = Console()
    shown = staff.get(MAILS)
    asked = staff.choose(MAILS, "again", row.pk, shown=shown)
    silent = staff.client.post(f"/admin/{MAILS}", {**inputs(asked), "reason": " "})
    assert "Say why" in text_of(silent.content.decode())
    assert staff.confirm(MAILS, asked, reason="the box is open again") == ["Hand over again: 1 moved."]
    assert staff.confirm(MAILS, asked, reason="twice") == ["Hand over again: 1 had already moved on."]
    row.refresh_from_db()
    assert (row.status, row.tries) == ("due", 0)
    pass_times(1, 1)
    row.refresh_from_db()
    assert (row.status, row.handed_over) == ("sent", 1)
    assert [message["Message-ID"] for message in server.taken] == ["<x@shop.example>"]
    history = text_of(staff.get(f"{MAILS}{row.pk}/history/"))
    assert "the box is open again" in history
    assert "staff@example.com" in history


@pytest.mark.parametrize("status", ["failed", "unknown"])
def test_staff_let_a_mail_be_that_reaches_nobody(server: MailServer, status: str) -> None:
    row = a_mail(
        status=status, next_step_at=None, last_error="550 no such box", handed_over=2 if status == "unknown" else 0
    )
    waits = a_mail("waits", handed_over=0)
    staff = Console()
    shown = staff.get(MAILS)
    asked = staff.choose(MAILS, "drop", row.pk, shown=shown)
    assert "Say why" in text_of(staff.client.post(f"/admin/{MAILS}", {**inputs(asked), "reason": " "}).content.decode())
    assert staff.confirm(MAILS, asked, reason="a typo, the customer has written") == ["Let it be: 1 moved."]
    assert staff.confirm(MAILS, asked, reason="twice") == ["Let it be: 1 had already moved on."]
    assert "only a mail that failed" in staff.act(MAILS, "drop", waits.pk, reason="x")[0]
    assert not Mail.objects.filter(outbox.needs_a_person()).exists()
    pass_times(3)
    row.refresh_from_db()
    assert (row.status, row.next_step_at) == ("dropped", None)
    assert [message["To"] for message in server.taken] == [waits.to]
    page = staff.get(f"{MAILS}{row.pk}/change/")
    assert "Hand over again" not in page
    assert "Let it be" not in page
    assert "only a mail that failed" in staff.act(MAILS, "again", row.pk, reason="x")[0]


def test_an_unknown_mail_is_handed_over_once_more_each_time_staff_say_so(server: MailServer) -> None:
    server.always = "drop_after_text"
    row = a_mail()
    pass_times(10)
    row.refresh_from_db()
    assert (row.status, row.handed_over, row.next_step_at) == ("unknown", 2, None)
    staff = Console()
    assert staff.act(MAILS, "again", row.pk, reason="he says that none came") == ["Hand over again: 1 moved."]
    pass_times(10)
    row.refresh_from_db()
    assert (row.status, row.handed_over, row.next_step_at) == ("unknown", 3, None)
    assert [message["Message-ID"] for message in server.taken] == [row.message_id] * 3


def test_a_page_from_before_an_earlier_press_moves_nothing() -> None:
    """It failed, was handed over again, and failed again: another state than the one that was looked at."""
    row = a_mail(status="failed", next_step_at=None)
    staff = Console()
    shown = staff.get(MAILS)
    Mail.objects.filter(pk=row.pk).update(state_since=clock.after(5))
    asked = staff.choose(MAILS, "again", row.pk, shown=shown)
    assert staff.confirm(MAILS, asked, reason="x") == ["Hand over again: 1 had already moved on."]
    row.refresh_from_db()
    assert row.status == "failed"


def test_what_waits_or_was_sent_is_not_handed_over_by_staff() -> None:
    waits = a_mail("repeat", status="unknown", handed_over=1)
    sent = a_mail("sent", status="sent", next_step_at=None, handed_over=1)
    staff = Console()
    said = staff.act(MAILS, "again", waits.pk, sent.pk, reason="x")
    assert len(said) == 2
    assert all("only a mail that failed" in words for words in said)
    assert set(Mail.objects.values_list("status", flat=True)) == {"unknown", "sent"}
    assert "Hand over again" not in staff.get(f"{MAILS}{sent.pk}/change/")


def test_the_tile_leads_to_what_it_counts() -> None:
    a_mail("failed", status="failed", next_step_at=None)
    a_mail("unknown", status="unknown", next_step_at=None, handed_over=2)
    a_mail("repeat", status="unknown", handed_over=1)
    a_mail("due")
    a_mail("sent", status="sent", next_step_at=None, handed_over=1)
    tile = next(tile for tile in console.today() if tile.name == "Mails not handed over")
    path, _, query = tile.path.partition("?")
    page = Console().get(path, **dict(pair.split("=") for pair in query.split("&")))
    assert tile.figure == "2"
    assert len(re.findall(r'class="action-select"', page)) == 2
    assert "2 mails" in text_of(page)


@pytest.mark.parametrize(("what", "manner"), [("came_back", "take"), ("went_away", "refuse_greeting")])
def test_the_mails_own_row_is_written_first(
    server: MailServer, monkeypatch: pytest.MonkeyPatch, what: str, manner: str
) -> None:
    """The database goes away right after: what is known of the server is lost, and of the mail nothing."""
    row = a_mail()
    server.behave(manner)

    def away(*_: object) -> None:
        raise OperationalError("gone")

    with monkeypatch.context() as patch:
        patch.setattr(mail_server_of_ours, what, away)
        pass_times(1)
    pass_times(2)
    row.refresh_from_db()
    assert (row.status, row.handed_over, len(server.taken)) == ("sent", 1, 1)
