"""Which adapters exist, and the one in use. Adding one is a file and a line here."""

from typing import TYPE_CHECKING, Protocol

from django.conf import settings

from generation.providers.base import Misconfigured, Provider
from generation.providers.fal import Fal
from waistheart.live import require_consistent

if TYPE_CHECKING:
    from generation.models import Submission


class Make(Protocol):
    """Makes an adapter from the settings: with the key for new work, or with the one of a fingerprint."""

    def __call__(self, *, key_print: str = "") -> Provider: ...


ADAPTERS: dict[str, Make] = {"fal": Fal.from_settings}


def get_provider(name: str | None = None, *, key_print: str = "") -> Provider:
    """The adapter of that name (default: the one new orders use), made from the settings as they are now.

    With a key's fingerprint, it holds that key. Raises ImproperlyConfigured when live and sandbox are mixed, Misconfigured for an
    unknown name, a missing key, or one that no header can carry.
    """
    require_consistent()
    try:
        make = ADAPTERS[name or settings.VIDEO_PROVIDER]
    except KeyError as error:
        raise Misconfigured(f"unknown provider {name!r}") from error
    return make(key_print=key_print)


def provider_of(submission: "Submission") -> Provider:
    """The adapter with the key a submission was sent with, whichever key takes new work now.

    Another account knows nothing of it and would call it gone. Misconfigured when that key is not configured any more: the job waits.
    """
    return get_provider(submission.provider, key_print=submission.account.key_print)
