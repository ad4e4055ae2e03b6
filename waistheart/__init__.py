"""The floor of the shop: guards, state machines, storage, settings, people. It knows no app above it."""

from waistheart.celery import app as celery_app

__all__ = ["celery_app"]
