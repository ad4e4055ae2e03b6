"""The outbox. One row per occasion, made in the block that gives the occasion; the sweep hands it over.

A mail is handed over once; a second time only, under the same Message-ID, when the answer to the first was lost. Another time
after that is an act of staff (`outbox.again`).
"""

import logging
import smtplib
from email.utils import make_msgid
from urllib.parse import urlsplit

from django.conf import settings
from django.core.mail import EmailMultiAlternatives
from django.db.models import F, QuerySet
from django.template.loader import render_to_string

from billing.models import Entry, Payment
from generation.states import JobStatus
from orders import mail_server
from orders.models import Mail, Order, OrderItem, Photo
from orders.moves import move_mail, write_order
from waistheart import clock, guards, money

log = logging.getLogger(__name__)
RETRY_SECONDS = (60, 300, 900, 3600)
YOUNG_SECONDS = 900
ANSWER_LOST_SECONDS = 600
MAX_TRIES = 30
# The mail server read the message, or its sender and recipient, and said no: these may be tried again freely.
REFUSED = (
    smtplib.SMTPHeloError,
    smtplib.SMTPNotSupportedError,
    smtplib.SMTPSenderRefused,
    smtplib.SMTPRecipientsRefused,
    smtplib.SMTPDataError,
    # An address or a header that cannot be written in the protocol's letters: found out before the text is sent.
    UnicodeError,
)


# --- occasions -------------------------------------------------------------------------------------------------------


def order_received(*, order: Order) -> None:
    """Inside the block that made the order paid."""
    _put(order=order, kind="order_received", occasion="paid", to=order.email)


def credits_kept(*, payment: Payment, order: Order | None) -> None:
    """Inside the block that received money for an order that could not start: the credits wait for their owner."""
    _put(
        order=order,
        kind="credits_kept",
        occasion=f"payment:{payment.pk}",
        to=payment.email,
        reference=payment.reference,
    )


def tell(item: OrderItem) -> bool:
    """Put the mail about a video's end into the outbox, ready or could not make it, and let its photo go a day later,
    unless another video of the order is still made from it.

    That credits came back is said only when the ledger says so. A second call finds it told.
    """
    return _tell(item).won


@guards.block("orders.tell")
def _tell(item: OrderItem) -> None:
    write_order(order_id=item.order_id)
    guards.must("item.tell", OrderItem.objects.filter(pk=item.pk, told_at__isnull=True).update(told_at=clock.now()))
    job = item.job
    if job is None:
        raise guards.LostRace("item.tell")
    if job.status == JobStatus.COMPLETED:
        kind = "ready"
    elif Entry.objects.filter(kind__in=["released", "granted"], occasion=f"hold:{job.hold_id}").exists():
        kind = "could_not_make_it"
    else:
        raise guards.LostRace("item.returned")
    _put(order=item.order, kind=kind, occasion=f"job:{job.pk}", to=item.order.email)
    if not OrderItem.objects.filter(order=item.order_id, photo_key=item.photo_key, told_at__isnull=True).exists():
        Photo.objects.filter(key=item.photo_key, keep_until__isnull=True).update(
            keep_until=clock.after(settings.PHOTO_KEPT_SECONDS)
        )


def _put(*, order: Order | None, kind: str, occasion: str, to: str, reference: str = "") -> None:
    host = urlsplit(settings.PUBLIC_URL).hostname or "localhost"
    Mail.objects.create(
        reference=reference or f"order:{order.code}" if order else reference,
        kind=kind,
        occasion=occasion,
        order=order,
        to=to,
        message_id=make_msgid(idstring=kind, domain=host),
    )


# --- handing over ----------------------------------------------------------------------------------------------------


def hand_over(mail: Mail) -> str:
    """Hand one mail to the mail server, or say why not; the word is the row's state afterwards.

    Claimed before the network is touched: a second caller finds it taken. A row left in `sending` by a killed worker counts as
    "answer lost" after ten minutes. A server that is away, or knows us no more, is no try of this mail.
    """
    if mail.status == Mail.Status.SENDING:
        return _after_a_lost_answer(mail, "its worker is gone")
    message = message_of(mail)
    if not _claim(mail):
        return "taken"
    mail.handed_over, mail.tries = mail.handed_over + 1, mail.tries + 1
    try:
        server = mail_server.opened()
    except mail_server.Away as error:
        return _not_a_try(mail, error)
    try:
        server.send_messages([message])
    except REFUSED as error:
        about_us = mail_server.refuses_us(error) and not mail_server.takes_others(mail)
        return _not_a_try(mail, error) if about_us else _not_accepted(mail, error)
    except (smtplib.SMTPException, OSError) as error:
        if not mail_server.has_begun(server):
            return _not_accepted(mail, error) if mail_server.takes_others(mail) else _not_a_try(mail, error)
        return _after_a_lost_answer(mail, f"{type(error).__name__}: {error}")
    finally:
        mail_server.say_goodbye(server)
    return _sent(mail)


