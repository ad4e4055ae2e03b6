"""The only code that writes `Payment.status`. Each function stands inside a block and is its first statement."""

from typing import Any

from billing.models import Payment
from billing.states import PAYMENT, PaymentStatus
from waistheart import clock, guards

LOOKED_AT = {PaymentStatus.OPEN, PaymentStatus.PENDING}


def move_payment(name: str, *, payment_id: int, **fields: Any) -> None:
    """Make one declared move of a payment, or raise LostRace when it is in none of the move's source states.

    `fields` are written in the same UPDATE. A second call with the same name loses: the payment has moved on.
    """
    move = PAYMENT.by_name[name]
    if move.target not in LOOKED_AT:
        fields["next_look_at"] = None
    guards.must(
        f"payment.{name}",
        Payment.objects.filter(pk=payment_id, status__in=move.sources).update(
            status=move.target, state_since=clock.now(), tries=0, **fields
        ),
    )
