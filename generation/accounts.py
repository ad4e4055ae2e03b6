"""How our accounts at the providers are doing. An empty account is ours to fill: jobs wait, and one probe at a time asks again.

A row without a model stands for the whole key; a row with one, for that model there. Outages open with the first evidence and one
alarm, and close only when a POST begun after they opened is accepted, or under a new key (which is a new row).
"""

import logging

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import IntegrityError, transaction
from django.db.models import F, Q, QuerySet

from generation.models import ProviderAccount, Submission
from generation.providers import ADAPTERS, get_provider
from generation.providers.base import Misconfigured, OutOfCredits, Provider, RateLimited, Unavailable
from waistheart import clock, guards
from waistheart.sweeping import is_due

log = logging.getLogger(__name__)
STATE = ProviderAccount.State
TOO_FAST_SECONDS = 30
LONGEST_SLOW_SECONDS = 3600
UNAVAILABLE_PROBE_SECONDS = 60
FAILURES = 3
DAY = 86400
LIST_ALARM_SECONDS = 3600
REFUSED = (OutOfCredits, Misconfigured)  # what a read is answered when it is the key's or the account's fault


def account_of(provider: Provider, *, model: str = "") -> ProviderAccount:
    """The row for this provider and key (and model), made at the first call. The whole account's limit is the setting's, also a new one."""
    return _row({"provider": provider.name, "key_print": provider.key_print(), "model": model})


def in_use() -> QuerySet[ProviderAccount]:
    """The rows of the keys that take new work now. Those of a replaced key stay for what was begun under it."""
    ours = Q(pk__in=[])
    for name in ADAPTERS:
        try:
            ours |= Q(provider=name, key_print=get_provider(name).key_print())
        except (Misconfigured, ImproperlyConfigured):
            continue
    return ProviderAccount.objects.filter(ours)


def row_of_model(row: ProviderAccount, *, model: str) -> ProviderAccount:
    """The row for one model of the same key, made at the first call."""
    return _row({"provider": row.provider, "key_print": row.key_print, "model": model})


def _row(which: dict[str, str]) -> ProviderAccount:
    found = ProviderAccount.objects.filter(**which).first()
    if found:
        return _with_limit(found)
    try:
        with transaction.atomic():
            return ProviderAccount.objects.create(**which, in_flight_limit=settings.PROVIDER_MAX_IN_FLIGHT)
    except IntegrityError:
        return ProviderAccount.objects.get(**which)


def _with_limit(row: ProviderAccount) -> ProviderAccount:
    limit = settings.PROVIDER_MAX_IN_FLIGHT
    if not row.model and row.in_flight_limit != limit:
        ProviderAccount.objects.filter(pk=row.pk).update(in_flight_limit=limit)
        row.in_flight_limit = limit
    return row


def blocked_models(account: ProviderAccount) -> dict[str, ProviderAccount]:
    """The models of this key that are in an outage of their own."""
    rows = ProviderAccount.objects.filter(provider=account.provider, key_print=account.key_print)
    return {row.model: row for row in rows.exclude(model="").exclude(state=STATE.OK)}


def may_post(row: ProviderAccount) -> bool:
    """Whether a POST may be begun on this account now, a probe too: it was not told to slow down."""
    return ProviderAccount.objects.filter(slow_enough(), pk=row.pk).exists()


def probe_is_due(row: ProviderAccount) -> bool:
    """Whether an account or model in an outage may be asked again now; the asking itself is decided by compare-and-swap."""
    return ProviderAccount.objects.filter(pk=row.pk, next_probe_at__lte=clock.now()).exists()


def take_probe(row: ProviderAccount) -> bool:
    """Take the one probe slot of an outage by compare-and-swap; False when it is not due, or somebody else took it."""
    return _take_probe(row).won


@guards.block("generation.probe")
def _take_probe(row: ProviderAccount) -> None:
    rows = ProviderAccount.objects.filter(pk=row.pk, state=row.state, next_probe_at__lte=clock.now())
    guards.must("account.probe", rows.exclude(state=STATE.OK).update(next_probe_at=clock.after(_interval(row.state))))


def open_outage(row: ProviderAccount, *, state: str, detail: str) -> bool:
    """Write down that the account (or model) cannot take work. One alarm when it ceases to be ok, one more if a person is needed.

    `unavailable` heals by itself and never hides a state that a person must mend. Other bad news during an outage says what is
    wrong now, and moves neither its beginning nor its next probe.
    """
    rows = ProviderAccount.objects.filter(pk=row.pk)
    opened = rows.filter(state=STATE.OK).update(
        state=state,
        detail=detail[:300],
        since=clock.now(),
        read_ok_at=None,
        next_probe_at=clock.after(_interval(state)),
        writes=F("writes") + 1,
    )
    if not opened and state != STATE.UNAVAILABLE:
        # What heals by itself has become something a person must mend: that is news, once, until a POST is accepted again.
        opened = rows.filter(state=STATE.UNAVAILABLE).update(
            state=state,
            detail=detail[:300],
            read_ok_at=None,
            next_probe_at=clock.after(_interval(state)),
            writes=F("writes") + 1,
        )
    if opened:
        log.error("ALARM provider account %s %s is %s: %s", row.provider, row.model or "(whole)", state, detail)
        guards.count(f"alarm.{state}")
        return True
    if state != STATE.UNAVAILABLE:
        changed = rows.exclude(state__in=[STATE.OK, state])
        changed.update(state=state, detail=detail[:300], read_ok_at=None, writes=F("writes") + 1)
    return False