def _claim(mail: Mail) -> bool:
    rows = Mail.objects.filter(pk=mail.pk, status=mail.status, handed_over=mail.handed_over)
    return move_mail(
        "claim",
        rows.filter(handed_over__lt=F("most_hand_overs")),
        handed_over=F("handed_over") + 1,
        tries=F("tries") + 1,
        next_step_at=clock.after(ANSWER_LOST_SECONDS),
    )


def _this_handing_over(mail: Mail) -> QuerySet[Mail]:
    """The row while it is in the handing over that `mail` was claimed for: a later one is somebody else's to judge."""
    return Mail.objects.filter(pk=mail.pk, status=Mail.Status.SENDING, handed_over=mail.handed_over)


def _not_a_try(mail: Mail, error: Exception) -> str:
    """Nothing can be handed over now: due again as if nothing had been tried, for as long as it takes. Most outages are short, so a
    mail that was made just now waits a minute; later it is a quarter of an hour."""
    young = Mail.objects.filter(pk=mail.pk, created_at__gt=clock.ago(YOUNG_SECONDS)).exists()
    move_mail(
        "put_back",
        _this_handing_over(mail),
        handed_over=F("handed_over") - 1,
        tries=F("tries") - 1,
        next_step_at=clock.after(60 if young else 900),
        last_error=str(error)[:300],
    )
    mail_server.went_away(error)
    log.warning("mail %s waits for the mail server: %s", mail.pk, error)
    return Mail.Status.DUE


def _not_accepted(mail: Mail, error: Exception) -> str:
    """Definitely not taken: due again, later each time; after many tries a person must look."""
    over = mail.tries >= MAX_TRIES
    wait = RETRY_SECONDS[min(mail.tries, len(RETRY_SECONDS)) - 1]
    move_mail(
        "give_up" if over else "put_back",
        _this_handing_over(mail),
        handed_over=F("handed_over") - 1,
        next_step_at=None if over else clock.after(wait),
        last_error=f"{type(error).__name__}: {error}"[:300],
    )
    log.warning("mail %s not accepted: %s", mail.pk, error)
    return Mail.Status.FAILED if over else Mail.Status.DUE


def _after_a_lost_answer(mail: Mail, why: str) -> str:
    """It may have been taken: one repeat under the same Message-ID, then it stays unknown until staff repeat it."""
    again = mail.handed_over < mail.most_hand_overs
    move_mail(
        "lose_answer",
        _this_handing_over(mail),
        next_step_at=clock.after(ANSWER_LOST_SECONDS) if again else None,
        last_error=why[:300],
    )
    log.warning("mail %s: answer lost: %s", mail.pk, why)
    return Mail.Status.UNKNOWN


def _sent(mail: Mail) -> str:
    move_mail("take", _this_handing_over(mail), next_step_at=None, last_error="")
    mail_server.came_back()
    return Mail.Status.SENT


def message_of(mail: Mail) -> EmailMultiAlternatives:
    """The mail as it is sent: subject, text and HTML from one context."""
    context = context_of(mail)
    subject = " ".join(render_to_string(f"mail/{mail.kind}.subject.txt", context).split())
    message = EmailMultiAlternatives(
        subject=subject if settings.LIVE else f"[Demo] {subject}",
        body=render_to_string(f"mail/{mail.kind}.txt", context),
        to=[mail.to],
        reply_to=[settings.HELP_EMAIL],
        headers={"Message-ID": mail.message_id, "Auto-Submitted": "auto-generated"},
    )
    message.attach_alternative(render_to_string(f"mail/{mail.kind}.html", context), "text/html")
    return message


def context_of(mail: Mail) -> dict[str, object]:
    """What the templates of a mail may use."""
    order = mail.order
    item = _item_of(mail)
    job = item.job if item else None
    url = f"{settings.PUBLIC_URL}/o/{order.code}-{order.key}/" if order else settings.PUBLIC_URL
    return {
        "order": order,
        "item": item,
        "job": job,
        "items": list(order.items.select_related("job")) if order else [],
        "pose_name": item.pose_name if item else "",
        "code": order.code if order else mail.reference.removeprefix("order:"),
        "order_url": url,
        "amount": money.words(amount=order.price, currency=order.currency) if order and order.currency else "",
        "kept_until": job.keep_until if job else None,
        "help_email": settings.HELP_EMAIL,
        "seller": settings.SELLER,
        "tax_text": settings.TAX_TEXT,
        "demo": not settings.LIVE,
        "email": mail.to,
        "public_url": settings.PUBLIC_URL,
    }


def _item_of(mail: Mail) -> OrderItem | None:
    """The item a mail is about: the one of its job, else the order's first."""
    if mail.order is None:
        return None
    items = OrderItem.objects.filter(order=mail.order).select_related("job").order_by("number")
    kind, _, row = mail.occasion.partition(":")
    return (items.filter(job_id=row) if kind == "job" else items).first()
