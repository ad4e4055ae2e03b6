"""What paid means in credits: grant, hold, settle, release. Every verb stands inside a block of its caller.

The owner's Wallet is written first, so that two blocks that move the same owner's credits wait for each other. Whatever is
changed over several grants is one UPDATE over one hold's id: its parameters never grow with what an order touched.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Case, F, IntegerField, OuterRef, PositiveIntegerField, Q, Subquery, Value, When
from django.db.models.functions import Greatest, Least

from billing import entries
from billing.models import Entry, Grant, Hold, HoldPart, Wallet
from billing.states import HoldStatus
from waistheart import clock, guards

KIND = Entry.Kind


class NotEnoughCredits(Exception):
    """The owner has fewer spendable credits than the hold asks for; nothing was changed."""


class RestoreIncomplete(Exception):
    """A release found fewer rows or credits than the hold says were set aside. The block must be undone, never called returned."""


@dataclass(frozen=True)
class Bought:
    """What a received payment bought: the grant, and the holds it was born with (one per job, in order)."""

    grant: Grant
    holds: list[Hold]


def write_wallet(*, owner_id: int) -> None:
    """Write the anchor of the owner's credits; LostRace when the owner has none (it is made before any payment is asked)."""
    guards.must("wallet", Wallet.objects.filter(pk=owner_id).update(moves=F("moves") + 1))


def grant_bought(
    *, owner_id: int, payment_id: int, credits: int, holds: Sequence[int], disputed: bool = False
) -> Bought:
    """Make the grant a payment bought, with `holds` (credits per job) of it already set aside; `disputed`: not to be spent.

    Five statements whatever the number of jobs. A second grant for one payment is refused by the database.
    """
    held = sum(holds)
    write_wallet(owner_id=owner_id)
    grant = Grant.objects.create(
        owner_id=owner_id,
        payment_id=payment_id,
        reason="bought",
        credits=credits,
        available=credits - held,
        held=held,
        disputed=disputed,
        expires_at=clock.after(settings.GRANT_SECONDS),
    )
    rows = Hold.objects.bulk_create([Hold(owner_id=owner_id, credits=n, parts=1) for n in holds])
    HoldPart.objects.bulk_create([HoldPart(hold=row, grant=grant, credits=row.credits) for row in rows])
    granted = Entry(
        kind=KIND.GRANTED, occasion=f"payment:{payment_id}", grant=grant, credits=credits, available=credits
    )
    Entry.objects.bulk_create(
        [granted, *(entries.held(hold_id=row.pk, grant_id=grant.pk, credits=row.credits) for row in rows)]
    )
    return Bought(grant, rows)


def withdraw_bought(*, owner_id: int, payment_id: int, note: str) -> int:
    """Take back what is available of a payment's grant, because its money went back; answers how many credits.

    LostRace when nothing is available, so also the second time.
    """
    write_wallet(owner_id=owner_id)
    left = Grant.objects.filter(payment_id=payment_id, available__gt=0)
    grant = left.first()
    if grant is None:
        raise guards.LostRace("grant.withdraw")
    guards.must("grant.withdraw", left.filter(available=grant.available).update(available=0))
    entries.withdrawn(grant, occasion=f"payment:{payment_id}", note=note).save(force_insert=True)
    return grant.available


def grant_from_staff(*, owner_id: int, credits: int, reason: str, made_by: str, occasion: str) -> Grant:
    """Give credits with a reason, as a ledger row under `occasion`; the same occasion twice is refused by the database."""
    write_wallet(owner_id=owner_id)
    grant = Grant.objects.create(
        owner_id=owner_id,
        reason=reason,
        made_by=made_by,
        credits=credits,
        available=credits,
        expires_at=clock.after(settings.GRANT_SECONDS),
    )
    Entry.objects.create(
        kind=KIND.GRANTED, occasion=occasion, grant=grant, credits=credits, available=credits, note=reason[:200]
    )
    return grant


