"""A customer with scripts off: opens pages, fills in the forms that are there, presses the buttons that are there."""

from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import requests

PHOTOS = Path(__file__).resolve().parent / "data" / "photos"


class Customer:
    """One browser. `page` is the last answer; forms are taken from it, never made up."""

    def __init__(self, shop_url: str) -> None:
        self.shop_url = shop_url
        self.browser = requests.Session()
        self.page = requests.Response()

    def open(self, path: str) -> requests.Response:
        """Follow a link."""
        self.page = self.browser.get(urljoin(self.shop_url, path), timeout=30)
        assert self.page.ok, f"{self.page.status_code} for {path}:\n{self.page.text[:2000]}"
        return self.page

    def send(
        self, *, action: str, files: dict[str, Any] | None = None, press: tuple[str, str] | None = None, **fields: str
    ) -> requests.Response:
        """Fill in and send the form of this page whose address contains `action`; what it already holds is kept."""
        offered = [form for form in forms_of(self.page) if action in form.action]
        form = next((form for form in offered if press is None or press in form.buttons), None)
        assert form is not None, f"no form to {action!r} with {press} on {self.page.url}:\n{self.page.text[:3000]}"
        unknown = {*fields, *(files or {})} - {*form.fields, *form.boxes, *form.files}
        assert not unknown, f"the form has no field {unknown}"
        data = {**form.fields, **fields, **dict([press] if press else [])}
        self.page = self.browser.post(urljoin(self.page.url, form.action), data=data, files=files, timeout=60)
        assert self.page.ok, f"{self.page.status_code} for {self.page.url}:\n{self.page.text[:2000]}"
        return self.page

    def order(self, *, pose: str, photo: str, email: str) -> None:
        """Go from the gallery to the payment page, as far as it is free."""
        gallery = self.open("/").text
        assert f"/poses/{pose}/" in gallery
        self.open(f"/poses/{pose}/")
        assert f"/make/{pose}/" in self.page.text
        self.open(f"/make/{pose}/")
        with (PHOTOS / photo).open("rb") as file:
            self.send(action="", files={"photo": (photo, file)}, email=email)
        assert "/review/" in self.page.url, self.page.text
        self.send(action="/pay/", may_use="on", start_now="on")
        assert "/stripe/pay/" in self.page.url, self.page.text

    def pay(self, button: str = "pay") -> None:
        """Press a button of the payment page."""
        self.send(action="", press=("do", button))


class Form:
    """One form as it stands on the page."""

    def __init__(self, action: str, method: str) -> None:
        self.action = action
        self.method = method
        self.fields: dict[str, str] = {}
        self.boxes: set[str] = set()
        self.files: set[str] = set()
        self.buttons: list[tuple[str, str]] = []


class Forms(HTMLParser):
    """Collects the forms that are sent by POST."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[Form] = []
        self._open: Form | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._open = Form(given.get("action", ""), given.get("method", "get").lower())
            if self._open.method == "post":
                self.found.append(self._open)
        elif self._open and given.get("name"):
            self._field(self._open, tag, given)

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._open = None

    def _field(self, form: Form, tag: str, given: dict[str, str]) -> None:
        name, kind = given["name"], given.get("type", "")
        if tag == "button":
            form.buttons.append((name, given.get("value", "")))
        elif kind in ("checkbox", "radio"):
            form.boxes.add(name)
            if "checked" in given:
                form.fields[name] = given.get("value", "on")
        elif kind == "file":
            form.files.add(name)
        elif tag == "input":
            form.fields[name] = given.get("value", "")


def forms_of(page: requests.Response) -> list[Form]:
    parser = Forms()
    parser.feed(page.text)
    return parser.found
