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

TURNED_AWAY_SECONDS = 4000  # longer than several probes, and than the longest time for which we slow down


def next_ids(account: ProviderAccount, *, most: int) -> list[int]:
    """The ids of the next jobs to submit on this account, in their order; at most `most`, and none when no slot is free.

    A job that was put off is left out until its own time for that is over, whenever the sweep looks at it.
    """
    free = min(most, accounts.free_slots(account))
    if free <= 0:
        return []
    return list(_in_turn(account).values_list("pk", flat=True)[:free])


def next_of_model(row: ProviderAccount) -> int | None:
    """The job with which a model in an outage of its own is probed: the first in turn of those that wait for it."""
    return next(iter(_in_turn(row).values_list("pk", flat=True)[:1]), None)


def place(job: Job, account: ProviderAccount) -> int:
    """How many jobs are served before this queued one: 0 is next. For the customer's page."""
    ids = list(_in_turn(account).values_list("pk", flat=True)[:1000])
    return ids.index(job.pk) if job.pk in ids else len(ids)


def _in_turn(account: ProviderAccount) -> QuerySet[Job]:
    """The jobs that wait for an account, or where the row names a model for that one, in their order."""
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
    waiting = Job.objects.filter(~Exists(live), ~Exists(stopped), status="queued", provider=account.provider)
    # One whose photo cannot be read now, or that raised: it must not hold the others' turns.
    waiting = waiting.filter(Q(not_before__isnull=True) | Q(not_before__lte=clock.now()))
    if account.model:
        waiting = waiting.filter(model=account.model)
    elif blocked := list(accounts.blocked_models(account)):
        waiting = waiting.exclude(model__in=blocked)
    # Where the account was refused for one model, jobs of others try first for a while: the trouble may be that model's own.
    turned_away = Submission.objects.filter(
        account__provider=account.provider,
        account__key_print=account.key_print,
        model=OuterRef("model"),
        status="refused",
        refusal__in=["account", "too_fast"],
        sent_at__gt=clock.ago(TURNED_AWAY_SECONDS),
    )
    nth = Window(RowNumber(), partition_by=F("owner"), order_by=["created_at", "id"])
    turn = F("nth") + F("in_flight")
    return (
        waiting.annotate(nth=nth, in_flight=Coalesce(Subquery(in_flight), 0), turned_away=Exists(turned_away))
        .annotate(turn=turn)
        .order_by("turned_away", "turn", "created_at", "id")
    )
