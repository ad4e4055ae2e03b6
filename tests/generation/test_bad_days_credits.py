"""Bad days of the credit behind a job: each story of docs/failures.md about what comes back, and what is taken, exactly once."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.db import connection

from billing import ledger
from billing.audit import differences
from billing.models import Entry, Grant, Hold, HoldPart
from generation import review, work
from generation.models import Job
from generation.moves import bear
from orders.models import Mail
from tests.generation.bad_days import alarms, assert_books_balance, now
from tests.generation.stories import (
    at,
    entries,
    made,
    moves,
    page,
    step,
)
from tests.shop import Shop
from waistheart import clock, guards

DAY = 86400


# --- a grant is gone -------------------------------------------------------------------------------------------------


@contextmanager
def foreign_keys_off() -> Iterator[Any]:
    """A cursor for which the database forgets what points where, as in somebody's console."""
    off, on = {
        "sqlite": ("PRAGMA foreign_keys = OFF", "PRAGMA foreign_keys = ON"),
        "postgresql": ("SET session_replication_role = replica", "SET session_replication_role = DEFAULT"),
    }[connection.vendor]
    with connection.cursor() as cursor:
        cursor.execute(off)
        try:
            yield cursor
        finally:
            cursor.execute(on)


def delete_grant(job: Job) -> int:
    """Delete the row of the grant that pays for a job, by hand; its id."""
    grant_id = HoldPart.objects.get(hold_id=job.hold_id).grant_id
    with foreign_keys_off() as cursor:
        cursor.execute("DELETE FROM billing_grant WHERE id = %s", [grant_id])
    assert not Grant.objects.filter(pk=grant_id).exists()
    return grant_id


def test_deleted_grant_is_never_called_returned(shop: Shop) -> None:
    shop.sandbox.fault("content_policy_result")
    job = made(shop)
    gone = delete_grant(job)
    job = step(job)
    assert (job.status, job.reason) == ("review", "restore_incomplete")
    assert "of 1" in job.last_error
    assert alarms("restore_incomplete") == 1

    # It stays so: nobody but staff can end it, and nobody is told that anything came back.
    for _ in range(2):
        job = at(shop, job, settings.REVIEW_GIVE_BACK_SECONDS)
        assert (job.status, job.reason, alarms("restore_incomplete")) == ("review", "restore_incomplete", 1)
    assert not work.cancel(job=job, actor="customer")
    assert now(job).status == "review"
    assert entries() == ["granted", "held"]
    assert Hold.objects.get().status == "held"
    assert "credit is back" not in page(shop, job)
    assert set(Mail.objects.values_list("kind", flat=True)) == {"order_received"}

    seen = now(job)
    assert review.close(job=seen, actor="grace@example.com", reason="the grant's row is gone")
    job = now(job)
    assert (job.status, job.reason, moves(job)[-1]) == ("failed", "closed", "close")
    new = Grant.objects.get()
    assert (new.credits, new.available, new.owner_id, new.made_by) == (1, 1, job.owner_id, "grace@example.com")
    assert Entry.objects.filter(grant=new).values("kind", "occasion", "credits").get() == {
        "kind": "granted", "occasion": f"hold:{job.hold_id}", "credits": 1,
    }  # fmt: skip
    assert "Your credit is back" in page(shop, job)
    # Once: the hold has ended, and with it the occasion.
    assert not review.close(job=seen, actor="grace@example.com", reason="again")
    assert Grant.objects.count() == 1

    # The audit goes on showing what was deleted, and nothing of what replaced it.
    rows = {difference.row.split()[0] for difference in differences()}
    assert {"hold", "payment"} <= rows
    assert f"grant {new.pk}" not in {difference.row for difference in differences()}
    assert any(str(gone) in difference.row for difference in differences())


def test_deleted_grant_when_a_queued_job_is_refused(shop: Shop) -> None:
    job = shop.paid()
    delete_grant(job)
    shop.sandbox.fault("content_policy_422")
    job = step(job)
    assert (job.status, job.reason) == ("review", "restore_incomplete")
    assert entries() == ["granted", "held"]


def test_deleted_grant_when_the_customer_cancels(shop: Shop) -> None:
    job = shop.paid()
    delete_grant(job)
    assert not work.cancel(job=job, actor="customer")
    assert (now(job).status, now(job).reason) == ("review", "restore_incomplete")
    assert entries() == ["granted", "held"]


def test_deleted_grant_when_nobody_decided_for_72_hours(shop: Shop) -> None:
    shop.sandbox.fault("never_finishing")
    job = at(shop, shop.submitted(), settings.PROCESSING_DEADLINE_SECONDS)
    delete_grant(job)
    job = at(shop, job, settings.REVIEW_GIVE_BACK_SECONDS)
    assert (job.status, job.reason) == ("review", "restore_incomplete")
    assert entries() == ["granted", "held"]


def test_deleted_grant_withholds_no_video(shop: Shop) -> None:
    job = made(shop)
    delete_grant(job)
    assert step(job).status == "completed"
    assert Hold.objects.get().status == "settled"
    assert f"hold {job.hold_id}" in {difference.row for difference in differences()}


# --- a grant has expired ---------------------------------------------------------------------------------------------


def test_release_into_an_expired_grant(shop: Shop) -> None:
    shop.sandbox.fault("content_policy_result")
    job = made(shop)
    Grant.objects.update(expires_at=clock.ago(60))
    assert step(job).status == "failed"
    assert_lives_30_days(Grant.objects.get(), available=1)
    until = f"{Grant.objects.get().expires_at:%Y-%m-%d}"
    assert f'kept for you until <time datetime="{until}">' in page(shop, job)
    shop.age(29 * DAY)
    shop.sweep()
    assert Grant.objects.get().available == 1
    assert_books_balance()


def test_what_was_left_in_the_expired_grant_expires(shop: Shop) -> None:
    job = from_a_grant(shop, credits=3)
    grant = Grant.objects.get(hold_parts__hold_id=job.hold_id)
    Grant.objects.filter(pk=grant.pk).update(expires_at=clock.ago(60))
    assert work.cancel(job=job, actor="customer")
    grant.refresh_from_db()
    assert_lives_30_days(grant, available=1)
    kinds = Entry.objects.filter(grant=grant).order_by("id").values_list("kind", "credits")
    assert list(kinds) == [("granted", 3), ("held", 1), ("expired", 2), ("released", 1)]
    shop.age(31 * DAY)
    shop.sweep()
    grant.refresh_from_db()
    assert grant.available == 0
    assert_books_balance()


def assert_lives_30_days(grant: Grant, *, available: int) -> None:
    assert (grant.available, grant.held) == (available, 0)
    left = (grant.expires_at - clock.read()).total_seconds()
    assert 30 * DAY - 60 < left <= 30 * DAY


def from_a_grant(shop: Shop, *, credits: int) -> Job:
    """A queued job like a paid one, whose credit comes from a larger grant of the same owner."""
    paid = shop.paid()

    @guards.block("tests.from_a_grant")
    def begin() -> Job:
        ledger.grant_from_staff(
            owner_id=paid.owner_id, credits=credits, reason="sorry", made_by="tests", occasion="tests:sorry"
        )
        hold = ledger.hold(owner_id=paid.owner_id, credits=1)
        copied = {f.attname: getattr(paid, f.attname) for f in Job._meta.fields if f.attname not in ("id", "hold_id")}
        return bear([Job(**{**copied, "lot": "another", "hold": hold})], actor="tests")[0]

    job = begin().value
    assert job is not None
    return now(job)
