"""The outbox against a real mail server: handed over once, once more after a lost answer, never a third time."""

import socket
from typing import Any

import pytest
from django.core.mail.backends.smtp import EmailBackend
from django.utils import timezone

from billing import ledger
from billing.models import Payment
from generation.models import Job
from orders import flow, mail
from orders import sweep as sweeps
from orders.models import Mail, OrderItem
from tests.orders import shop as shop_rows
from tests.orders.rivals import at_once
from tests.orders.smtp_server import MailServer
from tests.shop import Shop, age_everything, run_now
from waistheart import guards
from waistheart.models import User

pytestmark = pytest.mark.django_db(transaction=True)


class Killed(BaseException):
    """The worker is gone in the middle."""


@pytest.fixture
def row() -> Mail:
    """A mail in the outbox: credits kept."""
    owner = User.objects.create_user("ada@example.com")
    payment = Payment.objects.create(
        owner=owner, reference="order:K7Q2MXPA", amount=400, currency="GBP", credits=1, name="Waist heart video",
        email=owner.email, success_url="-", cancel_url="-", session_expires_at=timezone.now(),
    )  # fmt: skip
    mail.credits_kept(payment=payment, order=None)
    return Mail.objects.get()


def test_the_longest_host_there_is_costs_nobody_a_mail(settings: Any) -> None:
    """Written in the block that receives the money: an id too long for its column would keep every payment from its job."""
    settings.PUBLIC_URL = "https://" + ".".join(["x" * 60] * 4) + ".examples"
    order = shop_rows.awaiting()
    kinds = ("order_received", "could_not_make_it", "credits_kept", "ready")
    for kind in kinds:
        mail._put(order=order, kind=kind, occasion="job:1", to="ada@example.com")
    longest = Mail._meta.get_field("message_id").max_length
    assert longest is not None
    assert [len(row.message_id) <= longest for row in Mail.objects.order_by("pk")] == [True] * 4


def test_the_receipt_says_when_in_words(shop: Shop) -> None:
    order = shop.draft()
    said = {"may_use": {"text": "It is me.", "at": "2026-12-01T02:53:06+00:00"}}
    flow.ask_payment(order=order, declarations=said, expected_price=400)
    order.refresh_from_db()
    flow.settle(shop.pay(order))
    message = mail.message_of(Mail.objects.get(kind="order_received"))
    for text in (str(message.body), str(message.alternatives[0][0])):
        assert "It is me. (1 December 2026, 02:53 UTC)" in text


def pass_minutes(minutes: int) -> None:
    """Let minutes pass, with a look at the outbox after each."""
    for _ in range(minutes):
        age_everything(61)
        sweeps.publish_mails(run_now)


@pytest.mark.parametrize("manner", ["drop_after_text", "hang_after_text"])
def test_lost_answer_is_repeated_once(server: MailServer, row: Mail, manner: str) -> None:
    server.behave(manner, manner)
    pass_minutes(9)
    row.refresh_from_db()
    assert (row.status, row.handed_over, len(server.taken)) == ("unknown", 1, 1)
    pass_minutes(2)
    row.refresh_from_db()
    assert (row.status, row.handed_over, row.next_step_at) == ("unknown", 2, None)
    pass_minutes(60)
    assert [message["Message-ID"] for message in server.taken] == [row.message_id] * 2
    assert server.connections == 2


def test_repeat_that_is_answered_is_sent(server: MailServer, row: Mail) -> None:
    server.behave("drop_after_text")
    pass_minutes(60)
    row.refresh_from_db()
    assert (row.status, row.handed_over, row.last_error) == ("sent", 2, "")
    assert [message["Message-ID"] for message in server.taken] == [row.message_id] * 2


@pytest.mark.parametrize("manner", ["refuse_recipient", "refuse_text"])
def test_what_was_not_accepted_is_tried_until_it_is(server: MailServer, row: Mail, manner: str) -> None:
    server.behave(*[manner] * 4)
    pass_minutes(1)
    row.refresh_from_db()
    assert (row.status, row.handed_over, row.tries) == ("due", 0, 1)
    assert row.last_error
    assert server.taken == []
    pass_minutes(100)
    row.refresh_from_db()
    assert (row.status, row.handed_over, row.tries) == ("sent", 1, 5)
    assert [message["Message-ID"] for message in server.taken] == [row.message_id]


