"""Are our own image addresses reachable? A provider that cannot load our image says nothing about the customer's photo until we can.

The web process may be well and yet unable to read what a worker has stored. So only a picture that came whole, over the network, from
the database and storage that the provider's request meets is a proof.
"""

import logging

from django.conf import settings
from django.core.signing import BadSignature, Signer
from django.db.models import QuerySet

from generation import accounts, submissions
from generation.models import Job, JobEvent, ProviderAccount, Submission
from generation.providers.base import Unavailable
from generation.providers.reading import read
from generation.states import LIVE_SUBMISSION, JobStatus
from waistheart import clock, storage
from waistheart.installation import ident

log = logging.getLogger(__name__)
SECONDS = 15  # it is asked under a lease
# What we found when they could not load a submission's image; kept as its refusal kind.
SHOWN = "image_ok"  # its address gave us the whole picture at that moment
OURS = "image"  # it did not: our outage
OVER = "image_over"  # its address had ended by then, as it should: nothing can be said
ENOUGH = 3  # so many shown ones make it the photo's fault after all


def shows(url: str, picture: bytes) -> bool:
    """Whether this address gives exactly these bytes as a JPEG, fetched over the network like a provider would."""
    try:
        answer = read(url, seconds=SECONDS, limit=len(picture))
    except Unavailable:
        return False
    kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
    return answer.status == 200 and kind == "image/jpeg" and answer.body == picture


def signer() -> Signer:
    """Made when it is used: a shop without a secret key must come as far as the check that says so."""
    return Signer(salt="generation.own_address")


def open_now() -> QuerySet[Submission]:
    """The submissions whose picture is given out now."""
    return Submission.objects.filter(image_deleted_at__isnull=True, sent_at__gt=clock.ago(settings.IMAGE_URL_SECONDS))


def tried(submission: Submission) -> str:
    """Try a submission's own image address now: SHOWN, OURS, or OVER when it was not to be given out any more.

    Storage that a worker cannot read is our trouble as well. Raises nothing but what the database raises.
    """
    try:
        url = submissions.ask_of(submission, submission.job).image_url
        if shows(url, storage.read(key=submission.image_key)):
            return SHOWN
    except storage.StorageError as error:
        log.warning("the image of submission %s cannot be read: %s", submission.pk, error)
    # Asked afterwards: the sweep deletes pictures of submissions that have ended.
    still = open_now().filter(pk=submission.pk, status__in=LIVE_SUBMISSION).exists()
    return OURS if still else OVER


def proven(job: Job, picture: bytes) -> bool:
    """Whether our image addresses work: store this picture as a submission's is stored, fetch it from an address of ours, delete it.

    Raises StorageError when it cannot be stored. The bytes stay behind only when they cannot be deleted now.
    """
    key = storage.fresh_key(installation=ident(), kind="images", suffix=".jpg")
    storage.save_bytes(key=key, data=picture, content_type="image/jpeg")
    try:
        return shows(f"{settings.PUBLIC_URL}/portraits/proof-{signer().sign_object([job.pk, key])}.jpg", picture)
    finally:
        try:
            storage.delete(key=key)
        except storage.StorageError:
            log.warning("%s not deleted now; the orphan sweep will", key, exc_info=True)


def key_of(signed: str) -> str | None:
    """The key of a picture that `proven` has stored, by what stands in its address; None when its job waits no more."""
    try:
        job_id, key = signer().unsign_object(signed)
    except BadSignature:
        return None
    return str(key) if Job.objects.filter(pk=job_id, status=JobStatus.QUEUED).exists() else None


def times_shown(*, job_id: int) -> int:
    """How many of the job's submissions since its last requeue failed to load the image although its address gave it to us."""
    return _since_requeue(job_id).filter(refusal_kind=SHOWN).count()


def took_a_try(*, job_id: int) -> bool:
    """Whether an accepted submission since the last requeue was lost because its image address did not work."""
    return _since_requeue(job_id).filter(refusal_kind=OURS, status="failed").exists()


def _since_requeue(job_id: int) -> QuerySet[Submission]:
    requeues = JobEvent.objects.filter(job_id=job_id, move="requeue").order_by("-version")
    rows = Submission.objects.filter(job_id=job_id)
    since = requeues.values_list("at", flat=True).first()
    return rows.filter(sent_at__gt=since) if since else rows


def outage(account: ProviderAccount) -> None:
    """Stop submitting: our address is not reachable. That is our outage, with one alarm, and nobody's photo is to blame."""
    accounts.open_outage(account, state=accounts.STATE.UNAVAILABLE, detail="our own image address is not reachable")
