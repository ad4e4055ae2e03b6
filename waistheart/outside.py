"""The settings that name somebody outside: the card processor, the video provider in use, their keys and hosts."""

from collections.abc import Iterator

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from waistheart.hosts import host_of

# What each provider needs: its keys, its addresses, its hosts.
PROVIDERS = {"fal": (("FAL_KEY",), ("FAL_QUEUE_URL", "FAL_API_URL", "FAL_JWKS_URL"), ("FAL_MEDIA_HOSTS",))}


def provider() -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """The names of the settings of the provider in use; none of a provider that nobody here speaks to."""
    return PROVIDERS.get(settings.VIDEO_PROVIDER, ((), (), ()))


def hosts() -> Iterator[tuple[str, str]]:
    """Every setting that names somebody outside, with the host it names."""
    _, addresses, media = provider()
    yield from ((name, host_of(getattr(settings, name))) for name in ("STRIPE_API_BASE", *addresses))
    yield from ((name, host_of(entry)) for name in media for entry in getattr(settings, name))


def given(name: str) -> str:
    """A setting's text without what surrounds it."""
    return text(name).strip(" \t\r\n,")


def text(name: str) -> str:
    """A setting's text. Django itself refuses to hand out an empty SECRET_KEY."""
    try:
        return str(getattr(settings, name))
    except ImproperlyConfigured:
        return ""
