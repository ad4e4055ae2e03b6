"""Bad days of storing: a COMMIT without an answer, and workers whose lease has ended or ends while bytes move."""

import errno
import io
from types import SimpleNamespace
from typing import Any

import pytest
from django.conf import settings
from django.db import OperationalError, connection, connections

from billing import ledger
from generation import leases, mp4, runner, store, transfer
from generation.models import Job, Submission
from tests.generation.bad_days import generations, now
from tests.generation.stories import assert_delivered, blobs, entries, made, moves, step, sweep_orphans
from tests.orders.rivals import act_after, lost
from tests.shop import Shop
from waistheart import clock

# --- COMMIT ----------------------------------------------------------------------------------------------------------


def lose_the_answer(patch: pytest.MonkeyPatch, *, commits: bool) -> None:
    """The COMMIT of generation.store, and only that, answers with a broken connection; it did happen, or it did not."""
    real_settle, real_commit, armed = ledger.settle, connection.commit, []

    def settle(**which: int) -> int:
        armed.append(True)
        return real_settle(**which)

    def commit() -> None:
        lose = bool(armed)
        armed.clear()
        if commits or not lose:
            real_commit()
        if lose:
            raise OperationalError("server closed the connection unexpectedly")

    patch.setattr(ledger, "settle", settle)
    patch.setattr(connections["default"], "commit", commit)


