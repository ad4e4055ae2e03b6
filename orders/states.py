"""Every state of an order, and every move. How its jobs are doing is never stored here: it is derived from them."""

from django.db import models

from waistheart.machine import Machine, Move


class OrderStatus(models.TextChoices):
    DRAFT = "draft", "draft"
    AWAITING_PAYMENT = "awaiting_payment", "awaiting payment"
    PAID = "paid", "paid"
    EXPIRED = "expired", "expired"


ORDER = Machine(
    name="Order",
    states=tuple(OrderStatus.values),
    initial="draft",
    final=frozenset({"paid", "expired"}),
    moves=(
        Move("ask_payment", ("draft",), "awaiting_payment", by="the customer presses Pay"),
        Move("reopen", ("awaiting_payment",), "draft", by="the payment this order names has ended and starts nothing"),
        Move(
            "pay", ("awaiting_payment",), "paid", credits="hold", by="settle: the payment this order names was received"
        ),
        Move("pay_with_credits", ("draft",), "paid", credits="hold", by="the signed-in owner spends credits"),
        Move("expire", ("draft",), "expired", by="the sweep, DRAFT_SECONDS after its last change"),
    ),
    note="Photo, pose, crop and e-mail change only in draft, so one payment page stands for exactly one approved set of photos.",
)
