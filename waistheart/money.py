"""Amounts in words. The shop counts in the card processor's smallest unit; only here it becomes "£4.00"."""

from decimal import Decimal

from babel.numbers import format_currency

# The processor's table, not CLDR's: CLDR shows króna and Ugandan shilling without decimals, the processor counts in hundredths.
WITHOUT_DECIMALS = frozenset(
    "BIF CLP DJF GNF JPY KMF KRW MGA PYG RWF VND VUV XAF XOF XPF".split()  # noqa: SIM905
)
WITH_THREE_DECIMALS = frozenset(["BHD", "JOD", "KWD", "OMR", "TND"])


def decimals(*, currency: str) -> int:
    """How many decimal places the smallest unit of the currency stands for: 0, 2 or 3."""
    code = currency.upper()
    if code in WITHOUT_DECIMALS:
        return 0
    return 3 if code in WITH_THREE_DECIMALS else 2


def words(*, amount: int, currency: str, locale: str = "en_GB") -> str:
    """The amount, given in the smallest unit, as a buyer reads it: 400 GBP is "£4.00". Never rounds."""
    exact = Decimal(amount).scaleb(-decimals(currency=currency))
    return format_currency(exact, currency.upper(), locale=locale, decimal_quantization=False)
