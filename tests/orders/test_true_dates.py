"""What a page says about moments is true when it is read: a credit that lapsed, a person's time limit, a delay of ours."""

import html
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from billing.models import Grant, Payment
from billing.sweep import expire_grants
from generation import review, runner, work
from generation.models import Job
from orders import flow, kept
from orders.kept import Fate
from orders.mail import message_of
from orders.models import Mail
from tests.generation.stories import now, page
from tests.shop import Shop
from waistheart import clock

DAY = 86400
DATED = "We will e-mail you by"
UNDATED = "We will e-mail you with the video, or to say that what you paid for it is yours again."


def text(page: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page.replace("<wbr>", ""))).split()).replace(" .", ".")


def moments(page: str) -> list[datetime]:
    return [datetime.fromisoformat(value) for value in re.findall(r'datetime="([^"]+T[^"]+)"', page)]


def written(moment: datetime) -> str:
    return f"{moment.day} {moment:%B %Y}"


def given_back(shop: Shop) -> Job:
    job = shop.paid()
    assert work.cancel(job=job, actor="customer")
    return now(job)


# --- a credit that has lapsed ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("swept", [True, False], ids=["swept", "not yet swept"])
def test_a_credit_that_lapsed_is_not_said_to_be_there(shop: Shop, swept: bool) -> None:
    job = given_back(shop)
    assert "Your credit is back" in page(shop, job)
    shop.age(366 * DAY)
    end = Grant.objects.get().expires_at
    if swept:
        assert expire_grants() == 1
    read = text(page(shop, job))
    assert "is back" not in read
    assert f"was kept for you until {written(end)}. Nobody used what was left, and it has lapsed." in read
    assert "To use it for another video" not in read
    assert "To ask about it, write to" in read


def test_a_mail_that_left_late_says_the_same(shop: Shop) -> None:
    job = given_back(shop)
    shop.sweep()
    shop.age(366 * DAY)
    message = message_of(Mail.objects.get(kind="could_not_make_it", occasion=f"job:{job.pk}"))
    assert "is back" not in message.subject + str(message.body)
    assert "it has lapsed" in str(message.body)


def test_page_and_mail_tell_the_end_that_a_short_grant_got_with_its_return(shop: Shop, settings: Any) -> None:
    settings.GRANT_SECONDS = DAY
    job = given_back(shop)
    shop.sweep()
    end = Grant.objects.get().expires_at
    assert end > datetime.now(UTC) + timedelta(days=29)
    mail = message_of(Mail.objects.get(kind="could_not_make_it", occasion=f"job:{job.pk}"))
    for read in (text(page(shop, job)), str(mail.body)):
        assert f"what you paid for this video is kept for you until {written(end)}." in read


def test_a_lapsed_credit_stays_lapsed_when_another_comes_back_to_its_grant(shop: Shop) -> None:
    """Both came out of one grant, whose end is another one since."""
    job = given_back(shop)
    Grant.objects.update(expires_at=clock.ago(1))
    lapsed_on = Grant.objects.get().expires_at
    assert expire_grants() == 1
    Grant.objects.update(expires_at=clock.after(30 * DAY))
    read = text(page(shop, job))
    assert "is back" not in read
    assert f"until {written(lapsed_on)}" in read


def test_money_that_was_kept_and_lapsed_is_said_to_have_lapsed(shop: Shop) -> None:
    order = shop.asked()
    payment = shop.pay(order, "lapse")
    assert flow.settle(payment) == "expired"
    shop.sandbox.card(str(payment.session_id), "pay_after_all")
    assert flow.settle(Payment.objects.get(pk=payment.pk)) == "received"
    assert kept.of(order) == Fate.KEPT
    shop.age(366 * DAY)
    end = Grant.objects.get().expires_at
    for swept in (False, True):
        assert not swept or expire_grants() == 1
        assert kept.of(order) == kept.of_payment(Payment.objects.get(pk=payment.pk), order) == Fate.EXPIRED
        read = text(Client().get(f"/make/{order.key}/review/", follow=True).content.decode())
        assert "it is kept for you" not in read
        assert "There is no need to pay again" not in read
        assert f"was kept for you as credit until {written(end)}. It has lapsed since." in read


# --- a person looks at it --------------------------------------------------------------------------------------------


def in_review(shop: Shop, reason: str) -> Job:
    job = shop.submitted()
    Job.objects.filter(pk=job.pk).update(status="review", reason=reason, next_step_at=clock.after(0))
    return now(job)


def test_a_review_that_nobody_ends_by_the_clock_has_no_date(shop: Shop) -> None:
    """The shop never gives it back by itself: what was set aside for it is not all there."""
    job = in_review(shop, "restore_incomplete")
    for hours in (0, 80):
        shop.age(hours * 3600)
        shop.sweep()
        assert (now(job).status, now(job).reason) == ("review", "restore_incomplete")
        read = text(page(shop, job))
        assert DATED not in read
        assert UNDATED in read
    assert "does not add up" in text(Client().get("/help/refunds/").content.decode())


def test_a_review_has_a_date_until_that_is_over(shop: Shop) -> None:
    """The sweep that gives back may be late; the page does not promise yesterday."""
    job = in_review(shop, "deadline")
    read = page(shop, job)
    assert DATED in read
    assert now(job).state_since + timedelta(hours=72) in [
        m.astimezone(UTC) + timedelta(microseconds=now(job).state_since.microsecond) for m in moments(read)
    ]
    shop.age(73 * 3600)
    read = page(shop, job)
    assert DATED not in text(read)
    assert UNDATED in text(read)


# --- a delay of ours -------------------------------------------------------------------------------------------------


def test_a_delay_counts_from_when_the_job_was_queued_again(shop: Shop) -> None:
    """A person queued it again after a day, and the provider's account is still empty."""
    job = shop.paid()
    shop.sandbox.fault("status_402", times="all")
    runner.advance(job.pk)
    shop.age(25 * 3600)
    shop.sweep()
    assert now(job).status == "review"
    assert review.requeue(job=now(job), actor="staff")
    shop.sweep()
    assert now(job).status == "queued"
    read = page(shop, job)
    assert "The delay is on our side" in text(read)
    until = now(job).state_since + timedelta(hours=24)
    assert until.replace(microsecond=0) in moments(read[read.index("If it is not ready by") :])


def test_a_delay_that_is_over_promises_no_moment(shop: Shop) -> None:
    job = shop.paid()
    shop.sandbox.fault("status_402", times="all")
    runner.advance(job.pk)
    shop.age(24 * 3600 + 60)
    read = text(page(shop, job))
    assert "If it is not ready by" not in read
    assert "A person takes over now." in read
