"""Nudges alone: whoever gives a slot up tells the next, so that a queue is worked off between two sweeps."""

from typing import Any

from generation import tasks
from generation.models import Job
from tests.generation.bad_days import last, now
from tests.generation.stories import DELIVERED, entries
from tests.shop import Shop
from tests.shop_fixture import wait_for

Messages = list[tuple[str, int]]


def work_off(messages: Messages) -> None:
    """One worker takes the messages in their order until there are none."""
    while messages:
        task, row_id = messages.pop(0)
        {"generation.advance": tasks.advance, "generation.watch": tasks.watch_submission}[task](row_id)


def until_all(jobs: list[Job], status: str, messages: Messages) -> None:
    def look() -> Any:
        work_off(messages)
        return {now(job).status for job in jobs} == {status}

    wait_for(look, seconds=60)


def test_three_jobs_and_two_slots_need_no_sweep(shop: Shop, messages: Messages) -> None:
    jobs = [shop.paid(email=f"{name}@example.com") for name in ("ada", "eve", "ivy")]
    assert messages == [("generation.advance", job.pk) for job in jobs]
    until_all(jobs, "completed", messages)
    assert entries() == [*DELIVERED[:2] * 3, *["settled"] * 3]


def test_a_photo_that_is_refused_lets_the_next_one_in(shop: Shop, messages: Messages, settings: Any) -> None:
    settings.PROVIDER_MAX_IN_FLIGHT = 1
    shop.sandbox.fault("content_policy_422")
    first, second = (shop.paid(email=f"{name}@example.com") for name in ("ada", "eve"))
    messages.clear()
    tasks.advance(first.pk)
    assert now(first).status == "failed"
    assert messages == [("generation.advance", second.pk)]
    until_all([second], "completed", messages)


def test_a_submission_that_ends_after_its_job_lets_the_next_one_in(
    shop: Shop, messages: Messages, settings: Any
) -> None:
    settings.PROVIDER_MAX_IN_FLIGHT = 1
    shop.sandbox.fault("never_finishing")
    first, second = (shop.paid(email=f"{name}@example.com") for name in ("ada", "eve"))
    tasks.advance(first.pk)
    shop.age(settings.PROCESSING_DEADLINE_SECONDS - 60)
    Job.objects.filter(pk=first.pk).update(status="failed", next_step_at=None)
    messages.clear()
    tasks.watch_submission(last(first).pk)
    assert messages == [], "it runs on, and its slot is taken"
    shop.sandbox.post(f"/control/fal/{last(first).external_id}", {"status": "failed"})
    wait_for(lambda: messages)
    messages.clear()
    tasks.watch_submission(last(first).pk)
    assert messages == [("generation.advance", second.pk)]


def test_nobody_hurries_while_the_provider_takes_nothing(shop: Shop, messages: Messages) -> None:
    shop.sandbox.fault("rate_limited_429", times="all")
    for name in ("ada", "eve", "ivy"):
        shop.paid(email=f"{name}@example.com")
    work_off(messages)
    assert messages == []


def test_a_message_about_what_has_ended_causes_no_other(shop: Shop, messages: Messages) -> None:
    job = shop.paid()
    until_all([job], "completed", messages)
    shop.paid(email="next@example.com")
    messages.clear()
    tasks.advance(job.pk)
    assert messages == []
