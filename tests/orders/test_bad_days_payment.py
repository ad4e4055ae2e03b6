"""The failure stories of payment, from the question for money to the queued job. `docs/failures.md` tells them."""

import logging
from functools import partial
from typing import Any

import pytest
import requests
from django.test import Client

from billing.gateway import StripeGateway
from billing.models import Grant, Payment
from generation import runner
from generation.crop import crop_jpeg
from generation.models import Job, Submission
from orders import drafts, flow, freeze, tasks
from orders import sweep as sweeps
from orders.models import Mail, Order, Pose
from tests.customer import Customer, forms_of
from tests.generation.rude_server import head, rude
from tests.orders.facts import (
    a_draft_with_its_photo,
    credits_kept,
    event,
    photo_keys,
    send_event,
    sha256,
    the_one_job,
)
from tests.orders.rivals import act_after, at_once, lost, meet_after
from tests.orders.shop import pay_form
from tests.orders.stepping import Actor
from tests.shop import DECLARED, PHOTOS, Shop, run_now
from tests.shop_fixture import wait_for
from waistheart import storage
from waistheart.models import Hint

OTHER_PHOTO = "ok_progressive.jpg"


# --- who settles -----------------------------------------------------------------------------------------------------


def test_webhook_and_sweep_at_the_same_moment(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    order = shop.asked()
    payment = shop.pay(order)
    meet_after(monkeypatch, StripeGateway, "look_up", count=2)

    def webhook() -> None:
        assert send_event(shop, event(str(payment.session_id))).status_code == 200
        tasks.look(payment.pk)

    at_once(webhook, partial(sweeps.publish_payments, run_now))
    the_one_job(order)
    assert lost("payment.receive") == 1


def test_a_rival_settles_right_after_we_have_read(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    order = shop.asked()
    payment = shop.pay(order)
    act_after(monkeypatch, StripeGateway, "look_up", partial(flow.settle, Payment.objects.get(pk=payment.pk)))
    assert flow.settle(payment) == "received"
    the_one_job(order)
    assert lost("payment.receive") == 1


def test_both_before_the_customer_returns(shop: Shop) -> None:
    order = shop.asked()
    payment = shop.pay(order)
    assert send_event(shop, event(str(payment.session_id))).status_code == 200
    tasks.look(payment.pk)
    sweeps.publish_payments(run_now)
    job = the_one_job(order)
    for _ in range(2):
        page = requests.get(f"{shop.url}/pay/return/?session={payment.session_id}", timeout=30)
        assert (page.status_code, page.url) == (200, f"{shop.url}/o/{order.code}-{order.key}/")
    assert the_one_job(order) == job


def test_return_page_three_times_at_once(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    order = shop.asked()
    payment = shop.pay(order)
    meet_after(monkeypatch, StripeGateway, "look_up", count=3)
    address = f"{shop.url}/pay/return/?session={payment.session_id}"
    pages = at_once(*[partial(requests.get, address, timeout=30)] * 3)
    assert {(page.status_code, page.url) for page in pages} == {(200, f"{shop.url}/o/{order.code}-{order.key}/")}
    the_one_job(order)
    assert lost("payment.receive") == 2


# --- asking for payment ----------------------------------------------------------------------------------------------


def test_double_click_on_pay(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    order = shop.draft()
    customer = Customer(shop.url)
    customer.open(f"/make/{order.key}/review/")
    form = next(form for form in forms_of(customer.page) if form.action.endswith("/pay/"))
    press = partial(
        customer.browser.post, shop.url + form.action, data={**form.fields, "may_use": "1", "start_now": "1"},
        timeout=30, allow_redirects=False,
    )  # fmt: skip
    meet_after(monkeypatch, freeze, "not_ready", count=2)
    answers = at_once(press, press)

    payment = Payment.objects.get()
    assert [(a.status_code, a.headers["Location"]) for a in answers] == [(303, payment.session_url)] * 2
    assert [session["id"] for session in sessions(shop)] == [payment.session_id]
    assert lost("order.draft") == 1


def test_photo_replaced_while_paying(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    before = photo_keys()
    order = shop.draft()
    other = (PHOTOS / OTHER_PHOTO).read_bytes()
    act_after(monkeypatch, freeze, "not_ready", partial(drafts.put_photo, order=order, data=other, name="other.jpg"))
    assert flow.ask_payment(order=order, declarations=DECLARED, expected_price=400).problem == "not_a_draft"
    assert not Payment.objects.exists()

    approved = order.items.get().photo
    assert approved is not None
    assert (approved.name, photo_keys() - before) == ("other.jpg", {approved.key})
    order.refresh_from_db()
    assert flow.ask_payment(order=order, declarations=DECLARED, expected_price=400).url
    late = Order.objects.get(pk=order.pk)
    assert not drafts.put_photo(order=late, data=(PHOTOS / "ok_portrait.jpg").read_bytes(), name="late.jpg")
    assert photo_keys() - before == {approved.key}

    order.refresh_from_db()
    flow.settle(shop.pay(order))
    job = the_one_job(order)
    assert job.photo_sha256 == approved.sha256 == sha256(approved.key)
    assert runner.advance(job.pk) in {"submitted", "running", "finished", "completed"}
    submitted = requests.get(shop.provider()[0]["input"]["image_url"], timeout=30).content
    assert submitted == crop_jpeg(storage.read(key=approved.key), job.crop)
    assert Submission.objects.get().job_id == job.pk


@pytest.mark.parametrize("stepped", ["upload", "pay"])
def test_upload_against_pay_statement_by_statement(shop: Shop, stepped: str) -> None:
    winners, waited, step = set(), 0, 1
    while met := one_meeting(shop, stepped, step):
        winner, blocked = met
        winners.add(winner)
        waited += blocked
        step += 1
    print(f"{stepped} stopped before each of {step - 1} steps; the other had to wait {waited} times")
    assert winners == {"upload", "pay"}
    assert waited >= 1
    assert step > 8


def one_meeting(shop: Shop, stepped: str, step: int) -> tuple[str, bool] | None:
    """Tab 2 uploads while tab 1 pays, `stepped` standing still before its step. Who won, and whether the other had to wait."""
    before = photo_keys()
    order = shop.draft(photo="ok_webp.webp")
    shown = order.items.get()
    tabs = {"upload": partial(upload, order), "pay": partial(press_pay, order, pay_form(order))}
    first = Actor(tabs.pop(stepped), stop_at=step)
    if not first.came_to_its_step():
        first.end()
        return None
    ((name, act),) = tabs.items()
    second = Actor(act)
    blocked = second.waits_for_a_lock()
    answers = {stepped: first.end(), name: second.end()}

    order.refresh_from_db()
    item = order.items.select_related("photo").get()
    if order.status == "awaiting_payment":
        winner = "pay"
        assert (answers["pay"], answers["upload"]) == (303, 409), first.before
        assert item.photo_id == shown.photo_id
    else:
        winner = "upload"
        assert (answers["pay"], answers["upload"]) == (200, 303), first.before
        assert item.photo_id != shown.photo_id
        assert not Payment.objects.filter(reference=f"order:{order.code}").exists()
        assert press_pay(order) == 303
        item.refresh_from_db()
    assert item.photo is not None
    assert photo_keys() - before == {item.photo.key}, first.before
    assert (item.photo_key, item.photo_sha256) == (item.photo.key, item.photo.sha256), first.before
    order.refresh_from_db()
    flow.settle(shop.pay(order))
    job = the_one_job(order)
    assert (job.photo_key, job.photo_sha256) == (item.photo.key, sha256(item.photo.key)), first.before
    return winner, blocked


@pytest.mark.parametrize("moment", ["before", "between"])
def test_pay_on_a_stale_page_never_leads_to_another_photos_payment(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """Tab 2 uploads and presses Pay; what tab 1 still shows was approved for another photo."""
    order = shop.draft(photo="ok_webp.webp")
    tab_1 = pay_form(order)

    def tab_2() -> None:
        assert upload(order) == 303
        assert press_pay(order) == 303

    if moment == "before":
        tab_2()
    else:
        act_after(monkeypatch, freeze, "not_ready", tab_2)
    assert press_pay(order, tab_1) in {200, 409}
    order.refresh_from_db()
    assert order.status == "awaiting_payment"
    assert press_pay(order) == 303
    assert Payment.objects.count() == 1


def upload(order: Order) -> int:
    with (PHOTOS / OTHER_PHOTO).open("rb") as file:
        form = {"photo": file, "email": order.email}
        return Client().post(f"/make/{order.key}/photo/", form).status_code


def press_pay(order: Order, form: dict[str, str] | None = None) -> int:
    """Press Pay on the review page as it is now, or on one that was opened earlier."""
    return Client().post(f"/make/{order.key}/pay/", form or pay_form(order)).status_code


def test_pose_edited_while_customer_pays(shop: Shop) -> None:
    order = shop.asked()
    edited = {"prompt": "something else", "model": "other/model", "parameters": {"duration": "10"}, "credits": 3}
    Pose.objects.filter(pk=shop.pose.pk).update(**edited, active=False, name="Other")
    assert flow.settle(shop.pay(order)) == "received"
    job = the_one_job(order)
    assert (job.prompt, job.parameters, job.credits) == (shop.pose.prompt, shop.pose.parameters, 1)
    assert job.model == "fal-ai/heart-pose/image-to-video"
    assert order.items.get().pose_name == shop.pose.name


def test_lost_answer_to_session_creation(shop: Shop) -> None:
    shop.sandbox.fault("card_drop_after", match="sessions.create", times=2)
    order = shop.draft()
    assert flow.ask_payment(order=order, declarations=DECLARED, expected_price=400).problem == "gateway_down"
    payment = Payment.objects.get()
    assert (payment.status, payment.session_id) == ("open", None)
    order.refresh_from_db()
    assert flow.ask_payment(order=order, declarations=DECLARED, expected_price=400).problem == "gateway_down"

    assert sweeps.publish_payments(run_now) == 1
    payment.refresh_from_db()
    assert [session["id"] for session in sessions(shop)] == [payment.session_id]
    assert {call["key"] for call in shop.sandbox.calls("sessions.create")} == {payment.key}
    order.refresh_from_db()
    assert flow.ask_payment(order=order, declarations=DECLARED, expected_price=400).url == payment.session_url
    flow.settle(shop.pay(order))
    the_one_job(order)


def test_processor_refuses_a_session(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    shop.sandbox.fault("card_refuse_create")
    order = shop.draft()
    assert flow.ask_payment(order=order, declarations=DECLARED, expected_price=400).problem == "gateway_down"
    assert Payment.objects.get().status == "failed"
    a_draft_with_its_photo(order)
    assert [r.levelno for r in caplog.records if "refuses a session" in r.message] == [logging.ERROR]

    assert flow.ask_payment(order=order, declarations=DECLARED, expected_price=400).url
    order.refresh_from_db()
    flow.settle(shop.pay(order))
    the_one_job(order)


def test_reopen_of_a_paid_page_settles(shop: Shop) -> None:
    order = shop.asked()
    page = Client().get(f"/pay/cancelled/{shop.pay(order).key}/")
    assert (page.status_code, page["Location"]) == (303, f"/o/{order.code}-{order.key}/")
    job = the_one_job(order)
    photo = order.items.get().photo
    assert photo is not None
    assert job.photo_sha256 == photo.sha256
    assert flow.reopen(order=order) == "paid"


# --- what the processor says -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("amount", [399, 401])
def test_paid_with_another_amount(shop: Shop, amount: int) -> None:
    shop.sandbox.fault("wrong_amount", amount=amount)
    mismatched(shop, paid=(amount, "GBP"))


def test_paid_in_another_currency(shop: Shop) -> None:
    shop.sandbox.fault("wrong_currency", currency="usd")
    mismatched(shop, paid=(400, "USD"))


def mismatched(shop: Shop, *, paid: tuple[int, str]) -> None:
    """The next payment comes otherwise than asked: it is on the money list, and the order can be paid anew."""
    order = shop.asked()
    payment = shop.pay(order)
    assert flow.settle(payment) == "mismatched"
    payment.refresh_from_db()
    assert (payment.paid_amount, payment.paid_currency, payment.next_look_at) == (*paid, None)
    a_draft_with_its_photo(order)
    assert not Grant.objects.exists()
    shop.sweep(minutes=11)
    payment.refresh_from_db()
    assert payment.status == "mismatched"

    assert flow.ask_payment(order=order, declarations=DECLARED, expected_price=400).url
    order.refresh_from_db()
    flow.settle(shop.pay(order))
    the_one_job(order)


def test_session_expires_while_nobody_looks(shop: Shop) -> None:
    order = shop.asked()
    payment = order.payment
    assert payment is not None
    shop.pay(order, "lapse")
    shop.sweep()
    payment.refresh_from_db()
    assert (payment.status, payment.next_look_at) == ("expired", None)
    a_draft_with_its_photo(order)

    assert flow.ask_payment(order=order, declarations=DECLARED, expected_price=400).url
    order.refresh_from_db()
    assert order.payment != payment
    flow.settle(shop.pay(order))
    the_one_job(order)


def test_expired_session_is_paid_after_all(shop: Shop) -> None:
    order = shop.asked()
    payment = shop.pay(order, "lapse")
    shop.sweep()
    shop.pay(order, "pay_after_all")
    shop.sweep(minutes=11)
    credits_kept(payment)
    a_draft_with_its_photo(order)
    shop.sweep(minutes=11)
    credits_kept(payment)
    assert list(Mail.objects.values_list("kind", "status")) == [("credits_kept", "sent")]


@pytest.mark.parametrize("second_first", [False, True])
def test_second_payment_keeps_its_credits(shop: Shop, second_first: bool) -> None:
    order = shop.asked()
    first = order.payment
    assert first is not None
    assert flow.reopen(order=order) == "reopened"
    assert flow.ask_payment(order=order, declarations=DECLARED, expected_price=400).url
    order.refresh_from_db()
    second = shop.pay(order)
    shop.sandbox.card(str(first.session_id), "pay_after_all")
    for payment in [second, first] if second_first else [first, second]:
        assert flow.settle(payment) == "received"
    credits_kept(first)
    the_one_job(order)
    assert order.payment == second


# --- events ----------------------------------------------------------------------------------------------------------


def test_all_payment_webhooks_lost(shop: Shop) -> None:
    # The provider takes its time, so that the first sweep sees the money alone.
    shop.sandbox.settings(shop_url=shop.url, delay_seconds=2)
    shop.sandbox.fault("event_lost", times="all")
    order = shop.asked()
    shop.pay(order)
    shop.sweep()
    job = the_one_job(order)
    shop.until(job, "processing")
    wait_for(lambda: shop.provider()[0]["ended_at"])
    assert shop.until(job, "completed").video_key
    assert not Hint.objects.filter(source="stripe").exists()


def test_unsigned_and_old_events_change_nothing(shop: Shop) -> None:
    order = shop.asked()
    payment = shop.pay(order)
    body = event(str(payment.session_id))
    answers = [
        send_event(shop, body, signed=""),
        send_event(shop, body, signed="t=1,v1=00"),
        send_event(shop, body, secret="whsec_of_somebody_else"),
        send_event(shop, body, age=301),
        send_event(shop, body, age=86400 * 30),
    ]
    assert [answer.status_code for answer in answers] == [401] * 5
    assert lost("hint.unverified.stripe") == 5
    assert not Hint.objects.exists()
    assert shop.sandbox.calls("sessions.retrieve") == []
    payment.refresh_from_db()
    assert payment.status == "open"


def test_lying_event_changes_nothing(shop: Shop) -> None:
    shop.sandbox.settings(shop_url=shop.url)
    order = shop.asked()
    payment = shop.pay(order, "lie")
    hint = wait_for(Hint.objects.filter(source="stripe").first)
    assert (hint.kind, hint.reference) == ("checkout.session.completed", f"payment:{payment.pk}")
    tasks.look(payment.pk)
    payment.refresh_from_db()
    order.refresh_from_db()
    assert (payment.status, order.status) == ("open", "awaiting_payment")
    assert not Grant.objects.exists()
    assert not Job.objects.exists()


def sessions(shop: Shop) -> list[dict[str, str]]:
    """The checkout sessions that exist at the processor."""
    return list(shop.sandbox.state()["card"].get("sessions", {}).values())


@pytest.mark.parametrize("body", [b"{}", b"[]", b"null"])
def test_the_processor_answers_with_something_that_is_no_session(shop: Shop, settings: Any, body: bytes) -> None:
    order = shop.draft()
    press = partial(Client().post, f"/make/{order.key}/pay/", pay_form(order))
    base = settings.STRIPE_API_BASE
    answer = head("200 OK", Content_Length=len(body), Content_Type="application/json", Connection="close") + body
    with rude(answer) as odd:
        settings.STRIPE_API_BASE = f"http://{odd.host}"
        for page in (press(), Client().post(f"/make/{order.key}/reopen/")):
            assert (page.status_code, page["Location"]) == (303, f"/make/{order.key}/review/?notice=down")
    settings.STRIPE_API_BASE = base
    assert press()["Location"].startswith(base)
    order.refresh_from_db()
    flow.settle(shop.pay(order))
    the_one_job(order)