def test_commit_answer_lost_in_store(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    job = made(shop)
    lose_the_answer(monkeypatch, commits=True)
    with pytest.raises(OperationalError):
        runner.advance(job.pk)
    assert moves(job) == ["submit", "finish", "store"]
    assert_delivered(shop, job)

    before, kept = now(job), blobs("videos") | blobs("posters")
    shop.sweep(minutes=3)
    assert (now(job).version, now(job).video_key, now(job).failures) == (before.version, before.video_key, 0)
    assert blobs("videos") | blobs("posters") == kept
    assert_delivered(shop, job)


def test_commit_of_store_did_not_happen(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    job = made(shop)
    lose_the_answer(monkeypatch, commits=False)
    with pytest.raises(OperationalError):
        runner.advance(job.pk)
    monkeypatch.undo()
    assert (now(job).status, entries()) == ("storing", ["granted", "held"])
    # Nobody can know that, so the bytes stay; the orphan sweep takes them and their poster after its window.
    (first,) = blobs("videos")
    shop.sweep(minutes=4)
    assert blobs("videos") == {first, now(job).video_key}
    assert sweep_orphans() == 2
    assert_delivered(shop, job)


# --- leases ----------------------------------------------------------------------------------------------------------


def end_lease(job: Job) -> None:
    """The lease's time is over; nothing else is older."""
    assert Job.objects.filter(pk=job.pk, lease_id__isnull=False).update(lease_until=clock.ago(1)) == 1


def test_store_by_a_worker_whose_lease_ran_out(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has fetched and verified when its lease ends; another does all of it, and then the first goes on."""
    job, others = made(shop), list[str]()

    def another() -> None:
        end_lease(job)
        runner.advance(job.pk)
        others.append(now(job).video_key)

    act_after(monkeypatch, runner, "fetch_and_verify", another)
    runner.advance(job.pk)
    assert (others, lost("job.store")) == ([now(job).video_key], 1)
    assert [r["reads"]["media"] for r in generations(shop, job)] == [2]
    assert moves(job) == ["submit", "finish", "store"]
    assert_delivered(shop, job)


def test_store_while_another_holds_the_lease(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    job, rivals = made(shop), list[leases.Lease | None]()

    def another_begins() -> None:
        end_lease(job)
        rivals.append(leases.take(leases.Seen.of(now(job))))

    act_after(monkeypatch, runner, "fetch_and_verify", another_begins)
    assert runner.advance(job.pk) == "lost job.store"
    (lease,) = rivals
    assert lease
    assert (now(job).status, now(job).lease_id) == ("storing", lease.id)
    assert not blobs("videos") | blobs("posters")
    leases.drop(lease)
    assert step(job).status == "completed"
    assert_delivered(shop, job)


def test_expired_lease_that_nobody_took_still_stores(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    job = made(shop)
    act_after(monkeypatch, runner, "fetch_and_verify", lambda: end_lease(job))
    assert step(job).status == "completed"
    assert_delivered(shop, job)


class Slowly(leases.Renewer):
    """A transfer whose last renewal always seems longer ago than a third of the lease, and which a test may watch."""

    heard: list[int]
    act: Any = None

    @staticmethod
    def hurry(renewer: leases.Renewer) -> None:
        """Let a third of the lease pass for a renewer, if it is one."""
        if isinstance(renewer, leases.Renewer):
            renewer.renewed -= settings.LEASE_SECONDS / 3 + 1

    def __call__(self, total: int) -> None:
        self.hurry(self)
        Slowly.heard.append(total)
        if len(Slowly.heard) == 3 and Slowly.act:
            Slowly.act()
        super().__call__(total)


@pytest.fixture
def slowly(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> type[Slowly]:
    """A body that comes in pieces, and a renewal with each of them."""
    shop.sandbox.fault("slow_body", seconds=0.4)
    monkeypatch.setattr(Slowly, "heard", [], raising=False)
    monkeypatch.setattr(leases, "Renewer", Slowly)
    return Slowly


def test_a_slow_transfer_renews_its_lease(shop: Shop, slowly: type[Slowly], monkeypatch: pytest.MonkeyPatch) -> None:
    job = made(shop)
    renewed: list[tuple[int, float]] = []

    def five_seconds_left() -> None:
        Job.objects.filter(pk=job.pk).update(lease_until=clock.after(5))
        act_after(monkeypatch, leases, "_renew", lambda: renewed.append((len(slowly.heard), seconds_left(job))))

    monkeypatch.setattr(slowly, "act", five_seconds_left)
    assert step(job).status == "completed"
    ((pieces, left),) = renewed
    assert pieces == 3 < len(slowly.heard)
    assert settings.LEASE_SECONDS - 2 < left <= settings.LEASE_SECONDS
    assert_delivered(shop, job)


def seconds_left(job: Job) -> float:
    """What is left of the job's lease, by the database's clock."""
    until = now(job).lease_until
    assert until is not None
    return (until - clock.read()).total_seconds()


def test_a_renewal_that_matches_nothing_stops_the_transfer(
    shop: Shop, slowly: type[Slowly], monkeypatch: pytest.MonkeyPatch
) -> None:
    job = made(shop)
    rivals: list[leases.Lease | None] = []

    def rival_takes_it() -> None:
        end_lease(job)
        rivals.append(leases.take(leases.Seen.of(now(job))))

    monkeypatch.setattr(slowly, "act", rival_takes_it)
    assert runner.advance(job.pk) == "lease lost"
    assert len(slowly.heard) == 3
    assert not blobs("videos")
    (lease,) = rivals
    assert lease is not None
    assert now(job).lease_id == lease.id

    leases.drop(lease)
    monkeypatch.undo()
    assert step(job).status == "completed"
    assert_delivered(shop, job)


# --- a slow proof ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("index", ["first", "last"])
def test_a_proof_longer_than_the_lease_keeps_rivals_out(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, index: str
) -> None:
    """Decoding takes minutes. Without renewals the lease ends in it, a rival begins anew, is as slow, and so on."""
    if index == "last":
        shop.sandbox.fault("moov_last")
    job = made(shop)
    said: list[str] = []
    verify = store.verify.verify

    def slowly(file: Any, *, on_progress: Any = ignore, **limits: Any) -> Any:
        def a_rival_after_50_seconds(packets: int) -> None:
            if packets % 20 == 0:
                shop.age(50)
                Slowly.hurry(on_progress)
                on_progress(packets)
                said.append(runner.step(now(job), actor="rival"))

        return verify(file, on_progress=a_rival_after_50_seconds, **limits)

    monkeypatch.setattr(store.verify, "verify", slowly)
    assert step(job).status == "completed"
    assert len(said) > 3
    assert set(said) == {"leased"}
    assert [r["reads"]["media"] for r in generations(shop, job)] == [1]
    assert moves(job) == ["submit", "finish", "store"]
    assert_delivered(shop, job)


def ignore(packets: int) -> None:
    """Nobody wanted to hear."""


# --- our own disk ----------------------------------------------------------------------------------------------------


class NoRoomFor:
    """A temporary file on a full disk: this act is refused, and what was written cannot be closed either."""

    def __init__(self, what: str) -> None:
        self.file, self.what = io.BytesIO(), what

    def __enter__(self) -> "NoRoomFor":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def refuse(self, act: str) -> None:
        if act == self.what:
            raise OSError(errno.ENOSPC, "No space left on device")

    def write(self, data: Any) -> int:
        self.refuse("write")
        return self.file.write(data)

    def seek(self, *place: int) -> int:
        self.refuse("seek")
        return self.file.seek(*place)

    def read(self, *count: int) -> bytes:
        self.refuse("read")
        return self.file.read(*count)

    def close(self) -> None:
        self.refuse(self.what)


@pytest.mark.parametrize("where", [transfer, mp4])
@pytest.mark.parametrize("what", ["open", "write", "seek", "read"])
def test_a_full_disk_is_waited_for(shop: Shop, monkeypatch: pytest.MonkeyPatch, where: Any, what: str) -> None:
    shop.sandbox.fault("moov_last")
    job = made(shop)

    def no_room() -> NoRoomFor:
        if what == "open":
            raise OSError(errno.ENOSPC, "No space left on device")
        return NoRoomFor(what)

    with monkeypatch.context() as patch:
        patch.setattr(where, "tempfile", SimpleNamespace(TemporaryFile=no_room))
        for _ in range(12):
            shop.age(901)
            assert runner.advance(job.pk) == "waits"
    assert (now(job).status, now(job).failures, now(job).bad_bytes, now(job).lease_id) == ("storing", 0, 0, None)
    assert "No space left" in now(job).last_error
    assert step(job).status == "completed"
    assert entries() == ["granted", "held", "settled"]


def test_lease_lost_after_the_last_byte(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    job = made(shop)
    act_after(monkeypatch, store, "download", lambda: end_lease(job))
    assert runner.advance(job.pk) == "lease lost"
    assert not blobs("videos")
    assert step(job).status == "completed"
    assert_delivered(shop, job)
    assert Submission.objects.get().status == "done"
