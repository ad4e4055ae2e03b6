"""Is our own image address reachable? A provider that cannot load our image says nothing about the customer's photo until we can."""

import logging

from django.conf import settings

from generation import accounts
from generation.models import JobEvent, ProviderAccount, Submission
from generation.providers.base import Unavailable
from generation.providers.reading import read

log = logging.getLogger(__name__)
# A 1x1 GIF served at a fixed address, so that the address can be tried without anybody's portrait.
PIXEL = bytes.fromhex("47494638396101000100800000000000ffffff21f90401000000002c00000000010001000002024401003b")
PATH = "/portraits/probe.gif"
SECONDS = 15  # it is asked under a lease
SHOWN = "image_ok"  # a submission's refusal kind: they could not load the image at a moment when we could fetch our own address
ENOUGH = 3  # so many of those make it the photo's fault after all


def reachable() -> bool:
    """Fetch the probe picture from our public address, over the network like a provider would."""
    try:
        answer = read(settings.PUBLIC_URL + PATH, seconds=SECONDS)
    except Unavailable:
        return False
    return answer.status == 200 and answer.body == PIXEL


def times_shown(*, job_id: int) -> int:
    """How many of the job's submissions since its last requeue failed to load the image although we could fetch our own address."""
    requeues = JobEvent.objects.filter(job_id=job_id, move="requeue").order_by("-version")
    rows = Submission.objects.filter(job_id=job_id, refusal_kind=SHOWN)
    since = requeues.values_list("at", flat=True).first()
    return (rows.filter(sent_at__gt=since) if since else rows).count()


def outage(account: ProviderAccount) -> None:
    """Stop submitting: our address is not reachable. That is our outage, with one alarm, and nobody's photo is to blame."""
    accounts.open_outage(account, state=accounts.STATE.UNAVAILABLE, detail="our own image address is not reachable")
