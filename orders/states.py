"""Every state of an order and of a mail, and every move. How an order's jobs are doing is never stored here: it is derived from them."""

from django.db import models

from waistheart.machine import Machine, Move


class OrderStatus(models.TextChoices):
    DRAFT = "draft", "draft"
    AWAITING_PAYMENT = "awaiting_payment", "awaiting payment"
    PAID = "paid", "paid"
    EXPIRED = "expired", "expired"


class MailStatus(models.TextChoices):
    DUE = "due", "due"
    SENDING = "sending", "sending"
    SENT = "sent", "sent"
    FAILED = "failed", "failed: not taken"
    UNKNOWN = "unknown", "unknown: its answer was lost"
    DROPPED = "dropped", "dropped: staff let it be"


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

MAIL = Machine(
    name="Mail",
    states=tuple(MailStatus.values),
    initial="due",
    final=frozenset({"sent", "dropped"}),
    moves=(
        Move("claim", ("due", "unknown"), "sending", by="a worker, before it speaks with the mail server"),
        Move("take", ("sending",), "sent", by="the mail server took it"),
        Move("put_back", ("sending",), "due", by="nothing of it was taken: the mail server is away, or said no to it"),
        Move("give_up", ("due", "sending"), "failed", by="the mail server said no, or it could not be made, 30 times"),
        Move("lose_answer", ("sending",), "unknown", by="the worker (answer lost), or the sweep when no worker has it"),
        Move(
            "again", ("failed", "unknown"), "due", by="staff, with a reason, once nothing tries it by itself any more"
        ),
        Move("drop", ("failed", "unknown"), "dropped", by="staff, with a reason: nobody can be reached there"),
    ),
    note=(
        "One row and one Message-ID for each occasion. A mail is handed over at most twice, the second time only after a lost answer;\n"
        "one time more is a deliberate exception that staff make with `again`, and its history keeps who and why. A mail server that\n"
        "is away, or that does not know us any more, is no try of any mail."
    ),
)
