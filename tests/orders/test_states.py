"""Orders: all ordered pairs walked on real rows, the payment a move must name, and the rules the database keeps."""

from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command

from generation.models import Job
from orders import moves
from orders.models import Mail, Order, OrderItem, Photo, Pose
from orders.states import MAIL, ORDER
from tests.constraints import checks_of, negatives_are_refused, refused
from tests.rows import columns, new_job, new_order, new_payment, tried
from waistheart import clock, guards

pytestmark = pytest.mark.django_db
DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "states.md"


def test_the_document_is_what_the_command_prints():
    out = StringIO()
    call_command("states", stdout=out)
    assert out.getvalue() == DOCUMENT.read_text(), "manage.py states > docs/states.md"


def test_the_counts_of_the_design():
    assert len(ORDER.states) == 4
    assert len(list(ORDER.pairs())) == 12
    assert len(ORDER.declared()) == 5
    assert len(MAIL.states) == 6
    assert len(MAIL.declared()) == 11


@pytest.mark.parametrize(("source", "target"), ORDER.pairs())
def test_every_pair_of_order_states_is_declared_or_refused(source: str, target: str):
    towards = [move for move in ORDER.moves if move.target == target]
    assert towards, "every state is some move's target, so that each pair can be tried"
    for declared in towards:
        order = new_order(status=source, state_since=clock.ago(60))
        before = columns(order)
        outcome = tried(moves.move_order, name=declared.name, order_id=order.pk, **needs(order, target))
        now = Order.objects.get(pk=order.pk)
        if source in declared.sources:
            assert outcome.won
            assert (now.status, now.writes) == (target, before["writes"] + 1)
            assert now.state_since > before["state_since"]
        else:
            assert outcome.lost == f"order.{declared.name}"
            assert columns(order) == before
    assert ORDER.allows(source, target) == any(source in move.sources for move in towards)


def needs(order: Order, target: str) -> dict[str, object]:
    """What the target's CHECKs want on the row, where the order has not got it yet."""
    payment = order.payment or new_payment()
    waiting = {"payment": payment, "owner": payment.owner, "credits": 1}
    return {"awaiting_payment": waiting, "paid": {"credits": 1, "paid_at": clock.now()}}.get(target, {})


@pytest.mark.parametrize(("source", "target"), MAIL.pairs())
def test_every_pair_of_mail_states_is_declared_or_refused(source: str, target: str):
    towards = [move for move in MAIL.moves if move.target == target]
    assert towards, "every state is some move's target, so that each pair can be tried"
    order = new_order()
    for declared in towards:
        mail = new_mail(order, declared.name)
        Mail.objects.filter(pk=mail.pk).update(status=source, state_since=clock.ago(60))
        mail.refresh_from_db()
        before = columns(mail)
        moved = moves.move_mail(declared.name, Mail.objects.filter(pk=mail.pk))
        now = Mail.objects.get(pk=mail.pk)
        assert moved is (source in declared.sources)
        if moved:
            assert now.status == target
            assert now.state_since > before["state_since"]
        else:
            assert columns(now) == before
    assert MAIL.allows(source, target) == any(source in move.sources for move in towards)


def test_a_move_of_several_mails_is_a_bug():
    order = new_order()
    new_mail(order, "x")
    new_mail(order, "y")
    with pytest.raises(guards.GuardBroken):
        moves.move_mail("claim", Mail.objects.all())


@pytest.mark.parametrize(("name", "fields"), [("pay", {"paid_at": clock.now()}), ("reopen", {})])
def test_news_of_another_payment_never_moves_an_order(name: str, fields: dict[str, object]):
    order, older = new_order(status="awaiting_payment"), new_payment()
    before = columns(order)
    assert tried(moves.may_move_order, name=name, order_id=order.pk, payment_id=older.pk, **fields).value is False
    lost = tried(moves.move_order, name=name, order_id=order.pk, payment_id=older.pk, **fields)
    assert lost.lost == f"order.{name}"
    assert columns(order) == before
    named = order.payment_id
    assert tried(moves.may_move_order, name=name, order_id=order.pk, payment_id=named, **fields).value is True


