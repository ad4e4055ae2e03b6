"""Which adapters exist, and the one in use. Adding one is a file and a line here."""

from collections.abc import Callable

from django.conf import settings

from generation.providers.base import Misconfigured, Provider
from generation.providers.fal import Fal
from waistheart.live import require_consistent

ADAPTERS: dict[str, Callable[[], Provider]] = {"fal": Fal.from_settings}


def get_provider(name: str | None = None) -> Provider:
    """The adapter of that name (default: the one new orders use), made from the settings as they are now.

    Raises ImproperlyConfigured when live and sandbox are mixed, Misconfigured for an unknown name or a missing key.
    """
    require_consistent()
    try:
        make = ADAPTERS[name or settings.VIDEO_PROVIDER]
    except KeyError as error:
        raise Misconfigured(f"unknown provider {name!r}") from error
    return make()
