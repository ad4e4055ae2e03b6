"""Storage that is away or full is nobody's error page: a sentence, the form kept where there is one, and the next try may succeed."""

import errno

import pytest
from django.core.files.uploadhandler import TemporaryFileUploadHandler
from django.test import Client

from orders import drafts
from orders.models import Order, Photo
from tests.generation.stories import broken
from tests.orders import shop
from tests.orders.test_pages_photo import NEW, send, upload
from waistheart import storage

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("a_shop")]
SENTENCE = "We cannot save photos right now"


def away() -> storage.StorageError:
    return storage.StorageError("no room")


@pytest.mark.parametrize("new", [True, False], ids=["a new order", "a draft"])
def test_a_photo_that_cannot_be_saved_keeps_the_form(client: Client, new: bool) -> None:
    order = None if new else shop.draft(email="")
    path = f"/make/{order.key}/photo/" if order else NEW
    with broken(storage, "save_bytes", away):
        answer = send(client, path, photo=upload(), email=shop.ADA)
    page = answer.content.decode()
    assert (answer.status_code, answer["Cache-Control"]) == (503, "no-store")
    assert SENTENCE in page
    assert f'value="{shop.ADA}"' in page
    kept = Order.objects.get()
    assert (kept.email, Photo.objects.count()) == (shop.ADA, 0 if new else 1)
    assert f"/make/{kept.key}/photo/" in page
    again = send(client, f"/make/{kept.key}/photo/", photo=upload(), email=shop.ADA)
    assert (again.status_code, again["Location"]) == (303, f"/make/{kept.key}/review/")


def test_a_loser_whose_bytes_cannot_be_deleted_has_lost_all_the_same(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    """The sweep finds such bytes; who uploaded them reads that the order moved on."""
    order = shop.awaiting()
    stale = Order.objects.get(pk=order.pk)
    with broken(storage, "delete", away):
        assert drafts.put_photo(order=stale, data=upload().read(), name="x") is False
    assert "not deleted now" in caplog.text
    assert send(client, f"/make/{order.key}/photo/", photo=upload(), email=shop.ADA).status_code == 409


PLACES = {
    "a draft's picture": ("read", "/make/{draft}/photo.jpg"),
    "a whole picture": ("read", "/make/{draft}/photo.jpg?whole=1"),
    "the photo of an order": ("read", "{order}photo.jpg"),
    "a video's size": ("size", "{order}video.mp4"),
    "a video": ("open_range", "{order}video.mp4"),
    "a poster": ("size", "{order}poster.jpg"),
    "a sample clip": ("size", "/poses/waist-heart/sample.mp4"),
    "a sample's poster": ("open_range", "/poses/waist-heart/poster.jpg"),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("error", "status"), [(storage.StorageError, 503), (storage.BlobMissing, 404)])
def test_what_cannot_be_read_now_is_no_fault_of_the_page(
    client: Client, place: str, error: type[Exception], status: int, caplog: pytest.LogCaptureFixture
) -> None:
    what, path = PLACES[place]
    address = path.format(draft=shop.draft().key, order=shop.url(shop.paid("completed")))
    assert client.get(address).status_code == 200
    with broken(storage, what, lambda: error("gone")):
        answer = client.get(address)
    assert (answer.status_code, answer["Cache-Control"]) == (status, "no-store")
    if status == 503:
        assert answer["Retry-After"] == "60"
        assert b"cannot get at our files" in answer.content
        assert "Traceback" not in caplog.text
        assert "storage" in caplog.text
    assert client.get(address).status_code == 200


def test_an_upload_for_which_this_machine_has_no_room_is_no_fault_of_the_form(client: Client) -> None:
    """A large body waits in a file of its own until it is read."""
    full = OSError(errno.ENOSPC, "No space left on device")
    with broken(TemporaryFileUploadHandler, "receive_data_chunk", lambda: full):
        answer = send(client, NEW, photo=upload(data=bytes(3_000_000)), email=shop.ADA)
    assert answer.status_code == 503
    assert not Order.objects.exists()