@pytest.mark.parametrize("status", [status for status in ORDER.states if status != "draft"])
def test_photo_pose_and_crop_change_only_in_a_draft(status: str):
    order = new_order(status=status)
    before = columns(order)
    assert tried(moves.write_draft, order_id=order.pk, email="eve@example.com").lost == "order.draft"
    assert columns(order) == before


def test_a_draft_that_was_changed_since_it_was_read_is_not_written():
    order = new_order()
    assert tried(moves.write_draft, order_id=order.pk, writes=0, email="a@example.com").won
    assert tried(moves.write_draft, order_id=order.pk, writes=0, email="b@example.com").lost == "order.draft"
    assert Order.objects.get(pk=order.pk).email == "a@example.com"


def new_item(order: Order, number: int = 1) -> OrderItem:
    pose, _ = Pose.objects.get_or_create(slug="waist", defaults={"name": "Waist", "description": "x", "prompt": "x"})
    frozen = {"frozen_at": clock.now(), "photo_key": "k", "photo_sha256": "h", "prompt": "p", "model": "m"}
    return OrderItem.objects.create(order=order, number=number, pose=pose, credits=1, **frozen)


def new_mail(order: Order, occasion: str = "x") -> Mail:
    return Mail.objects.create(
        reference=f"order:{order.code}", kind="ready", occasion=occasion, to="a@example.com", message_id=occasion
    )


def test_the_database_keeps_the_rules_of_the_shop():
    """Each CHECK is broken once past all code; a new one without a line here fails."""
    waiting, paid = new_order(status="awaiting_payment"), new_order(status="paid")
    item, mail = new_item(paid), new_mail(paid)
    refused("order_status_known", waiting, status="dreaming")
    refused("order_awaits_one_payment", waiting, payment_id=None)
    refused("order_awaits_one_payment", waiting, owner_id=None)
    refused("order_waiting_or_paid_has_a_price", paid, credits=0)
    refused("paid_order_says_when", paid, paid_at=None)
    refused("pose_costs_something", item.pose, credits=0)
    refused("pose_costs_something", item.pose, credits=51)
    refused("item_place", item, number=0)
    refused("item_place", item, number=51)
    refused("item_crop", item, crop=101)
    for missing in ({"photo_key": ""}, {"photo_sha256": ""}, {"prompt": ""}, {"model": ""}, {"credits": 0}):
        refused("frozen_item_has_all_its_job_needs", item, **missing)
    refused("mail_status_known", mail, status="lost")
    refused("mail_is_handed_over_at_most_so_often", mail, handed_over=3)
    assert checks_of("orders") == {
        "order_status_known", "order_awaits_one_payment", "order_waiting_or_paid_has_a_price", "paid_order_says_when",
        "pose_costs_something", "item_place", "item_crop", "frozen_item_has_all_its_job_needs",
        "mail_status_known", "mail_is_handed_over_at_most_so_often",
    }  # fmt: skip
    photo = Photo.objects.create(order=paid, key="k", sha256="h", size=1, width=1, height=1, format_seen="JPEG")
    assert [negatives_are_refused(row) for row in (paid, item, item.pose, mail, photo)] == [3, 3, 3, 3, 3]


def test_rows_that_may_exist_once_exist_once():
    first, second = new_order(status="paid"), new_order(status="paid")
    for name in ("code", "key", "request_key", "lot", "payment_id"):
        refused(name, second, **{name: getattr(first, name)})
    one, two = new_item(first), new_item(first, number=2)
    refused("one_item_per_place|number", two, number=1)
    OrderItem.objects.filter(pk=one.pk).update(job=new_job())
    refused("job_id", two, job_id=Job.objects.get().pk)
    new_mail(first)
    refused("one_mail_per_occasion|occasion", new_mail(first, "y"), occasion="x")
