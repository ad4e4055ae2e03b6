"""A double click on "Cancel the order": the second click is not told that what the first did cannot be done."""

import pytest
from django.test import Client

from billing.audit import differences
from generation.models import Job
from orders import flow
from tests.orders.rivals import act_after
from tests.shop import Shop


def test_a_second_click_on_cancel_ends_where_the_first_did(shop: Shop) -> None:
    order = shop.paid().item.order
    here = f"/o/{order.code}-{order.key}/"
    for _ in range(2):
        answer = Client().post(f"{here}cancel/")
        assert (answer.status_code, answer.headers.get("Location")) == (303, here)
    assert "Order cancelled" in Client().get(here).content.decode()
    assert differences() == []


def test_two_clicks_at_once_end_in_the_same_place(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second has read that the order can be cancelled, and finds it done."""
    order = shop.paid().item.order
    here = f"/o/{order.code}-{order.key}/"
    act_after(monkeypatch, flow, "can_cancel", lambda: Client().post(f"{here}cancel/"))
    answer = Client().post(f"{here}cancel/")
    assert (answer.status_code, answer.headers.get("Location")) == (303, here)


@pytest.mark.parametrize("move", ["finished", "closed by staff"])
def test_what_somebody_else_ended_is_not_called_cancelled(shop: Shop, move: str) -> None:
    job = shop.paid()
    order = job.item.order
    if move == "finished":
        Job.objects.filter(pk=job.pk).update(
            status="completed", next_step_at=None, video_key="x/v/1.mp4", poster_key="x/p/1.jpg", video_size=1,
            video_sha256="0" * 64, keep_until=job.state_since,
        )  # fmt: skip
    else:
        assert flow.cancel(order=order, actor="boss@example.com")
    page = Client().post(f"/o/{order.code}-{order.key}/cancel/")
    assert page.status_code == 409
