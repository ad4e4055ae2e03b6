"""Do the balances equal the sums of the entries? Everything is recomputed; nothing is mended here."""

from dataclasses import dataclass

from django.db.models import Case, CharField, Count, Exists, F, IntegerField, OuterRef, Q, Subquery, Sum, Value, When
from django.db.models.functions import Cast, Coalesce, Concat

from billing.models import Entry, Grant, Hold, HoldPart, Payment
from billing.states import HoldStatus

BALANCES = ("available", "held", "frozen", "owed")
GONE = ("settled", "expired", "withdrawn")
# A hold whose parts could not all be put back is released by its entries and a grant that replaces the rest.
HOLD_LINES = {"held": ("held",), "settled": ("settled",), "released": ("released", "granted")}


@dataclass(frozen=True)
class Difference:
    """One row that does not add up: which one, what the row says and what the ledger says."""

    row: str
    what: str
    says: int
    ledger: int

    def __str__(self) -> str:
        return f"{self.row}: {self.what} is {self.says}, the ledger says {self.ledger}"


def differences() -> list[Difference]:
    """Every difference between balances, holds, payments and entries; empty when all adds up."""
    return [*_grants(), *_gone(), *_holds(), *_ends(), *_payments()]


def _grants() -> list[Difference]:
    found = []
    sums = {f"sum_{name}": _entry_sum(name) for name in BALANCES}
    gone = Coalesce(
        Subquery(
            Entry.objects.filter(grant=OuterRef("pk"))
            .order_by()
            .values("grant")
            .annotate(
                # What a release pays off of `owed` was withdrawn by the processor while it was held.
                n=Sum(
                    Case(
                        When(kind__in=GONE, then=F("credits")), When(kind="released", then=-F("owed")), default=Value(0)
                    )
                )
            )
            .values("n"),
            output_field=IntegerField(),
        ),
        0,
    )
    held_parts = Coalesce(
        Subquery(
            HoldPart.objects.filter(grant=OuterRef("pk"), hold__status="held")
            .order_by()
            .values("grant")
            .annotate(n=Sum("credits"))
            .values("n"),
            output_field=IntegerField(),
        ),
        0,
    )
    for grant in Grant.objects.annotate(**sums, gone=gone, in_holds=held_parts).iterator():
        total = grant.available + grant.held + grant.frozen + grant.gone
        pairs = [(name, getattr(grant, name), getattr(grant, f"sum_{name}")) for name in BALANCES]
        pairs += [("credits", grant.credits, total), ("held in holds", grant.held, grant.in_holds)]
        found += _unequal(f"grant {grant.pk}", pairs)
    return found


def _entry_sum(name: str) -> Coalesce:
    rows = Entry.objects.filter(grant=OuterRef("pk")).order_by().values("grant").annotate(n=Sum(name)).values("n")
    return Coalesce(Subquery(rows, output_field=IntegerField()), 0)


def _holds() -> list[Difference]:
    """Each hold has the parts and credits it says, in grants of its owner that exist."""
    found = []
    stands = Q(hold_parts__grant__owner=F("owner"))
    rows = Hold.objects.annotate(
        n=Count("hold_parts__grant__credits", filter=stands),
        total=Coalesce(Sum("hold_parts__credits", filter=stands), 0),
    )
    for hold in rows.filter(~Q(n=F("parts")) | ~Q(total=F("credits"))).iterator():
        found += _unequal(f"hold {hold.pk}", [("parts", hold.parts, hold.n), ("credits", hold.credits, hold.total)])
    return found


def _ends() -> list[Difference]:
    """Each hold ended as its entries say: not at all, or once and whole."""
    found = []
    rows = Hold.objects.annotate(occasion=Concat(Value("hold:"), Cast("pk", CharField())))
    rows = rows.annotate(**{f"line_{end}": _hold_sum(*kinds) for end, kinds in HOLD_LINES.items()})
    for hold in rows.iterator():
        says = {end: hold.credits if end in (HoldStatus.HELD, hold.status) else 0 for end in HOLD_LINES}
        found += _unequal(f"hold {hold.pk}", [(end, says[end], getattr(hold, f"line_{end}")) for end in HOLD_LINES])
    return found


def _hold_sum(*kinds: str) -> Coalesce:
    """The credits of a hold's entries of some kinds."""
    rows = Entry.objects.filter(occasion=OuterRef("occasion"), kind__in=kinds).order_by().values("occasion")
    return Coalesce(Subquery(rows.annotate(n=Sum("credits")).values("n"), output_field=IntegerField()), 0)


def _gone() -> list[Difference]:
    """Entries whose grant's row is gone. Grants are never deleted: somebody did it by hand."""
    left = Entry.objects.filter(~Exists(Grant.objects.filter(pk=OuterRef("grant_id")))).order_by().values("grant_id")
    rows = left.annotate(total=Sum(F("available") + F("held") + F("frozen")))
    return [Difference(f"grant {row['grant_id']}", "credits of a deleted row", 0, row["total"]) for row in rows]


def _unequal(row: str, pairs: list[tuple[str, int, int]]) -> list[Difference]:
    return [Difference(row, what, says, ledger) for what, says, ledger in pairs if says != ledger]


def _payments() -> list[Difference]:
    """Received payments equal the grants made for them."""
    wrong = Payment.objects.filter(status="received").exclude(grant__credits=F("credits"))
    found = [Difference(f"payment {p.pk}", "credits", p.credits, 0) for p in wrong.iterator()]
    early = Grant.objects.filter(payment__isnull=False).exclude(payment__status="received")
    found += [Difference(f"grant {g.pk}", "paid", 0, g.credits) for g in early.iterator()]
    return found