def hold(*, owner_id: int, credits: int) -> Hold:
    """Set credits aside for one job, from the grants that expire soonest. NotEnoughCredits when they do not reach."""
    write_wallet(owner_id=owner_id)
    parts = _plan(owner_id=owner_id, credits=credits)
    row = Hold.objects.create(owner_id=owner_id, credits=credits, parts=len(parts))
    HoldPart.objects.bulk_create([HoldPart(hold=row, grant_id=grant_id, credits=n) for grant_id, n in parts])
    part = _part_of(row.pk)
    moved = Grant.objects.filter(hold_parts__hold_id=row.pk, available__gte=part, expires_at__gt=clock.now()).update(
        available=F("available") - part, held=F("held") + part
    )
    if moved != len(parts):
        raise guards.LostRace("grant.hold")
    Entry.objects.bulk_create([entries.held(hold_id=row.pk, grant_id=grant_id, credits=n) for grant_id, n in parts])
    return row


def settle(*, hold_id: int, owner_id: int) -> int:
    """End a hold because its video is delivered; answers how many credits the ledger is short of (0: all is well).

    A shortfall withholds nothing: the customer has the video, and the audit shows the difference. What the processor took back
    while it was held (`owed`) shrinks to what is still held; the rest is booked as a loss.
    """
    row = _end(hold_id=hold_id, owner_id=owner_id, status=HoldStatus.SETTLED)
    parts = _parts(hold_id)
    still_held = Greatest(F("held") - _part_of(hold_id), Value(0))
    Grant.objects.filter(hold_parts__hold_id=hold_id).update(held=still_held, owed=Least(F("owed"), still_held))
    Entry.objects.bulk_create([entry for part in parts for entry in entries.settled(hold_id=hold_id, part=part)])
    return row.credits - sum(entries.taken(part) for part in parts)


def release(*, hold_id: int, owner_id: int, note: str) -> int:
    """Put every held credit back into the grant it came from, and answer how many; RestoreIncomplete when one is missing.

    A part lowers what its grant owes first, then goes to `frozen` while the grant is disputed, else to `available`. In a grant that
    has expired meanwhile the rest expires first. What comes back lives at least another RETURNED_GRANT_SECONDS, in every grant.
    """
    row = _end(hold_id=hold_id, owner_id=owner_id, status=HoldStatus.RELEASED)
    parts = _parts(hold_id)
    if len(parts) != row.parts or sum(p.credits for p in parts) != row.credits:
        raise RestoreIncomplete(
            f"hold {hold_id}: {len(parts)} of {row.parts} parts, {sum(p.credits for p in parts)} of {row.credits}"
        )
    put_back = _put_back(hold_id, _expire_before_return(hold_id))
    if put_back != row.parts:
        raise RestoreIncomplete(f"hold {hold_id}: {put_back} of {row.parts} grants took their credits back")
    Entry.objects.bulk_create([entries.released(hold_id=hold_id, part=p, note=note) for p in parts])
    return row.credits


def release_what_is_left(*, hold_id: int, owner_id: int, note: str, made_by: str) -> int:
    """Staff end an incomplete hold: what is left of it goes back, and a new grant replaces the rest; answers the replaced credits.

    Inside the block that closes the job, so "returned" is true when it is said. The new grant's occasion is the hold: one per hold.
    """
    row = _end(hold_id=hold_id, owner_id=owner_id, status=HoldStatus.RELEASED)
    parts = [part for part in _parts(hold_id) if entries.taken(part) == part.credits]
    _put_back(hold_id, _expire_before_return(hold_id))
    Entry.objects.bulk_create([entries.released(hold_id=hold_id, part=p, note=note) for p in parts])
    missing = max(0, row.credits - sum(p.credits for p in parts))
    if missing:
        grant_from_staff(owner_id=owner_id, credits=missing, reason=note, made_by=made_by, occasion=f"hold:{hold_id}")
    return missing


