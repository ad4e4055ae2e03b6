"""Who this installation is. Its id begins every storage key; its mode keeps live and sandbox databases apart for ever."""

import secrets

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import IntegrityError, transaction

from waistheart.models import Installation


def mode_of_settings() -> str:
    """live or sandbox, as the settings say."""
    return Installation.Mode.LIVE if settings.LIVE else Installation.Mode.SANDBOX


def mode_of_database() -> str:
    """The mode this database belongs to; empty while it belongs to none. One statement; DatabaseError passes through."""
    return Installation.objects.values_list("mode", flat=True).first() or ""


def installation() -> Installation:
    """The one row, made at the first call with the mode of the settings; ImproperlyConfigured when the database is of the other mode."""
    row = Installation.objects.first()
    if row is None:
        try:
            with transaction.atomic():
                row = Installation.objects.create(pk=1, ident=secrets.token_hex(4), mode=mode_of_settings())
        except IntegrityError:
            row = Installation.objects.get()
    if row.mode != mode_of_settings():
        raise ImproperlyConfigured(
            f"this database belongs to a {row.mode} installation, and LIVE says {mode_of_settings()}"
        )
    return row


def ident() -> str:
    """The installation's id."""
    return installation().ident
