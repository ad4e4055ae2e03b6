"""Addresses and forms that no page of the console offers: each is answered with a message or a refusal, never with an error."""

from typing import Any

import pytest
from django.contrib import admin
from django.test import Client

from billing.models import Payment
from generation.models import Job
from tests.console import Console
from tests.orders import shop as orders

pytestmark = pytest.mark.django_db(transaction=True)

QUERIES = (
    "q=²", "q=9999999999999999999999", "q=a@b", "q=999999999999999999", "o=99", "p=zz", "p=999999", "status__exact=zzz", "e=1",
    "_facets=1", "videos=zzz", "created_at__gte=zzz", "created_at__year=99999", "state_since__year=99999", "paid_at__year=99999",
    "sent_at__year=99999", "received_at__year=99999", "created_at__day=99999999999999999999", "id__in=a",
    "id__exact=99999999999999999999", "owner__password__startswith=x", "_popup=1&_to_field=key", "late_success=zz",
    "items__pose__id__exact=zz", "items__pose__id__exact=99999999999999999999", "is_staff__exact=zz", "active__exact=zz",
    "day=zz", "day__year=99999", "credits__exact=99999999999999999999",
)  # fmt: skip
PAGES = ("1/change/", "1/history/", "999999999999999999999/change/", "999999999999999999999/history/", "_5F/change/")
FORMS: tuple[dict[str, Any], ...] = (
    {"action": "requeue", "_selected_action": ["1", "x", "9" * 30], "version_1": "1"},
    {"action": "zzz", "_selected_action": "x"},
    {"action": "note", "_selected_action": "x", "confirmed": "1", "reason": "x"},
    {"action": "delete_selected", "_selected_action": "1", "post": "yes"},
    {
        "action": "close",
        "_selected_action": "1",
        "select_across": "1",
        "version_1": "9" * 18,
        "confirmed": "1",
        "reason": "x",
    },
)
LISTS = ("generation/jobinreview/", "billing/mismatchedpayment/")


@pytest.fixture
def console() -> Console:
    orders.paid("completed", "review", "failed", returned=True)
    orders.awaiting(payment_status="mismatched")
    console = Console()
    console.client.raise_request_exception = False
    return console


def test_no_address_is_an_error(console: Console):
    bases = [f"/admin/{model._meta.app_label}/{model._meta.model_name}/" for model in admin.site._registry]
    addresses = [base + rest for base in bases for rest in (*(f"?{query}" for query in QUERIES), *PAGES)]
    assert [address for address in addresses if console.client.get(address).status_code >= 500] == []


def test_no_form_is_an_error(console: Console):
    before = [*Job.objects.values_list("version"), *Payment.objects.values_list("status")]
    addresses = [f"/admin/{path}{query}" for path in LISTS for query in ("", "?state_since__year=99999")]
    errors = [(a, form) for a in addresses for form in FORMS if console.client.post(a, form).status_code >= 500]
    assert errors == []
    assert [*Job.objects.values_list("version"), *Payment.objects.values_list("status")] == before


def test_a_job_that_has_ended_is_left_alone_whatever_the_form_says(console: Console):
    for job in Job.objects.exclude(status="review"):
        for act in ("requeue", "resume", "close"):
            form = {
                "action": act,
                "_selected_action": job.pk,
                f"version_{job.pk}": job.version,
                "confirmed": "1",
                "reason": "x",
            }
            assert "1 had already moved on" in said(console.client, "generation/jobinreview/", form)
        assert Job.objects.get(pk=job.pk).version == job.version


def test_a_reason_that_is_too_long_is_said_in_words(console: Console):
    job = Job.objects.get(status="review")
    form = {
        "action": "close",
        "_selected_action": job.pk,
        f"version_{job.pk}": job.version,
        "confirmed": "1",
        "reason": "y" * 201,
    }
    assert "Say why in 200 characters. These are 201." in said(console.client, "generation/jobinreview/", form)
    assert Job.objects.get(pk=job.pk).status == "review"


def said(browser: Client, path: str, form: dict[str, Any]) -> str:
    answer = browser.post(f"/admin/{path}", form, follow=True)
    assert answer.status_code == 200
    return answer.content.decode()
