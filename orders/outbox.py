"""Mails that are due: claimed before their ids are published, and handed over one at a time by whoever gets the message.

What ends without having been handed over is listed for staff, who may have it tried again or let it be.
"""

import logging
from collections.abc import Iterator

from django.db.models import F, Q, QuerySet
from django.db.models.functions import Greatest

from orders import mail, mail_server
from orders.models import Mail
from orders.moves import move_mail
from waistheart import clock

log = logging.getLogger(__name__)
PAGE = 200
WAITING = ("due", "sending", "unknown")
LONGEST_WAIT_SECONDS = 900


def claim() -> Iterator[int]:
    """Claim one page of mails that are due, oldest first: each id is answered to one sweep only.

    While the mail server is away one mail knocks for all: a page of them, each waiting for its silence, would keep the workers
    from paid jobs.
    """
    page = 1 if mail_server.is_away() else PAGE
    due = Mail.objects.filter(status__in=WAITING, next_step_at__lte=clock.now()).order_by("next_step_at", "id")
    for mail_id, tries in due.values_list("id", "tries")[:page]:
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
    same = Mail.objects.filter(pk=row.pk, status=row.status, handed_over=row.handed_over).exclude(status="sending")
    written = {
        "tries": F("tries") + 1,
        "next_step_at": None if over else clock.after(LONGEST_WAIT_SECONDS),
        "last_error": f"{type(error).__name__}: {error}"[:300],
    }
    if over and row.status == Mail.Status.DUE:
        move_mail("give_up", same, **written)
        return Mail.Status.FAILED
    same.update(**written)
    return row.status


def needs_a_person() -> Q:
    """Mails that nothing tries any more: refused too often, or repeated in vain after a lost answer."""
    return Q(status=Mail.Status.FAILED) | Q(status=Mail.Status.UNKNOWN, next_step_at__isnull=True)


def again(row: Mail) -> bool:
    """Staff have a mail handed over again, as it was read in `row`: whether it moved. A second call finds it gone on.

    The same row, the same Message-ID, and as many tries as a new one. Where every answer so far was lost it may be handed over
    once more, and if that answer is lost too nothing repeats it by itself.
    """
    same = _as_it_was_read(row)
    once_more = Greatest(F("most_hand_overs"), F("handed_over") + 1)
    return move_mail("again", same, tries=0, next_step_at=clock.now(), most_hand_overs=once_more)


def drop(row: Mail) -> bool:
    """Staff let a mail be that nobody can be reached with, as it was read in `row`: whether it moved. A second call finds it gone."""
    return move_mail("drop", _as_it_was_read(row), next_step_at=None)


def _as_it_was_read(row: Mail) -> QuerySet[Mail]:
    seen = {"handed_over": row.handed_over, "most_hand_overs": row.most_hand_overs}
    return Mail.objects.filter(needs_a_person(), pk=row.pk, **seen)
