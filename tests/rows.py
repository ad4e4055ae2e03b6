"""Real rows to begin a test with, made by the shop's own verbs where there is one, and threads that act at once."""

import threading
import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

from django.db import connection
from django.db.models import F, Model

from billing import ledger
from billing.models import Entry, Grant, Hold, Payment, Wallet
from generation.models import Job, ProviderAccount, Submission
from generation.moves import bear
from orders.models import Order
from waistheart import clock, guards
from waistheart.models import User

T = TypeVar("T")
DAY = 86400
VIDEO = {"video_key": "videos/1.mp4", "video_size": 1, "video_sha256": "0" * 64}


def done(act: Callable[..., T], **params: Any) -> T:
    """Run a verb in a block of its own, and answer what it answers; a lost guard fails the test."""
    outcome = tried(act, **params)
    assert outcome.won, outcome
    return outcome.value  # type: ignore[return-value]


def tried(act: Callable[..., T], **params: Any) -> guards.Outcome[T]:
    """Run a verb in a block of its own, and answer the block's outcome."""
    return guards.block("tests")(act)(**params)


def new_owner() -> int:
    """A customer with a wallet."""
    owner = User.objects.create_user(f"{uuid.uuid4().hex}@example.com")
    Wallet.objects.create(owner=owner)
    return owner.pk


def new_payment(*, owner_id: int | None = None, status: str = "open", credits: int = 1, **fields: Any) -> Payment:
    """A payment in some state."""
    values: dict[str, Any] = {
        "reference": "order:AAAAAAAA", "amount": 400, "currency": "GBP", "name": "a video", "email": "ada@example.com",
        "success_url": "/", "cancel_url": "/", "session_expires_at": clock.after(DAY),
    }  # fmt: skip
    return Payment.objects.create(
        owner_id=owner_id or new_owner(), status=status, credits=credits, **{**values, **fields}
    )


def new_grant(*, owner_id: int, credits: int = 1, days: float = 365) -> Grant:
    """Credits from staff that live for so many days (negative: they have expired)."""
    reason = {"reason": "a test", "made_by": "tests", "occasion": f"test:{uuid.uuid4().hex}"}
    grant = done(ledger.grant_from_staff, owner_id=owner_id, credits=credits, **reason)
    Grant.objects.filter(pk=grant.pk).update(expires_at=clock.after(days * DAY))
    return Grant.objects.get(pk=grant.pk)


def take_back(grant: Grant, credits: int) -> None:
    """The processor took back what is held: from now on the grant owes it."""
    Grant.objects.filter(pk=grant.pk).update(owed=F("owed") + credits)
    Entry.objects.create(kind="owed", occasion=f"refund:{uuid.uuid4().hex}", grant=grant, credits=credits, owed=credits)


def dispute(grant: Grant) -> None:
    """The payment is disputed: what is available is frozen."""
    now = Grant.objects.get(pk=grant.pk)
    moved = {"available": -now.available, "frozen": now.available}
    Grant.objects.filter(pk=grant.pk).update(disputed=True, available=0, frozen=F("frozen") + now.available)
    if now.available:
        Entry.objects.create(
            kind="frozen", occasion=f"dispute:{uuid.uuid4().hex}", grant=grant, credits=now.available, **moved
        )


def delete_by_hand(row: Model) -> None:
    """Delete a row with its foreign keys switched off, as nobody ever should. Needs a test with real transactions."""
    off, on = {
        "postgresql": ("SET session_replication_role = replica", "SET session_replication_role = DEFAULT"),
        "sqlite": ("PRAGMA foreign_keys = OFF", "PRAGMA foreign_keys = ON"),
    }[connection.vendor]
    with connection.cursor() as cursor:
        cursor.execute(off)
        cursor.execute(f'DELETE FROM "{row._meta.db_table}" WHERE id = %s', [row.pk])
        cursor.execute(on)


def new_hold(*, owner_id: int, credits: int = 1) -> Hold:
    """Credits held, out of a grant that is made for it."""
    new_grant(owner_id=owner_id, credits=credits)
    return done(ledger.hold, owner_id=owner_id, credits=credits)


def new_job(*, status: str = "queued", hold: Hold | None = None, **fields: Any) -> Job:
    """A job in some state, with its credit held."""
    if hold is None:
        hold = new_hold(owner_id=new_owner())
    lasting = dict(VIDEO) if status == "completed" else {}
    row = Job(
        owner_id=hold.owner_id, hold=hold, lot=uuid.uuid4().hex, photo_key="photos/1.jpg", photo_sha256="0" * 64, crop=50,
        prompt="waist heart", provider="fal", model="some/model", credits=hold.credits,
    )  # fmt: skip
    (job,) = done(lambda: bear([row], actor="tests"))
    Job.objects.filter(pk=job.pk).update(status=status, **{**lasting, **fields})
    return Job.objects.get(pk=job.pk)


def new_account() -> ProviderAccount:
    """A provider's account that is well."""
    return ProviderAccount.objects.create(provider="fal", key_print=uuid.uuid4().hex[:16])


def new_submission(*, job: Job | None = None, status: str = "sending", **fields: Any) -> Submission:
    """A submission in some state, with what that state must have."""
    values: dict[str, Any] = {
        "number": 1, "key": uuid.uuid4().hex, "provider": "fal", "model": "some/model", "lease_id": uuid.uuid4(),
        "image_key": "images/1.jpg", "external_id": None if status in {"sending", "unknown"} else uuid.uuid4().hex,
        "refusal": "input" if status == "refused" else "",
    }  # fmt: skip
    return Submission.objects.create(
        job=job or new_job(),
        account=fields.pop("account", None) or new_account(),
        status=status,
        **{**values, **fields},
    )


def new_order(*, status: str = "draft", **fields: Any) -> Order:
    """An order in some state, with what that state must have."""
    values: dict[str, Any] = {"request_key": uuid.uuid4().hex}
    if status in {"awaiting_payment", "paid"}:
        payment = new_payment()
        values |= {"payment": payment, "owner": payment.owner, "price": 400, "currency": "GBP", "credits": 1}
    if status == "paid":
        values["paid_at"] = clock.now()
    return Order.objects.create(status=status, **{**values, **fields})


def age(row: Model, seconds: float, *names: str) -> None:
    """Move some times of one row into the past."""
    moved = {name: F(name) - timedelta(seconds=seconds) for name in names}
    type(row)._default_manager.filter(pk=row.pk).update(**moved)


def columns(row: Model) -> dict[str, Any]:
    """Every column of a row as it stands in the database now."""
    return type(row)._default_manager.filter(pk=row.pk).values().get()


def at_once(*acts: Callable[[], Any]) -> list[Any]:
    """Run acts in threads that start together, each with a connection of its own; their answers, or what they raised."""
    answers: list[Any] = [None] * len(acts)
    start = threading.Barrier(len(acts))

    def run(place: int, act: Callable[[], Any]) -> None:
        try:
            start.wait(timeout=20)
            answers[place] = act()
        except Exception as error:  # noqa: BLE001  (the test judges it)
            answers[place] = error
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(place, act)) for place, act in enumerate(acts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    return answers
