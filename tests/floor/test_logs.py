"""Logs tell what happened and open nothing: no key of an order, no token, no session, nobody's address."""

import io
import logging
import logging.config
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from django.utils.log import DEFAULT_LOGGING

from tests.shop import Shop
from waistheart import logs

KEY = "Aa0-_" * 4 + "Zz99"


@pytest.fixture
def written(settings: Any) -> Iterator[io.StringIO]:
    """What is written to the error output while a test runs, from the least level up."""
    out = io.StringIO()
    ours = logs.configuration(level="DEBUG")
    ours["handlers"]["stderr"]["stream"] = out
    logging.config.dictConfig(DEFAULT_LOGGING)
    logging.config.dictConfig(ours)
    yield out
    logging.config.dictConfig(DEFAULT_LOGGING)
    logging.config.dictConfig(settings.LOGGING)


@pytest.mark.parametrize(("said", "kept"), [
    (f"Not Found: /o/ABCDEFG2-{KEY}/video.mp4", "Not Found: /o/ABCDEFG2-…/video.mp4"),
    (f"GET /make/{KEY}/photo/ HTTP/1.1", "GET /make/…/photo/ HTTP/1.1"),
    ("GET /make/waist-heart/ HTTP/1.1", "GET /make/waist-heart/ HTTP/1.1"),
    (f"/pay/cancelled/{'0a' * 16}/", "/pay/cancelled/…/"),
    (f"payment {'0a' * 16} not looked up now", "payment 0a0a0a0a… not looked up now"),
    (f"/pay/return/?session={KEY}&x=1", "/pay/return/?session=…&x=1"),
    ("no such session: 'cs_test_a1b2'", "no such session: 'cs_test_…'"),
    (f"/portraits/{KEY}.jpg", "/portraits/….jpg"),
    (f"/portraits/proof-{KEY}:{KEY}.jpg", "/portraits/….jpg"),
    (f"/hints/fal/{KEY}", "/hints/fal/…"),
    ("/hints/stripe/", "/hints/stripe/"),
    ("mail to Ada <ada.l+x@mail.example.com>: 550", "mail to Ada <…>: 550"),
    ("postgres://shop:secret@db.internal/x", "…/x"),
    ("order ABCDEFG2: 2 of 3", "order ABCDEFG2: 2 of 3"),
])  # fmt: skip
def test_what_is_masked(said: str, kept: str):
    assert logs.masked(said) == kept
    assert logs.masked(kept) == kept


def test_arguments_and_tracebacks_are_masked_as_well(written: io.StringIO):
    try:
        raise ValueError(f"https://shop.example/portraits/{KEY}.jpg")
    except ValueError:
        logging.getLogger("orders").exception("order of %s", "ada@example.com")
    assert "ValueError: https://shop.example/portraits/….jpg" in written.getvalue()
    assert "ada" not in written.getvalue()


@pytest.mark.django_db
def test_a_refused_request_is_one_line_and_a_fault_of_ours_a_traceback(written: io.StringIO, monkeypatch: Any):
    browser = Client(enforce_csrf_checks=True, raise_request_exception=False)
    browser.cookies["csrftoken"] = "a" * 32
    assert browser.post("/admin/login/", "x", content_type="multipart/form-data").status_code == 400
    assert "Bad request" in written.getvalue()
    assert "Traceback" not in written.getvalue()
    monkeypatch.setattr("waistheart.health.connection", None)
    assert browser.get("/readyz").status_code == 500
    assert "Traceback" in written.getvalue()


def test_the_web_server_is_masked_by_its_own_handlers():
    logs.mask_gunicorn()
    logs.mask_gunicorn()
    logger, out = logging.getLogger("gunicorn.error"), io.StringIO()
    handler = logging.StreamHandler(out)
    logger.addHandler(handler)
    try:
        logger.error("Error handling request %s", f"/make/{KEY}/photo/")
    finally:
        logger.removeHandler(handler)
    assert out.getvalue() == "Error handling request /make/…/photo/\n"
    assert len([one for one in logger.filters if isinstance(one, logs.Masked)]) == 1


def test_a_purchase_leaves_nothing_in_the_log_that_opens_it(shop: Shop, written: io.StringIO):
    job = shop.submitted(email="ada@example.com")
    order = job.item.order
    browser, session = Client(raise_request_exception=False), order.payment.session_id
    for path in (f"/o/{order.code}-{order.key}/video.mp4", f"/make/{order.key}/nosuch/", f"/pay/return/{session}"):
        assert browser.get(path).status_code == 404
    browser.post(f"/hints/fal/{KEY}/")
    said = written.getvalue()
    assert f"Not Found: /o/{order.code}-…/video.mp4" in said
    for secret in (order.key, session, KEY, "ada@example.com", job.submissions.get().token):
        assert secret not in said
