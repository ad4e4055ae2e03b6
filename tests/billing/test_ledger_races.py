"""Real threads on the database at hand: whoever comes first, the sums are exact and nobody sees an error."""

from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from django.db import IntegrityError

from billing import ledger
from billing.audit import differences
from billing.models import Entry, Grant, Hold
from tests.rows import age, at_once, new_grant, new_hold, new_owner, new_payment, tried
from waistheart import guards
from waistheart.models import GuardTally

pytestmark = pytest.mark.django_db(transaction=True)
ROUNDS = 5


@pytest.fixture(autouse=True)
def audited(transactional_db: None) -> Iterator[None]:
    yield
    assert differences() == []


def kinds(answers: list[Any]) -> Counter[str]:
    """How many acts won, lost by which guard, or raised what."""
    return Counter(
        (answer.lost or "won") if isinstance(answer, guards.Outcome) else type(answer).__name__ for answer in answers
    )


def lost(guard: str) -> int:
    return sum(GuardTally.objects.filter(guard=guard).values_list("lost", flat=True))


def test_twenty_spenders_of_three_grants():
    """Thirteen credits in three grants, twenty jobs of one credit each: thirteen are held, seven are told no, no other word."""
    owner = new_owner()
    for credits, days in ((5, 1), (6, 2), (2, 3)):
        new_grant(owner_id=owner, credits=credits, days=days)
    answers = at_once(*[partial(tried, ledger.hold, owner_id=owner, credits=1)] * 20)
    assert kinds(answers) == {"won": 13, "NotEnoughCredits": 7}
    assert list(Grant.objects.order_by("expires_at").values_list("available", "held")) == [(0, 5), (0, 6), (0, 2)]
    assert (Hold.objects.count(), Entry.objects.filter(kind="held").count()) == (13, 13)


def test_twenty_spenders_that_need_several_grants_each():
    """Holds across grants lock several rows at once: exact sums, no deadlock to see."""
    owner = new_owner()
    for days in range(1, 31):
        new_grant(owner_id=owner, credits=1, days=days)
    answers = at_once(*[partial(tried, ledger.hold, owner_id=owner, credits=4)] * 20)
    assert kinds(answers) == {"won": 7, "NotEnoughCredits": 13}
    assert sum(Grant.objects.values_list("held", flat=True)) == 28


def test_settle_against_release():
    for _ in range(ROUNDS):
        row = new_hold(owner_id=new_owner(), credits=2)
        which = {"hold_id": row.pk, "owner_id": row.owner_id}
        settled, released = at_once(
            partial(tried, ledger.settle, **which), partial(tried, ledger.release, **which, note="refused")
        )
        assert (settled.won, released.won) in {(True, False), (False, True)}
        winner = "settled" if settled.won else "released"
        assert Hold.objects.get(pk=row.pk).status == winner
        grant = Grant.objects.get(owner_id=row.owner_id)
        assert (grant.available, grant.held) == ((0, 0) if settled.won else (2, 0))
        assert not Entry.objects.filter(occasion=f"hold:{row.pk}", kind__in={"settled", "released"} - {winner}).exists()
    assert lost("hold.settled") + lost("hold.released") == ROUNDS


@pytest.mark.parametrize("end", ["settle", "release"])
def test_the_same_end_many_times_at_once(end: str):
    row = new_hold(owner_id=new_owner(), credits=2)
    more = {"note": "refused"} if end == "release" else {}
    act = partial(tried, getattr(ledger, end), hold_id=row.pk, owner_id=row.owner_id, **more)
    assert kinds(at_once(*[act] * 8)) == {"won": 1, f"hold.{end}d": 7}
    assert Entry.objects.filter(occasion=f"hold:{row.pk}", kind=f"{end}d").count() == 1


def test_hold_against_expire():
    """Credits whose time is just over are spent or expired, never both and never neither by half."""
    for _ in range(ROUNDS):
        owner = new_owner()
        grant = new_grant(owner_id=owner, credits=3, days=1)
        age(grant, 86400 - 0.02, "expires_at")
        held, expired = at_once(
            partial(tried, ledger.hold, owner_id=owner, credits=3),
            partial(tried, ledger.expire_grant, grant_id=grant.pk, owner_id=owner),
        )
        now = Grant.objects.get(pk=grant.pk)
        won = isinstance(held, guards.Outcome) and held.won
        assert not (won and expired.won)
        assert (now.available, now.held) == ((0, 3) if won else (0, 0) if expired.won else (3, 0))
        if not won:
            assert isinstance(held, ledger.NotEnoughCredits) or held.lost == "grant.hold"


def test_two_expiries_at_once():
    grant = new_grant(owner_id=new_owner(), credits=3, days=-1)
    act = partial(tried, ledger.expire_grant, grant_id=grant.pk, owner_id=grant.owner_id)
    assert kinds(at_once(*[act] * 8)) == {"won": 1, "grant.expire": 7}
    assert Entry.objects.filter(kind="expired").count() == 1


def test_two_grants_at_once_for_one_payment():
    """A payment's grant is unique: a second is refused by the database, loudly, and leaves nothing."""
    payment = new_payment(status="received", credits=2)
    which = {"owner_id": payment.owner_id, "payment_id": payment.pk, "credits": 2, "holds": [1, 1]}
    answers = at_once(*[partial(tried, ledger.grant_bought, **which)] * 4)
    assert kinds(answers) == {"won": 1, IntegrityError.__name__: 3}
    assert (Grant.objects.count(), Hold.objects.count(), Entry.objects.count()) == (1, 2, 3)


def test_releases_of_one_grant_by_many_jobs_at_once():
    """An order of twenty fails at once: every credit comes back to the one grant they came from."""
    payment = new_payment(status="received", credits=20)
    which = {"owner_id": payment.owner_id, "payment_id": payment.pk, "credits": 20, "holds": [1] * 20}
    holds = tried(ledger.grant_bought, **which).value.holds
    ends = [partial(tried, ledger.release, hold_id=row.pk, owner_id=row.owner_id, note="refused") for row in holds]
    assert kinds(at_once(*ends)) == {"won": 20}
    assert list(Grant.objects.values_list("available", "held")) == [(20, 0)]
