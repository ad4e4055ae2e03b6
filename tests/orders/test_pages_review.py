"""Steps 2 and 3: Pay means exactly what the page showed, and nobody sees an error after paying."""

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils.html import escape

from billing.gateway import StripeGateway
from billing.gateway_errors import GatewayUnavailable
from billing.models import CreditPack, Payment
from billing.receipts import Receipt, Session
from orders import drafts
from orders.models import Order, Pose
from tests.orders import shop
from waistheart import guards

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("a_shop")]
PAGE = "http://127.0.0.1:9/stripe/pay/cs_1"
TICKED = {"may_use": "1", "start_now": "1"}


class Gateway:
    """Answers as the card processor would; counts the sessions it made."""

    def __init__(self, *, status: str = "open", down: bool = False) -> None:
        self.status, self.down, self.made = status, down, 0

    def create_session(self, **asked: object) -> Session:
        self._up()
        self.made += 1
        return Session(id="cs_1", url=PAGE)

    def look_up(self, *, session_id: str) -> Receipt:
        self._up()
        payment = Payment.objects.get(session_id=session_id)
        return Receipt(
            session_id=session_id, status=self.status, amount=payment.amount, currency="gbp", credits=payment.credits,
            reference=payment.reference, payment_intent="pi_1", charge="ch_1", refunded=0, disputed=False, livemode=False,
            url=None,
        )  # fmt: skip

    def expire(self, *, session_id: str) -> Receipt:
        self.status = "expired" if self.status == "open" else self.status
        return self.look_up(session_id=session_id)

    def _up(self) -> None:
        if self.down:
            raise GatewayUnavailable("away")


@pytest.fixture
def gateway(monkeypatch: pytest.MonkeyPatch) -> Gateway:
    made = Gateway()
    for call in ("create_session", "look_up", "expire"):
        monkeypatch.setattr(StripeGateway, call, staticmethod(getattr(made, call)))
    monkeypatch.setattr(guards, "nudge", lambda what: None)
    return made


def shown(client: Client, order: Order) -> dict[str, str]:
    """What the review page's form holds."""
    html = client.get(address(order, "review/")).content.decode()
    form = html[html.index(f'action="/make/{order.key}/pay/"') :]
    return dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form[: form.index("</form>")]))


def address(order: Order, rest: str) -> str:
    return f"/make/{order.key}/{rest}"


def test_the_page_lists_everything_with_a_way_to_change_it(client: Client):
    order = shop.draft()
    html = client.get(address(order, "review/")).content.decode()
    assert "<title>Step 2 of 3: Review – WaistHeart</title>" in html
    html = html.replace("<wbr>", "")
    for words in ("IMG_1234.jpg", "Waist heart", shop.ADA, "usually in 1 to 5 minutes", "24 hours", "30 days", "£4.00"):
        assert words in html
    for row in ("photo", "pose", "e-mail"):
        assert f'Change <span class="hide">{row}</span>' in html
    assert "checked" not in html
    assert ">Pay £4.00</button>" in html


def test_an_unfinished_draft_goes_back_to_step_one(client: Client):
    order = drafts.start(pose=shop.pose(), request_key="unfinished-request")
    assert client.get(address(order, "review/")).headers["Location"] == address(order, "photo/")
    assert "Photo kept" not in client.get(address(order, "photo/")).content.decode()


def test_the_frame_moves_in_steps_of_ten_and_stops_at_the_edge(client: Client):
    order = shop.draft(photo=shop.tall_photo())
    assert "Move up" in client.get(address(order, "review/")).content.decode()
    client.post(address(order, "crop/"), {"move": "down"})
    assert order.items.get().crop == 35
    for _ in range(8):
        client.post(address(order, "crop/"), {"move": "up"})
    assert order.items.get().crop == 0


def test_a_frame_that_cannot_move_offers_no_buttons(client: Client):
    html = client.get(address(shop.draft(), "review/")).content.decode()
    assert "Move up" not in html
    assert "Full height" in html


def test_another_pose_keeps_the_photo(client: Client):
    order, other = shop.draft(), shop.pose("finger-heart", "Finger heart")
    assert "Finger heart" in client.get(address(order, "pose/")).content.decode()
    client.post(address(order, "pose/"), {"pose": other.slug})
    item = order.items.get()
    assert (item.pose, item.photo.name) == (other, "IMG_1234.jpg")


def test_a_slip_in_the_address_is_asked_about_and_never_blocks(client: Client):
    order = shop.draft(email="ada@gmial.com")
    assert "Did you mean ada@gmail.com?" in client.get(address(order, "review/")).content.decode()
    client.post(address(order, "email/"), {"email": "ada@gmail.com"})
    order.refresh_from_db()
    assert order.email == "ada@gmail.com"
    assert "Did you mean" not in client.get(address(order, "review/")).content.decode()


