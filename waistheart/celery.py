"""Worker and beat. Messages carry an id and nothing else; every one of them may be lost (design section 2, rule 15)."""

import os
from typing import Any

from celery import Celery
from celery.signals import beat_init, worker_init

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "waistheart.settings")

from waistheart.live import refuse_to_start_inconsistent

app = Celery("waistheart")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@worker_init.connect
@beat_init.connect
def refuse(**_: Any) -> None:
    """Django's checks do not run in Celery by themselves, so the worker and beat ask here."""
    refuse_to_start_inconsistent()