def expire_grant(*, grant_id: int, owner_id: int) -> int:
    """Expire what is available in a grant whose time is over, and answer how many credits lapsed (LostRace: nothing to expire)."""
    write_wallet(owner_id=owner_id)
    due = Grant.objects.filter(pk=grant_id, available__gt=0, expires_at__lte=clock.now())
    seen = due.first()
    if seen is None:
        raise guards.LostRace("grant.expire")
    guards.must("grant.expire", due.filter(available=seen.available).update(available=0))
    entries.expired(seen).save(force_insert=True)
    return seen.available


def owes(*, hold_id: int) -> bool:
    """Whether any grant behind a hold owes credits to the processor or is disputed: then no submission may be begun."""
    return HoldPart.objects.filter(Q(grant__owed__gt=0) | Q(grant__disputed=True), hold_id=hold_id).exists()


# --- the pieces ------------------------------------------------------------------------------------------------------


def _plan(*, owner_id: int, credits: int) -> list[tuple[int, int]]:
    """Which grants give how many credits, soonest expiry first. Read under the wallet, so nobody spends them meanwhile."""
    plan: list[tuple[int, int]] = []
    spendable = Grant.objects.filter(
        owner_id=owner_id, available__gt=0, owed=0, disputed=False, expires_at__gt=clock.now()
    )
    for grant_id, available in spendable.order_by("expires_at", "id").values_list("id", "available"):
        take = min(available, credits)
        plan.append((grant_id, take))
        credits -= take
        if credits == 0:
            return plan
    raise NotEnoughCredits


def _end(*, hold_id: int, owner_id: int, status: str) -> Hold:
    """Write the wallet, then end the hold: the second end of a hold is a lost race."""
    write_wallet(owner_id=owner_id)
    rows = Hold.objects.filter(pk=hold_id, status=HoldStatus.HELD)
    guards.must(f"hold.{status}", rows.update(status=status, state_since=clock.now()))
    return Hold.objects.get(pk=hold_id)


def _parts(hold_id: int) -> list[HoldPart]:
    """The parts whose grant still exists, with the grant as it is now."""
    return list(HoldPart.objects.filter(hold_id=hold_id).select_related("grant").order_by("grant_id"))


def _part_of(hold_id: int) -> Subquery:
    """Inside an UPDATE over grants: the credits this hold has in the grant at hand."""
    part = HoldPart.objects.filter(hold_id=hold_id, grant_id=OuterRef("pk"))
    return Subquery(part.values("credits"), output_field=PositiveIntegerField())


def _put_back(hold_id: int, now: datetime) -> int:
    """One UPDATE over the grants of a hold; answers how many took their credits back."""
    until = now + timedelta(seconds=settings.RETURNED_GRANT_SECONDS)
    part = _part_of(hold_id)
    rest = part - Least(F("owed"), part)
    return Grant.objects.filter(hold_parts__hold_id=hold_id, held__gte=part).update(
        held=F("held") - part,
        owed=F("owed") - Least(F("owed"), part),
        available=F("available") + Case(When(disputed=False, then=rest), default=Value(0), output_field=IntegerField()),
        frozen=F("frozen") + Case(When(disputed=True, then=rest), default=Value(0), output_field=IntegerField()),
        expires_at=Greatest(F("expires_at"), Value(until)),
    )


def _expire_before_return(hold_id: int) -> datetime:
    """Expire what is still available in this hold's expired grants, before they get a new time; answers the moment judged by."""
    # One moment for all: a grant that expires between the statements would lose its credits without a line in the ledger.
    now = clock.read()
    expired = Grant.objects.filter(hold_parts__hold_id=hold_id, available__gt=0, expires_at__lte=now)
    lapsed = list(expired)
    if lapsed:
        Entry.objects.bulk_create([entries.expired(grant) for grant in lapsed])
        expired.update(available=Value(0))
    return now
