"""The staff console: everything is shown, nothing is edited but poses and prices, and a list costs the same for 1 row and 100."""

import re
from typing import Any

import pytest
from django.contrib import admin
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from billing.models import CreditPack, Entry, Grant, Hold, HoldPart, Payment
from generation import runner
from generation.by_hand import store_upload
from generation.models import Job, JobEvent, ProviderAccount, Submission
from generation.providers import get_provider
from orders import freeze
from orders.models import Mail, Order, OrderItem, Photo, Pose
from tests.console import Console, text_of
from tests.generation.bad_days import until
from tests.generation.videos import video
from tests.shop import Shop
from waistheart import clock
from waistheart.models import GuardTally, Heartbeat, Hint

EDITABLE = {Pose, CreditPack}
MONEY = "billing/mismatchedpayment/"


@pytest.fixture
def console(transactional_db: None) -> Console:
    return Console()


# --- nothing is edited -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", admin.site._registry, ids=lambda model: model.__name__)
def test_only_poses_and_prices_are_edited_and_nothing_is_deleted(console: Console, model: Any):
    path = f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
    assert console.client.get(path).status_code == 200
    assert console.client.get(path + "add/").status_code == (200 if model in EDITABLE else 403)
    page = admin.site._registry[model]
    request = console.client.get(path).wsgi_request
    assert page.has_delete_permission(request) is False
    assert page.has_change_permission(request) is (model in EDITABLE)
    assert "delete_selected" not in page.get_actions(request)


def test_every_page_opens(shop: Shop):
    console = Console()
    job = shop.submitted()
    shop.sweep()
    Hint.objects.create(source="stripe", event_id="evt_1", kind="checkout.session.completed")
    GuardTally.objects.create(guard="payment.receive", day=timezone.now().date(), lost=1)
    for model in admin.site._registry:
        row = model._default_manager.first()
        if row is not None and not model._meta.proxy:
            path = f"{model._meta.app_label}/{model._meta.model_name}/{row.pk}/change/"
            page = console.get(path)
            assert (' name="_save"' in page) is (model in EDITABLE), path
    assert console.client.post(f"/admin/generation/job/{job.pk}/change/", {"status": "failed"}).status_code == 403
    assert Job.objects.get(pk=job.pk).status == "processing"


def test_the_order_page_tells_what_happened(shop: Shop):
    console, job = Console(), shop.submitted()
    order = job.item.order
    words = text_of(console.get(f"orders/order/{order.pk}/change/"))
    assert order.code in words
    for fact in ("payment received", "order paid", "birth: born → queued by settle", "submission 1", "credits held: 1"):
        assert fact in words, fact
    page = console.get(f"orders/order/{order.pk}/change/")
    assert f'<img src="/o/{order.code}-{order.key}/1/photo.jpg"' in page
    assert "&lt;" not in page


# --- search ----------------------------------------------------------------------------------------------------------


def test_search_finds_exactly(shop: Shop):
    console, job = Console(), shop.submitted(email="ada@example.com")
    other = shop.asked(email="ada@example.com.evil.example")
    order = job.item.order
    submission = Submission.objects.get()
    assert submission.external_id, (job.status, job.last_error)
    payment = Payment.objects.get(order=order)
    for term in (
        order.code.lower(),
        " ADA@example.com ",
        payment.session_id,
        payment.payment_intent,
        submission.external_id,
    ):
        page = console.get("orders/order/", q=term)
        assert order.code in page, term
        assert other.code not in page, term
    for term in (order.code, "ada@example.com", str(job.pk), submission.external_id, order.lot):
        assert f"/generation/job/{job.pk}/change/" in console.get("generation/job/", q=term), term
    for path, term in (
        ("billing/payment/", order.code), ("billing/payment/", payment.session_id), ("billing/payment/", payment.key),
        ("generation/submission/", submission.external_id), ("orders/mail/", order.code), ("orders/mail/", "ada@example.com"),
        ("billing/entry/", "ada@example.com"), ("billing/grant/", "ada@example.com"), ("billing/hold/", "ada@example.com"),
        ("waistheart/user/", "ada@example.com"),
    ):  # fmt: skip
        shown = text_of(console.get(path, q=term))
        # Three when the provider's call has ended the job meanwhile: its entry and its mail are there too.
        assert re.search(r"\b[123] results?\b", shown), (path, term, shown)
    assert "0 results" in text_of(console.get("orders/order/", q=order.code[:7]))


# --- a list's price --------------------------------------------------------------------------------------------------


LISTS = (
    "orders/order/", "orders/mail/", "generation/job/", "generation/jobinreview/", "generation/submission/",
    "billing/payment/", "billing/mismatchedpayment/", "billing/grant/", "billing/hold/", "billing/entry/", "orders/pose/",
    "waistheart/user/", "waistheart/hint/",
)  # fmt: skip


