"""The whole main job through real processes: a portrait, a payment, a video, with scripts off."""

import email
import email.policy
import io
import subprocess
import sys
import time
from collections.abc import Iterator
from email.message import EmailMessage
from pathlib import Path

import av
import pytest
import requests
from PIL import Image, ImageOps

from tests.customer import PHOTOS, Customer
from tests.postgresql import own_server
from tests.shop_process import ROOT, Shop, eventually, running_shop

pytestmark = [pytest.mark.processes, pytest.mark.timeout(300)]
DELIVERED = "Your video is ready"


def test_a_portrait_becomes_a_delivered_video(shop: Shop):
    customer = Customer(shop.url)
    customer.order(pose="waist-heart", photo="ok_portrait.jpg", email="first@example.com")
    customer.pay()
    paid = time.monotonic()
    order_url = customer.page.url
    assert "/o/" in order_url
    wait_until_delivered(shop, customer, order_url)
    print(f"from pay to video: {time.monotonic() - paid:.1f} s")

    video = customer.open(order_url + "video.mp4")
    assert video.headers["Content-Type"] == "video/mp4"
    assert_is_the_video_of(video.content, photo="ok_portrait.jpg", rather_than="ok_grey.jpg")
    download = customer.open(order_url + "video.mp4?download=1")
    assert "attachment" in download.headers["Content-Disposition"]
    assert download.content == video.content
    assert customer.open(order_url + "poster.jpg").content.startswith(b"\xff\xd8\xff")
    assert mails_to(shop, "first@example.com", count=2)
    assert paid_work(shop, "waist") == 1
    assert_books_balance(shop)


def test_a_part_of_the_video_can_be_asked_for(shop: Shop):
    customer = Customer(shop.url)
    order_url = bought(shop, customer, pose="finger-heart", email="part@example.com")
    whole = customer.open(order_url + "video.mp4").content
    part = customer.browser.get(order_url + "video.mp4", headers={"Range": "bytes=100-199"}, timeout=30)
    assert part.status_code == 206
    assert part.headers["Content-Range"] == f"bytes 100-199/{len(whole)}"
    assert part.content == whole[100:200]
    # What a phone's player asks first, to learn whether it may ask for parts at all.
    first = customer.browser.get(order_url + "video.mp4", headers={"Range": "bytes=0-1"}, timeout=30)
    assert (first.status_code, first.content) == (206, whole[:2])


def test_nobody_without_the_link_sees_anything(shop: Shop):
    customer = Customer(shop.url)
    order_url = bought(shop, customer, pose="cheek-heart", email="private@example.com")
    stranger = order_url[:-2] + ("A" if order_url[-2] != "A" else "B") + "/"
    assert requests.get(stranger, timeout=30).status_code == 404
    assert requests.get(stranger + "video.mp4", timeout=30).status_code == 404


def test_with_the_demos_own_delays_hints_alone_bring_the_video(var_dir: Path):
    with running_shop(var_dir) as shop:
        customer = Customer(shop.url)
        customer.order(pose="waist-heart", photo="ok_portrait.jpg", email="speed@example.com")
        customer.pay()
        paid = time.monotonic()
        # Shorter than the sweep's minute: nothing here was found by looking.
        wait_until_delivered(shop, customer, customer.page.url, seconds=30)
        print(f"from pay to video with the default delay: {time.monotonic() - paid:.1f} s")


@pytest.mark.parametrize("button", ["pay_lose_event", "pay_close_tab"])
def test_a_payment_whose_webhook_or_tab_is_lost_still_becomes_a_video(shop: Shop, button: str):
    customer = Customer(shop.url)
    address = f"{button.replace('_', '-')}@example.com"
    customer.order(pose="overhead-heart", photo="ok_portrait.jpg", email=address)
    customer.pay(button)
    assert shop.sandbox_url in customer.page.url or "/o/" in customer.page.url
    subjects = [str(mail["Subject"]) for mail in mails_to(shop, address, count=2, seconds=90)]
    assert sum("received" in subject for subject in subjects) == 1
    assert sum("video is ready" in subject for subject in subjects) == 1


def test_with_all_webhooks_lost_every_order_still_completes(shop: Shop):
    requests.post(
        f"{shop.sandbox_url}/control/faults", json={"fault": "webhook_lost", "times": "all"}, timeout=10
    ).raise_for_status()
    try:
        customer = Customer(shop.url)
        customer.order(pose="waist-heart", photo="ok_portrait.jpg", email="silence@example.com")
        customer.pay("pay_lose_event")
        assert len(mails_to(shop, "silence@example.com", count=2, seconds=120)) == 2
    finally:
        requests.delete(f"{shop.sandbox_url}/control/faults", timeout=30).raise_for_status()


