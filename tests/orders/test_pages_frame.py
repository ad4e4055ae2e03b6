"""What holds on every page: policy, size, titles, caching, and no cookie where none is needed."""

import re
from collections.abc import Callable

import pytest
from django.template.loader import render_to_string
from django.test import Client

from orders.models import Pose
from tests.orders import shop

pytestmark = pytest.mark.django_db

PUBLIC = {
    "gallery": "/",
    "pose": "/poses/waist-heart/",
    "help": "/help/",
    "refunds": "/help/refunds/",
    "retention": "/help/retention/",
    "privacy": "/help/privacy/",
    "accessibility": "/help/accessibility/",
    "terms": "/help/terms/",
}
OWNED: dict[str, Callable[[], str]] = {
    "photo": lambda: "/make/waist-heart/",
    "kept photo": lambda: f"/make/{shop.draft().key}/photo/",
    "review": lambda: f"/make/{shop.draft().key}/review/",
    "review while paying": lambda: f"/make/{shop.awaiting().key}/review/",
    "choose a pose": lambda: f"/make/{shop.draft().key}/pose/",
    "pending": lambda: shop.url(shop.awaiting()),
    "queued": lambda: shop.url(shop.paid("queued")),
    "making": lambda: shop.url(shop.paid("processing")),
    "ready": lambda: shop.url(shop.paid("completed")),
    "failed": lambda: shop.url(shop.paid("failed", move="fail")),
    "fifty": lambda: shop.url(shop.paid(*["completed"] * 25, *["failed"] * 25, move="fail")),
    "cancel": lambda: shop.url(shop.paid("queued"), "cancel/"),
}


@pytest.fixture(autouse=True)
def two_poses(a_shop: None) -> None:
    shop.pose("finger-heart", "Finger heart")


@pytest.mark.parametrize("path", PUBLIC.values(), ids=PUBLIC.keys())
def test_a_public_page_sets_no_cookie_and_may_be_kept(client: Client, path: str):
    page = client.get(path)
    assert page.status_code == 200
    assert_a_good_page(page.content.decode(), page.headers["Content-Security-Policy"])
    assert page.headers["Cache-Control"].startswith("public, max-age=")
    assert not client.cookies
    assert "Cookie" not in page.headers.get("Vary", "")
    assert "noindex" not in page.content.decode()


@pytest.mark.parametrize("make", OWNED.values(), ids=OWNED.keys())
def test_an_owned_page_is_kept_by_nobody(client: Client, make: Callable[[], str]):
    page = client.get(make())
    assert page.status_code == 200
    assert_a_good_page(page.content.decode(), page.headers["Content-Security-Policy"])
    assert page.headers["Cache-Control"] == "no-store"
    assert "noindex" in page.headers["X-Robots-Tag"]
    assert '<meta name="robots" content="noindex">' in page.content.decode()


def test_no_two_pages_share_a_title(client: Client):
    pages = [*PUBLIC.values(), *(OWNED[name]() for name in ("photo", "review", "pending", "queued", "making", "ready"))]
    titles = [re.search(r"<title>(.*?)</title>", client.get(path).content.decode()) for path in pages]
    names = [found.group(1) for found in titles if found]
    assert len(set(names)) == len(pages)


def test_an_unknown_address_says_what_to_check(client: Client):
    page = client.get("/nowhere/")
    assert page.status_code == 404
    assert "We cannot find that page" in page.content.decode()
    assert client.get("/help/nothing/").status_code == 404


@pytest.mark.parametrize("name", ["500.html", "503.html", "413.html", "400.html", "403_csrf.html"])
def test_pages_for_bad_moments_need_nothing(name: str, django_assert_num_queries: Callable):
    with django_assert_num_queries(0):
        page = render_to_string(name)
    assert_a_good_page(page, "default-src 'none'; script-src 'self'; style-src 'self'")
    assert 'class="button" href="/"' in page


def test_a_form_from_long_ago_is_answered_kindly():
    strict = Client(enforce_csrf_checks=True)
    page = strict.post("/make/waist-heart/", {"email": shop.ADA})
    assert page.status_code == 403
    assert "This page was open for a long time" in page.content.decode()


def test_retired_and_unknown_poses(client: Client):
    Pose.objects.filter(slug="finger-heart").update(active=False)
    page = client.get("/poses/finger-heart/")
    assert page.status_code == 410
    assert "Waist heart" in page.content.decode()
    assert client.get("/poses/no-such-heart/").status_code == 404
    assert client.get("/make/finger-heart/").status_code == 303
    assert "Finger heart" not in client.get("/").content.decode()


def assert_a_good_page(html: str, policy: str) -> None:
    """Strict policy and nothing that it would refuse; small; one heading; a language."""
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "script-src 'self'" in policy
    assert not re.search(r"<style|\sstyle=|\son[a-z]+=|javascript:", html)
    assert all("src=" in tag for tag in re.findall(r"<script[^>]*>", html))
    assert len(html.encode()) <= 30_000
    assert len(re.findall(r"<h1[ >]", html)) == 1
    assert '<html lang="en">' in html