def test_a_list_costs_the_same_for_one_row_and_a_hundred(console: Console):
    fill(1)
    few = {path: statements(console, path) for path in LISTS}
    fill(99)
    assert {path: statements(console, path) for path in LISTS} == few
    assert max(few.values()) <= 15


def statements(console: Console, path: str) -> int:
    with CaptureQueriesContext(connection) as seen:
        page = console.get(path)
    assert page.count('class="action-select"') + page.count("<tr") > 1
    return len(seen)


@transaction.atomic
def fill(count: int) -> None:
    """Rows of every kind, each belonging to a customer of its own, made without the flow."""
    pose = Pose.objects.get_or_create(slug="heart", defaults={"name": "Heart", "prompt": "heart", "description": "x"})[
        0
    ]
    account = ProviderAccount.objects.get_or_create(provider="fal", key_print="x")[0]
    begin = Order.objects.count()
    now = timezone.now()
    for n in range(begin, begin + count):
        email = f"{n}@example.com"
        owner = freeze.owner_of(email)
        payment = Payment.objects.create(
            owner=owner, reference=f"order:{n:08d}", amount=400, currency="GBP", credits=1, name="x", email=email,
            success_url="x", cancel_url="x", session_expires_at=now, session_id=f"cs_{n}",
            status="mismatched" if n % 2 else "received",
        )  # fmt: skip
        order = Order.objects.create(
            request_key=f"k{n}", email=email, owner=owner, payment=payment, price=400, currency="GBP", credits=1,
            status="paid", paid_at=now,
        )  # fmt: skip
        photo = Photo.objects.create(
            order=order, key=f"k/{n}", sha256="x", size=1, width=1, height=1, format_seen="JPEG"
        )
        grant = Grant.objects.create(
            owner=owner, payment=payment, reason="bought", credits=1, available=0, held=1, expires_at=now
        )
        hold = Hold.objects.create(owner=owner, credits=1, parts=1)
        HoldPart.objects.create(hold=hold, grant=grant, credits=1)
        Entry.objects.create(kind="granted", occasion=f"payment:{payment.pk}", grant=grant, credits=1, available=1)
        job = Job.objects.create(
            owner=owner, hold=hold, lot=order.lot, photo_key=photo.key, photo_sha256="x", crop=50, prompt="x", provider="fal",
            model="m", credits=1, status="review" if n % 2 == 0 else "queued", reason="deadline",
        )  # fmt: skip
        OrderItem.objects.create(order=order, pose=pose, photo=photo, job=job, pose_name="Heart")
        JobEvent.objects.create(job=job, move="birth", target="queued", version=1, actor="settle")
        Submission.objects.create(
            job=job, account=account, number=1, key=f"s{n}", provider="fal", model="m", lease_id="0" * 32, image_key="i",
            status="lost", external_id=f"e{n}",
        )  # fmt: skip
        Mail.objects.create(
            reference=f"order:{order.code}", kind="ready", occasion="x", order=order, to=email, message_id=f"<{n}>"
        )
        Hint.objects.create(source="stripe", event_id=f"evt_{n}", kind="x")


# --- what is edited --------------------------------------------------------------------------------------------------


POSE = {"name": "Waist heart", "slug": "waist", "description": "Hands meet.", "prompt": "a heart", "credits": "1", "sort": "1",
        "model": "", "parameters": "{}"}  # fmt: skip


def test_a_new_pose_is_sold_with_a_sample_that_was_proven(console: Console):
    add = "/admin/orders/pose/add/"
    without = console.client.post(add, {**POSE, "active": "on"})
    assert "A pose on sale has a sample clip." in without.content.decode()
    broken = console.client.post(add, {**POSE, "active": "on", "sample": SimpleUploadedFile("a.mp4", b"no video")})
    assert "This cannot be a sample: container" in broken.content.decode()
    assert not Pose.objects.exists()
    console.client.post(add, {**POSE, "active": "on", "sample": SimpleUploadedFile("a.mp4", video())})
    pose = Pose.objects.get()
    assert console.client.get(f"/poses/{pose.slug}/sample.mp4").status_code == 200
    assert console.client.get(f"/poses/{pose.slug}/poster.jpg")["Content-Type"] == "image/jpeg"