@pytest.mark.parametrize(
    ("field", "words"),
    [("may_use", "Confirm that you may use this photo"), ("start_now", "Confirm that we may start now")],
)
def test_a_missing_tick_is_told_and_the_other_is_kept(client: Client, gateway: Gateway, field: str, words: str):
    order = shop.draft()
    ticks = {name: value for name, value in TICKED.items() if name != field}
    page = client.post(address(order, "pay/"), shown(client, order) | ticks)
    html = page.content.decode()
    assert page.status_code == 200
    assert "<title>Error: Step 2 of 3: Review – WaistHeart</title>" in html
    assert f'<a href="#{field}">{words}</a>' in html
    assert html.count(" checked") == 1
    assert gateway.made == 0


def test_pay_leads_to_the_payment_page_and_twice_to_the_same(client: Client, gateway: Gateway):
    order = shop.draft()
    form = shown(client, order) | TICKED
    pages = [client.post(address(order, "pay/"), form, REMOTE_ADDR="192.0.2.7") for _ in range(2)]
    assert [(page.status_code, page.headers["Location"]) for page in pages] == [(303, PAGE)] * 2
    assert gateway.made == 1
    order.refresh_from_db()
    assert order.declarations["may_use"]["text"] == "The person in this photo is me, or an adult who agreed to this."
    assert order.declarations["start_now"]["ip"] == "192.0.2.7"
    assert order.declarations["start_now"]["version"]


@pytest.mark.parametrize(
    "change",
    [
        lambda order: drafts.put_photo(order=order, data=shop.tall_photo(), name="other.jpg", crop=25),
        lambda order: drafts.set_crop(order=order, crop=90),
        lambda order: drafts.set_pose(order=order, pose=shop.pose("finger-heart", "Finger heart")),
        lambda order: drafts.set_email(order=order, email="eve@example.com"),
    ],
    ids=["photo", "frame", "pose", "address"],
)
def test_pay_refuses_what_was_changed_in_another_window(client: Client, gateway: Gateway, change):
    order = shop.draft()
    form = shown(client, order) | TICKED
    assert change(order)
    page = client.post(address(order, "pay/"), form)
    assert "This order has changed since this page was shown." in page.content.decode()
    assert gateway.made == 0
    assert client.post(address(order, "pay/"), shown(client, order) | TICKED).headers["Location"] == PAGE


def test_a_new_price_is_shown_before_it_is_paid(client: Client, gateway: Gateway):
    order = shop.draft()
    form = shown(client, order) | TICKED
    CreditPack.objects.update(price=450)
    html = client.post(address(order, "pay/"), form).content.decode()
    assert "The price is now £4.50" in html
    assert ">Pay £4.50</button>" in html
    assert gateway.made == 0


def test_a_retired_pose_leads_to_the_others(client: Client, gateway: Gateway):
    order = shop.draft()
    form = shown(client, order) | TICKED
    Pose.objects.update(active=False)
    shop.pose("finger-heart", "Finger heart")
    page = client.post(address(order, "pay/"), form, follow=True)
    assert "not sold any more" in page.content.decode()
    assert "Finger heart" in page.content.decode()


def test_a_processor_that_is_away_keeps_everything(client: Client, gateway: Gateway):
    order = shop.draft()
    gateway.down = True
    page = client.post(address(order, "pay/"), shown(client, order) | TICKED, follow=True).content.decode()
    assert "Card payment is not available right now. Your photo is kept until" in page
    assert "Try again" in page
    gateway.down = False
    assert client.post(address(order, "pay/"), shown(client, order)).headers["Location"] == PAGE


def test_back_from_the_payment_page_without_paying(client: Client, gateway: Gateway):
    order = shop.draft()
    client.post(address(order, "pay/"), shown(client, order) | TICKED)
    page = client.get(f"/pay/cancelled/{Payment.objects.get().key}/")
    assert "Payment was not completed. No money was taken." in page.content.decode()
    assert page.content.decode().count("No money") == 1
    assert shop.ADA in page.content.decode().replace("<wbr>", "")
    order.refresh_from_db()
    assert order.status == "awaiting_payment"
    assert client.post(address(order, "pay/"), shown(client, order)).headers["Location"] == PAGE
    assert client.post(address(order, "reopen/")).headers["Location"] == address(order, "review/")
    assert client.post(address(order, "crop/"), {"crop": "90"}).status_code == 303


def test_cancelled_but_paid_after_all_shows_the_order(client: Client, gateway: Gateway):
    order = shop.draft()
    client.post(address(order, "pay/"), shown(client, order) | TICKED)
    gateway.status = "paid"
    assert client.get(f"/pay/cancelled/{Payment.objects.get().key}/").headers["Location"] == shop.url(order)


