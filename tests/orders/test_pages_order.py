"""The order's page: true words in every state, a fragment that stops by itself, and nothing for strangers."""

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from django.utils.html import escape

from billing.models import Entry
from generation.models import Job, ProviderAccount
from generation.providers import get_provider
from orders import estimates, moments, progress, visits
from orders.models import Order, Photo
from tests.orders import shop

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("a_shop")]
BACK = "Your credit is back: what you paid for this video is kept for you until"


def text(client: Client, path: str) -> str:
    """What somebody reads: the page's main part without its marks."""
    html = client.get(path).content.decode()
    main = html[html.index("<main") : html.index("</main>")].replace("<wbr>", "")
    main = re.sub(r'<span class="address">([^<]*)</span>', r"\1", main)
    return " ".join(re.sub(r"<[^>]+>", " ", main).split())


STATES = {
    "queued": ({"age": 5}, ("queued",), "Your video is in the queue", "You can close this page; we will e-mail ada@"),
    "making": ({"age": 5}, ("processing",), "We are making your video", "You can close this page"),
    "saving": ({"age": 5}, ("storing",), "Almost ready", "We are checking and saving your video."),
    "slow": ({"age": 361}, ("processing",), "We are making your video", "This is taking longer than usual."),
    "staff": (
        {"reason": "deadline"},
        ("review",),
        "A person is checking your order",
        "with the video, or to say that what you paid for it is yours again.",
    ),
    "ready": ({}, ("completed",), "Your video is ready", "Made with AI from your photo"),
    "failed": ({"move": "fail"}, ("failed",), "We could not make this video", BACK),
    "photo": (
        {"move": "refuse", "reason": "moderation"},
        ("failed",),
        "We cannot use this photo",
        "The rules against harmful pictures did not allow it.",
    ),
    "cancelled": ({"move": "cancel", "actor": "customer"}, ("failed",), "Order cancelled", BACK),
    "closed by its customer": ({"move": "close", "actor": "customer"}, ("failed",), "Order cancelled", BACK),
    "deleted": ({"deleted": True}, ("completed",), "This video has been deleted", "The receipt stays available"),
}


@pytest.mark.parametrize(("fields", "statuses", "heading", "sentence"), STATES.values(), ids=STATES.keys())
def test_each_state_says_what_is_true(client: Client, fields: dict, statuses: tuple, heading: str, sentence: str):
    order = shop.paid(*statuses, **fields)
    page = client.get(shop.url(order))
    html = page.content.decode()
    assert page.status_code == 200
    assert f"<h1>{heading}</h1>" in html
    assert f"<title>{heading} – WaistHeart</title>" in html
    assert sentence in text(client, shop.url(order))
    assert order.code in html
    assert not re.search(r"\bfal\b|stripe|refund", html.split("<footer")[0].split("<main")[1], re.IGNORECASE)


def test_an_order_whose_money_is_on_its_way_waits_for_the_bank(client: Client):
    html = client.get(shop.url(shop.awaiting(payment_status="pending"))).content.decode()
    assert "We are waiting for your bank" in html
    assert "Not paid yet?" not in html
    assert "Payment received." not in html


def test_an_order_that_nobody_has_paid_leads_back_to_the_payment(client: Client):
    order = shop.awaiting()
    page = text(client, shop.url(order))
    assert "Payment not finished yet If you have just paid, this page shows it in a minute or two." in page
    assert "Go on with the payment, or change your order" in page
    html = client.get(shop.url(order)).content.decode()
    assert f'href="/make/{order.key}/review/"' in html
    assert "your bank" not in html
    assert "hx-get" in html


def test_only_the_customer_cancels_for_the_customer(client: Client):
    order = shop.paid("failed", move="close", actor="customer.care@shop.example", reason="closed")
    page = text(client, shop.url(order))
    assert "We could not make this video" in page
    assert "Order cancelled" not in page


def test_a_supplier_that_takes_no_work_is_a_delay_on_our_side(client: Client):
    now = timezone.now()
    account = {"provider": "fal", "model": "m", "state": "out_of_credits", "next_probe_at": now}
    ProviderAccount.objects.create(key_print=get_provider("fal").key_print(), **account)
    assert "Your video is delayed" in text(client, shop.url(shop.paid("queued", model="m")))
    page = text(client, shop.url(shop.paid("queued", model="m")))
    assert "The delay is on our side. We try again automatically every 15 minutes." in page
    assert "Your video is in the queue" in text(client, shop.url(shop.paid("queued", model="another")))


def test_the_outage_of_a_key_we_no_longer_use_delays_nothing(client: Client):
    ProviderAccount.objects.create(
        provider="fal", key_print="an-old-key", state="misconfigured", next_probe_at=timezone.now()
    )
    assert "Your video is in the queue" in text(client, shop.url(shop.paid("queued")))


