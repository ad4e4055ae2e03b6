"""A customer cancels a job in review whose grant's row is gone: nothing is called returned, and from then on it is for staff alone."""

import pytest

from billing.models import Entry, Grant, Hold
from generation import review, work
from generation.models import Job
from tests.rows import delete_by_hand, new_job
from waistheart.models import GuardTally

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_job_in_review_stays_there_with_that_reason():
    job = new_job(status="review", reason="deadline")
    delete_by_hand(Grant.objects.get())
    assert work.can_cancel(job)
    assert not work.cancel(job=job, actor="customer")
    now = Job.objects.get(pk=job.pk)
    assert (now.status, now.reason, now.version) == ("review", "restore_incomplete", job.version)
    assert not work.can_cancel(now)
    assert Hold.objects.get(pk=job.hold_id).status == "held"
    assert GuardTally.objects.get(guard="alarm.restore_incomplete").lost == 1

    assert review.close(job=now, actor="eve@example.com", reason="sorry")
    assert Job.objects.get(pk=job.pk).status == "failed"
    assert Entry.objects.get(occasion=f"hold:{job.hold_id}", kind="granted").credits == job.credits


@pytest.mark.parametrize("status", ["review", "queued"])
def test_pressing_cancel_again_rings_no_second_alarm(status: str):
    job = new_job(status=status, reason="deadline" if status == "review" else "")
    delete_by_hand(Grant.objects.get())
    stale = Job.objects.get(pk=job.pk)
    for _ in range(3):
        assert not work.cancel(job=stale, actor="customer")
        assert not work.cancel(job=Job.objects.get(pk=job.pk), actor="customer")
    assert Job.objects.get(pk=job.pk).reason == "restore_incomplete"
    assert GuardTally.objects.get(guard="alarm.restore_incomplete").lost == 1
