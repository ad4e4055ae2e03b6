"""A whole shop in the test's process, with real HTTP on both sides: its pages served by a thread, the sandbox a process of its own.

Only Celery is missing: `sweep()` runs what the sweep publishes at once. Time is moved by shifting the rows, never by patching clocks.
"""

import hashlib
from collections.abc import Callable
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

from django.apps import apps
from django.db import connection, transaction
from django.db.models import DateTimeField, F
from django.db.models.sql import UpdateQuery

import generation.tasks
from billing.models import CreditPack, Payment
from generation import runner
from generation.models import Job
from orders import drafts, flow, tasks
from orders import sweep as sweeps
from orders.models import Order, Pose
from tests.sandbox_process import Sandbox

PHOTOS = Path(__file__).parent / "data" / "photos"
MODEL = "fal-ai/heart-pose/image-to-video"
DECLARED = {"adult": True, "start_now": True}


class Shop:
    """The shop as a test drives it."""

    def __init__(self, *, url: str, sandbox: Sandbox) -> None:
        self.url = url
        self.sandbox = sandbox
        CreditPack.objects.get_or_create(credits=1, price=400, currency="GBP")
        self.pose = self.add_pose("waist-heart")

    def add_pose(self, slug: str, **fields: Any) -> Pose:
        return Pose.objects.create(
            slug=slug, name=slug.replace("-", " ").capitalize(), description="Hands meet.", prompt=f"{slug}, smiling",
            parameters={"aspect_ratio": "9:16", "duration": "5"}, **fields,
        )  # fmt: skip

    def draft(self, *, email: str = "ada@example.com", pose: Pose | None = None, photo: str = "in_frame.jpg") -> Order:
        """A draft with a photo and an address, ready for Pay; the photo has the frame's size, so nothing scales it."""
        key = hashlib.sha256(f"{Order.objects.count()}".encode()).hexdigest()
        order = drafts.start(pose=pose or self.pose, request_key=key)
        assert drafts.put_photo(order=order, data=(PHOTOS / photo).read_bytes(), name=photo)
        assert drafts.set_email(order=order, email=email)
        order.refresh_from_db()
        return order

    def asked(self, **draft: Any) -> Order:
        """An order whose payment page is open."""
        order = self.draft(**draft)
        answer = flow.ask_payment(order=order, declarations=DECLARED, expected_price=400)
        assert answer.url, answer
        order.refresh_from_db()
        return order

    def pay(self, order: Order, do: str = "pay", **params: Any) -> Payment:
        """Pay at the processor; the shop has not heard of it yet."""
        assert order.payment is not None
        assert order.payment.session_id
        self.sandbox.card(order.payment.session_id, do, **params)
        return order.payment

    def paid(self, **draft: Any) -> Job:
        """A paid order of one video; its job is queued."""
        order = self.asked(**draft)
        assert flow.settle(self.pay(order)) == "received"
        job = Job.objects.get(lot=order.lot)
        assert job.status == "queued"
        return job

    def submitted(self, **draft: Any) -> Job:
        """A job that the provider works on."""
        job = self.paid(**draft)
        runner.advance(job.pk)
        return Job.objects.get(pk=job.pk)

    def sweep(self, *, minutes: int = 1) -> None:
        """Let minutes pass and run the sweep after each; what it publishes runs at once."""
        for _ in range(minutes):
            self.age(61)
            sweeps.every_minute(run_now)
            tasks.find_paid()

    def age(self, seconds: float) -> None:
        """Make every row older."""
        age_everything(seconds)

    def until(self, job: Job, *statuses: str, minutes: int = 10) -> Job:
        """Sweep until the job is in one of the states, at most so many minutes."""
        for _ in range(minutes):
            now = Job.objects.get(pk=job.pk)
            if now.status in statuses:
                return now
            self.sweep()
        now = Job.objects.get(pk=job.pk)
        assert now.status in statuses, f"job is {now.status} ({now.reason}): {now.last_error}"
        return now

    def provider(self) -> list[dict[str, Any]]:
        """What the provider knows of our requests."""
        return list(self.sandbox.state()["fal"])


TASKS: dict[str, Callable[[int], object]] = {
    "generation.advance": lambda job_id: runner.advance(job_id, actor="sweep"),
    "generation.watch": generation.tasks.watch_submission,
    "orders.look": tasks.look,
    "orders.hand_over": tasks.hand_over,
}


def run_now(task: str, row_id: int) -> None:
    """What a worker would do with a message; as there, one task that raises does not end the next."""
    try:
        TASKS[task](row_id)
    except Exception as error:  # noqa: BLE001
        print(f"{task}({row_id}) raised {error!r}")


def age_everything(seconds: float) -> None:
    """Shift every time in the shop's tables into the past, so that the database's clock stays the clock."""
    with transaction.atomic(), connection.cursor() as cursor:
        for sql, params in ageing(seconds):
            cursor.execute(sql, params)


@cache
def ageing(seconds: float) -> list[tuple[str, tuple[Any, ...]]]:
    """The statements that shift every time; made once, since the tests run them thousands of times."""
    statements = []
    for app in ("waistheart", "billing", "generation", "orders"):
        for model in apps.get_app_config(app).get_models():
            names = [field.name for field in model._meta.fields if isinstance(field, DateTimeField)]
            if names and not model._meta.proxy:
                update = UpdateQuery(model)
                update.add_update_values({name: F(name) - timedelta(seconds=seconds) for name in names})
                statements.append(update.get_compiler(connection=connection).as_sql())
    return statements
