"""What every app stands on: people, this installation, tallies, heartbeats and hints."""

from typing import Any, ClassVar

from django.contrib.auth.models import AbstractBaseUser, BaseUserManager, PermissionsMixin
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now


def normalise_email(address: str) -> str:
    """One spelling per mailbox: trimmed and lower case. Dots and plus signs are left alone, they may be different people."""
    return address.strip().lower()


class UserManager(BaseUserManager["User"]):
    """Makes people; the e-mail address is the login."""

    def create_user(self, email: str, password: str | None = None, **extra: Any) -> "User":
        """Make a customer (no password) or, with a password, somebody who signs in. IntegrityError when the address is taken."""
        user = self.model(email=normalise_email(email), **extra)
        user.set_password(password) if password else user.set_unusable_password()
        user.save(using=self._db)
        return user

    def create_superuser(self, email: str, password: str | None = None, **extra: Any) -> "User":
        """Make a staff member who may do everything."""
        return self.create_user(email, password, is_staff=True, is_superuser=True, **extra)


class User(AbstractBaseUser, PermissionsMixin):
    """A customer or a member of staff. Customers have no password."""

    email = models.EmailField(max_length=254, unique=True)
    is_staff = models.BooleanField(default=False)
    is_active = models.BooleanField(default=True)
    date_joined = models.DateTimeField(db_default=Now(), editable=False)

    USERNAME_FIELD = "email"
    EMAIL_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []
    objects = UserManager()

    def __str__(self) -> str:
        return self.email


class Installation(models.Model):
    """One row: who this shop is, and whether its database belongs to the live or the sandbox world, for ever."""

    class Mode(models.TextChoices):
        LIVE = "live"
        SANDBOX = "sandbox"

    ident = models.CharField(max_length=16, unique=True)
    mode = models.CharField(max_length=8, choices=Mode.choices)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(name="installation_is_one_row", condition=Q(id=1)),
            models.CheckConstraint(name="installation_mode_known", condition=Q(mode__in=["live", "sandbox"])),
        ]

    def __str__(self) -> str:
        return f"{self.ident} ({self.mode})"


class GuardTally(models.Model):
    """How often a named guard was lost on a day (UTC); also the place where other expected conflicts are counted."""

    guard = models.CharField(max_length=80)
    day = models.DateField()
    lost = models.PositiveIntegerField(default=0)
    last_lost = models.DateTimeField(db_default=Now())

    class Meta:
        verbose_name_plural = "guard tallies"
        constraints: ClassVar = [models.UniqueConstraint(name="one_tally_per_guard_and_day", fields=["guard", "day"])]

    def __str__(self) -> str:
        return f"{self.guard} {self.day}: {self.lost}"


class Heartbeat(models.Model):
    """When something that must happen regularly last happened."""

    name = models.CharField(max_length=40, primary_key=True)
    at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return f"{self.name} {self.at:%Y-%m-%d %H:%M:%S}"


class Hint(models.Model):
    """A verified callback: who sent it, which event, and which of our rows it made us look at. Its body is never believed."""

    source = models.CharField(max_length=20)
    event_id = models.CharField(max_length=255)
    kind = models.CharField(max_length=80)
    reference = models.CharField(max_length=255, blank=True, default="")
    received_at = models.DateTimeField(db_default=Now(), editable=False)
    outcome = models.CharField(max_length=40, blank=True, default="")

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(name="hint_is_stored_once", fields=["source", "event_id"])]
        indexes: ClassVar = [
            models.Index(name="hint_without_outcome", fields=["received_at"], condition=Q(outcome="")),
        ]

    def __str__(self) -> str:
        return f"{self.source} {self.kind} {self.event_id}"
