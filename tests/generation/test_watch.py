"""Looking after submissions whose job does not wait for them: what is asked of the provider, and what is our own fault."""

from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from generation import providers, runner, tasks
from generation.models import Job, ProviderAccount
from tests.generation.bad_days import generations, last, now, sweep
from tests.generation.stories import at, provider_ends, purse
from tests.shop import Shop, run_now
from tests.shop_fixture import wait_for
from waistheart.models import Hint

Messages = list[tuple[str, int]]


# --- giving up -------------------------------------------------------------------------------------------------------


def test_what_nobody_decided_is_cancelled_at_the_provider(shop: Shop, settings: Any) -> None:
    shop.sandbox.fault("never_finishing")
    job = at(shop, shop.submitted(), settings.PROCESSING_DEADLINE_SECONDS)
    assert generations(shop, job)[0]["reads"].get("cancel", 0) == 0
    job = at(shop, job, settings.REVIEW_GIVE_BACK_SECONDS)
    assert (job.status, job.reason, purse(job)) == ("failed", "gave_back", (1, 0))
    assert generations(shop, job)[0]["reads"].get("cancel", 0) == 1


def test_a_cancel_that_is_not_answered_changes_nothing(shop: Shop, settings: Any) -> None:
    shop.sandbox.fault("never_finishing")
    job = at(shop, shop.submitted(), settings.PROCESSING_DEADLINE_SECONDS)
    shop.sandbox.fault("error_503", on="cancel", times="all")
    job = at(shop, job, settings.REVIEW_GIVE_BACK_SECONDS)
    assert (job.status, job.failures, purse(job)) == ("failed", 0, (1, 0))


# --- our own settings ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["unknown", "in review", "after its end"])
def test_settings_of_ours_that_are_wrong_are_no_failure_of_the_provider(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, settings: Any, state: str
) -> None:
    shop.sandbox.fault("never_finishing")
    if state == "unknown":
        shop.sandbox.fault("drop_after_accept")
    job = shop.submitted()
    if state == "in review":
        job = at(shop, job, settings.PROCESSING_DEADLINE_SECONDS)
    if state == "after its end":
        Job.objects.filter(pk=job.pk).update(status="failed", next_step_at=None)
    before, status = last(job).status, now(job).status

    def mixed() -> None:
        raise ImproperlyConfigured("live and sandbox are mixed")

    with monkeypatch.context() as patch:
        patch.setattr(providers, "require_consistent", mixed)
        for _ in range(5):
            shop.age(61)
            if state == "after its end":
                tasks.watch_submission(last(job).pk)
            else:
                runner.advance(job.pk)
    assert (last(job).status, now(job).status, now(job).failures) == (before, status, 0)
    account = ProviderAccount.objects.get()
    assert (account.state, account.failures) == ("ok", 0)


# --- hints -----------------------------------------------------------------------------------------------------------


def test_a_hint_about_a_lost_answer_finds_the_submission_at_once(shop: Shop, messages: Messages) -> None:
    shop.sandbox.fault("drop_after_accept")
    job = shop.paid()
    messages.clear()
    runner.advance(job.pk)
    assert (last(job).status, last(job).external_id) == ("unknown", None)
    provider_ends(shop)
    wait_for(lambda: ("generation.advance", job.pk) in messages)
    (request,) = generations(shop, job)
    hint = Hint.objects.get()
    assert (hint.reference, hint.outcome) == (
        f"submission:{last(job).pk} {request['request_id']}",
        "names an id not known yet",
    )
    run_now(*messages[-1])
    assert (now(job).status, last(job).external_id) == ("completed", request["request_id"])


def test_a_hint_alone_gives_no_submission_its_id(shop: Shop, messages: Messages) -> None:
    """Its signature says that the provider knows such a request, not that it is about this submission's picture."""
    shop.sandbox.fault("list_empty", times="all")
    shop.sandbox.fault("drop_after_accept")
    job = shop.paid()
    messages.clear()
    runner.advance(job.pk)
    wait_for(lambda: messages)
    run_now(*messages[-1])
    sweep(shop, minutes=3)
    assert (last(job).status, last(job).external_id) == ("unknown", None)
    shop.age(3600)
    sweep(shop)
    assert (now(job).status, now(job).reason) == ("review", "unknown_submit")
    # A person finds what the provider called it.
    assert Hint.objects.get().reference.split() == [
        f"submission:{last(job).pk}",
        generations(shop, job)[0]["request_id"],
    ]


def test_a_hint_about_what_we_know_names_nothing_more(shop: Shop) -> None:
    job = shop.submitted()
    provider_ends(shop)
    wait_for(Hint.objects.exists)
    assert Hint.objects.values_list("reference", "outcome").get() == (f"submission:{last(job).pk}", "looked at")
