"""Settings of a live shop in which everything is right, and which rules the settings break."""

from typing import Any

import pytest

from waistheart import ages, live

REAL_SETTINGS: dict[str, Any] = {
    "LIVE": True,
    "DEBUG": False,
    "SECRET_KEY": "a-secret-of-the-operator",
    "PUBLIC_URL": "https://shop.waistheart.example",
    "STRIPE_SECRET_KEY": "sk_live_abc",
    "STRIPE_WEBHOOK_SECRET": "whsec_abc",
    "STRIPE_API_BASE": "https://api.stripe.com",
    "FAL_KEY": "fal-key",
    "FAL_QUEUE_URL": "https://queue.fal.run",
    "FAL_API_URL": "https://api.fal.ai/v1",
    "FAL_JWKS_URL": "https://rest.fal.ai/.well-known/jwks.json",
    "FAL_MEDIA_HOSTS": ["v3.fal.media", "v3b.fal.media"],
    "CELERY_BROKER_URL": "redis://broker.example:6379/0",
    "EMAIL_BACKEND": "django.core.mail.backends.smtp.EmailBackend",
}


@pytest.fixture
def real(settings: Any, monkeypatch: Any) -> Any:
    """Settings of a live shop in which everything is right."""
    for name, value in REAL_SETTINGS.items():
        setattr(settings, name, value)
    settings.STORAGES = {**settings.STORAGES, "default": bucket()}
    monkeypatch.setitem(settings.DATABASES["default"], "ENGINE", "django.db.backends.postgresql")
    return settings


def bucket(**options: Any) -> dict[str, Any]:
    """A bucket's storage as a live shop may use it, with something changed."""
    return {
        "BACKEND": "storages.backends.s3.S3Storage",
        "OPTIONS": {
            "bucket_name": "videos",
            "access_key": "id",
            "secret_key": "secret",
            "querystring_auth": True,
            **options,
        },
    }


def ids() -> set[str]:
    """The ids of all that is wrong."""
    return {problem.id for problem in [*live.problems(), *ages.problems()]}
