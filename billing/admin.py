"""Money and credits in the staff console. Balances move only in the ledger; what can be bought is all that is edited here."""

from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.db.models import Q

from billing.gateway import MOST_AMOUNT
from billing.models import CreditPack, Entry, Grant, Hold, HoldPart, Payment
from waistheart import console, money

MOST_CREDITS = 50  # what a pose or a pack may cost, by the tables' CHECKs


class Units(forms.IntegerField):
    """A whole number as digits alone: Django would read 5.00, which somebody meant as pounds, as 5."""

    default_error_messages: ClassVar = {"digits": "Digits alone: 4.00 is 400 here."}

    def to_python(self, value: Any) -> int | None:
        if value and not str(value).strip().lstrip("-").isdecimal():
            raise forms.ValidationError(self.error_messages["digits"], code="digits")
        return super().to_python(value)


class PackForm(forms.ModelForm):
    """Says in words what the table's CHECKs refuse."""

    credits = forms.IntegerField(min_value=1, max_value=50)
    price = Units(min_value=1, max_value=MOST_AMOUNT, help_text="in the currency's smallest unit: 400 is 4.00")
    currency = forms.RegexField(r"^[A-Za-z]{3}$", error_messages={"invalid": "Three letters, as in GBP."}, max_length=3)

    class Meta:
        model = CreditPack
        fields = ("credits", "price", "currency", "active")

    def clean_currency(self) -> str:
        return str(self.cleaned_data["currency"]).upper()

    def clean(self) -> dict[str, Any]:
        data = super().clean() or self.cleaned_data
        if data.get("credits") == 1 and (data.get("price") or 0) * MOST_CREDITS > MOST_AMOUNT:
            most = MOST_AMOUNT // MOST_CREDITS
            self.add_error(
                "price", f"One credit costs {most} at most: a video of {MOST_CREDITS} credits must be payable."
            )
        same = CreditPack.objects.filter(
            credits=data.get("credits") or 0, currency=data.get("currency") or "", active=True
        )
        if data.get("active") and same.exclude(pk=self.instance.pk).exists():
            raise forms.ValidationError(
                "There is an active price for this size and currency: change that one, or retire it first."
            )
        return data


@admin.register(CreditPack)
class CreditPackAdmin(console.Console):
    """The price of one credit decides what a video costs. What was ordered keeps the price it was ordered at."""

    form = PackForm
    list_display = ("credits", "costs", "active")
    list_filter = ("active",)
    ordering = ("currency", "credits", "-active")

    @admin.display(description="price", ordering="price")
    def costs(self, pack: CreditPack) -> str:
        return money.words(amount=pack.price, currency=pack.currency)

    def has_delete_permission(self, *_: Any, **__: Any) -> bool:
        return False


class GrantInline(console.WindowInline):
    model = Grant
    fields = ("id", "reason", "credits", "available", "held", "frozen", "owed", "expires_at")


class PartInline(console.WindowInline):
    model = HoldPart
    fields = ("grant", "credits")


class EntryInline(console.WindowInline):
    model = Entry
    fields = ("at", "kind", "occasion", "credits", "available", "held", "frozen", "owed", "note")


@admin.register(Payment)
class PaymentAdmin(console.Window):
    list_display: Any = (
        "created_at",
        "status",
        "reference",
        "sum",
        "paid",
        "email",
        "key",
        "tries",
        "next_look_at",
    )
    list_filter: ClassVar[Any] = ("status", "created_at", "currency")
    search_fields = ("reference", "email", "session_id")
    search_help_text = "Exactly: an order's code, an e-mail address, cs_…, pi_…, ch_… or our key"
    inlines = (GrantInline,)

    def find(self, term: str) -> Q:
        if "@" in term:
            return Q(email=term.lower())
        if term.startswith("cs_"):
            return Q(session_id=term)
        if term.startswith(("pi_", "ch_", "py_")):
            return Q(payment_intent=term) | Q(charge=term)
        return Q(key=term) | Q(reference=f"order:{term.upper()}") | Q(reference=term)

    @admin.display(description="asked", ordering="amount")
    def sum(self, payment: Payment) -> str:
        return money.words(amount=payment.amount, currency=payment.currency)

    @admin.display(description="paid")
    def paid(self, payment: Payment) -> str:
        if payment.paid_amount is None or not payment.paid_currency:
            return "–"
        return money.words(amount=payment.paid_amount, currency=payment.paid_currency)


@admin.register(Grant)
class GrantAdmin(console.Window):
    list_display = ("id", "owner", "reason", "credits", "available", "held", "frozen", "owed", "disputed", "expires_at")
    list_filter = ("disputed", "created_at", "expires_at")
    list_select_related = ("owner",)
    search_fields = ("owner__email",)
    inlines = (EntryInline,)

    def find(self, term: str) -> Q:
        return Q(owner__email=term.lower()) if "@" in term else super().find(term)


@admin.register(Hold)
class HoldAdmin(console.Window):
    list_display = ("id", "owner", "credits", "parts", "status", "state_since")
    list_filter = ("status",)
    list_select_related = ("owner",)
    search_fields = ("owner__email",)
    inlines = (PartInline,)

    def find(self, term: str) -> Q:
        return Q(owner__email=term.lower()) if "@" in term else super().find(term)


@admin.register(Entry)
class EntryAdmin(console.Window):
    """The ledger. A correction is a new line, never an edit."""

    list_display = ("at", "kind", "occasion", "credits", "available", "held", "frozen", "owed", "owner", "note")
    list_filter = ("kind", "at")
    list_select_related = ("grant__owner",)
    search_fields = ("occasion", "grant__owner__email")
    search_help_text = "Exactly: an e-mail address, or an occasion such as hold:12 or payment:7"

    def find(self, term: str) -> Q:
        return Q(grant__owner__email=term.lower()) if "@" in term else Q(occasion=term)

    @admin.display(description="customer")
    def owner(self, entry: Entry) -> str:
        return str(entry.grant.owner)
