"""`manage.py demo`: loads once, changes nothing later, and never touches a live shop."""

import io

import av
import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command

from billing.models import CreditPack
from orders.demo_poses import DEMO_POSES, DemoPose
from orders.models import Pose
from waistheart import storage
from waistheart.installation import installation
from waistheart.models import Installation, User
from waistheart.sandbox.drawing import pose_of

pytestmark = pytest.mark.django_db


def load() -> str:
    said = io.StringIO()
    call_command("demo", stdout=said)
    return said.getvalue()


def test_a_new_shop_gets_poses_with_clips_a_price_and_staff_and_a_second_call_changes_nothing():
    said = load()
    password = said.split("password ")[1].split()[0]
    assert User.objects.get(email="staff@localhost").check_password(password)
    assert CreditPack.objects.get(credits=1, active=True).price == 400
    for pose in Pose.objects.all():
        assert storage.size(key=pose.sample_key) == pose.sample_size
        with av.open(io.BytesIO(storage.read(key=pose.sample_key))) as clip:
            stream = clip.streams.video[0]
            assert (stream.codec_context.name, stream.codec_context.pix_fmt) == ("h264", "yuv420p")
            assert stream.width * 16 == stream.height * 9
        assert storage.read(key=pose.poster_key).startswith(b"\xff\xd8\xff")
    assert Pose.objects.count() == len(DEMO_POSES) >= 4

    Pose.objects.filter(slug="waist-heart").update(name="Renamed by staff")
    assert load() == ""
    assert Pose.objects.get(slug="waist-heart").name == "Renamed by staff"
    assert Pose.objects.count() == len(DEMO_POSES)
    assert User.objects.get(email="staff@localhost").check_password(password)


@pytest.mark.parametrize("pose", DEMO_POSES, ids=lambda pose: pose.slug)
def test_the_sandbox_draws_the_pose_that_a_prompt_speaks_of(pose: DemoPose):
    assert f"{pose_of(pose.prompt).name}-heart" == pose.slug


def test_a_live_shop_refuses_the_demo(settings):
    settings.LIVE = True
    with pytest.raises(CommandError, match="live shop"):
        load()
    assert not Pose.objects.exists()


def test_a_database_belongs_to_one_world(settings):
    assert installation() == installation()
    assert Installation.objects.get().mode == "sandbox"
    settings.LIVE = True
    with pytest.raises(ImproperlyConfigured, match="sandbox"):
        installation()
