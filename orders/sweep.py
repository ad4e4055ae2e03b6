"""The shop's minute: jobs and payments to look at, drafts to expire, ends to tell, mails to send, files to delete.

It also runs the sweeps of the floors below, so that one beat entry drives the whole house. Each part stands alone: one that fails
is logged and does not stop the next. The sweep itself never waits for the card processor or a mail server: it claims rows and
publishes their ids, the work's first, so that whoever is slow out there delays nobody's video.
"""

import logging
from functools import partial

from celery import current_app
from django.conf import settings
from django.db import OperationalError
from django.db.models import CharField, Exists, OuterRef, Q, Value
from django.db.models.functions import Cast, Concat

import billing.sweep
import generation.sweep
from billing.gateway_errors import GatewayError
from billing.models import Entry, Payment
from generation.states import JobStatus
from orders import checkout, drafts, flow, mail, outbox
from orders.models import Order, OrderItem, Photo
from waistheart import clock
from waistheart.models import Heartbeat
from waistheart.sweeping import Part, Publish, each, publish_all, run

log = logging.getLogger(__name__)
PAGE = 200
SEEN = 10 * PAGE  # rows that raise each time are passed over, up to so many
# Looks and mails that no worker came to within a minute are dropped: their rows come again, and a processor or mail server that
# answers nobody must not fill the queue before the work.
MESSAGE_SECONDS = 55


def every_minute(publish: Publish | None = None) -> dict[str, object]:
    """Run every part once; harmless twice at once and however late. `publish` hands ids to workers (default: by Celery)."""
    publish = publish or send
    beat()
    parts: dict[str, Part] = {
        "generation": partial(generation.sweep.every_minute, publish),
        "payments": partial(publish_payments, publish),
        "grants": billing.sweep.expire_grants,
        "told": tell_ends,
        "mails": partial(publish_mails, publish),
        "drafts": expire_drafts,
        "photos": delete_photos,
    }
    return {name: run(name, part) for name, part in parts.items()}


def beat() -> None:
    """Write that the sweep ran."""
    Heartbeat.objects.update_or_create(name="sweep", defaults={"at": clock.now()})


def send(task: str, row_id: int) -> None:
    """Hand an id to a worker; the row is claimed already, so a lost message costs one wait."""
    expires = MESSAGE_SECONDS if task.startswith("orders.") else None
    current_app.send_task(task, args=[row_id], expires=expires)


def publish_payments(publish: Publish) -> int:
    """Have one claimed page of payments without an end looked up."""
    return publish_all(publish, "orders.look", billing.sweep.claim_payments())


def publish_mails(publish: Publish) -> int:
    """Have one claimed page of mails handed over."""
    return publish_all(publish, "orders.hand_over", outbox.claim())


def look_up(payment_id: int) -> None:
    """Settle one payment as the processor says. One that is away is asked again later; what nobody explains postpones the payment."""
    payment = Payment.objects.get(pk=payment_id)
    try:
        give_up_session(payment) or flow.settle(payment)
        billing.sweep.looked_up(payment)
    except (GatewayError, OperationalError) as error:
        log.warning("payment %s not looked up now: %s", payment.key, error)
    except Exception as error:
        log.exception("payment %s raised", payment.key)
        billing.sweep.postpone(payment, error)


def give_up_session(payment: Payment) -> bool:
    """A payment whose session could not be made for a day has failed: its key would mean another session by now."""
    too_old = Payment.objects.filter(pk=payment.pk, session_id__isnull=True, created_at__lte=clock.ago(86400)).exists()
    if too_old:
        checkout.end_without_session(payment)
    return too_old


def adopt_recent_paid() -> int:
    """Every ten minutes, ask the processor for paid sessions we do not call received: a hint may be lost, a payment may not."""
    found = billing.sweep.paid_but_not_received()
    for payment in found:
        look_up(payment.pk)
    return len(found)


def tell_ends() -> int:
    """Put the mails about ended videos into the outbox; a failed one only once the ledger says what came back."""
    hold = Concat(Value("hold:"), Cast(OuterRef("job__hold_id"), CharField()))
    returned = Entry.objects.filter(kind__in=["released", "granted"], occasion=hold)
    ended = OrderItem.objects.filter(
        Q(job__status=JobStatus.COMPLETED) | (Q(job__status=JobStatus.FAILED) & Exists(returned)), told_at__isnull=True
    )
    return each("told", ended.select_related("order", "job").order_by("pk")[:SEEN], mail.tell, enough=PAGE)


def expire_drafts() -> int:
    """End drafts that nobody touched for a day."""
    old = Order.objects.filter(status=Order.Status.DRAFT, touched_at__lte=clock.ago(settings.DRAFT_SECONDS))
    return each("drafts", old.order_by("touched_at")[:SEEN], drafts.expire, enough=PAGE)


def delete_photos() -> int:
    """Delete the bytes of photos whose time is over; one that cannot be deleted now is tried again later."""
    due = Photo.objects.filter(keep_until__lte=clock.now(), deleted_at__isnull=True)
    return each("photos", due.order_by("keep_until")[:PAGE], delete_photo, postpone=photo_stays)


def delete_photo(photo: Photo) -> bool:
    """Delete one photo; true, or it raises."""
    drafts.drop_photo(photo)
    return True


def photo_stays(photo: Photo) -> None:
    """Its time is over all the same; only the next try moves on."""
    Photo.objects.filter(pk=photo.pk, deleted_at__isnull=True).update(keep_until=clock.after(900))
