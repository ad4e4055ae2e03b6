"""The shop window: prices, samples, and the days on which nothing can be sold."""

import pytest
from django.test import Client
from django.utils import timezone

from billing.models import CreditPack
from generation.models import ProviderAccount
from generation.providers import get_provider
from orders.models import Pose
from tests.orders import shop
from waistheart import live

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("a_shop")]


@pytest.mark.parametrize("path", ["/", "/poses/waist-heart/", "/make/waist-heart/"])
def test_the_price_is_said_from_the_start(client: Client, path: str):
    page = client.get(path).content.decode()
    assert "£4.00" in page
    assert "tax included" in page


def test_a_card_leads_to_its_pose_and_its_sample(client: Client):
    page = client.get("/").content.decode()
    assert 'href="/poses/waist-heart/"' in page
    assert 'href="/poses/waist-heart/sample.mp4"' in page
    assert "Play sample of waist heart" in page


def test_a_sample_answers_ranges_and_may_be_kept(client: Client):
    whole = client.get("/poses/waist-heart/sample.mp4")
    assert b"".join(whole) == shop.VIDEO
    assert whole.headers["Cache-Control"] == "public, max-age=86400"
    first = client.get("/poses/waist-heart/sample.mp4", headers={"Range": "bytes=0-1"})
    assert (first.status_code, b"".join(first)) == (206, shop.VIDEO[:2])
    assert first.headers["Content-Range"] == f"bytes 0-1/{len(shop.VIDEO)}"
    assert client.get("/poses/waist-heart/sample.mp4", headers={"Range": "bytes=9999999-"}).status_code == 416
    assert client.get("/poses/waist-heart/poster.jpg").headers["Content-Type"] == "image/jpeg"


def test_a_pose_without_a_sample_is_still_sold(client: Client):
    Pose.objects.update(sample_key="", poster_key="")
    assert client.get("/poses/waist-heart/sample.mp4").status_code == 404
    assert "sample.mp4" not in client.get("/").content.decode()
    assert "Use this pose" in client.get("/poses/waist-heart/").content.decode()


def test_an_empty_shop_says_so(client: Client):
    Pose.objects.update(active=False)
    assert "We are preparing new poses. Come back soon." in client.get("/").content.decode()


def test_a_shop_without_a_price_is_closed(client: Client):
    CreditPack.objects.update(active=False)
    assert "We cannot take orders right now" in client.get("/").content.decode()
    assert "Closed for now" in client.get("/poses/waist-heart/").content.decode()
    assert client.get("/make/waist-heart/").status_code == 503


def test_a_shop_with_mixed_settings_sells_nothing_and_keeps_its_orders(client: Client, monkeypatch: pytest.MonkeyPatch):
    order = shop.paid("completed")
    monkeypatch.setattr(live, "problems", lambda: [live.Problem("x.E001", "mixed", "unmix")])
    assert "Closed for now" in client.get("/poses/waist-heart/").content.decode()
    assert client.get("/make/waist-heart/").status_code == 503
    assert client.get(shop.url(order)).status_code == 200


SOON = "in 1 to 5 minutes"


def test_a_long_outage_is_announced_and_a_short_one_is_not(client: Client):
    now = timezone.now()
    long_ago = now - timezone.timedelta(minutes=16)
    outage = {"provider": "fal", "state": "out_of_credits", "next_probe_at": now}
    # The account of a key that was replaced takes no new work, however it is doing.
    ProviderAccount.objects.create(key_print="replaced", since=long_ago, **outage)
    account = ProviderAccount.objects.create(key_print=get_provider().key_print(), since=now, **outage)
    pages = ("/", "/poses/waist-heart/", f"/make/{shop.draft().key}/review/")
    assert all(SOON in client.get(page).content.decode() for page in pages)
    ProviderAccount.objects.filter(pk=account.pk).update(since=long_ago)
    for page in pages:
        words = client.get(page).content.decode()
        assert SOON not in words
        assert "The delay is on our side" in words or "the delay is on our side" in words
