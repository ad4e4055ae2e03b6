"""The minute itself: it waits for nobody outside, publishes the work first, and one row or part that raises stops no other."""

import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from celery import current_app
from django.conf import settings as configured

from billing.models import Grant, Payment
from generation import accounts, work
from generation import sweep as work_sweep
from generation.models import Job, Submission
from generation.providers import get_provider
from orders import drafts, outbox, tasks
from orders import sweep as sweeps
from orders.models import Mail, Order, OrderItem, Photo
from tests.generation.bad_days import now
from tests.orders.rivals import lost
from tests.shop import Shop, run_now
from waistheart import clock, storage
from waistheart.celery import app

Messages = list[tuple[str, int]]


class Hole:
    """A server that takes every connection and never says a word."""

    def __init__(self) -> None:
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self.listening.getsockname()[1])
        self.taken: list[socket.socket] = []
        threading.Thread(target=self._take, daemon=True).start()

    def _take(self) -> None:
        while True:
            try:
                self.taken.append(self.listening.accept()[0])
            except OSError:
                return

    def close(self) -> None:
        for connection in [self.listening, *self.taken]:
            connection.close()


@pytest.fixture
def hole() -> Iterator[Hole]:
    hole = Hole()
    yield hole
    hole.close()


def one_minute(shop: Shop) -> Messages:
    """What the sweep publishes a minute later."""
    messages: Messages = []
    shop.age(61)
    sweeps.every_minute(lambda task, row_id: messages.append((task, row_id)))
    return messages


def test_a_processor_and_a_mail_server_that_never_answer_stop_nothing(shop: Shop, hole: Hole, settings: Any) -> None:
    waiting = [shop.asked(email=f"{name}@example.com").payment for name in ("ada", "eve", "ivy")]
    job = shop.paid(email="paid@example.com")
    settings.STRIPE_API_BASE = f"http://127.0.0.1:{hole.port}/stripe"
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", hole.port

    messages = one_minute(shop)
    assert hole.taken == []
    assert messages[0] == ("generation.advance", job.pk)
    asked = [("orders.look", payment.pk) for payment in waiting if payment]
    letter = Mail.objects.get()
    assert sorted(messages[messages.index(asked[0]) :]) == sorted([*asked, ("orders.hand_over", letter.pk)])

    # Claimed: a second sweep at the same moment publishes none of them again.
    again: Messages = []
    sweeps.every_minute(lambda task, row_id: again.append((task, row_id)))
    assert not {task for task, _ in again} & {"orders.look", "orders.hand_over"}


def test_messages_about_strangers_do_not_wait_in_the_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[str, Any]] = []
    monkeypatch.setattr(current_app, "send_task", lambda task, args, expires: sent.append((task, expires)))
    for task in ("orders.look", "orders.hand_over", "generation.advance"):
        sweeps.send(task, 1)
    assert sent == [("orders.look", 55), ("orders.hand_over", 55), ("generation.advance", None)]
    beat = {
        entry["task"]: entry.get("options", {}).get("expires") for entry in configured.CELERY_BEAT_SCHEDULE.values()
    }
    assert beat == {"orders.sweep": 55, "orders.find_paid": 55, "generation.probe": 600, "orders.daily": 55}
    app.loader.import_default_modules()
    assert set(beat) | {"orders.look", "orders.hand_over", "generation.advance", "generation.watch"} <= set(app.tasks)


def test_a_doubled_or_late_message_hands_nothing_over_twice(shop: Shop) -> None:
    shop.paid()
    letter = Mail.objects.get()
    assert [outbox.hand_over(letter.pk) for _ in range(3)] == ["sent", "not now", "not now"]
    Mail.objects.update(status="unknown", next_step_at=clock.now(), state_since=clock.now())
    assert outbox.hand_over(letter.pk) == "not now"
    shop.age(601)
    assert [outbox.hand_over(letter.pk) for _ in range(2)] == ["sent", "not now"]


