"""Do the balances equal the sums of the entries? Everything is recomputed; nothing is mended here."""

from dataclasses import dataclass

from django.db.models import Case, Count, F, IntegerField, OuterRef, Q, Subquery, Sum, Value, When
from django.db.models.functions import Coalesce

from billing.models import Entry, Grant, Hold, HoldPart, Payment

BALANCES = ("available", "held", "frozen", "owed")
GONE = ("settled", "expired", "withdrawn")


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
    return [*_grants(), *_holds(), *_payments()]


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
        found += [
            Difference(f"grant {grant.pk}", name, getattr(grant, name), getattr(grant, f"sum_{name}"))
            for name in BALANCES
            if getattr(grant, name) != getattr(grant, f"sum_{name}")
        ]
        total = grant.available + grant.held + grant.frozen + grant.gone
        if total != grant.credits:
            found.append(Difference(f"grant {grant.pk}", "credits", grant.credits, total))
        if grant.held != grant.in_holds:
            found.append(Difference(f"grant {grant.pk}", "held in holds", grant.held, grant.in_holds))
    return found


def _entry_sum(name: str) -> Coalesce:
    rows = Entry.objects.filter(grant=OuterRef("pk")).order_by().values("grant").annotate(n=Sum(name)).values("n")
    return Coalesce(Subquery(rows, output_field=IntegerField()), 0)


def _holds() -> list[Difference]:
    """Each hold has the parts and credits it says it has."""
    held = Hold.objects.annotate(n=Count("hold_parts__grant"), total=Coalesce(Sum("hold_parts__credits"), 0))
    wrong = held.filter(~Q(n=F("parts")) | ~Q(total=F("credits"))).values_list("pk", "credits", "total")
    return [Difference(f"hold {pk}", "credits", credits, total) for pk, credits, total in wrong]


def _payments() -> list[Difference]:
    """Received payments equal the grants made for them."""
    wrong = Payment.objects.filter(status="received").exclude(grant__credits=F("credits"))
    found = [Difference(f"payment {p.pk}", "credits", p.credits, 0) for p in wrong.iterator()]
    early = Grant.objects.filter(payment__isnull=False).exclude(payment__status="received")
    found += [Difference(f"grant {g.pk}", "paid", 0, g.credits) for g in early.iterator()]
    return found
