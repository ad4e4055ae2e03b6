"""Amounts in a currency's smallest unit, written for people."""

NO_DIGITS = frozenset(
    {"bif", "clp", "djf", "gnf", "jpy", "kmf", "krw", "mga", "pyg", "rwf", "ugx", "vnd", "vuv", "xaf", "xof", "xpf"}
)
THREE_DIGITS = frozenset({"bhd", "iqd", "jod", "kwd", "lyd", "omr", "tnd"})
SIGNS = {"eur": "€", "gbp": "£", "usd": "$", "jpy": "¥"}


def digits(currency: str) -> int:
    """How many decimal digits the currency has: JPY 0, EUR 2, KWD 3."""
    currency = currency.lower()
    return 0 if currency in NO_DIGITS else 3 if currency in THREE_DIGITS else 2


def money(amount: int, currency: str) -> str:
    """290 eur is "€2.90", 290 jpy is "¥290", 1500 kwd is "KWD 1.500"."""
    places = digits(currency)
    number = f"{amount / 10**places:,.{places}f}"
    sign = SIGNS.get(currency.lower())
    return f"{sign}{number}" if sign else f"{currency.upper()}\N{NO-BREAK SPACE}{number}"
