"""What nobody can read is refused in a sentence, and what says no is neither kept nor listed."""

import io
from typing import Any

import pytest
from django.core.wsgi import get_wsgi_application
from django.test import Client, RequestFactory

from tests.orders import shop as orders
from waistheart.middleware import is_readable, readable_types
from waistheart.models import User

FORM = "application/x-www-form-urlencoded"
MANY_FIELDS = "&".join(f"a{n}=1" for n in range(1500))
NEVER_LISTED = "noindex, nofollow"


@pytest.fixture
def strict() -> Client:
    """A browser with a CSRF cookie, in front of a shop that checks it: only then is a form read before its view is asked."""
    browser = Client(enforce_csrf_checks=True, raise_request_exception=False)
    browser.cookies["csrftoken"] = "a" * 32
    return browser


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/nosuch", "/admin/login/", "/make/nosuch/", "/pay/return/", "/o/x/"])
@pytest.mark.parametrize(("body", "kind"), [
    ("x", "multipart/form-data"),
    ("x", "multipart/form-data; boundary=" + "x" * 300),
    (MANY_FIELDS, FORM),
    ("a=" + "x" * 3_000_000, FORM),
])  # fmt: skip
def test_a_body_that_cannot_be_read_is_refused_wherever_it_is_sent(strict: Client, path: str, body: str, kind: str):
    answer = strict.post(path, body, content_type=kind)
    assert answer.status_code in (400, 404, 405)


@pytest.mark.django_db
def test_an_error_page_asks_for_nothing_that_was_posted(strict: Client):
    answer = strict.post("/nosuch", "x", content_type="multipart/form-data")
    assert (answer.status_code, b"We cannot find that page" in answer.content) == (404, True)
    assert b"mailto:" in answer.content, "the frame is whole"


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/make/waist-heart/", "/make/{key}/pose/", "/hints/stripe/", "/admin/login/"])
def test_a_body_that_breaks_off_is_no_fault_of_ours(client: Client, path: str):
    def broken_off(*_: object) -> bytes:
        raise OSError("the client is gone")

    path = path.format(key=orders.draft().key)
    stream = io.BytesIO(b"--x\r\n")
    stream.read = broken_off  # type: ignore[method-assign]
    client.raise_request_exception = False
    answer = client.generic("POST", path, b"x" * 9, "multipart/form-data; boundary=x", **{"wsgi.input": stream})
    assert answer.status_code == 400


# --- content types ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "readable"), [
    ("", True), ("text/plain", True), ("application/json; charset=utf-8", True), (f"{FORM}; charset=UTF-8", True),
    ('text/plain; charset="us-ascii"', True), ("multipart/form-data; boundary=x", True),
    (f"{FORM}; charset=hex", False), (f"{FORM}; charset=idna", False), (f"{FORM}; charset=utf-16", False),
    (f"{FORM}; charset=nobody-knows", False), (f"{FORM}; charset=a\0b", False), (f"{FORM}; a*=bogus''x", False),
])  # fmt: skip
def test_which_content_types_are_read(kind: str, readable: bool):
    assert is_readable(kind) is readable


@pytest.mark.django_db
@pytest.mark.parametrize(("kind", "status"), [(f"{FORM}; charset=hex", 400), ("text/plain; charset=idna", 400),
                                              ("text/plain; a*=bogus''x", 400), (FORM, 403)])  # fmt: skip
def test_a_charset_that_is_none_is_refused_before_django_is_asked(kind: str, status: int):
    environ = RequestFactory().post("/?a=1", b"x", content_type=FORM).environ
    said: list[Any] = []
    application = readable_types(get_wsgi_application())
    body = application(
        environ | {"CONTENT_TYPE": kind, "wsgi.input": io.BytesIO(b"x")}, lambda *args: said.extend(args)
    )
    assert said[0].startswith(str(status))
    assert b"".join(body)


# --- NUL -------------------------------------------------------------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.parametrize("address", [
    "/portraits/a%00b.jpg", "/help/%00/", "/poses/x%00/", "/o/%00/", "/pay/return/?session=%00", "/?a=%00b",
    "/hints/fal/%00/", "/admin/orders/order/?q=%00", "/admin/orders/order/?status__exact=%00", "/static/%00",
])  # fmt: skip
def test_nul_in_an_address_is_refused(client: Client, address: str):
    answer = client.get(address)
    assert answer.status_code == 400
    assert b"could not read" in answer.content


@pytest.mark.django_db
def test_nul_in_a_cookie_is_refused(client: Client):
    client.cookies.load('sessionid="abcdefgh\\000"')
    assert client.get("/admin/").status_code == 400


@pytest.mark.django_db
@pytest.mark.parametrize("multipart", [True, False])
def test_nul_in_a_form_is_refused(client: Client, multipart: bool):
    order = orders.draft()
    form = {"pose": "waist\0heart"}
    kind: dict[str, Any] = {} if multipart else {"content_type": FORM}
    answer = client.post(f"/make/{order.key}/pose/", form if multipart else "pose=waist%00heart", **kind)
    assert answer.status_code == 400


@pytest.mark.django_db
def test_nul_in_the_form_with_the_photo_is_said_beside_its_field(client: Client):
    order = orders.draft()
    answer = client.post(
        f"/make/{order.key}/photo/", {"email": "a\0@example.com", "crop": "5\0", "request_key": "\0" * 20}
    )
    assert answer.status_code == 200
    assert b"There is a problem" in answer.content


# --- what says no ----------------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_what_says_no_is_neither_kept_nor_listed(client: Client):
    order = orders.paid("queued")
    User.objects.create_superuser("root@example.com", "rootrootroot1")
    for path, status in (
        (orders.url(order, "video.mp4"), 404), (orders.url(order, "2/photo.jpg"), 404), ("/nosuch", 404),
        (f"/o/{order.code}-{order.key[::-1]}/", 404), ("/poses/nosuch/", 404), ("/?a=%00", 400), ("/pay/return/", 404),
    ):  # fmt: skip
        answer = client.get(path)
        assert answer.status_code == status, path
        assert (answer["Cache-Control"], answer["X-Robots-Tag"]) == ("no-store", NEVER_LISTED), path
    assert client.post("/")["Cache-Control"] == "no-store"
    assert "X-Robots-Tag" not in client.get("/")


@pytest.mark.django_db
def test_our_own_fault_is_neither_kept_nor_listed(monkeypatch: Any):
    monkeypatch.setattr("orders.views.common.placed_order", broken)
    answer = Client(raise_request_exception=False).get("/o/ABCDEFGH-" + "a" * 24 + "/")
    assert (answer.status_code, answer["Cache-Control"], answer["X-Robots-Tag"]) == (500, "no-store", NEVER_LISTED)
    assert b"went wrong on our side" in answer.content


@pytest.mark.django_db
def test_an_error_page_that_is_broken_itself_is_one_line(client: Client, monkeypatch: Any, caplog: Any):
    monkeypatch.setattr("django.contrib.staticfiles.storage.staticfiles_storage.url", broken)
    answer = client.get("/nosuch")
    assert (answer.status_code, answer.content, answer["Cache-Control"]) == (404, b"404 Not Found\n", "no-store")
    assert "the page for 404 cannot be shown" in caplog.text


def broken(*_: object, **__: object) -> None:
    raise RuntimeError