def test_a_sample_is_proven_and_stored_outside_any_transaction(console: Console, monkeypatch: Any):
    inside = []

    def spy(*args: Any, **kwargs: Any) -> Any:
        inside.append(connection.in_atomic_block)
        return store_upload(*args, **kwargs)

    monkeypatch.setattr("orders.admin_pose.store_upload", spy)
    console.client.post("/admin/orders/pose/add/", {**POSE, "sample": SimpleUploadedFile("a.mp4", video())})
    pose = Pose.objects.get()
    again = {**POSE, "prompt": "two hearts", "sample": SimpleUploadedFile("a.mp4", video())}
    console.client.post(f"/admin/orders/pose/{pose.pk}/change/", again)
    assert inside == [False, False]
    assert Pose.objects.get().prompt == "two hearts"
    assert Pose.objects.get().sample_key != pose.sample_key
    assert "Changed" in console.get(f"orders/pose/{pose.pk}/history/")


@pytest.mark.parametrize(("field", "value", "words"), [
    ("credits", "0", "greater than or equal to 1"), ("credits", "51", "less than or equal to 50"),
    ("parameters", "[1]", "An object"), ("parameters", '{"prompt": "x"}', "is set by the shop"),
    ("parameters", '{"a": NaN}', "Plain text"), ("parameters", '{"a": [1e400]}', "Plain text"),
    ("parameters", '{"a": "\\u0000"}', "Plain text"), ("parameters", '{"a": "\\ud800"}', "Plain text"),
    ("prompt", "", "This field is required"), ("model", "fal-ai/heart pose/x", "owner/app"), ("model", "x", "owner/app"),
])  # fmt: skip
def test_a_pose_that_cannot_be_sold_is_refused_in_words(console: Console, field: str, value: str, words: str):
    answer = console.client.post("/admin/orders/pose/add/", {**POSE, field: value})
    assert answer.status_code == 200
    assert words in text_of(answer.content.decode())
    assert not Pose.objects.exists()


@pytest.mark.parametrize(("change", "words"), [
    ({"price": "0"}, "greater than or equal to 1"), ({"credits": "51"}, "less than or equal to 50"),
    ({"price": "-5"}, "greater than or equal to 1"), ({"price": "5.00"}, "Digits alone"), ({"price": "5,00"}, "Digits alone"), ({"currency": "£"}, "Three letters"),
    ({}, "There is an active price for this size and currency"),
])  # fmt: skip
def test_a_price_that_cannot_be_is_refused_in_words(console: Console, change: dict[str, str], words: str):
    CreditPack.objects.create(credits=1, price=400, currency="GBP")
    data = {"credits": "1", "price": "500", "currency": "gbp", "active": "on", **change}
    answer = console.client.post("/admin/billing/creditpack/add/", data)
    assert answer.status_code == 200
    assert words in text_of(answer.content.decode())
    assert CreditPack.objects.count() == 1


def test_a_price_is_changed(console: Console):
    pack = CreditPack.objects.create(credits=1, price=400, currency="GBP")
    console.client.post(
        f"/admin/billing/creditpack/{pack.pk}/change/",
        {"credits": "1", "price": "500", "currency": "GBP", "active": "on"},
    )
    assert CreditPack.objects.get().price == 500


# --- the first page --------------------------------------------------------------------------------------------------


def test_the_first_page_says_what_needs_a_person(console: Console):
    fill(3)
    for key in (get_provider().key_print(), "replaced"):
        ProviderAccount.objects.create(
            provider="fal", key_print=key, state="out_of_credits", next_probe_at=timezone.now()
        )
    Heartbeat.objects.create(name="sweep", at=timezone.now())
    words = text_of(console.get(""))
    assert "Needs review 2" in words
    assert "Money list 1" in words
    assert words.count("fal out of credits") == 1
    assert "Daily work began never" in words
    with CaptureQueriesContext(connection) as seen:
        console.get("")
    assert len(seen) <= 15


def test_an_account_that_was_filled_up_is_asked_again_when_staff_say_so(shop: Shop, console: Console):
    path = "generation/provideraccount/"
    shop.sandbox.fault("status_402")
    job = shop.paid()
    assert runner.advance(job.pk) == "OutOfCredits"
    account = ProviderAccount.objects.get()
    shop.sweep()
    assert Job.objects.get(pk=job.pk).status == "queued"
    stale = console.choose(path, "probe", account.pk, shown=console.get(path))
    assert console.act(path, "probe", account.pk) == ["Ask again now: 1 asked again within a minute."]
    assert console.confirm(path, stale) == ["Ask again now: 1 had already moved on."]
    until(shop, job)
    assert console.act(path, "probe", account.pk) == ["Ask again now: 1 had already moved on."]
    replaced = ProviderAccount.objects.create(
        provider="fal", key_print="old", state="out_of_credits", next_probe_at=clock.now()
    )
    assert "its key takes no new work any more" in console.act(path, "probe", replaced.pk)[0]
