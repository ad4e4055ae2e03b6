"""The shop's minute: payments to look up, sessions to make, drafts to expire, ends to tell, mails to send, files to delete.

It also runs the sweeps of the floors below, so that one beat entry drives the whole house. Each part stands alone: one that fails
is logged and does not stop the next.
"""

import logging
from collections.abc import Callable

from celery import current_app
from django.conf import settings
from django.db.models import CharField, Exists, OuterRef, Q, Value
from django.db.models.functions import Cast, Concat

import billing.sweep
import generation.sweep
from billing.gateway_errors import GatewayError
from billing.models import Entry, Payment
from generation.states import JobStatus
from orders import checkout, drafts, flow, mail
from orders.models import Mail, Order, OrderItem, Photo
from waistheart import clock, guards, storage
from waistheart.models import Heartbeat

log = logging.getLogger(__name__)
PAGE = 200
Part = Callable[[], object]


def every_minute(publish: generation.sweep.Publish | None = None) -> dict[str, object]:
    """Run every part once; harmless twice at once and however late. `publish` hands ids to workers (default: by Celery)."""
    publish = publish or send
    beat()
    parts: dict[str, Part] = {
        "payments": look_up_payments,
        "paid at the processor": adopt_recent_paid,
        "generation": lambda: generation.sweep.every_minute(publish),
        "model probes": lambda: generation.sweep.publish_all(
            publish, "generation.advance", generation.sweep.model_probes()
        ),
        "grants": billing.sweep.expire_grants,
        "told": tell_ends,
        "mails": hand_over_mails,
        "drafts": expire_drafts,
        "photos": delete_photos,
    }
    return {name: run(name, part) for name, part in parts.items()}


def run(name: str, part: Part) -> object:
    """One part; what it raises is logged and counted, and the others go on."""
    try:
        return part()
    except Exception:
        log.exception("sweep part %r failed", name)
        guards.count(f"sweep.failed.{name}"[:80])
        return "failed"


def beat() -> None:
    """Write that the sweep ran."""
    Heartbeat.objects.update_or_create(name="sweep", defaults={"at": clock.now()})


def send(task: str, row_id: int) -> None:
    """Hand an id to a worker; the row is claimed already, so a lost message costs one wait."""
    current_app.send_task(task, args=[row_id])


def look_up_payments() -> int:
    """Settle one claimed page of payments without an end; a processor that is away ends the page early."""
    count = 0
    for payment_id in billing.sweep.claim_payments():
        payment = Payment.objects.get(pk=payment_id)
        try:
            give_up_session(payment) or flow.settle(payment)
        except GatewayError as error:
            log.warning("payment %s not looked up now: %s", payment.key, error)
        except Exception:
            log.exception("payment %s raised", payment.key)
            billing.sweep.postpone(payment)
        count += 1
    return count


def give_up_session(payment: Payment) -> bool:
    """A payment whose session could not be made for a day has failed: its key would mean another session by now."""
    too_old = Payment.objects.filter(pk=payment.pk, session_id__isnull=True, created_at__lte=clock.ago(86400)).exists()
    if too_old:
        checkout.end_without_session(payment)
    return too_old


def adopt_recent_paid() -> int:
    """Every ten minutes, ask the processor for paid sessions we do not call received: a hint may be lost, a payment may not."""
    count = 0
    for payment in billing.sweep.paid_but_not_received():
        try:
            flow.settle(payment)
        except GatewayError as error:
            log.warning("payment %s not looked up now: %s", payment.key, error)
        count += 1
    return count


def tell_ends() -> int:
    """Put the mails about ended videos into the outbox; a failed one only once the ledger says what came back."""
    hold = Concat(Value("hold:"), Cast(OuterRef("job__hold_id"), CharField()))
    returned = Entry.objects.filter(kind__in=["released", "granted"], occasion=hold)
    ended = OrderItem.objects.filter(
        Q(job__status=JobStatus.COMPLETED) | (Q(job__status=JobStatus.FAILED) & Exists(returned)), told_at__isnull=True
    )
    return sum(mail.tell(item) for item in ended.select_related("order", "job").order_by("pk")[:PAGE])


def hand_over_mails() -> int:
    """Hand over one page of mails that are due."""
    due = Mail.objects.filter(next_step_at__lte=clock.now(), status__in=["due", "sending", "unknown"]).order_by(
        "next_step_at"
    )
    rows = list(due[:PAGE])
    for row in rows:
        try:
            mail.hand_over(row)
        except Exception:
            log.exception("mail %s raised", row.pk)
            Mail.objects.filter(pk=row.pk).update(next_step_at=clock.after(900))
    return len(rows)


def expire_drafts() -> int:
    """End drafts that nobody touched for a day."""
    old = Order.objects.filter(status=Order.Status.DRAFT, state_since__lte=clock.ago(settings.DRAFT_SECONDS))
    return sum(drafts.expire(order) for order in old.order_by("state_since")[:PAGE])


def delete_photos() -> int:
    """Delete the bytes of photos whose time is over."""
    due = Photo.objects.filter(keep_until__lte=clock.now(), deleted_at__isnull=True).order_by("keep_until")[:PAGE]
    count = 0
    for photo in due:
        try:
            drafts.drop_photo(photo)
            count += 1
        except storage.StorageError:
            log.warning("photo %s not deleted now", photo.pk, exc_info=True)
    return count
