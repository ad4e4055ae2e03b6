"""Our mail server, and our account at it: what is refused to us as a whole says nothing about any one mail."""

import logging
import smtplib
from contextlib import suppress
from typing import Any

from django.core.mail import get_connection
from django.core.mail.backends.base import BaseEmailBackend
from django.db.models import Q

from orders.models import Mail
from waistheart import clock, guards
from waistheart.models import Heartbeat
from waistheart.sweeping import is_due

log = logging.getLogger(__name__)
ALARM_SECONDS = 3600
AWAY = "mail.away"
# Longer than the longest wait of a mail, so that a single one that knocks keeps it written down.
AWAY_SECONDS = 1800
# "I am closing" and "sign in first": said to a recipient too, and about none.
ABOUT_US = {421, 530}
TOO_LARGE = 552


class Away(Exception):
    """No mail of ours can be handed over now."""


def opened() -> BaseEmailBackend:
    """A connection that has been greeted, encrypted and signed in as the settings say. Raises Away, whatever went wrong: nothing of
    a message has left us yet."""
    server = None
    try:
        server = get_connection()
        server.open()
        connection = getattr(server, "connection", None)
        if isinstance(connection, smtplib.SMTP):
            # Otherwise said only with the first message, where it would look like a no to that one.
            connection.ehlo_or_helo_if_needed()
            _tell_when_begun(server, connection)
    except Exception as error:
        if server is not None:
            say_goodbye(server)
        raise Away(f"{type(error).__name__}: {error}") from error
    return server


def _tell_when_begun(server: BaseEmailBackend, connection: smtplib.SMTP) -> None:
    """Note when the text of a message begins to leave: a connection that breaks before has delivered nothing."""
    send_text = connection.data
    server.text_begun = False  # type: ignore[attr-defined]

    def data(msg: Any) -> tuple[int, bytes]:
        server.text_begun = True  # type: ignore[attr-defined]
        return send_text(msg)

    connection.data = data  # type: ignore[method-assign]


def has_begun(server: BaseEmailBackend) -> bool:
    """Whether the text of a message may have left; True where that cannot be told."""
    return bool(getattr(server, "text_begun", True))


def say_goodbye(server: BaseEmailBackend) -> None:
    """End the conversation. What fails now says nothing about the message, which was answered before."""
    with suppress(smtplib.SMTPException, OSError):
        server.close()


def refuses_us(error: Exception) -> bool:
    """Whether a refusal is about us and not about the one mail: the sender is the same for all, and no recipient was judged."""
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return {code for code, _ in error.recipients.values()} <= ABOUT_US
    if isinstance(error, smtplib.SMTPSenderRefused):
        return error.smtp_code != TOO_LARGE
    if isinstance(error, smtplib.SMTPDataError):
        return error.smtp_code in ABOUT_US
    return isinstance(error, smtplib.SMTPHeloError)


def takes_others(mail: Mail) -> bool:
    """Whether it took another mail since this one was turned away last, or within the last hour: then it is not away, and the
    trouble is this mail's own. A relay that asks a dead mail server about its recipient looks like one that is away."""
    lately = Q(state_since__gt=clock.ago(3600)) & Q(state_since__gt=mail.created_at)
    sent = Mail.objects.filter(Q(state_since__gt=mail.state_since) | lately, status=Mail.Status.SENT)
    return bool(mail.last_error) and sent.exists()


def went_away(error: Exception) -> None:
    """Write down that nothing can be handed over now, and one alarm an hour: mails wait, however long it takes somebody to mend it."""
    Heartbeat.objects.update_or_create(name=AWAY, defaults={"at": clock.now()})
    if is_due("alarm.mail_server", seconds=ALARM_SECONDS):
        log.error("ALARM no mail can be handed over, all of them wait: %s", error)
        guards.count("alarm.mail_server")


def came_back() -> None:
    """It took a message. Harmless when it was never away."""
    Heartbeat.objects.filter(name=AWAY).delete()


def is_away() -> bool:
    """Whether the last that was heard of it, in the last half hour, was that it takes nothing."""
    return Heartbeat.objects.filter(name=AWAY, at__gt=clock.ago(AWAY_SECONDS)).exists()
