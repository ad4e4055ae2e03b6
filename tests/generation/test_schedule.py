"""Whose turn it is: owners take turns, nobody's trouble holds the others, and the provider's limit is exact."""

from typing import Any

import pytest

from billing import ledger
from billing.models import Grant, Wallet
from generation import accounts, moves, runner, schedule, submit
from generation import sweep as sweeps
from generation.models import Job, ProviderAccount, Submission
from generation.providers import get_provider
from tests.generation.bad_days import alarms, at_once, last, now, posts, sweep, until
from tests.shop import MODEL, Shop
from waistheart import clock, guards, storage
from waistheart.models import User


def account(**fields: Any) -> ProviderAccount:
    """The account in use, with these fields."""
    row = accounts.account_of(get_provider())
    ProviderAccount.objects.filter(pk=row.pk).update(**fields)
    return ProviderAccount.objects.get(pk=row.pk)


def owner_of(name: str) -> User:
    user = User.objects.create(email=f"{name}@example.com")
    Wallet.objects.get_or_create(owner=user)
    return user


def batch(name: str, count: int, *, model: str = MODEL) -> list[Job]:
    """Queued jobs of a new owner, each with its own hold; they have no photo, so they are only waited with."""
    owner = owner_of(name)
    born = guards.block("test.batch")(lambda: _batch(owner, count, model))()
    return born.value or []


def _batch(owner: User, count: int, model: str) -> list[Job]:
    ledger.grant_from_staff(owner_id=owner.pk, credits=count, reason="test", made_by="test", occasion=owner.email)
    jobs = [
        Job(owner=owner, hold=ledger.hold(owner_id=owner.pk, credits=1), lot=owner.email, lot_number=number,
            lot_size=count, photo_key="none", photo_sha256="0" * 64, crop=50, prompt="heart", provider="fal", model=model,
            credits=1)
        for number in range(1, count + 1)
    ]  # fmt: skip
    return moves.bear(jobs, actor="test")


def turns(row: ProviderAccount, most: int) -> list[int]:
    return schedule.next_ids(account(in_flight_limit=most), most=most) if row else []


@pytest.fixture
def row(transactional_db: None) -> ProviderAccount:
    """The provider's account with room for many."""
    return account(in_flight_limit=100)


# --- turns -----------------------------------------------------------------------------------------------------------


def test_a_single_does_not_wait_behind_a_batch(row: ProviderAccount) -> None:
    many = batch("batch", 50)
    [single] = batch("single", 1)
    order = schedule.next_ids(row, most=100)
    assert order[:2] == [many[0].pk, single.pk]
    assert order[2:] == [job.pk for job in many[1:]]
    assert schedule.place(single, row) == 1


def test_owners_take_turns_and_each_ones_oldest_goes_first(row: ProviderAccount) -> None:
    a, b, c = batch("a", 3), batch("b", 2), batch("c", 1)
    wanted = [a[0], b[0], c[0], a[1], b[1], a[2]]
    assert schedule.next_ids(row, most=100) == [job.pk for job in wanted]


def test_what_is_in_flight_counts_as_turns_taken(row: ProviderAccount) -> None:
    a, b = batch("a", 4), batch("b", 2)
    for job in a[:2]:
        submission_of(job, row)
    assert schedule.next_ids(row, most=100) == [job.pk for job in (b[0], b[1], a[2], a[3])]


def test_no_more_than_the_free_slots_have_a_turn(row: ProviderAccount) -> None:
    a, b = batch("a", 3), batch("b", 1)
    row = account(in_flight_limit=2)
    assert schedule.next_ids(row, most=2) == [a[0].pk, b[0].pk]
    submission_of(a[0], row)
    assert schedule.next_ids(row, most=2) == [b[0].pk]
    submission_of(b[0], row)
    assert schedule.next_ids(row, most=2) == []


def submission_of(job: Job, row: ProviderAccount) -> Submission:
    return Submission.objects.create(
        job=job, account=row, number=1, key=f"key-{job.pk}", provider="fal", model=job.model,
        lease_id="00000000-0000-0000-0000-000000000000", image_key="none", sent_at=clock.now(),
    )  # fmt: skip


# --- nobody's trouble holds the others -------------------------------------------------------------------------------


@pytest.mark.parametrize("trouble", [{"disputed": True}, {"owed": 1}])
def test_disputed_and_owing_jobs_hold_nobody(shop: Shop, settings: Any, trouble: dict[str, Any]) -> None:
    stopped, well = shop.paid(email="stopped@example.com"), shop.paid(email="well@example.com")
    settings.PROVIDER_MAX_IN_FLIGHT = 1
    Grant.objects.filter(hold_parts__hold=stopped.hold_id).update(**trouble)
    assert runner.advance(stopped.pk) == "not its turn"
    until(shop, well)
    assert (len(shop.provider()), Submission.objects.filter(job=stopped).count()) == (1, 0)


