"""Both sides real, or both sandbox (design section 7). Asked by the system checks, at start-up and at the moment of use.

Each rule is a line of `RULES`; its breaches are found in the settings as they are at that moment.
"""

import logging
from collections.abc import Iterator

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.files.storage import storages
from django.db import DatabaseError, connection
from storages.backends.s3 import S3Storage

from waistheart import ages
from waistheart.hosts import host_of, is_inside, is_loopback
from waistheart.installation import installation, mode_of_database, mode_of_settings
from waistheart.problems import Problem, Rule, broken
from waistheart.wire import is_model, is_visible, keys

__all__ = [
    "Problem", "database_problems", "problems", "problems_now", "refuse_to_start_inconsistent", "require_consistent",
]  # fmt: skip

log = logging.getLogger(__name__)
# What each provider needs: its keys, its addresses, its hosts.
PROVIDERS = {"fal": (("FAL_KEY",), ("FAL_QUEUE_URL", "FAL_API_URL", "FAL_JWKS_URL"), ("FAL_MEDIA_HOSTS",))}
LIVE_CARD_KEYS = ("sk_live_", "rk_live_")


def problems() -> list[Problem]:
    """Every contradiction in the settings as they are now, without asking the database; empty when the shop may work."""
    return broken(RULES, live=settings.LIVE)


def problems_now() -> list[Problem]:
    """The same, and whether the database belongs to the other mode: what must hold at the moment of use (one statement)."""
    return [*problems(), *database_problems()]


def database_problems() -> list[Problem]:
    """Whether the database belongs to the other mode."""
    return broken((DATABASE,), live=settings.LIVE)


def require_consistent() -> None:
    """Raise ImproperlyConfigured, naming every problem, when live and sandbox are mixed."""
    found = problems_now()
    if found:
        raise ImproperlyConfigured("; ".join(map(str, found)))


def refuse_to_start_inconsistent() -> None:
    """What web, worker and beat ask before they serve: the question of the moment of use, and whether the ages fit together.

    A new database is claimed for the mode of the settings here. One that does not answer yet is asked again at every use.
    """
    found = [*problems(), *ages.problems()]
    if found:
        raise ImproperlyConfigured("".join(f"\n  {problem}\n    {problem.hint}" for problem in found))
    try:
        installation()
    except DatabaseError as error:
        log.warning("the database cannot say yet which mode it belongs to: %s", error)
    finally:
        if not connection.in_atomic_block:
            connection.close()  # a connection made here must not be inherited by forked workers


# --- with LIVE -------------------------------------------------------------------------------------------------------


def _missing() -> Iterator[str]:
    keys, _, hosts = _provider()
    needed = ("SECRET_KEY", "STRIPE_SECRET_KEY", "STRIPE_WEBHOOK_SECRET", *keys)
    yield from (f"LIVE is set, {name} is missing" for name in needed if not _given(name))
    yield from (f"LIVE is set, {name} names no address" for name, host in _outside() if not host)
    yield from (f"LIVE is set, {name} is empty" for name in hosts if not getattr(settings, name))


def _no_live_card_key() -> Iterator[str]:
    key = _given("STRIPE_SECRET_KEY")
    if key and not key.startswith(LIVE_CARD_KEYS):
        yield "LIVE is set, STRIPE_SECRET_KEY is not a live key"


def _address_inside() -> Iterator[str]:
    ours = host_of(settings.PUBLIC_URL)
    for name, host in [("PUBLIC_URL", ours), *_outside()]:
        if host and is_inside(host):
            yield f"LIVE is set, {name} names {host}: this machine or a private one"
        elif host and name != "PUBLIC_URL" and host == ours:
            yield f"LIVE is set, {name} names {host}, the shop itself"


def _no_https() -> Iterator[str]:
    for name in ("PUBLIC_URL", "STRIPE_API_BASE", *_provider()[1]):
        if not str(getattr(settings, name)).lower().startswith("https://"):
            yield f"LIVE is set, {name} does not begin with https://"


def _unsigned_storage() -> Iterator[str]:
    storage = storages["default"]
    if not isinstance(storage, S3Storage):
        yield "LIVE is set, blobs are stored in local files"
    elif not storage.querystring_auth or (storage.custom_domain and not storage.cloudfront_signer):
        yield "LIVE is set, the bucket's addresses are not signed"
    elif str(storage.default_acl or "").startswith("public"):
        yield "LIVE is set, the bucket's objects are made public"


def _sqlite() -> Iterator[str]:
    if settings.DATABASES["default"]["ENGINE"].endswith("sqlite3"):
        yield "LIVE is set, the database is SQLite"


