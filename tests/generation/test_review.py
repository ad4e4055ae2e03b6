"""The review list: every verb, pressed as staff press it, twice, and from a stale page."""

from collections.abc import Callable

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection

from billing.audit import differences
from billing.models import Entry, Grant, Hold, HoldPart
from generation import review, runner
from generation.models import Job, JobEvent, Submission
from generation.providers.fal import Fal
from orders.models import Mail
from tests.console import Console, text_of
from tests.generation.videos import video
from tests.shop import Shop
from waistheart import clock, storage

LIST = "generation/jobinreview/"


@pytest.fixture
def console(shop: Shop) -> Console:
    return Console()


@pytest.fixture
def parked(shop: Shop) -> Callable[..., Job]:
    """A paid job in review; with `live` one whose request still runs at the provider."""

    def make(*, live: bool = False, reason: str = "deadline", **draft: str) -> Job:
        if live:
            shop.sandbox.fault("never_finishing", times=1)
        job = shop.submitted(**draft) if live else shop.paid(**draft)
        assert runner.park(job, reason=reason, actor="sweep") == "parked"
        return Job.objects.get(pk=job.pk)

    return make


def test_the_list_shows_the_oldest_first_with_its_reason_and_age(
    shop: Shop, console: Console, parked: Callable[..., Job]
):
    old = parked(email="old@example.com", reason="out_of_credits")
    shop.age(7200)
    new = parked(email="new@example.com")
    page = console.get(LIST)
    assert page.index(old.item.order.code) < page.index(new.item.order.code)
    assert '<strong class="late">2 h' in page
    assert "our account at the provider was empty for a day" in page
    assert "old@example.com" in page
    assert "new@example.com" not in console.get(LIST, q=old.item.order.code)
    assert "new@example.com" in console.get(LIST, q="NEW@example.com")


def test_what_staff_send_on_is_done_at_once(
    shop: Shop, console: Console, parked: Callable[..., Job], messages: list[tuple[str, int]]
) -> None:
    """Not a minute later, with the sweep."""
    for act in ("resume", "requeue"):
        job = parked(live=True)
        messages.clear()
        console.act(LIST, act, job.pk)
        assert messages == [("generation.advance", job.pk)]


def test_requeue(shop: Shop, console: Console, parked: Callable[..., Job]):
    job = parked(live=True)
    asked = console.choose(LIST, "requeue", job.pk, shown=console.get(LIST))
    assert "the provider may still bill it" in text_of(asked)
    assert Job.objects.get(pk=job.pk).status == "review", "asking moves nothing"
    assert console.confirm(LIST, asked) == ["Requeue: 1 moved."]
    assert Job.objects.get(pk=job.pk).status == "queued"
    assert Submission.objects.get(job=job).status == "lost"
    assert JobEvent.objects.get(job=job, move="requeue").actor == "staff@example.com"
    assert console.confirm(LIST, asked) == ["Requeue: 1 had already moved on."]
    assert Job.objects.get(pk=job.pk).version == job.version + 1


def test_requeue_of_a_request_whose_worker_is_gone(shop: Shop, console: Console, monkeypatch: pytest.MonkeyPatch):
    """A worker raised after "I am sending" for the tenth time. Nothing has moved on, and staff must be able to end it."""
    job = left_sending(shop, monkeypatch)
    assert Submission.objects.get(job=job).status == "sending"
    assert console.act(LIST, "requeue", job.pk) == ["Requeue: 1 moved."]
    assert Job.objects.get(pk=job.pk).status == "queued"
    assert Submission.objects.get(job=job).status == "lost"


def test_requeue_while_a_request_is_being_sent(shop: Shop, console: Console, monkeypatch: pytest.MonkeyPatch):
    """Its answer is not known yet: the true reason is said, and nothing moves."""
    job = left_sending(shop, monkeypatch)
    lease = Submission.objects.get(job=job).lease_id
    Job.objects.filter(pk=job.pk).update(lease_id=lease, lease_until=clock.after(120))
    said = console.act(LIST, "requeue", job.pk)
    assert "is being sent for it at this moment" in said[0]
    assert "moved on" not in " ".join(said)
    assert not review.requeue(job=Job.objects.get(pk=job.pk), actor="staff")
    assert Job.objects.get(pk=job.pk).status == "review"
    assert Submission.objects.get(job=job).status == "sending"


