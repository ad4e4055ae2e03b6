"""Bracketed forms and amounts: the two things everything else stands on."""

import pytest

from waistheart.sandbox.card_errors import CardError
from waistheart.sandbox.card_form import parse, whole_number
from waistheart.sandbox.card_money import money


def test_brackets_become_objects_and_lists() -> None:
    text = "a[b][0][c]=1&a[b][1][c]=2&expand[0]=x&expand[1]=y.z&plain=&m[order id]=7"
    assert parse(text) == {
        "a": {"b": [{"c": "1"}, {"c": "2"}]},
        "expand": ["x", "y.z"],
        "plain": "",
        "m": {"order id": "7"},
    }


def test_empty_brackets_append() -> None:
    assert parse("expand[]=x&expand[]=y") == {"expand": ["x", "y"]}


def test_ten_items_stay_in_order() -> None:
    text = "&".join(f"row[{number}]={number}" for number in range(11))
    assert parse(text)["row"] == [str(number) for number in range(11)]


@pytest.mark.parametrize("value", ["1.5", "abc", "", "1e3"])
def test_only_whole_numbers_are_amounts(value: str) -> None:
    with pytest.raises(CardError, match="Invalid integer"):
        whole_number({"amount": value}, "amount", default=0)


@pytest.mark.parametrize(
    ("amount", "currency", "text"),
    [
        (290, "eur", "€2.90"),
        (450, "JPY", "¥450"),
        (1500, "kwd", "KWD\u00a01.500"),
        (123456, "gbp", "£1,234.56"),
        (5, "usd", "$0.05"),
        (100, "chf", "CHF\u00a01.00"),
    ],
)
def test_money_has_the_digits_of_its_currency(amount: int, currency: str, text: str) -> None:
    assert money(amount, currency) == text