def test_a_credit_is_said_to_be_back_only_when_the_ledger_says_so(client: Client):
    order = shop.paid("failed", move="fail", returned=False)
    page = text(client, shop.url(order))
    assert BACK not in page
    assert "A person is checking the payment for this video." in page


def test_a_credit_that_the_bank_took_is_not_said_to_be_back(client: Client):
    order = shop.paid("failed", move="fail")
    Entry.objects.filter(kind="released").update(available=0, owed=-1)
    page = text(client, shop.url(order))
    assert BACK not in page
    assert "disputed or was taken back" in page


def test_the_first_visit_after_paying_is_greeted_once(client: Client):
    order = shop.paid("queued")
    assert "Payment received. We send a receipt to ada@example.com." in text(client, shop.url(order))
    assert "Bookmark this page" not in text(client, shop.url(order))


@pytest.mark.parametrize(("age", "pause"), [(5, 2), (61, 5), (301, 15), (1801, 60)])
def test_the_page_asks_less_often_the_longer_it_waits(client: Client, age: int, pause: int):
    html = client.get(shop.url(shop.paid("processing", age=age))).content.decode()
    assert f'hx-trigger="every {pause}s"' in html
    assert '<noscript><meta http-equiv="refresh" content="10"></noscript>' in html


@pytest.mark.parametrize("status", ["completed", "failed"])
def test_a_finished_page_asks_no_more(client: Client, status: str):
    order = shop.paid(status, move="fail")
    for path in (shop.url(order), shop.url(order, "progress/")):
        html = client.get(path).content.decode()
        assert "hx-get" not in html
        assert "http-equiv" not in html


def test_the_fragment_speaks_once_per_change_and_its_bar_never_falls(client: Client):
    order = shop.paid("processing", age=30)
    for _ in range(estimates.ENOUGH):
        done = shop.paid("completed")
        Job.objects.filter(lot=done.lot).update(created_at=timezone.now() - timedelta(seconds=120))
    first = client.get(shop.url(order, "progress/") + "?seen=90&state=elsewhere").content.decode()
    assert "<title>We are making your video – WaistHeart</title>" in first
    assert 'hx-swap-oob="innerHTML">We are making your video.' in first
    assert 'value="90"' in first
    assert "About 2 minutes left" in first
    again = re.search(r'hx-get="([^"]+)"', first)
    assert again
    asks = again.group(1).replace("&amp;", "&")
    same = client.get(asks)
    assert (same.status_code, same.content, same.headers["Cache-Control"]) == (204, b"", "no-store")
    Order.objects.filter(pk=order.pk).update(paid_at=timezone.now() - timedelta(seconds=70))
    second = client.get(asks).content.decode()
    assert "About 1 minute left" in second
    assert 'value="90"' in second
    assert 'id="said"' not in second
    assert client.get(shop.url(order, "progress/") + "?seen=-1&state=").status_code == 200


def test_without_deliveries_nothing_is_promised(client: Client):
    html = client.get(shop.url(shop.paid("processing"))).content.decode()
    assert '<progress aria-label="Progress" max="100"></progress>' in html
    assert "minute" not in text(client, shop.url(shop.paid("processing")))


def test_the_fragment_costs_few_statements(client: Client, django_assert_max_num_queries):
    one, many = shop.paid("processing"), shop.paid(*["processing"] * 20, *["failed"] * 20, *["queued"] * 10)
    estimates.typical(pose_id=shop.pose().pk)
    with django_assert_max_num_queries(2):
        client.get(shop.url(one, "progress/"))
    with django_assert_max_num_queries(6):
        client.get(shop.url(many, "progress/"))


def test_an_order_of_several_lists_each(client: Client):
    order = shop.paid("completed", "processing", "queued", "failed", move="fail")
    html = client.get(shop.url(order)).content.decode()
    assert "<h1>We are making your videos</h1>" in html
    assert "1 of 4 are ready." in html
    assert shop.url(order, "1/video.mp4") in html
    assert html.count('<span class="tag') == 4
    assert BACK in html


def test_a_partly_delivered_order_counts_what_is_there(client: Client):
    order = shop.paid("completed", "completed", "failed", move="fail")
    html = client.get(shop.url(order)).content.decode()
    assert "<h1>2 of your 3 videos are ready</h1>" in html
    assert html.count("<video") == 2
    assert BACK in html


