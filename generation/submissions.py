"""Submissions: begun before the first byte is sent, and what was learned of them written in blocks of their own.

Each record here comes before the job's move, so that neither paid work nor a refusal is lost with a lease.
"""

import logging
import uuid

from django.conf import settings
from django.db.models import F, Max

from billing import ledger
from generation import accounts, moves
from generation.leases import Lease
from generation.models import Job, ProviderAccount, Submission
from generation.providers.base import Ask, Handle
from generation.states import LIVE_SUBMISSION
from waistheart import clock, guards
from waistheart.wire import plain

log = logging.getLogger(__name__)
LOOK_EVERY_SECONDS = (60, 120, 300, 600, 900)


def live(job: Job) -> Submission | None:
    """The job's live submission, if it has one; there is at most one."""
    return Submission.objects.filter(job=job, status__in=LIVE_SUBMISSION).select_related("account").first()


def last(job: Job) -> Submission | None:
    """The newest submission of the job, whatever became of it."""
    return Submission.objects.filter(job=job).select_related("account").order_by("-number").first()


def begin(
    *, job: Job, lease: Lease, account: ProviderAccount, image_key: str, image_token: str, state_seen: str
) -> guards.Outcome[Submission]:
    """Commit the row "I am sending". Lost when the lease is not mine, the account changed, the grant owes, or no slot is free."""
    return _begin(job, lease, account, image_key, image_token, state_seen)


@guards.block("generation.begin")
def _begin(
    job: Job, lease: Lease, account: ProviderAccount, image_key: str, image_token: str, state_seen: str
) -> Submission:
    anchor = Job.objects.filter(pk=job.pk, status="queued", version=job.version, lease_id=lease.id)
    guards.must("submission.begin", anchor.update(writes=F("writes") + 1))
    row = ProviderAccount.objects.filter(accounts.slow_enough(), pk=account.pk, state=state_seen)
    guards.must("account.begin", row.update(writes=F("writes") + 1))
    ledger.write_wallet(owner_id=job.owner_id)
    if ledger.owes(hold_id=job.hold_id):
        raise guards.LostRace("submission.owes")
    if accounts.taking_slots(account.pk) >= account.in_flight_limit:
        raise guards.LostRace("submission.slot")
    number = (Submission.objects.filter(job=job).aggregate(n=Max("number"))["n"] or 0) + 1
    submission = Submission.objects.create(
        job=job,
        account=account,
        number=number,
        key=uuid.uuid4().hex,
        provider=job.provider,
        model=job.model,
        lease_id=lease.id,
        image_key=image_key,
        image_token=image_token,
        sent_at=clock.now(),
        next_look_at=clock.after(LOOK_EVERY_SECONDS[0]),
    )
    submission.refresh_from_db()
    return submission


def ask_of(submission: Submission, job: Job) -> Ask:
    """The exact POST of a submission; the same for every look afterwards."""
    return Ask(
        key=submission.key,
        model=submission.model,
        prompt=job.prompt,
        parameters=job.parameters,
        image_url=f"{settings.PUBLIC_URL}/portraits/{submission.image_token}.jpg",
        callback_url=f"{settings.PUBLIC_URL}/hints/{submission.provider}/{submission.token}/",
    )


def handle_of(submission: Submission) -> Handle:
    """How the provider knows it."""
    return Handle(submission.external_id or "", submission.status_url, submission.result_url, submission.cancel_url)


def record_accepted(submission: Submission, handle: Handle) -> bool:
    """Write what the provider calls it, whatever its state, then that it was accepted. Whether it is accepted afterwards.

    An id that belongs to another submission is refused by the database and counts as a lost race: nobody's id is taken twice.
    """
    if (
        not _keep_id(submission, handle).won
        and not Submission.objects.filter(pk=submission.pk, external_id=handle.external_id).exists()
    ):
        return False
    _accept(submission)
    now = Submission.objects.select_related("account").get(pk=submission.pk)
    if now.external_id == handle.external_id:
        accounts.accepted(now)
    return now.status == "accepted"


