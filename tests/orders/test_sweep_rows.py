"""Rows that raise stand alone: the others of their page are done, and those of the next pages too."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

import billing.sweep
from billing.models import Grant
from orders import drafts, mail
from orders import sweep as sweeps
from orders.models import Mail, Order, Photo
from tests.orders import shop
from tests.orders.rivals import lost
from waistheart import storage
from waistheart.models import User

pytestmark = pytest.mark.django_db(transaction=True)
LONG_AGO = timezone.now() - timedelta(days=400)


@pytest.fixture(autouse=True)
def pages_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (sweeps, billing.sweep):
        monkeypatch.setattr(module, "PAGE", 2)
    monkeypatch.setattr(sweeps, "SEEN", 20)


def break_for(patch: pytest.MonkeyPatch, owner: Any, name: str, bad: Callable[[Any], bool], error: Exception) -> None:
    """Let an act raise for some of the rows it is given."""
    act = getattr(owner, name)

    def breaks(*args: Any, **kwargs: Any) -> Any:
        if bad(next(iter([*args, *kwargs.values()]))):
            raise error
        return act(*args, **kwargs)

    patch.setattr(owner, name, breaks)


def test_ends_are_told_past_those_that_raise(monkeypatch: pytest.MonkeyPatch):
    bad = {shop.paid("completed").pk for _ in range(3)}
    good = shop.paid("completed")
    break_for(monkeypatch, mail, "tell", lambda item: item.order_id in bad, ValueError("a row that raises"))
    assert sweeps.tell_ends() == 1
    assert [row.order_id for row in Mail.objects.all()] == [good.pk]
    assert lost("sweep.raised.told") == 3


def test_drafts_expire_past_those_that_raise(monkeypatch: pytest.MonkeyPatch):
    bad = {shop.draft().pk for _ in range(3)}
    good = shop.draft()
    Order.objects.filter(pk__in=bad).update(touched_at=LONG_AGO)
    Order.objects.filter(pk=good.pk).update(touched_at=LONG_AGO + timedelta(days=1))
    break_for(monkeypatch, drafts, "expire", lambda order: order.pk in bad, ValueError("a row that raises"))
    assert sweeps.expire_drafts() == 1
    good.refresh_from_db()
    assert good.status == "expired"
    assert lost("sweep.raised.drafts") == 3


def test_grants_expire_past_those_that_raise(monkeypatch: pytest.MonkeyPatch):
    owner = User.objects.create_user(shop.ADA)
    shop.Wallet.objects.create(owner=owner)
    grants = [
        Grant.objects.create(owner=owner, reason="x", credits=1, available=1, expires_at=LONG_AGO + timedelta(hours=n))
        for n in range(4)
    ]
    bad = {grant.pk for grant in grants[:3]}
    break_for(
        monkeypatch, billing.sweep, "expire_grant", lambda grant: grant.pk in bad, ValueError("a row that raises")
    )
    assert billing.sweep.expire_grants() == 1
    assert {grant.pk for grant in Grant.objects.filter(available=1)} == bad
    assert lost("sweep.raised.grants") == 3


def test_photos_are_deleted_past_those_that_raise(monkeypatch: pytest.MonkeyPatch):
    bad = {shop.draft().photos.get().key for _ in range(3)}
    good = shop.draft().photos.get()
    Photo.objects.filter(key__in=bad).update(keep_until=LONG_AGO)
    Photo.objects.filter(pk=good.pk).update(keep_until=LONG_AGO + timedelta(days=1))
    break_for(monkeypatch, storage, "delete", lambda key: key in bad, storage.StorageError("no"))
    assert [sweeps.delete_photos(), sweeps.delete_photos()] == [0, 1]
    good.refresh_from_db()
    assert good.deleted_at is not None
