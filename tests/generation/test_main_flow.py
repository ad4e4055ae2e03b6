"""A paid portrait becomes a delivered video."""

from billing.audit import differences
from billing.models import Entry, Grant
from generation import runner
from generation.models import Job, Submission
from orders.models import Mail
from tests.shop import Shop
from tests.shop_fixture import wait_for
from waistheart import storage


def test_a_paid_portrait_becomes_a_delivered_video(shop: Shop) -> None:
    job = shop.paid()
    runner.advance(job.pk)
    wait_for(lambda: runner.advance(job.pk) == "final")

    job = Job.objects.get(pk=job.pk)
    assert job.status == "completed"
    assert storage.size(key=job.video_key) == job.video_size
    assert [s.status for s in Submission.objects.all()] == ["done"]
    grant = Grant.objects.get()
    assert (grant.credits, grant.available, grant.held) == (1, 0, 0)
    assert list(Entry.objects.order_by("id").values_list("kind", flat=True)) == ["granted", "held", "settled"]
    assert differences() == []

    shop.sweep()
    assert list(Mail.objects.order_by("id").values_list("kind", "status")) == [
        ("order_received", "sent"),
        ("ready", "sent"),
    ]