@pytest.mark.parametrize("status", ["paid", "pending", "open"])
def test_coming_back_shows_the_order_whatever_the_bank_says_so_far(client: Client, gateway: Gateway, status: str):
    order = shop.draft()
    client.post(address(order, "pay/"), shown(client, order) | TICKED)
    gateway.status = status
    back = client.get("/pay/return/?session=cs_1")
    assert (back.status_code, back.headers["Location"]) == (303, shop.url(order))
    html = client.get(shop.url(order)).content.decode()
    headings = {"paid": "Your video is in the queue", "pending": "We are waiting for your bank"}
    assert headings.get(status, "Payment not finished yet") in html


def test_coming_back_while_the_processor_is_away_is_no_error(client: Client, gateway: Gateway):
    order = shop.draft()
    client.post(address(order, "pay/"), shown(client, order) | TICKED)
    gateway.down = True
    assert client.get("/pay/return/?session=cs_1").headers["Location"] == shop.url(order)


@pytest.mark.parametrize("status", ["paid", "open"])
def test_the_way_back_opens_the_order_for_a_day(client: Client, gateway: Gateway, status: str):
    order = shop.draft()
    client.post(address(order, "pay/"), shown(client, order) | TICKED)
    gateway.status = status
    made = Payment.objects.get().created_at
    Payment.objects.update(created_at=made - timedelta(hours=24, minutes=50))
    assert client.get("/pay/return/?session=cs_1").headers["Location"] == shop.url(order)
    Payment.objects.update(created_at=made - timedelta(hours=25, minutes=10))
    late = Client().get("/pay/return/?session=cs_1")
    words = late.content.decode()
    assert late.status_code == 410
    assert order.code in words
    assert "help@waistheart.example" in words
    assert order.key not in words
    assert client.get(shop.url(order)).status_code == 200, "the order's own link goes on working"


@pytest.mark.parametrize("query", ["", "?session=", "?session=cs_foreign", "?session=" + "x" * 300])
def test_a_session_that_is_not_ours_is_not_matched(client: Client, gateway: Gateway, query: str):
    page = client.get("/pay/return/" + query)
    assert page.status_code == 404
    assert "We could not match this payment" in page.content.decode()


@pytest.mark.parametrize("rest", ["photo/", "review/", "pose/", "pay/"])
def test_pages_of_a_paid_draft_lead_to_the_order(client: Client, rest: str):
    order = shop.paid("queued")
    page = client.get(address(order, rest))
    assert (page.status_code, page.headers["Location"]) == (303, shop.url(order))


@pytest.mark.parametrize("rest", ["photo/", "crop/", "pose/", "email/"])
def test_nothing_changes_after_payment(client: Client, rest: str):
    order = shop.paid("queued")
    before = order.items.values().get()
    page = client.post(
        address(order, rest), {"crop": "90", "move": "down", "pose": "waist-heart", "email": "eve@x.org"}
    )
    assert page.status_code == 409
    assert (
        escape("This order is already paid, so its photo cannot change. You can start a new order")
        in page.content.decode()
    )
    assert order.items.values().get() == before
    assert client.get(address(order, "photo.jpg")).status_code == 404


def test_an_open_payment_page_is_told_and_can_be_closed(client: Client, gateway: Gateway):
    order = shop.awaiting()
    html = client.get(address(order, "review/")).content.decode()
    assert "A payment page is open for this order." in html
    assert "Change this order" in html
    assert client.post(address(order, "crop/"), {"move": "up"}).status_code == 409
    assert client.post(address(order, "reopen/")).headers["Location"] == address(order, "review/")
    order.refresh_from_db()
    assert order.status == "draft"


def test_an_expired_draft_says_what_happened(client: Client):
    order = shop.draft()
    Order.objects.filter(pk=order.pk).update(status="expired")
    for answer in (
        client.get(address(order, "review/")),
        client.post(address(order, "pay/")),
        client.get(shop.url(order)),
    ):
        assert answer.status_code == 410
        assert "We deleted this photo after 24 hours" in answer.content.decode()


@pytest.mark.parametrize("rest", ["photo/", "review/", "pose/", "pay/"])
def test_a_drafts_addresses_open_a_paid_order_for_a_day(client: Client, rest: str):
    order = shop.paid("completed")
    made = Payment.objects.get().created_at
    Payment.objects.update(created_at=made - timedelta(hours=24, minutes=50))
    assert client.get(address(order, rest)).headers["Location"] == shop.url(order)
    Payment.objects.update(created_at=made - timedelta(hours=25, minutes=10))
    closed = [
        client.get(address(order, rest)),
        client.post(address(order, "crop/"), {"crop": "90"}),
        client.post(address(order, "reopen/")),
    ]
    for late in closed:
        words = late.content.decode()
        assert late.status_code == 410
        assert "This way back has closed" in words
        assert "help@waistheart.example" in words
        assert order.code not in words, "with the key in the address it would be the order's link"
    assert client.get(shop.url(order)).status_code == 200, "the order's own link goes on working"