def test_a_disputed_job_does_not_take_the_probe_of_its_model(shop: Shop) -> None:
    pose = shop.add_pose("old-heart", model="fal-ai/old-heart/image-to-video")
    stopped, well = (shop.paid(email=f"{name}@example.com", pose=pose) for name in ("stopped", "well"))
    shop.sandbox.fault("model_retired", model=pose.model)
    runner.advance(well.pk)
    assert alarms("misconfigured") == 1
    Grant.objects.filter(hold_parts__hold=stopped.hold_id).update(disputed=True)
    until(shop, well, minutes=20)
    assert Submission.objects.filter(job=stopped).count() == 0


def test_jobs_of_a_model_that_is_out_hold_nobody(shop: Shop, settings: Any) -> None:
    pose = shop.add_pose("old-heart", model="fal-ai/old-heart/image-to-video")
    waiting = [shop.paid(email=f"{n}@example.com", pose=pose) for n in range(2)]
    well = shop.paid(email="well@example.com")
    shop.sandbox.fault("model_retired", times="all", model=pose.model)
    settings.PROVIDER_MAX_IN_FLIGHT = 1
    until(shop, well)
    assert {now(job).status for job in waiting} == {"queued"}


def test_a_photo_that_cannot_be_read_holds_nobody(shop: Shop, settings: Any) -> None:
    broken, well = shop.paid(email="broken@example.com"), shop.paid(email="well@example.com")
    settings.PROVIDER_MAX_IN_FLIGHT = 1
    photo = storage.read(key=broken.photo_key)
    storage.delete(key=broken.photo_key)
    assert runner.advance(broken.pk) == "waits"
    until(shop, well, minutes=5)
    assert (now(broken).status, now(broken).failures, now(broken).lease_id) == ("queued", 0, None)
    storage.save_bytes(key=broken.photo_key, data=photo, content_type="image/jpeg")
    until(shop, broken, minutes=20)


def test_a_job_that_raised_goes_on_when_its_step_is_due(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    def raises(*args: object) -> None:
        raise ZeroDivisionError

    job = shop.paid()
    monkeypatch.setattr(submit, "portrait", raises)
    with pytest.raises(ZeroDivisionError):
        runner.advance(job.pk)
    monkeypatch.undo()
    assert now(job).failures == 1
    until(shop, job, minutes=10)


# --- the limit -------------------------------------------------------------------------------------------------------


def test_the_limit_is_exact_when_all_have_read_the_same_snapshot(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = [shop.paid(email=f"{n}@example.com") for n in range(8)]
    shop.sandbox.fault("never_finishing", times="all")
    account(in_flight_limit=2)
    monkeypatch.setattr(submit, "admit", lambda job, account, provider: "")
    said = at_once(*[lambda pk=job.pk: runner.advance(pk) for job in jobs])
    assert not [word for word in said if isinstance(word, Exception)]
    assert (Submission.objects.count(), posts(shop)) == (2, 2)
    assert sorted(said).count("not begun") == 6
    assert Job.objects.filter(lease_id__isnull=False).count() == 0


def test_unknown_ones_give_their_slot_up_in_time(shop: Shop, settings: Any) -> None:
    first, second = shop.paid(email="first@example.com"), shop.paid(email="second@example.com")
    settings.PROVIDER_MAX_IN_FLIGHT = 1
    shop.sandbox.fault("drop_before_accept")
    runner.advance(first.pk)
    assert runner.advance(second.pk) == "not its turn"
    sweep(shop, minutes=28)
    assert (last(first).status, now(second).status) == ("unknown", "queued")
    until(shop, second, minutes=5)
    assert now(first).status == "queued"


def test_a_sweep_publishes_no_more_than_the_slots(shop: Shop) -> None:
    jobs = [shop.paid(email=f"{n}@example.com") for n in range(4)]
    account(in_flight_limit=2)
    assert list(sweeps.whose_turn()) == [job.pk for job in jobs[:2]]


def test_the_limit_follows_its_setting(shop: Shop, settings: Any) -> None:
    shop.sandbox.fault("never_finishing", times="all")
    jobs = [shop.paid(email=f"{n}@example.com") for n in range(4)]
    for limit, begun in ((1, 1), (3, 3), (2, 3)):
        settings.PROVIDER_MAX_IN_FLIGHT = limit
        for job in jobs:
            runner.advance(job.pk)
        assert (Submission.objects.count(), account().in_flight_limit) == (begun, limit)
    out = ProviderAccount.objects.create(
        provider="fal", key_print=account().key_print, model=MODEL, in_flight_limit=9, state="ok"
    )
    accounts.row_of_model(account(), model=MODEL)
    out.refresh_from_db()
    assert out.in_flight_limit == 9, "the limit is the whole account's"


def test_results_that_are_gone_hold_no_slot(shop: Shop) -> None:
    shop.sandbox.fault("result_expired", times="all")
    gone = [shop.paid(email=f"{name}@example.com") for name in ("ada", "bob")]
    for job in gone:
        shop.until(job, "review")
    assert {now(job).reason for job in gone} == {"gone"}
    shop.sandbox.reset()
    third = shop.paid(email="cleo@example.com")
    assert shop.until(third, "completed", minutes=4)
