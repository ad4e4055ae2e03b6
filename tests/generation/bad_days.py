"""What the stories of bad days ask: what the provider really took, what we really sent, which alarms rang."""

import threading
from typing import Any

from django.db import connection
from django.db.models import Sum

from billing.audit import differences
from generation import accounts
from generation import sweep as sweeps
from generation.models import Job, ProviderAccount, Submission
from orders.models import OrderItem
from tests.shop import Shop, run_now
from tests.shop_fixture import wait_for
from waistheart.models import GuardTally


def alarms(state: str) -> int:
    """How often one alarm rang."""
    return GuardTally.objects.filter(guard=f"alarm.{state}").aggregate(n=Sum("lost"))["n"] or 0


def posts(shop: Shop) -> int:
    """How many submits reached the provider: those it took, and those a fault of the submit turned away."""
    known = shop.sandbox.state()
    turned_away = [
        fault for fault in known["faults"] if fault.get("on", "submit") == "submit" and not fault.get("accepted")
    ]
    names = ("status_402", "locked_403", "unauthorized_401", "rate_limited_429", "content_policy_422", "model_retired",
             "error_500", "error_502", "error_503", "error_504", "drop_before_accept", "redirect_on_submit")  # fmt: skip
    return int(len(known["fal"]) + sum(fault["used"] for fault in turned_away if fault["fault"] in names))


def generations(shop: Shop, job: Job) -> list[dict[str, Any]]:
    """The requests for this job that the provider took, by the image addresses of its submissions."""
    tokens = Submission.objects.filter(job=job).values_list("image_token", flat=True)
    return [request for request in shop.provider() if any(token in request["input"]["image_url"] for token in tokens)]


def sweep(shop: Shop, *, minutes: int = 1, seconds: int = 61) -> None:
    """Let minutes pass as `shop.sweep` does, with the work's own part of it alone.

    The provider gets the real time that its work takes before each, and mails and payments stand still.
    """
    for _ in range(minutes):
        wait_for(lambda: all(request["ended_at"] or request["never_ends"] for request in shop.provider()))
        shop.age(seconds)
        sweeps.every_minute(run_now)


def until(shop: Shop, *jobs: Job, status: str = "completed", minutes: int = 20) -> None:
    """Sweep until all the jobs are in this state."""
    for _ in range(minutes):
        if {now(job).status for job in jobs} == {status}:
            return
        sweep(shop)
    states = [(job.status, job.reason, job.last_error) for job in map(now, jobs)]
    assert {state for state, *_ in states} == {status}, states


def now(job: Job) -> Job:
    """The job as it is now."""
    return Job.objects.get(pk=job.pk)


def last(job: Job) -> Submission:
    """The job's newest submission as it is now."""
    return Submission.objects.select_related("account", "job").filter(job=job).latest("number")


def page_of(job: Job) -> str:
    """The address of the customer's page."""
    order = OrderItem.objects.select_related("order").get(job=job).order
    return f"/o/{order.code}-{order.key}/"


def assert_books_balance() -> None:
    """The ledger's balances are the sums of its entries."""
    assert differences() == []


def most_in_flight() -> int:
    """How many submissions of the fullest account take a slot."""
    return max((accounts.taking_slots(row.pk) for row in ProviderAccount.objects.all()), default=0)


def at_once(*acts: Any) -> list[Any]:
    """Run the acts in threads that start together; answers and exceptions, in their order."""
    barrier = threading.Barrier(len(acts))
    answers: list[Any] = [None] * len(acts)

    def run(place: int, act: Any) -> None:
        barrier.wait(10)
        try:
            answers[place] = act()
        except Exception as error:  # noqa: BLE001
            answers[place] = error
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate(acts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return answers
