"""Whose turn it is. Owners take turns, the oldest item first within one; what an owner has in flight counts as turns taken.

So a single never waits behind a batch: the batch's next item has a later turn than anybody's first.
"""

from django.conf import settings
from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Subquery, Window
from django.db.models.functions import Coalesce, RowNumber

from billing.models import HoldPart
from generation import accounts
from generation.models import Job, ProviderAccount, Submission
from generation.states import LIVE_SUBMISSION
from waistheart import clock


def next_ids(account: ProviderAccount, *, most: int) -> list[int]:
    """The ids of the next jobs to submit on this account, in their order; at most `most`, and none when no slot is free."""
    free = min(most, accounts.free_slots(account))
    if free <= 0:
        return []
    return list(_in_turn(account).values_list("pk", flat=True)[:free])


def place(job: Job, account: ProviderAccount) -> int:
    """How many jobs are served before this queued one: 0 is next. For the customer's page."""
    ids = list(_in_turn(account).values_list("pk", flat=True)[:1000])
    return ids.index(job.pk) if job.pk in ids else len(ids)


def _in_turn(account: ProviderAccount) -> QuerySet[Job]:
    live = Submission.objects.filter(job=OuterRef("pk"), status__in=LIVE_SUBMISSION)
    in_flight = (
        Submission.objects.filter(
            job__owner=OuterRef("owner"),
            status__in=LIVE_SUBMISSION,
            sent_at__gt=clock.ago(settings.PROCESSING_DEADLINE_SECONDS),
        )
        .order_by()
        .values("job__owner")
        .annotate(n=Count("pk"))
        .values("n")
    )
    stopped = HoldPart.objects.filter(Q(grant__owed__gt=0) | Q(grant__disputed=True), hold=OuterRef("hold"))
    waiting = Job.objects.filter(~Exists(live), ~Exists(stopped), status="queued", provider=account.provider).exclude(
        failures__gt=0, next_step_at__gt=clock.now()
    )
    blocked = list(accounts.blocked_models(account))
    if blocked:
        waiting = waiting.exclude(model__in=blocked)
    nth = Window(RowNumber(), partition_by=F("owner"), order_by=["created_at", "id"])
    turn = F("nth") + F("in_flight")
    return (
        waiting.annotate(nth=nth, in_flight=Coalesce(Subquery(in_flight), 0))
        .annotate(turn=turn)
        .order_by("turn", "created_at", "id")
    )
