"""The money list, oldest first: payments that came otherwise than they were asked for, that raised, or that never end."""

from collections.abc import Callable
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from billing.admin import PaymentAdmin
from billing.models import MismatchedPayment, Payment
from orders import money_list
from waistheart import console, money
from waistheart.console_acts import Act, Refused, WithActs


def verb(act: Callable[..., bool]) -> Callable[[Payment, str, str], bool]:
    """One of the money list's acts as a button: what it would not do, staff read."""

    def do(payment: Payment, actor: str, reason: str) -> bool:
        try:
            return act(payment=payment)
        except money_list.NotNow as error:
            raise Refused(str(error)) from error

    return do


ACTS = (
    Act(
        "attach", "Attach",
        "The money is accepted as it came, and the credits that were sold are kept for their owner. The order it was for is a "
        "draft again and is not started. The processor is asked once more before.",
        "Gets the mail that credits are kept.", "No; money can still be returned at the processor.", verb(money_list.attach),
        needs_reason=True,
    ),
    Act(
        "returned", "Has been returned",
        "The payment leaves this list, if the processor says that all of it went back, or that its bank took it and the dispute is lost.",
        "Is told by the bank.", "No.", verb(money_list.returned), needs_reason=True,
    ),
    Act(
        "look", "Look again", "The processor is asked about it now, and what it says is done; if that fails again, you are told why and it stays here.",
        "Is told when the payment is received.", "It comes back to this list by itself if it still fails.",
        verb(money_list.look_again), done="left this list",
    ),
    Act(
        "end_missing", "No such session",
        "The payment ends as failed, if the processor says that its session does not exist, and its order is a draft again. A bank may "
        "still send money that was on its way, and money of another sum that has come is where it is. Make "
        "sure first that the key in use belongs to the account the session was made in: another account knows nothing of it either.",
        "Reads on the order's page that we could not find out whether a payment was made, and whom to write to.",
        "If the session turns up and was paid, its credits are kept for their owner.", verb(money_list.end_missing), needs_reason=True,
    ),
    Act(
        "note", "Note", "A note is kept in the payment's history.", "Is not told.", "Write another one.",
        lambda payment, actor, reason: True, needs_reason=True, done="noted",
    ),
)  # fmt: skip


@admin.register(MismatchedPayment)
class MoneyListAdmin(WithActs, PaymentAdmin):
    acts = ACTS
    ordering = ("state_since", "pk")
    list_display = ("reference", "status", "since", "why", "asked", "came", "email", "session_id", "payment_intent")
    list_filter = ("state_since", "currency")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Payment]:
        return super().get_queryset(request).filter(money_list.needs_a_person())

    def version_of(self, row: Payment) -> int:
        """When it came into its state, in microseconds: one that was closed may turn up again."""
        return int(row.state_since.timestamp() * 1_000_000)

    def row_now(self, row_id: int) -> Payment | None:
        return Payment.objects.filter(pk=row_id).first()

    def facts(self, row: Payment) -> str:
        return f"{row.reference} of {row.email}: asked {self.asked(row)}, came {self.came(row)}"

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return [
            name
            for name in super().get_fields(request, obj)
            if name not in ("success_url", "cancel_url", "session_url")
        ]

    @admin.display(description="on this list for", ordering="state_since")
    def since(self, payment: Payment) -> str:
        return console.age(payment.state_since, red_after=86400)

    @admin.display(description="why")
    def why(self, payment: Payment) -> str:
        return money_list.why(payment)

    @admin.display(description="asked")
    def asked(self, payment: Payment) -> str:
        return money.words(amount=payment.amount, currency=payment.currency)

    @admin.display(description="came")
    def came(self, payment: Payment) -> str:
        if payment.paid_amount is None or not payment.paid_currency:
            return "–"
        return money.words(amount=payment.paid_amount, currency=payment.paid_currency)
