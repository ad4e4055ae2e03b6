"""Which e-mail addresses are taken: those that can be kept in one spelling and written on an envelope."""

import pytest
from django.test import Client
from django.utils.html import escape

from orders import forms
from tests.orders import shop
from waistheart.models import normalise_email

LONG = "aaaaaa@" + ".".join(["x" * 60] * 4) + ".com"  # 254 letters, the longest there is


@pytest.mark.parametrize(
    "address",
    ["ada@example.com", " Ada@Example.COM ", "ada+poses@example.com", "ada@bücher.example", "ada@xn--bcher-kva.example", "kunde@xn--strae-oqa.example",
     "a" * 64 + "@example.com", LONG],
)  # fmt: skip
def test_an_address_that_a_mail_reaches_is_taken(address: str):
    assert forms.email_fault(address) == ""


@pytest.mark.parametrize(
    "address",
    [
        "ada", "a@" + "ü" * 60 + ".com", "a@\u00ad\u00ad.com", '"\x01"@example.com', "ada@\u2028example.com", "ada\x00@example.com",
        "ad\u017fa@example.com", "a\u200bda@example.com", "a" + LONG,
        "kunde@straße.example", "kunde@STRAẞE.example", "ada@λόγος.example", '""@example.com', '"a@b.com,c"@example.com',
        "a" * 65 + "@example.com",
        "ada@localhost", "ada@LocalHost", "a@[127.0.0.1]", "a@[::1]", "a@127.0.0.10", "a@shop.localhost",
    ],
)  # fmt: skip
def test_an_address_that_no_mail_reaches_is_not(address: str):
    """No IDNA form, or two of them; invisible letters, letters that no envelope can hold, too long once it is in small letters or
    before the @; quotes, this machine, and numbers instead of a name: no card processor takes those."""
    assert forms.email_fault(address) == forms.EMAIL_SHAPE


def test_its_length_is_that_of_what_is_kept():
    """This letter becomes two when it is made small: 250 letters typed, 255 kept."""
    address = f"aaa@{chr(0x130) * 5}.{'x' * 60}.{'x' * 60}.{'x' * 60}.{'x' * 53}.com"
    assert len(address) <= 254 < len(normalise_email(address))
    assert forms.email_fault(address) == forms.EMAIL_SHAPE


@pytest.mark.django_db
@pytest.mark.parametrize("address", ["\0@a.com", '"\x01"@example.com', "a@" + "ü" * 60 + ".com", "ada@localhost"])
def test_the_pages_refuse_them_in_words(address: str):
    order = shop.draft()
    Client().post(f"/make/{order.key}/email/", {"email": address})
    page = Client().post(f"/make/{order.key}/photo/", {"email": address})
    assert forms.EMAIL_SHAPE in page.content.decode()
    assert f'value="{escape(address)}"' in page.content.decode() or not address.isprintable()
    order.refresh_from_db()
    assert order.email == shop.ADA