def left_sending(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Job:
    """A job in review as poison, with a request nobody knows the answer to."""

    def raises(*args: object, **kwargs: object) -> None:
        raise KeyError("nobody explains this")

    job = shop.paid()
    Job.objects.filter(pk=job.pk).update(failures=9)
    with monkeypatch.context() as patch:
        patch.setattr(Fal, "submit", raises)
        with pytest.raises(KeyError):
            runner.advance(job.pk)
    job.refresh_from_db()
    assert (job.status, job.reason) == ("review", "poison")
    return job


def test_resume_takes_only_what_the_provider_has_accepted(console: Console, parked: Callable[..., Job]):
    running, idle = parked(live=True), parked()
    said = console.act(LIST, "resume", running.pk, idle.pk)
    assert "no request that the provider has accepted" in said[0]
    assert said[1:] == ["Resume: 1 moved."]
    assert Job.objects.get(pk=running.pk).status == "processing"
    assert Job.objects.get(pk=idle.pk).status == "review"


def test_close_gives_the_credit_back_and_wants_a_reason(shop: Shop, console: Console, parked: Callable[..., Job]):
    job = parked()
    asked = console.choose(LIST, "close", job.pk, shown=console.get(LIST))
    again = console.client.post(f"/admin/{LIST}", {"action": "close", "confirmed": "1", "_selected_action": job.pk,
                                                  f"version_{job.pk}": job.version, "reason": "  "})  # fmt: skip
    assert "Say why" in again.content.decode()
    assert Job.objects.get(pk=job.pk).status == "review"
    assert console.confirm(LIST, asked, reason="the photo shows a dog") == ["Close and give back: 1 moved."]
    assert Job.objects.get(pk=job.pk).status == "failed"
    assert (Grant.objects.get().available, Hold.objects.get().status) == (1, "released")
    assert console.confirm(LIST, asked, reason="twice") == ["Close and give back: 1 had already moved on."]
    assert Entry.objects.filter(kind="released").count() == 1
    assert differences() == []
    shop.sweep()
    assert Mail.objects.filter(kind="could_not_make_it", status="sent").count() == 1
    assert "the photo shows a dog" in console.get(f"generation/job/{job.pk}/history/")


def test_three_moved_and_one_had_moved_on(console: Console, parked: Callable[..., Job]):
    jobs = [parked(email=f"{n}@example.com") for n in range(4)]
    shown = console.get(LIST)
    assert console.act(LIST, "requeue", jobs[2].pk) == ["Requeue: 1 moved."]
    asked = console.choose(LIST, "requeue", *(job.pk for job in jobs), shown=shown)
    assert "has moved on since it was shown" in asked
    assert console.confirm(LIST, asked) == ["Requeue: 3 moved, 1 had already moved on."]
    assert set(Job.objects.values_list("status", flat=True)) == {"queued"}


def test_a_stale_list_moves_nothing_even_when_the_job_is_in_review_again(console: Console, parked: Callable[..., Job]):
    job = parked()
    shown = console.get(LIST)
    assert console.act(LIST, "requeue", job.pk) == ["Requeue: 1 moved."]
    assert runner.park(Job.objects.get(pk=job.pk), reason="deadline", actor="sweep") == "parked"
    asked = console.choose(LIST, "close", job.pk, shown=shown)
    assert console.confirm(LIST, asked, reason="stale") == ["Close and give back: 1 had already moved on."]
    assert Job.objects.get(pk=job.pk).status == "review"


def test_a_row_without_the_version_that_was_shown_is_not_touched(console: Console, parked: Callable[..., Job]):
    job = parked()
    answer = console.client.post(
        f"/admin/{LIST}", {"action": "requeue", "confirmed": "1", "_selected_action": job.pk}, follow=True
    )
    assert answer.status_code == 200
    assert Job.objects.get(pk=job.pk).status == "review"


def test_an_incomplete_restore_is_closed_with_a_grant_of_ours(console: Console, parked: Callable[..., Job]):
    job = parked(reason="restore_incomplete")
    grant = Grant.objects.get()
    HoldPart.objects.all().delete()
    assert console.act(LIST, "close", job.pk, reason="credits were gone") == ["Close and give back: 1 moved."]
    assert Job.objects.get(pk=job.pk).status == "failed"
    ours = Grant.objects.exclude(pk=grant.pk).get()
    assert (ours.available, ours.made_by, ours.reason) == (1, "staff@example.com", "credits were gone")
    assert Entry.objects.filter(kind="granted", occasion=f"hold:{job.hold_id}").count() == 1


def test_deliver(shop: Shop, console: Console, parked: Callable[..., Job]):
    job = parked(live=True)
    page = console.get(f"{LIST}{job.pk}/change/")
    assert f"{LIST}{job.pk}/deliver/?version={job.version}" in page
    wrong = deliver(console, job, b"not a video")
    assert "This cannot be delivered: container" in wrong
    assert Job.objects.get(pk=job.pk).status == "review"
    said = deliver(console, job, video())
    assert "Deliver a file: 1 moved." in said
    done = Job.objects.get(pk=job.pk)
    assert (done.status, done.video_width, done.video_height) == ("completed", 360, 640)
    assert storage.size(key=done.video_key) == done.video_size
    assert Hold.objects.get().status == "settled"
    assert Submission.objects.get().status == "accepted", "it stays watched"
    assert "1 had already moved on" in deliver(console, job, video())
    shop.sweep()
    assert Mail.objects.filter(kind="ready", status="sent").count() == 1


def test_a_file_for_a_job_that_moves_on_while_it_is_proven_is_thrown_away(
    console: Console, parked: Callable[..., Job], monkeypatch: pytest.MonkeyPatch
):
    job = parked()
    kept: list[str] = []

    def rival(**bytes_: object) -> None:
        kept.append(str(bytes_["key"]))
        save(**bytes_)  # type: ignore[arg-type]
        Job.objects.filter(pk=job.pk, version=job.version).update(version=job.version + 1)

    save = storage.save_bytes
    monkeypatch.setattr(storage, "save_bytes", rival)
    assert "1 had already moved on" in deliver(console, job, video())
    assert Job.objects.get(pk=job.pk).status == "review"
    assert storage.size(key=kept[0]) is None


def test_who_may_only_look_may_not_act(console: Console, parked: Callable[..., Job]):
    job = parked()
    console.user.is_superuser = False
    console.user.save()
    answer = console.client.post(
        f"/admin/{LIST}",
        {"action": "close", "confirmed": "1", "_selected_action": job.pk, f"version_{job.pk}": 2, "reason": "x"},
    )
    assert answer.status_code == 403
    assert console.client.get(f"/admin/{LIST}{job.pk}/deliver/").status_code in (403, 404)
    assert Job.objects.get(pk=job.pk).status == "review"


def deliver(console: Console, job: Job, data: bytes) -> str:
    file = SimpleUploadedFile("film.mp4", data, content_type="video/mp4")
    answer = console.client.post(f"/admin/{LIST}{job.pk}/deliver/", {"version": job.version, "file": file}, follow=True)
    assert connection.in_atomic_block is False
    return text_of(answer.content.decode())


def test_a_job_read_outside_review_is_nobodys_to_decide(shop: Shop) -> None:
    job = shop.paid()
    assert not review.requeue(job=job, actor="staff")
    assert not review.resume(job=job, actor="staff")
    assert not review.close(job=job, actor="staff", reason="because")
    assert Job.objects.get(pk=job.pk).version == job.version