def test_a_payment_that_raises_is_postponed_and_counted(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    payment = shop.asked().payment
    assert payment is not None
    with monkeypatch.context() as patch:
        patch.setattr(sweeps.flow, "settle", broken)
        tasks.look(payment.pk)
    assert Payment.objects.get(pk=payment.pk).failures == 1


def broken(*args: Any, **kwargs: Any) -> Any:
    raise ZeroDivisionError("nobody explains this")


def breaks_for(patch: pytest.MonkeyPatch, owner: Any, name: str, pk: int) -> None:
    """Let the function raise what nobody explains for one row, given first or as the keyword `job`."""
    real = getattr(owner, name)

    def act(*rows: Any, **named: Any) -> Any:
        return broken() if (*rows, named.get("job"))[0].pk == pk else real(*rows, **named)

    patch.setattr(owner, name, act)


def test_a_part_that_fails_stops_no_other(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    job = shop.paid()
    accounts.account_of(get_provider())
    for owner, name in ((work_sweep, "due_jobs"), (work_sweep, "cancel_what_owes"), (outbox, "claim")):
        monkeypatch.setattr(owner, name, broken)
    messages: Messages = []
    done = sweeps.every_minute(lambda task, row_id: messages.append((task, row_id)))
    assert isinstance(done["generation"], dict)
    assert [name for name, said in done["generation"].items() if said == "failed"] == [
        "cancelled", "storing", "processing", "queued", "review",
    ]  # fmt: skip
    assert done["mails"] == "failed"
    assert ("generation.advance", job.pk) in messages, "its turn"


def test_a_photo_that_cannot_be_deleted_waits_behind_the_others(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    photos = [shop.draft(email=f"{name}@example.com").items.get().photo for name in ("ada", "eve")]
    Photo.objects.update(keep_until=clock.ago(60))
    assert photos[0]
    breaks_for(monkeypatch, drafts, "drop_photo", photos[0].pk)
    assert sweeps.delete_photos() == 1
    assert Photo.objects.get(deleted_at__isnull=True) == photos[0]
    assert (sweeps.delete_photos(), lost("sweep.raised.photos")) == (0, 1), "postponed"
    monkeypatch.undo()
    shop.age(900)
    assert sweeps.delete_photos() == 1


@pytest.mark.parametrize(("part", "owner", "name"), [("drafts", drafts, "expire"), ("told", sweeps.mail, "tell")])
def test_a_row_that_raises_stops_no_other(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, part: str, owner: Any, name: str
) -> None:
    if part == "drafts":
        rows = [shop.draft(email=f"{name}@example.com").pk for name in ("ada", "eve")]
        Order.objects.update(state_since=clock.ago(90000), touched_at=clock.ago(90000))
        act = sweeps.expire_drafts
    else:
        jobs = [shop.paid(email=f"{name}@example.com") for name in ("ada", "eve")]
        for job in jobs:
            assert work.cancel(job=job, actor="customer")
        rows, act = list(OrderItem.objects.order_by("pk").values_list("pk", flat=True)), sweeps.tell_ends
    breaks_for(monkeypatch, owner, name, rows[0])
    assert (act(), lost(f"sweep.raised.{part}")) == (1, 1)
    monkeypatch.undo()
    assert act() == 1


def test_a_job_whose_cancel_raises_does_not_keep_the_others_from_it(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [shop.paid(email=f"{name}@example.com") for name in ("ada", "eve")]
    owe(jobs)
    breaks_for(monkeypatch, work, "cancel", jobs[0].pk)
    for failures in range(1, 11):
        shop.age(901)
        work_sweep.every_minute(run_now)
        assert now(jobs[0]).failures == failures % 10
    assert [(now(job).status, now(job).reason) for job in jobs] == [
        ("review", "poison"),
        ("failed", "payment_reversed"),
    ]


def owe(jobs: list[Job]) -> None:
    """The processor has taken the money for these jobs back."""
    Grant.objects.filter(hold_parts__hold__job__in=jobs).update(owed=1)


def test_an_image_that_cannot_be_deleted_waits_behind_the_others(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.sandbox.fault("content_policy_422", times=2)
    for name in ("ada", "eve"):
        shop.submitted(email=f"{name}@example.com")
    shop.age(61)
    keys = list(Submission.objects.order_by("pk").values_list("image_key", flat=True))
    delete = storage.delete
    monkeypatch.setattr(storage, "delete", lambda key: broken() if key == keys[0] else delete(key=key))
    assert (work_sweep.delete_images(), work_sweep.delete_images()) == (1, 0)
    assert lost("sweep.raised.images") == 1, "postponed"
    monkeypatch.undo()
    shop.age(900)
    assert work_sweep.delete_images() == 1
