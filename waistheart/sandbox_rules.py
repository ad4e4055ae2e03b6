"""What must not be without LIVE: anything real, but the card processor with a test key. Each rule answers its breaches in words."""

from collections.abc import Iterator

from django.conf import settings

from waistheart import outside
from waistheart.hosts import host_of, is_loopback, is_within
from waistheart.problems import Rule

CARD_KEYS = ("sk_test_", "rk_test_")
# Videos cost money there whoever asks: paid with play money, every one of them would be a loss.
REAL_PROVIDERS = ("fal.ai", "fal.run", "fal.media", "replicate.com", "replicate.delivery", "runware.ai")


def no_test_card_key() -> Iterator[str]:
    key = outside.given("STRIPE_SECRET_KEY")
    if key and not key.startswith(CARD_KEYS):
        yield "LIVE is not set, STRIPE_SECRET_KEY is not a test key"


def foreign_address() -> Iterator[str]:
    named = {host_of(entry) for entry in settings.SANDBOX_HOSTS}
    for name, host in outside.hosts():
        if not is_loopback(host) and host not in named:
            yield f"LIVE is not set, {name} names {host or 'no address'}, which is not this machine"


def real_provider() -> Iterator[str]:
    for host in map(host_of, settings.SANDBOX_HOSTS):
        if any(is_within(host, domain) for domain in REAL_PROVIDERS):
            yield f"LIVE is not set, SANDBOX_HOSTS names {host}: real videos would be made for money that is none"


RULES = (
    Rule("waistheart.E011", False, no_test_card_key, "Use a test key, or set LIVE=1 and everything that goes with it"),
    Rule("waistheart.E012", False, foreign_address,
         "Name the sandbox, list a sandbox of your own in SANDBOX_HOSTS, or set LIVE=1"),
    Rule("waistheart.E013", False, real_provider, "Take it out, or set LIVE=1: only Stripe has a test mode"),
)  # fmt: skip