@guards.block("generation.external_id")
def _keep_id(submission: Submission, handle: Handle) -> None:
    moves.write_job(job_id=submission.job_id)
    rows = Submission.objects.filter(pk=submission.pk, external_id__isnull=True)
    guards.insert(
        "submission.external_id",
        lambda: guards.must(
            "submission.external_id",
            rows.update(
                external_id=handle.external_id,
                status_url=handle.status_url,
                result_url=handle.result_url,
                cancel_url=handle.cancel_url,
            ),
        ),
    )


@guards.block("generation.accept")
def _accept(submission: Submission) -> None:
    anchor = Job.objects.filter(pk=submission.job_id)
    guards.must("job.anchor", anchor.update(writes=F("writes") + 1, accepted=F("accepted") + 1))
    moves.move_submission(
        "accept", submission_id=submission.pk, next_look_at=clock.after(LOOK_EVERY_SECONDS[0]), looks=0
    )


def record_refused(submission: Submission, *, refusal: str, detail: str, kind: str = "") -> bool:
    """Write that it was not accepted, and why. False when more is known already."""
    return _refuse(submission, refusal, detail, kind).won


@guards.block("generation.refused")
def _refuse(submission: Submission, refusal: str, detail: str, kind: str) -> None:
    moves.write_job(job_id=submission.job_id)
    moves.move_submission(
        "refuse", submission_id=submission.pk, refusal=refusal, refusal_kind=kind[:40], detail=detail[:300]
    )


def never_sent(job: Job, lease: Lease, *, image_key: str, detail: str) -> None:
    """The worker of this very call to `begin` raised in it, so it sent nothing: if its row is there, it is refused as not sent, and the
    next look may begin anew. At its best effort: it never raises, and where it fails the row is taken for one whose worker is gone.

    Only for who has not called the provider: nobody else knows. Of a row that somebody has given up by now nothing is said.
    """
    try:
        _refuse_unsent(job, lease, image_key, detail)
    except Exception:
        log.warning("job %s: that nothing was sent is not written down", job.pk, exc_info=True)


@guards.block("generation.not_sent")
def _refuse_unsent(job: Job, lease: Lease, image_key: str, detail: str) -> None:
    moves.write_job(job_id=job.pk)
    # The job's row is mine now: who begins, gives up or records writes it first. The image's key was made in this call.
    rows = Submission.objects.filter(job=job, lease_id=lease.id, image_key=image_key, status="sending")
    submission = rows.first()
    if submission is not None:
        moves.move_submission(
            "refuse", submission_id=submission.pk, refusal=Submission.Refusal.NOT_SENT, detail=plain(detail)[:300]
        )


def record_unknown(submission: Submission, *, detail: str) -> bool:
    """Write that the answer was lost: it may have been accepted, and is looked for from now on."""
    return _unknown(submission, detail).won


@guards.block("generation.unknown")
def _unknown(submission: Submission, detail: str) -> None:
    moves.write_job(job_id=submission.job_id)
    moves.move_submission(
        "lose_answer", submission_id=submission.pk, detail=detail[:300], next_look_at=clock.now(), looks=0
    )


def abandon(submission: Submission) -> bool:
    """A sending row whose own lease lives no more: its worker is gone, so its answer is lost. False when that lease still lives."""
    return _abandon(submission).won


@guards.block("generation.abandon")
def _abandon(submission: Submission) -> None:
    moves.write_job(job_id=submission.job_id)
    # The job's row is mine now: leases are written there, so this cannot change until the block ends.
    if Job.objects.filter(pk=submission.job_id, lease_id=submission.lease_id, lease_until__gt=clock.now()).exists():
        raise guards.LostRace("submission.abandon")
    moves.move_submission(
        "lose_answer", submission_id=submission.pk, detail="its worker is gone", next_look_at=clock.now(), looks=0
    )