def test_strangers_get_the_same_answer_whatever_they_guess(client: Client):
    order = shop.paid("completed")
    wrong_key = order.key[:-1] + ("A" if order.key[-1] != "A" else "B")
    unknown_code = "A" * 8 if order.code != "A" * 8 else "B" * 8
    pages = [
        client.get(path)
        for path in (
            f"/o/{order.code}-{wrong_key}/",
            f"/o/{unknown_code}-{order.key}/",
            f"/o/{unknown_code}-{wrong_key}/",
        )
    ]
    assert {page.status_code for page in pages} == {404}
    assert len({page.content for page in pages}) == 1
    assert pages[0].content == client.get("/o/no-such-thing/").content
    for rest in ("progress/", "video.mp4", "poster.jpg", "photo.jpg", "cancel/", "1/video.mp4"):
        assert client.get(f"/o/{order.code}-{wrong_key}/{rest}").status_code == 404


def test_a_draft_has_no_order_page_yet(client: Client):
    order = shop.draft()
    assert client.get(shop.url(order)).headers["Location"] == f"/make/{order.key}/review/"


def test_the_video_answers_ranges_and_downloads_under_its_name(client: Client):
    order = shop.paid("completed")
    whole = client.get(shop.url(order, "video.mp4"))
    assert b"".join(whole) == shop.VIDEO
    assert whole.headers["Cache-Control"] == "private, max-age=3600"
    assert whole.headers["Content-Type"] == "video/mp4"
    first = client.get(shop.url(order, "video.mp4"), headers={"Range": "bytes=0-1"})
    assert (first.status_code, first.headers["Content-Length"]) == (206, "2")
    last = client.get(shop.url(order, "video.mp4"), headers={"Range": "bytes=-5"})
    assert b"".join(last) == shop.VIDEO[-5:]
    past = client.get(shop.url(order, "video.mp4"), headers={"Range": f"bytes={len(shop.VIDEO)}-"})
    assert (past.status_code, past.headers["Cache-Control"] != "private, max-age=3600") == (416, True)
    head = client.head(shop.url(order, "video.mp4"))
    assert (head.content, head.headers["Content-Length"]) == (b"", str(len(shop.VIDEO)))
    saved = client.get(shop.url(order, "video.mp4") + "?download=1")
    assert saved.headers["Content-Disposition"] == f'attachment; filename="waistheart-waist-heart-{order.code}.mp4"'
    assert client.get(shop.url(order, "poster.jpg")).status_code == 200
    assert client.get(shop.url(order, "photo.jpg")).headers["Content-Type"] == "image/jpeg"


@pytest.mark.parametrize("status", ["queued", "processing", "storing", "review", "failed"])
def test_there_is_no_video_before_it_is_delivered(client: Client, status: str):
    order = shop.paid(status)
    assert client.get(shop.url(order, "video.mp4")).status_code == 404
    assert client.get(shop.url(order, "poster.jpg")).status_code == 404
    assert client.get(shop.url(order, "2/video.mp4")).status_code == 404


def test_deleted_things_are_gone(client: Client):
    order = shop.paid("completed", deleted=True)
    assert client.get(shop.url(order, "video.mp4")).status_code == 404
    Photo.objects.update(deleted_at=timezone.now())
    assert client.get(shop.url(order, "photo.jpg")).status_code == 404
    assert "We deleted the photo on" in text(client, shop.url(order))


def test_cancelling_asks_first_and_only_while_it_can(client: Client, monkeypatch: pytest.MonkeyPatch):
    order = shop.paid("queued")
    assert shop.url(order, "cancel/") in client.get(shop.url(order)).content.decode()
    page = client.get(shop.url(order, "cancel/")).content.decode()
    assert "Your £4.00 stays yours: kept as a credit for another video, or paid back if you write to" in page
    assert Job.objects.get().status == "queued"
    late = shop.paid("processing")
    assert '<p id="stop" hx-swap-oob="true"></p>' in client.get(shop.url(late, "progress/")).content.decode()
    assert "cancel/" not in client.get(shop.url(late)).content.decode()
    refused = client.post(shop.url(late, "cancel/"))
    assert (refused.status_code, "cannot be cancelled" in refused.content.decode()) == (409, True)


def test_staff_promise_a_day_and_hour(client: Client):
    order = shop.paid("review", reason="deadline")
    Job.objects.update(state_since=timezone.now() - timedelta(days=1))
    until = Job.objects.get().state_since + timedelta(seconds=259200)
    assert escape(moments.date_format(until, "j F Y, H:i")) in text(client, shop.url(order))


def test_a_job_state_this_code_does_not_know_is_shown_as_waiting(client: Client):
    order = shop.paid("queued")
    job = Job.objects.get()
    job.status = "polishing"
    assert progress._state(job, None, set()) == progress.State.QUEUED
    assert Order.objects.get(pk=order.pk).status == "paid"


def test_of_two_first_visits_at_once_one_is_greeted(client: Client):
    order = shop.paid("queued")
    assert [visits.first(order=order), visits.first(order=order)] == [True, False]
