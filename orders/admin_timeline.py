"""What happened to an order, from its first photo to its last mail, and its pictures; for the console's order page."""

from collections.abc import Iterator
from datetime import datetime

from django.urls import reverse
from django.utils.html import format_html
from django.utils.timezone import localtime

from billing.models import Entry
from generation.models import JobEvent, Submission
from generation.states import JobStatus
from orders.models import Mail, Order, OrderItem, Photo
from waistheart import console, money

Happened = tuple[datetime, str]


def of(order: Order) -> str:
    """Every dated fact about the order, oldest first; five statements whatever the number of its jobs."""
    facts = [*_order(order), *_photos(order), *_jobs(order), *_entries(order), *_mails(order)]
    return console.lines([
        format_html('<time datetime="{}">{}</time>{}', at.isoformat(), f"{localtime(at):%d %b %H:%M:%S}", what)
        for at, what in sorted(facts, key=lambda fact: fact[0])
    ])  # fmt: skip


def _order(order: Order) -> Iterator[Happened]:
    yield order.created_at, "order begun"
    if order.payment:
        asked = money.words(amount=order.payment.amount, currency=order.payment.currency)
        yield order.payment.created_at, f"payment asked, {asked}"
        yield order.payment.state_since, f"payment {order.payment.status}"
    if order.paid_at:
        yield order.paid_at, "order paid"
    if order.seen_at:
        yield order.seen_at, "customer saw the order page"


def _photos(order: Order) -> Iterator[Happened]:
    for photo in Photo.objects.filter(order=order):
        yield (
            photo.created_at,
            f"photo {photo.pk}, {photo.format_seen} {photo.width}×{photo.height}, hash {photo.sha256[:12]}…",
        )
        if photo.deleted_at:
            yield photo.deleted_at, f"bytes of photo {photo.pk} deleted"


def _jobs(order: Order) -> Iterator[Happened]:
    for event in JobEvent.objects.filter(job__lot=order.lot):
        reason = f" ({event.reason})" if event.reason else ""
        yield (
            event.at,
            f"job {event.job_id} {event.move}: {event.source or 'born'} → {event.target} by {event.actor}{reason}",
        )
    for sent in Submission.objects.filter(job__lot=order.lot):
        yield sent.sent_at, f"job {sent.job_id} sent to {sent.provider} as submission {sent.number}"
        yield sent.state_since, f"submission {sent.number} of job {sent.job_id} is {sent.status} {sent.detail}".rstrip()


def _entries(order: Order) -> Iterator[Happened]:
    holds = [f"hold:{item.job.hold_id}" for item in order.items.all() if item.job]
    for entry in Entry.objects.filter(occasion__in=holds):
        yield entry.at, f"credits {entry.kind}: {entry.credits}, grant {entry.grant_id}"


def _mails(order: Order) -> Iterator[Happened]:
    for mail in Mail.objects.filter(order=order):
        yield mail.state_since, f"mail {mail.kind} to {mail.to}: {mail.status}"


def pictures(order: Order, item: OrderItem) -> Iterator[str]:
    """The crop of an item's photo and, once it is delivered, the video's poster."""
    where = {"code": order.code, "key": order.key, "number": item.number}
    if item.photo_id:
        yield _figure(reverse("item-photo", kwargs=where), f"Portrait {item.number}")
    if item.job and item.job.status == JobStatus.COMPLETED and not item.job.deleted_at:
        yield _figure(reverse("item-poster", kwargs=where), f"Video {item.number}")


def _figure(src: str, words: str) -> str:
    return format_html('<figure><img src="{}" alt="" loading="lazy"><figcaption>{}</figcaption></figure>', src, words)