def _small_broker() -> Iterator[str]:
    kind = str(settings.CELERY_BROKER_URL).partition(":")[0].lower()
    if kind in {"", "filesystem", "memory", "in-memory"}:
        yield f"LIVE is set, the broker is {kind or 'not named'}"


def _debug() -> Iterator[str]:
    if settings.DEBUG:
        yield "LIVE is set together with DEBUG"


# --- without LIVE ----------------------------------------------------------------------------------------------------


def _live_card_key() -> Iterator[str]:
    if _given("STRIPE_SECRET_KEY").startswith(LIVE_CARD_KEYS):
        yield "LIVE is not set, STRIPE_SECRET_KEY is a live key"


def _foreign_address() -> Iterator[str]:
    named = {host_of(entry) for entry in settings.SANDBOX_HOSTS}
    for name, host in _outside():
        if not is_loopback(host) and host not in named:
            yield f"LIVE is not set, {name} names {host or 'no address'}, which is not this machine"


# --- both ------------------------------------------------------------------------------------------------------------


def _unknown_provider() -> Iterator[str]:
    if settings.VIDEO_PROVIDER not in PROVIDERS:
        yield f"VIDEO_PROVIDER is {settings.VIDEO_PROVIDER!r}, which nobody here speaks to"


def _not_a_key() -> Iterator[str]:
    """What no header can carry is found here, not by the first customer."""
    several = {name: keys(_text(name)) for name in (*_provider()[0], "STRIPE_WEBHOOK_SECRET")}
    single = {"STRIPE_SECRET_KEY": [_text("STRIPE_SECRET_KEY")] if _given("STRIPE_SECRET_KEY") else []}
    for name, found in (several | single).items():
        if not all(is_visible(key) for key in found):
            yield f"{name} holds a character that no key has"


def _not_a_model() -> Iterator[str]:
    if not is_model(settings.VIDEO_MODEL):
        yield f"VIDEO_MODEL is {settings.VIDEO_MODEL!r}, which is no model's name"


def _other_database() -> Iterator[str]:
    mode = mode_of_database()
    if mode and mode != mode_of_settings():
        yield f"this database belongs to a {mode} installation for ever, and LIVE says {mode_of_settings()}"


REAL = "Set it to the real thing, or unset LIVE"
RULES = (
    Rule("waistheart.E001", True, _missing, f"{REAL}; nothing falls back to a demo"),
    Rule("waistheart.E002", True, _no_live_card_key, f"{REAL}: it begins with sk_live_ or rk_live_"),
    Rule("waistheart.E003", True, _address_inside, f"{REAL}: an address the world knows"),
    Rule("waistheart.E004", True, _no_https, f"{REAL}: nothing of a live shop travels in the open"),
    Rule("waistheart.E005", True, _unsigned_storage, "Set S3_BUCKET to a private bucket whose addresses are signed"),
    Rule("waistheart.E006", True, _sqlite, "Set DATABASE_URL to a PostgreSQL server"),
    Rule("waistheart.E007", True, _small_broker, "Set BROKER_URL to Redis or RabbitMQ"),
    Rule("waistheart.E008", True, _debug, "Unset DEBUG"),
    Rule("waistheart.E011", False, _live_card_key, "Use a test key, or set LIVE=1 and everything that goes with it"),
    Rule("waistheart.E012", False, _foreign_address,
         "Name the sandbox, list a sandbox of your own in SANDBOX_HOSTS, or set LIVE=1"),
    Rule("waistheart.E020", None, _unknown_provider, f"Choose one of: {', '.join(PROVIDERS)}"),
    Rule("waistheart.E021", None, _not_a_key, "Copy it again: letters, digits and signs, without blanks and line ends"),
    Rule("waistheart.E022", None, _not_a_model, "Name it as the provider does: owner/app or owner/app/path"),
)  # fmt: skip
DATABASE = Rule("waistheart.E040", None, _other_database, "Use a database of its own for each mode")


def _provider() -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    return PROVIDERS.get(settings.VIDEO_PROVIDER, ((), (), ()))


def _outside() -> Iterator[tuple[str, str]]:
    """Every setting that names somebody outside, with the host it names."""
    _, addresses, hosts = _provider()
    yield from ((name, host_of(getattr(settings, name))) for name in ("STRIPE_API_BASE", *addresses))
    yield from ((name, host_of(entry)) for name in hosts for entry in getattr(settings, name))


def _given(name: str) -> str:
    """A setting's text without what surrounds it."""
    return _text(name).strip(" \t\r\n,")


def _text(name: str) -> str:
    """A setting's text. Django itself refuses to hand out an empty SECRET_KEY."""
    try:
        return str(getattr(settings, name))
    except ImproperlyConfigured:
        return ""
