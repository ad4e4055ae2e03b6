"""The ledger's lines: for each thing that happens to a grant, what it moves in which balance."""

from billing.models import Entry, Grant, HoldPart

KIND = Entry.Kind


def taken(part: HoldPart) -> int:
    """How many of a part's credits its grant really holds: all of them, unless somebody changed the row by hand."""
    return min(part.credits, part.grant.held)


def held(*, hold_id: int, grant_id: int, credits: int) -> Entry:
    """What a hold sets aside in one grant."""
    return Entry(
        kind=KIND.HELD, occasion=f"hold:{hold_id}", grant_id=grant_id, credits=credits, available=-credits, held=credits
    )


def settled(*, hold_id: int, part: HoldPart) -> list[Entry]:
    """What a settle took out of one grant, and beside it the loss of what the processor had taken back."""
    took = taken(part)
    loss = max(0, part.grant.owed - (part.grant.held - took))
    occasion = f"hold:{hold_id}"
    ended = Entry(kind=KIND.SETTLED, occasion=occasion, grant_id=part.grant_id, credits=took, held=-took)
    lost = Entry(kind=KIND.LOSS, occasion=occasion, grant_id=part.grant_id, credits=loss, owed=-loss)
    return [entry for entry in (ended, lost) if entry.credits]


def released(*, hold_id: int, part: HoldPart, note: str) -> Entry:
    """What a release puts back into one grant: first against what it owes, then frozen while disputed, else available."""
    filled = min(part.grant.owed, part.credits)
    rest = part.credits - filled
    return Entry(
        kind=KIND.RELEASED,
        occasion=f"hold:{hold_id}",
        grant_id=part.grant_id,
        credits=part.credits,
        held=-part.credits,
        owed=-filled,
        available=0 if part.grant.disputed else rest,
        frozen=rest if part.grant.disputed else 0,
        note=note[:200],
    )


def expired(grant: Grant) -> Entry:
    """What lapses of a grant. It may expire again after credits came back to it: the occasion names the instant."""
    occasion = f"expiry:{int(grant.expires_at.timestamp())}"
    return Entry(kind=KIND.EXPIRED, occasion=occasion, grant=grant, credits=grant.available, available=-grant.available)


def withdrawn(grant: Grant, *, occasion: str, note: str) -> Entry:
    """What is taken out of a grant because its money went back."""
    return Entry(
        kind=KIND.WITHDRAWN,
        occasion=occasion,
        grant=grant,
        credits=grant.available,
        available=-grant.available,
        note=note[:200],
    )