@pytest.mark.parametrize("manner", ["no_greeting", "refuse_greeting", "refuse_hello", "refuse_sender"])
def test_what_is_refused_to_us_is_no_try_of_a_mail(server: MailServer, row: Mail, manner: str) -> None:
    server.behave(*[manner] * 4)
    pass_minutes(1)
    row.refresh_from_db()
    assert (row.status, row.handed_over, row.tries) == ("due", 0, 0)
    assert row.last_error
    pass_minutes(10)
    row.refresh_from_db()
    assert (row.status, row.handed_over, row.tries) == ("sent", 1, 1)
    assert [message["Message-ID"] for message in server.taken] == [row.message_id]


def test_nobody_listens(server: MailServer, row: Mail, settings: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        settings.EMAIL_PORT = closed.getsockname()[1]
    pass_minutes(3)
    row.refresh_from_db()
    assert (row.status, row.handed_over) == ("due", 0)
    settings.EMAIL_PORT = server.port
    pass_minutes(6)
    row.refresh_from_db()
    assert (row.status, len(server.taken)) == ("sent", 1)


def test_a_server_that_never_takes_it_is_given_up_by_a_person(server: MailServer, row: Mail) -> None:
    server.behave(*["refuse_recipient"] * 40)
    for _ in range(40):
        age_everything(3601)
        sweeps.publish_mails(run_now)
    row.refresh_from_db()
    assert (row.status, row.tries, row.next_step_at) == ("failed", mail.MAX_TRIES, None)


@pytest.mark.parametrize("manner", ["hang_at_goodbye", "rave_at_goodbye"])
def test_a_bad_goodbye_says_nothing_about_the_message(server: MailServer, row: Mail, manner: str) -> None:
    server.behave(manner)
    pass_minutes(30)
    row.refresh_from_db()
    assert (row.status, row.handed_over, len(server.taken)) == ("sent", 1, 1)


def test_two_sweeps_hand_over_once(server: MailServer, row: Mail) -> None:
    copies = [Mail.objects.get(pk=row.pk) for _ in range(5)]
    answers = at_once(*[lambda copy=copy: mail.hand_over(copy) for copy in copies])
    assert sorted(answers) == ["sent", *["taken"] * 4]
    assert len(server.taken) == 1


def test_killed_worker_counts_as_a_lost_answer(server: MailServer, row: Mail, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(EmailBackend, "send_messages", killed)
        with pytest.raises(Killed):
            sweeps.publish_mails(run_now)
    pass_minutes(9)
    row.refresh_from_db()
    assert (row.status, row.handed_over) == ("sending", 1)
    pass_minutes(20)
    row.refresh_from_db()
    assert (row.status, row.handed_over, len(server.taken)) == ("sent", 2, 1)


def test_a_late_no_does_not_open_a_later_handing_over(
    server: MailServer, row: Mail, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty minutes after the first worker began, a second one has repeated and was killed: the first one's "no" is old news."""
    server.behave("refuse_text", "drop_after_text")
    send = EmailBackend.send_messages

    def send_then_rival(self: EmailBackend, messages: Any) -> int:
        monkeypatch.setattr(EmailBackend, "send_messages", killed)
        for _ in range(2):
            age_everything(601)
            try:
                sweeps.publish_mails(run_now)
            except Killed:
                monkeypatch.setattr(EmailBackend, "send_messages", send)
        return send(self, messages)

    monkeypatch.setattr(EmailBackend, "send_messages", send_then_rival)
    mail.hand_over(Mail.objects.get(pk=row.pk))
    row.refresh_from_db()
    assert (row.status, row.handed_over) == ("sending", 2)
    pass_minutes(120)
    row.refresh_from_db()
    assert (row.status, row.handed_over, row.next_step_at) == ("unknown", 2, None)


def killed(self: EmailBackend, messages: Any) -> int:
    raise Killed


def test_returned_is_said_only_with_the_ledger_row(shop: Shop) -> None:
    job = shop.paid()
    # What a broken release would leave behind: the job says failed, and nothing came back.
    Job.objects.filter(pk=job.pk).update(status="failed", next_step_at=None)
    for _ in range(3):
        shop.sweep()
    assert [row.kind for row in Mail.objects.all()] == ["order_received"]
    item = OrderItem.objects.get()
    assert item.told_at is None

    give_back(job)
    shop.sweep()
    assert [row.kind for row in Mail.objects.order_by("id")] == ["order_received", "could_not_make_it"]
    shop.sweep()
    assert Mail.objects.count() == 2
    item.refresh_from_db()
    assert item.told_at is not None


@guards.block("test.release")
def give_back(job: Job) -> None:
    ledger.release(hold_id=job.hold_id, owner_id=job.owner_id, note="late")
