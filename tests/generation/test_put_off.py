"""A photo or image that storage does not give: its job is put off for its own time, and comes back to its turn."""

from collections.abc import Callable
from typing import Any

import pytest

from generation import accounts, runner, schedule, submit, tasks
from generation import sweep as sweeps
from generation.models import Job, Submission
from generation.providers import get_provider
from tests.generation.bad_days import generations, now, sweep, until
from tests.generation.stories import broken, provider_ends
from tests.shop import Shop
from waistheart import storage
from waistheart.storage_base import StorageError

Messages = list[tuple[str, int]]
RUN: dict[str, Callable[[int], object]] = {
    "generation.advance": tasks.advance,
    "generation.watch": tasks.watch_submission,
}


def work(messages: Messages) -> int:
    """What a worker does with all that it is asked; how much that was."""
    done = 0
    while messages:
        task, row_id = messages.pop(0)
        if task in RUN:
            RUN[task](row_id)
            done += 1
    return done


def blinked() -> StorageError:
    return StorageError("the bucket blinked")


def test_one_blink_of_storage_costs_no_place_in_a_busy_shop(shop: Shop, messages: Messages) -> None:
    """All slots are in use at each sweep, and those that come free between are taken by hints: it went behind everybody."""
    shop.sandbox.fault("webhook_lost", times="all")
    first = shop.paid(email="first@example.com")
    others = [shop.paid(email=f"{n}@example.com") for n in range(6)]
    shop.age(61)
    with broken(storage, "read", blinked):  # as the sweep does it: the claim comes first
        sweeps.publish_jobs(lambda task, pk: RUN[task](pk) if pk == first.pk else None, sweeps.due_jobs("queued"))
    assert now(first).last_error.startswith("StorageError")
    messages.clear()
    for job in others[:2]:
        runner.advance(job.pk)
    for _ in range(2):
        shop.age(61)
        sweeps.every_minute(lambda task, row_id: messages.append((task, row_id)))
        work(messages)
        provider_ends(shop)
        running = Job.objects.filter(status="processing").values_list("pk", flat=True)
        messages.extend(("generation.advance", pk) for pk in running)
        work(messages)
        if now(first).status != "queued":
            break
    assert now(first).status != "queued"
    assert len(generations(shop, first)) == 1
    begun = list(Submission.objects.order_by("pk").values_list("job_id", flat=True))
    assert begun.index(first.pk) == 2, "others were begun before it when a slot came free"


def test_no_free_slot_is_no_failed_try(shop: Shop, settings: Any) -> None:
    settings.PROVIDER_MAX_IN_FLIGHT = 1
    shop.sandbox.fault("never_finishing")
    first, running = shop.paid(email="first@example.com"), shop.paid(email="running@example.com")
    with broken(storage, "read", blinked):
        runner.advance(first.pk)
    runner.advance(running.pk)
    assert now(running).status == "processing"
    sweep(shop, minutes=20)
    assert (now(first).status, now(first).put_offs) == ("queued", 1)
    later = shop.paid(email="later@example.com")
    account = submit.accounts.account_of(submit.get_provider())
    assert schedule.place(first, account) == 0
    assert schedule.place(later, account) == 1


def test_a_job_that_raised_comes_back_to_its_turn(shop: Shop, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def raises(*args: object) -> None:
        raise ZeroDivisionError

    settings.PROVIDER_MAX_IN_FLIGHT = 1
    shop.sandbox.fault("never_finishing")
    first, running = shop.paid(email="first@example.com"), shop.paid(email="running@example.com")
    with monkeypatch.context() as patch:
        patch.setattr(submit, "portrait", raises)
        with pytest.raises(ZeroDivisionError):
            runner.advance(first.pk)
    runner.advance(running.pk)
    sweep(shop, minutes=20)
    assert (now(first).status, now(first).failures) == ("queued", 1)
    shop.paid(email="later@example.com")
    assert schedule.place(first, submit.accounts.account_of(submit.get_provider())) == 0


def test_three_broken_photos_never_hold_the_only_slot(shop: Shop, settings: Any, messages: Messages) -> None:
    """They are first in turn whenever their time is over; whoever is next is called at once."""
    settings.PROVIDER_MAX_IN_FLIGHT = 1
    bad = [shop.paid(email=f"bad-{n}@example.com") for n in range(3)]
    for job in bad:
        storage.delete(key=job.photo_key)
    wells = [shop.paid(email=f"{n}@example.com") for n in range(4)]
    for minute in range(8):
        messages.clear()
        shop.age(61)
        sweeps.every_minute(lambda task, row_id: messages.append((task, row_id)))
        assert work(messages) < 30
        begun = sum(now(job).status != "queued" for job in wells)
        assert begun >= min(4, minute + 1), f"a slot was empty in minute {minute}"
        provider_ends(shop)
    assert {now(job).status for job in bad} == {"queued"}
    assert min(now(job).put_offs for job in bad) >= 3


def test_the_photo_is_back_and_the_job_goes_on(shop: Shop) -> None:
    job = shop.paid()
    photo = storage.read(key=job.photo_key)
    storage.delete(key=job.photo_key)
    sweep(shop, minutes=3)
    assert now(job).put_offs >= 2
    assert now(job).not_before is not None
    storage.save_bytes(key=job.photo_key, data=photo, content_type="image/jpeg")
    until(shop, job)
    assert (now(job).not_before, now(job).put_offs, now(job).failures) == (None, 0, 0)


@pytest.mark.parametrize("state", ["out_of_credits", "misconfigured"])
def test_a_lost_photo_uses_up_no_probe(shop: Shop, state: str) -> None:
    """The provider is well again, and the first in turn is a job whose photo cannot be read."""
    bad, well = shop.paid(email="bad@example.com"), shop.paid(email="well@example.com")
    accounts.open_outage(accounts.account_of(get_provider()), state=state, detail="x")
    storage.delete(key=bad.photo_key)
    until(shop, well, minutes=25)
    assert now(bad).status == "queued"
    assert now(bad).last_error.startswith("StorageError")


def test_a_lost_photo_uses_up_no_probe_of_its_model(shop: Shop) -> None:
    bad, well = shop.paid(email="bad@example.com"), shop.paid(email="well@example.com")
    row = accounts.row_of_model(accounts.account_of(get_provider()), model=bad.model)
    accounts.open_outage(row, state="misconfigured", detail="x")
    storage.delete(key=bad.photo_key)
    until(shop, well, minutes=25)
