"""Step 1: what is wrong is said in the words of one closed list, and what is right is kept."""

import io
import re

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils.html import escape
from PIL import Image

from generation.crop import DEFAULT_POSITION
from orders import drafts, photos
from orders.models import Order, Photo
from orders.views import make
from tests.orders import shop
from waistheart import storage

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("a_shop")]
NEW = "/make/waist-heart/"
KEY = "a-request-key-of-the-form"


def upload(name: str = "ok_portrait.jpg", data: bytes | None = None) -> SimpleUploadedFile:
    return SimpleUploadedFile(name, (shop.PHOTOS / name).read_bytes() if data is None else data)


def send(client: Client, path: str = NEW, **fields: object):
    return client.post(path, {"request_key": KEY, **fields})


def jpeg(width: int, height: int) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (width, height), "grey").save(out, "JPEG")
    return out.getvalue()


WRONG = {
    "empty": (b"", "This file is empty. Choose another photo"),
    "type": ((shop.PHOTOS / "bad_html.jpg").read_bytes(), "Choose a JPEG, PNG, WebP or HEIC photo"),
    "drawing": ((shop.PHOTOS / "bad_svg.png").read_bytes(), "Choose a JPEG, PNG, WebP or HEIC photo"),
    "big": (b"\xff\xd8\xff" + bytes(16 * 1024 * 1024), "Choose a photo smaller than 15 MB. This one is 16.1 MB"),
    "small": (
        jpeg(300, 400),
        f"Choose a larger photo. The short side is 300 pixels and must be at least {photos.MIN_SHORT_SIDE}",
    ),
    "animated": ((shop.PHOTOS / "bad_animated.gif").read_bytes(), "Choose a still photo, not an animation"),
    "unreadable": (
        (shop.PHOTOS / "bad_truncated.jpg").read_bytes(),
        "We could not open this photo. Choose another or save it again as JPEG",
    ),
    "bomb": (
        (shop.PHOTOS / "bad_bomb_50000x50000.png").read_bytes(),
        "We could not open this photo. Choose another or save it again as JPEG",
    ),
}


@pytest.mark.parametrize(("data", "words"), WRONG.values(), ids=WRONG.keys())
def test_a_photo_that_is_none_is_told_why(client: Client, data: bytes, words: str):
    page = send(client, photo=upload("photo.jpg", data), email=shop.ADA)
    assert_told(page, photo=words)
    assert not Photo.objects.exists()
    assert f'value="{shop.ADA}"' in page.content.decode()


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("", "Enter your e-mail address so we can send you the video"),
        ("ada", "Enter an e-mail address in the format name@example.com"),
        ("a b@example.com", "Enter an e-mail address in the format name@example.com"),
        ("x" * 250 + "@example.com", "Enter an e-mail address in the format name@example.com"),
    ],
)
def test_a_good_photo_is_kept_when_only_the_address_is_wrong(client: Client, address: str, words: str):
    page = send(client, photo=upload(), email=address)
    assert_told(page, email=words)
    html = page.content.decode()
    assert "Photo kept: <strong>ok_portrait.jpg</strong>" in html
    kept = re.search(r'action="(/make/[\w-]{24}/photo/)"', html)
    assert kept, "the form goes on with the draft"
    assert send(client, kept.group(1), email=shop.ADA).headers["Location"].endswith("/review/")
    assert Photo.objects.filter(deleted_at__isnull=True).count() == 1


def test_nothing_chosen_and_nothing_typed_is_told_at_once(client: Client):
    page = send(client)
    assert_told(
        page,
        photo="Choose a photo",
        email="Enter your e-mail address so we can send you the video",
    )
    assert not Order.objects.exists()


def test_a_photo_and_an_address_lead_to_the_review(client: Client):
    page = send(client, photo=upload(), email="Ada@Example.com")
    order = Order.objects.get()
    assert (page.status_code, page.headers["Location"]) == (303, f"/make/{order.key}/review/")
    assert order.email == shop.ADA
    assert order.items.get().crop == DEFAULT_POSITION


def test_the_same_form_twice_is_one_order(client: Client):
    first, second = (send(client, photo=upload(), email=shop.ADA).headers["Location"] for _ in range(2))
    assert first == second
    assert Order.objects.count() == 1


def test_every_form_has_a_key_of_its_own(client: Client):
    found = [re.search(r'name="request_key" value="([^"]+)"', client.get(NEW).content.decode()) for _ in range(2)]
    keys = {each.group(1) for each in found if each}
    assert len(keys) == 2


def test_the_kept_photo_can_be_changed_and_its_bytes_go(client: Client):
    order = shop.draft()
    old = Photo.objects.get()
    page = client.get(f"/make/{order.key}/photo/").content.decode()
    assert "Photo kept: <strong>IMG_1234.jpg</strong>" in page
    assert f'value="{shop.ADA}"' in page
    send(client, f"/make/{order.key}/photo/", photo=upload("ok_grey.jpg"), email=shop.ADA)
    assert order.items.get().photo.name == "ok_grey.jpg"
    assert storage.size(key=old.key) is None


def test_the_slider_moves_the_kept_photo(client: Client):
    order = shop.draft(photo=shop.tall_photo())
    send(client, f"/make/{order.key}/photo/", email=shop.ADA, crop="80")
    assert order.items.get().crop == 80


def test_the_preview_is_the_shops_own_crop(client: Client):
    order = shop.draft(photo=shop.tall_photo())
    drafts.set_crop(order=order, crop=0)
    top = picture(client, f"/make/{order.key}/photo.jpg")
    drafts.set_crop(order=order, crop=100)
    bottom = picture(client, f"/make/{order.key}/photo.jpg")
    assert top.width * 16 == top.height * 9
    assert top.getpixel((10, 10))[0] > 200
    assert bottom.getpixel((10, bottom.height - 10))[2] > 200
    assert bottom.getpixel((10, 10)) != top.getpixel((10, bottom.height - 10))
    assert picture(client, f"/make/{order.key}/photo.jpg?whole=1").size == (720, 1600)


def test_a_body_no_photo_can_have_is_refused_unread(client: Client, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(make, "LONGEST_BODY", 1000)
    page = send(client, photo=upload(), email=shop.ADA)
    assert page.status_code == 413
    assert "15 MB" in page.content.decode()
    assert f'href="{NEW}">Choose another photo' in page.content.decode()
    assert not Order.objects.exists()


def test_an_unknown_draft_is_not_found(client: Client):
    for rest in ("photo/", "review/", "photo.jpg", "pose/"):
        assert client.get(f"/make/{'x' * 24}/{rest}").status_code == 404


def test_the_file_field_offers_library_and_camera(client: Client):
    page = client.get(NEW).content.decode()
    assert " capture" not in page
    assert " required" not in page
    assert 'autocomplete="email"' in page
    assert "novalidate" in page


def assert_told(page, **faults: str) -> None:
    """200, "Error:" in front of the title, a summary that links to each field, and the same words at the field."""
    html = page.content.decode()
    assert page.status_code == 200
    assert "<title>Error: Step 1 of 3: Photo – WaistHeart</title>" in html
    for field, words in faults.items():
        assert f'<a href="#{field}">{escape(words)}</a>' in html
        assert re.search(rf'id="{field}-fault"[^>]*>{re.escape(escape(words))}<', html)
        assert f'id="{field}"' in html
    assert html.count("<li><a href=") == len(faults)


def picture(client: Client, path: str) -> Image.Image:
    answer = client.get(path)
    assert answer.headers["Cache-Control"] == "no-store"
    return Image.open(io.BytesIO(answer.content)).convert("RGB")