def probe_now(row: ProviderAccount) -> bool:
    """Bring the next probe of an outage forward to now, as after a top-up; False when the row has moved on since it was read.

    Who was told to slow down is still asked no sooner.
    """
    rows = ProviderAccount.objects.filter(pk=row.pk, state=row.state, writes=row.writes).exclude(state=STATE.OK)
    return rows.update(next_probe_at=clock.now(), writes=F("writes") + 1) == 1


def accepted(submission: Submission) -> None:
    """A POST was accepted: close every outage of its account and model that had opened before it was begun."""
    rows = ProviderAccount.objects.filter(
        Q(model="") | Q(model=submission.model),
        provider=submission.account.provider,
        key_print=submission.account.key_print,
    )
    closed = rows.exclude(state=STATE.OK).filter(since__lt=submission.sent_at)
    if closed.update(
        state=STATE.OK,
        since=clock.now(),
        detail="",
        next_probe_at=None,
        failures=0,
        writes=F("writes") + 1,
    ):
        log.warning("provider account %s takes work again", submission.account.provider)
    else:
        rows.filter(failures__gt=0, state=STATE.OK).update(failures=0)


def works_for_others(submission: Submission) -> bool:
    """Whether a POST for another model was accepted after this one was refused the last time, within a day: the key is good, and may not
    use this model."""
    same = Submission.objects.filter(account=submission.account, sent_at__gt=clock.ago(DAY))
    refused = same.filter(model=submission.model, refusal=Submission.Refusal.ACCOUNT).exclude(pk=submission.pk)
    last = refused.order_by("-sent_at").values_list("sent_at", flat=True).first()
    others = same.exclude(model=submission.model).filter(external_id__isnull=False)
    return last is not None and others.filter(sent_at__gt=last).exists()


def slow_down(row: ProviderAccount, *, seconds: float | None) -> None:
    """The provider said too fast: begin no POST before then, but try again within the hour whatever it said."""
    wait = TOO_FAST_SECONDS if seconds is None else min(max(1.0, seconds), LONGEST_SLOW_SECONDS)
    ProviderAccount.objects.filter(pk=row.pk).update(not_before=clock.after(wait), writes=F("writes") + 1)


def read_failed(row: ProviderAccount, error: Exception, *, what: str) -> None:
    """A read was refused or failed: too fast slows down, an empty account or a wrong key is an outage of its own, the rest counts.

    Not for reads that say nothing of the account: `looking.unread` knows.
    """
    if isinstance(error, RateLimited):
        slow_down(row, seconds=error.retry_after)
    elif isinstance(error, OutOfCredits):
        open_outage(row, state=STATE.OUT_OF_CREDITS, detail=f"{what}: {error}")
    elif isinstance(error, Misconfigured):
        open_outage(row, state=STATE.MISCONFIGURED, detail=f"{what}: {error}")
    elif not (isinstance(error, Unavailable) and error.this_only):
        failure(row, detail=f"{what}: {error}")


def list_refused(row: ProviderAccount, error: Exception) -> None:
    """Their list of our requests is refused to this key. POSTs are none the worse, so it is no outage: one alarm an hour, since what was
    lost cannot be found without the list."""
    guards.count("list.refused")
    if is_due("alarm.list_refused", seconds=LIST_ALARM_SECONDS):
        log.error("ALARM provider account %s may not ask for the list of its requests: %s", row.provider, error)
        guards.count("alarm.list_refused")


def failure(row: ProviderAccount, *, detail: str) -> None:
    """Count one failed read or server error; at min(3, limit) in a row the account is unavailable."""
    rows = ProviderAccount.objects.filter(pk=row.pk)
    rows.update(failures=F("failures") + 1)
    now = rows.get()
    if now.state == STATE.OK and now.failures >= min(FAILURES, now.in_flight_limit):
        open_outage(now, state=STATE.UNAVAILABLE, detail=detail)


def read_ok(row: ProviderAccount) -> None:
    """A read succeeded: failures start anew; an unavailable account may now be tried with one POST at a time."""
    ProviderAccount.objects.filter(pk=row.pk, failures__gt=0, state=STATE.OK).update(failures=0)
    ProviderAccount.objects.filter(pk=row.pk, state=STATE.UNAVAILABLE).update(read_ok_at=clock.now())


def read_lately(row: ProviderAccount) -> bool:
    """Whether a read succeeded within the last probes of an unavailable account."""
    return ProviderAccount.objects.filter(pk=row.pk, read_ok_at__gt=clock.ago(3 * UNAVAILABLE_PROBE_SECONDS)).exists()


def taking_slots(account_id: int) -> int:
    """How many submissions take one of the account's slots: live ones, but neither overdue nor looked for in vain for too long.

    One whose job waits in review because its result is gone or is no video has ended at the provider: it takes none there.
    """
    ended_there = {"job__status": "review", "job__reason__in": ["gone", "bad_bytes"]}
    return (
        Submission.objects.filter(account_id=account_id)
        .exclude(**ended_there)
        .filter(
            Q(status__in=["sending", "accepted"], sent_at__gt=clock.ago(settings.PROCESSING_DEADLINE_SECONDS))
            | Q(status="unknown", sent_at__gt=clock.ago(settings.LONGEST_RUN_SECONDS))
        )
        .count()
    )


def free_slots(account: ProviderAccount) -> int:
    """A snapshot of the slots left; the block that inserts a submission counts again, exactly."""
    return account.in_flight_limit - taking_slots(account.pk)


def slow_enough() -> Q:
    """The condition that a row was not told to slow down, or that this time is over."""
    return Q(not_before__isnull=True) | Q(not_before__lte=clock.now())


def _interval(state: str) -> int:
    return UNAVAILABLE_PROBE_SECONDS if state == STATE.UNAVAILABLE else settings.OUT_OF_CREDITS_RETRY_SECONDS