@pytest.fixture(scope="module")
def shop_on_postgresql(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    with own_server() as url:
        folder = tmp_path_factory.mktemp("postgresql") / "var"
        with running_shop(folder, DATABASE_URL=url, SANDBOX_DELAY_SECONDS="1", SWEEP_SECONDS="5") as shop:
            yield shop


def test_the_same_on_postgresql(shop_on_postgresql: Shop):
    customer = Customer(shop_on_postgresql.url)
    order_url = bought(shop_on_postgresql, customer, pose="waist-heart", email="pg@example.com")
    video = customer.open(order_url + "video.mp4").content
    assert_is_the_video_of(video, photo="ok_portrait.jpg", rather_than="ok_grey.jpg")
    assert_books_balance(shop_on_postgresql)


def bought(shop: Shop, customer: Customer, *, pose: str, email: str) -> str:
    """Buy one video, wait for it, return the order's address."""
    customer.order(pose=pose, photo="ok_portrait.jpg", email=email)
    customer.pay()
    order_url = customer.page.url
    wait_until_delivered(shop, customer, order_url)
    return order_url


def wait_until_delivered(shop: Shop, customer: Customer, order_url: str, *, seconds: float = 90) -> None:
    eventually(lambda: DELIVERED in customer.open(order_url).text, seconds=seconds, shop=shop, pause=0.5)


def assert_is_the_video_of(data: bytes, *, photo: str, rather_than: str) -> None:
    """A whole H.264 file, 9:16, marked as a demo, whose pictures show this photo and not another one."""
    assert data.index(b"moov") < data.index(b"mdat"), "the index is not at the front"
    with av.open(io.BytesIO(data)) as container:
        stream = container.streams.video[0]
        assert (stream.codec_context.name, stream.codec_context.pix_fmt) == ("h264", "yuv420p")
        assert stream.width * 16 == stream.height * 9
        assert "DEMO" in container.metadata["comment"]
        frames = [frame.to_image() for frame in container.decode(video=0)]
        assert 4 <= len(frames) / float(stream.average_rate) <= 8
    assert likeness(frames[0], photo) < likeness(frames[0], rather_than) / 2


def likeness(frame: Image.Image, photo: str) -> float:
    """How far a frame is from a photo, as the mean difference of small pictures of both; small is alike."""
    with Image.open(PHOTOS / photo) as image:
        portrait = ImageOps.fit(ImageOps.exif_transpose(image).convert("RGB"), frame.size, centering=(0.5, 0.25))
    small = (18, 32)
    pairs = zip(frame.resize(small).tobytes(), portrait.resize(small).tobytes(), strict=True)
    return sum(abs(a - b) for a, b in pairs) / (small[0] * small[1] * 3)


def mails_to(shop: Shop, address: str, *, count: int, seconds: float = 60) -> list[EmailMessage]:
    """Wait for `count` mails to this address; more than that is wrong."""

    def look() -> list[EmailMessage]:
        found = [mail for mail in all_mails(shop) if address in str(mail["To"])]
        return found if len(found) >= count else []

    found = eventually(look, seconds=seconds, shop=shop)
    assert len(found) == count
    return found


def all_mails(shop: Shop) -> Iterator[EmailMessage]:
    """Every mail in the demo's folder; a file of the file backend may hold several, one after another."""
    for path in sorted((shop.var_dir / "mail").glob("*")):
        for part in path.read_bytes().split(b"-" * 79 + b"\n"):
            if part.strip():
                yield email.message_from_bytes(part, policy=email.policy.default)  # type: ignore[misc]


def paid_work(shop: Shop, word: str) -> int:
    """How many requests the provider has billed whose prompt contains `word`."""
    state = requests.get(f"{shop.sandbox_url}/control/state", timeout=30).json()
    return sum(word in str(request["input"]) and request["billed"] for request in state["fal"])


def assert_books_balance(shop: Shop) -> None:
    """Every balance equals the sum of its entries."""
    done = subprocess.run(
        [sys.executable, "manage.py", "audit"],
        cwd=ROOT,
        env={**shop.environ, "DJANGO_SETTINGS_MODULE": "waistheart.settings", "READ_DOT_ENV": "0"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
