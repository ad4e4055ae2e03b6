"""`manage.py demo`: what makes a new sandbox shop worth trying: poses with clips, a price, somebody on the staff."""

import os
import secrets
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from billing.models import CreditPack
from orders.demo_poses import DEMO_POSES, DemoPose
from orders.models import Pose
from waistheart import storage
from waistheart.installation import installation
from waistheart.models import User
from waistheart.sandbox.sample import Sample, render_sample

STAFF = "staff@localhost"
ONE_VIDEO = 400  # in the smallest unit of the currency


class Command(BaseCommand):
    """Adds what is missing and changes nothing that exists: a second call loads nothing and prints no password."""

    help = "Load the demo: poses with sample clips, a price, and a staff user whose password is printed once."

    def handle(self, *args: Any, **options: Any) -> None:
        if settings.LIVE:
            raise CommandError("This is a live shop: the demo's poses and its staff user are not for it.")
        ident = installation().ident
        there = set(Pose.objects.values_list("slug", flat=True))
        missing = [(sort * 10, pose) for sort, pose in enumerate(DEMO_POSES, start=1) if pose.slug not in there]
        # Drawing is most of a first start's time, and leaves Python's lock alone.
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            samples = pool.map(lambda row: render_sample(prompt=row[1].prompt), missing)
            for (sort, pose), sample in zip(missing, samples, strict=True):
                self.load(pose, sample, sort=sort, ident=ident)
        if make_price():
            self.stdout.write("  price of one video")
        if password := make_staff():
            self.stdout.write(f"  staff user {STAFF}, password {password}  (printed this once)")

    def load(self, pose: DemoPose, sample: Sample, *, sort: int, ident: str) -> None:
        """Load one pose and its clip. The clip is stored first: a pose on sale always has its sample."""
        video, poster = (storage.fresh_key(installation=ident, kind="samples", suffix=end) for end in (".mp4", ".jpg"))
        storage.save_bytes(key=video, data=sample.video, content_type="video/mp4")
        storage.save_bytes(key=poster, data=sample.poster, content_type="image/jpeg")
        Pose.objects.get_or_create(
            slug=pose.slug,
            defaults={
                "name": pose.name,
                "description": pose.description,
                "prompt": pose.prompt,
                "sort": sort,
                "sample_key": video,
                "sample_size": len(sample.video),
                "poster_key": poster,
            },
        )
        self.stdout.write(f"  pose {pose.name}")


def make_price() -> bool:
    """Set the price of one credit unless the shop has one; tell whether it was set now."""
    _, made = CreditPack.objects.get_or_create(
        credits=1, currency=settings.CURRENCY, active=True, defaults={"price": ONE_VIDEO}
    )
    return made


def make_staff() -> str:
    """Make the staff user with a new password and return it; an empty word when there is one already."""
    if User.objects.filter(email=STAFF).exists():
        return ""
    password = secrets.token_urlsafe(12)
    User.objects.create_superuser(STAFF, password)
    return password
