"""Worker and beat. Messages carry an id and nothing else; every one of them may be lost (design section 2, rule 15)."""

import os
from typing import Any

from celery import Celery
from celery.signals import beat_init, worker_init
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string
from kombu.transport import TRANSPORT_ALIASES

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "waistheart.settings")

TRANSPORT_ALIASES["filesystem"] = "waistheart.broker:Transport"
app = Celery("waistheart")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@worker_init.connect
@beat_init.connect
def refuse(**_: Any) -> None:
    """Django's checks do not run in Celery by themselves, so the worker and beat ask here, and end with 1 when they may not work."""
    # By its name: this module is loaded before the models that the question needs.
    refuse_to_start = import_string("waistheart.live.refuse_to_start_inconsistent")
    try:
        refuse_to_start()
    except ImproperlyConfigured as error:
        # Celery logs what a handler raises and goes on; only an exit stops it.
        raise SystemExit(f"refusing to start: {error}") from None
