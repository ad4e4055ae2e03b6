"""What must not be with LIVE: anything missing, near, open, published, or small. Each rule answers its breaches in words."""

from collections.abc import Iterator

from django.conf import settings
from django.core.files.storage import storages
from storages.backends.s3 import S3Storage

from waistheart import outside
from waistheart.hosts import host_of, is_inside, is_this_machine
from waistheart.outside import given
from waistheart.problems import Rule
from waistheart.run.environment import sandbox_settings
from waistheart.wire import keys

CARD_KEYS = ("sk_live_", "rk_live_")
MAIL_THAT_STAYS = ("filebased", "console", "locmem", "dummy")
REAL = "Set it to the real thing, or unset LIVE"


def missing() -> Iterator[str]:
    names, _, media = outside.provider()
    needed = ("SECRET_KEY", "STRIPE_SECRET_KEY", "STRIPE_WEBHOOK_SECRET", *names)
    yield from (f"LIVE is set, {name} is missing" for name in needed if not given(name))
    yield from (f"LIVE is set, {name} names no address" for name, host in outside.hosts() if not host)
    yield from (f"LIVE is set, {name} is empty" for name in media if not getattr(settings, name))
    bucket = _bucket()
    if bucket:
        parts = {"S3_ACCESS_KEY_ID": bucket.access_key, "S3_SECRET_ACCESS_KEY": bucket.secret_key}
        yield from (f"LIVE is set, {name} is missing" for name, value in parts.items() if not value)


def no_live_card_key() -> Iterator[str]:
    key = given("STRIPE_SECRET_KEY")
    if key and not key.startswith(CARD_KEYS):
        yield "LIVE is set, STRIPE_SECRET_KEY is not a live key"


def address_inside() -> Iterator[str]:
    ours = host_of(settings.PUBLIC_URL)
    for name, host in [("PUBLIC_URL", ours), *outside.hosts()]:
        if host and is_inside(host):
            yield f"LIVE is set, {name} names {host}: this machine or a private one"
        elif host and name != "PUBLIC_URL" and host == ours:
            yield f"LIVE is set, {name} names {host}, the shop itself"
    # A bucket may well stand in the operator's own network: nobody outside fetches from it.
    host = host_of(_endpoint())
    if host and is_this_machine(host):
        yield f"LIVE is set, S3_ENDPOINT_URL names {host}: this machine"


def no_https() -> Iterator[str]:
    addresses = {
        name: str(getattr(settings, name)) for name in ("PUBLIC_URL", "STRIPE_API_BASE", *outside.provider()[1])
    }
    if _endpoint():
        addresses["S3_ENDPOINT_URL"] = _endpoint()
    for name, address in addresses.items():
        if not address.lower().startswith("https://"):
            yield f"LIVE is set, {name} does not begin with https://"


def unsigned_storage() -> Iterator[str]:
    bucket = _bucket()
    if bucket is None:
        yield "LIVE is set, blobs are stored in local files"
    elif not bucket.querystring_auth or (bucket.custom_domain and not bucket.cloudfront_signer):
        yield "LIVE is set, the bucket's addresses are not signed"
    elif str(bucket.default_acl or "").startswith("public"):
        yield "LIVE is set, the bucket's objects are made public"


def sqlite() -> Iterator[str]:
    if settings.DATABASES["default"]["ENGINE"].endswith("sqlite3"):
        yield "LIVE is set, the database is SQLite"


def small_broker() -> Iterator[str]:
    kind = str(settings.CELERY_BROKER_URL).partition(":")[0].lower()
    if kind in {"", "filesystem", "memory", "in-memory"}:
        yield f"LIVE is set, the broker is {kind or 'not named'}"


def debug() -> Iterator[str]:
    if settings.DEBUG:
        yield "LIVE is set together with DEBUG"


def called_a_sandbox() -> Iterator[str]:
    """An address cannot be the real thing and a sandbox: one of the two settings is left over."""
    named = {host_of(entry) for entry in settings.SANDBOX_HOSTS}
    for name, host in [*outside.hosts(), ("S3_ENDPOINT_URL", host_of(_endpoint()))]:
        if host and host in named:
            yield f"LIVE is set, {name} names {host}, which SANDBOX_HOSTS calls a sandbox"


def published_secret() -> Iterator[str]:
    """The demo's secrets stand in this project for everybody to read: with one, anybody could send us a paid event."""
    known = {value for side in sandbox_settings(0).values() for name, value in side.items() if is_secret(name)}
    for name in (*outside.provider()[0], "STRIPE_WEBHOOK_SECRET"):
        if known & set(keys(outside.text(name))):
            yield f"LIVE is set, {name} is the demo's, which everybody knows"


def mail_that_stays() -> Iterator[str]:
    """A live shop whose mails stay here sells, and its customers never hear of it."""
    if settings.EMAIL_BACKEND.rsplit(".", 2)[-2] in MAIL_THAT_STAYS:
        yield "LIVE is set, mails stay on this machine"


RULES = (
    Rule("waistheart.E001", True, missing, f"{REAL}; nothing falls back to a demo"),
    Rule("waistheart.E002", True, no_live_card_key, f"{REAL}: it begins with sk_live_ or rk_live_"),
    Rule("waistheart.E003", True, address_inside, f"{REAL}: an address the world knows"),
    Rule("waistheart.E004", True, no_https, f"{REAL}: nothing of a live shop travels in the open"),
    Rule("waistheart.E005", True, unsigned_storage, "Set S3_BUCKET to a private bucket whose addresses are signed"),
    Rule("waistheart.E006", True, sqlite, "Set DATABASE_URL to a PostgreSQL server"),
    Rule("waistheart.E007", True, small_broker, "Set BROKER_URL to Redis or RabbitMQ"),
    Rule("waistheart.E008", True, debug, "Unset DEBUG"),
    Rule("waistheart.E009", True, called_a_sandbox, "Take it out of SANDBOX_HOSTS, or name the real thing"),
    Rule("waistheart.E010", True, published_secret, f"{REAL}: a secret of your own"),
    Rule("waistheart.E015", True, mail_that_stays, "Set EMAIL_URL to a server that sends mail"),
)


def is_secret(name: str) -> bool:
    """Whether a setting's name says that it is a secret."""
    return name.endswith(("KEY", "SECRET"))


def _bucket() -> S3Storage | None:
    storage = storages["default"]
    return storage if isinstance(storage, S3Storage) else None


def _endpoint() -> str:
    bucket = _bucket()
    return str(bucket.endpoint_url or "") if bucket else ""
