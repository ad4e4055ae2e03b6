"""Mails that are due: claimed before their ids are published, and handed over one at a time by whoever gets the message."""

import logging
from collections.abc import Iterator

from django.db.models import F, Q

from orders import mail
from orders.models import Mail
from waistheart import clock

log = logging.getLogger(__name__)
PAGE = 200
WAITING = ("due", "sending", "unknown")
LONGEST_WAIT_SECONDS = 900


def claim() -> Iterator[int]:
    """Claim one page of mails that are due, oldest first: each id is answered to one sweep only."""
    due = Mail.objects.filter(status__in=WAITING, next_step_at__lte=clock.now()).order_by("next_step_at", "id")
    for mail_id, tries in due.values_list("id", "tries")[:PAGE]:
        wait = min(LONGEST_WAIT_SECONDS, 60 * (tries + 1))
        if Mail.objects.filter(pk=mail_id, next_step_at__lte=clock.now()).update(next_step_at=clock.after(wait)):
            yield mail_id


def hand_over(mail_id: int) -> str:
    """Hand over one mail, if it is still to be; the word is the row's state afterwards.

    A message may be doubled or late: what was sent is not sent again, and an answer that may yet come is waited for. A mail that
    raises what nobody explains waits, later each time, and after many tries a person must look.
    """
    patient = Q(status__in=["sending", "unknown"], state_since__lte=clock.ago(mail.ANSWER_LOST_SECONDS))
    row = Mail.objects.filter(Q(status="due") | patient, pk=mail_id).first()
    if row is None:
        return "not now"
    try:
        return mail.hand_over(row)
    except Exception as error:
        log.exception("mail %s raised", mail_id)
        return _postpone(row, error)


def _postpone(row: Mail, error: Exception) -> str:
    """Later, and after many tries a person must look. A repeat that cannot be made stays what it was: an answer that was lost.

    What raised in the middle of a handing over is not judged here: it counts as a lost answer by itself.
    """
    over = row.tries + 1 >= mail.MAX_TRIES
    status = Mail.Status.FAILED if over and row.status == Mail.Status.DUE else row.status
    Mail.objects.filter(pk=row.pk, status=row.status, handed_over=row.handed_over).exclude(status="sending").update(
        status=status,
        state_since=clock.now(),
        tries=F("tries") + 1,
        next_step_at=None if over else clock.after(LONGEST_WAIT_SECONDS),
        last_error=f"{type(error).__name__}: {error}"[:300],
    )
    return status
