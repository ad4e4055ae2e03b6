"""The answer to the COMMIT of "I am sending" is lost: the worker knows that it sent nothing, and says so."""

from typing import Any

import pytest
from django.db import OperationalError

from generation import leases, runner, submissions
from generation.models import Job, Submission
from generation.providers.fal import Fal
from tests.generation.bad_days import assert_books_balance, generations, last, now, posts, sweep, until
from tests.generation.stories import blobs
from tests.shop import Shop
from waistheart import clock


def lost(**fields: Any) -> None:
    """The commit was made, and its answer did not come."""
    begin(**fields)
    raise OperationalError("server closed the connection unexpectedly")


begin = submissions.begin


def advance(job: Job, monkeypatch: pytest.MonkeyPatch, instead: Any = lost) -> None:
    """One look of a worker that fails at the commit."""
    with monkeypatch.context() as patch:
        patch.setattr(submissions, "begin", instead)
        with pytest.raises(OperationalError, match="unexpectedly"):
            runner.advance(job.pk)


def test_the_answer_to_i_am_sending_is_lost(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    job = shop.paid()
    advance(job, monkeypatch)
    assert (last(job).status, last(job).refusal, posts(shop)) == ("refused", "not_sent", 0)
    assert "OperationalError" in last(job).detail
    assert now(job).lease_id is None
    until(shop, job, minutes=4)
    assert (len(generations(shop, job)), Submission.objects.filter(job=job).count()) == (1, 2)
    sweep(shop, minutes=2)
    assert blobs("images") == set()
    assert_books_balance()


def test_nothing_was_committed(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    def undone(**fields: Any) -> None:
        raise OperationalError("server closed the connection unexpectedly")

    job = shop.paid()
    advance(job, monkeypatch, undone)
    assert Submission.objects.count() == 0
    until(shop, job, minutes=4)
    assert posts(shop) == 1


def test_the_database_stays_away(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """It cannot be written down either: looked for, and in the end a person decides, as before."""

    def away(*args: Any, **fields: Any) -> None:
        raise OperationalError("still away")

    job = shop.paid()
    monkeypatch.setattr(submissions, "_refuse_unsent", away)
    advance(job, monkeypatch)
    assert last(job).status == "sending"
    sweep(shop)
    assert last(job).status == "unknown"
    assert posts(shop) == 0


def test_only_the_row_of_this_very_call(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before this worker wakes up its lease has run out, its row is given up, and a second worker may have begun one of its own."""
    job = shop.paid()
    woken: list[str] = []

    def slept(**fields: Any) -> None:
        first = begin(**fields).value
        assert first is not None
        Job.objects.filter(pk=job.pk).update(lease_until=clock.ago(1))
        assert submissions.abandon(first)
        assert submissions.record_refused(first, refusal="not_sent", detail="proof of absence")
        with monkeypatch.context() as patch:
            patch.setattr(submissions, "begin", begin)
            patch.setattr(Fal, "submit", paused)
            runner.advance(job.pk)
        raise OperationalError("server closed the connection unexpectedly")

    def paused(*args: Any, **fields: Any) -> Any:
        woken.append(last(job).status)
        raise Paused

    class Paused(BaseException):
        pass

    def beside(**fields: Any) -> None:
        with pytest.raises(Paused):
            slept(**fields)
        raise OperationalError("server closed the connection unexpectedly")

    advance(job, monkeypatch, beside)
    rows = list(Submission.objects.filter(job=job).order_by("number").values_list("status", "detail"))
    assert woken == ["sending"]
    assert rows == [("refused", "proof of absence"), ("sending", "")]


def test_one_that_was_given_up_stays_given_up(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    job = shop.paid()

    def slept(**fields: Any) -> None:
        first = begin(**fields).value
        assert first is not None
        leases.drop(fields["lease"])
        assert submissions.abandon(first)
        raise OperationalError("server closed the connection unexpectedly")

    advance(job, monkeypatch, slept)
    assert last(job).status == "unknown"
