"""Which settings the demo adds to those that the environment already has. What is set there wins, but for its ports."""

from collections.abc import Mapping

# Each side comes whole: whoever names one address of it brings the others along.
ADDRESSES = {
    "fal": ("FAL_QUEUE_URL", "FAL_API_URL", "FAL_JWKS_URL", "FAL_MEDIA_HOSTS"),
    "stripe": ("STRIPE_API_BASE",),
}


def sandbox_sides(environ: Mapping[str, str]) -> list[str]:
    """Name the sides ("fal", "stripe") that the sandbox must stand in for: those without any address in `environ`."""
    if is_live(environ):
        return []
    return [side for side, names in ADDRESSES.items() if not any(environ.get(name) for name in names)]


def is_live(environ: Mapping[str, str]) -> bool:
    """Tell whether LIVE is on; the settings are stricter about how it may be written."""
    return environ.get("LIVE", "").strip().lower() in {"1", "true", "yes"}


def sandbox_settings(sandbox_port: int) -> dict[str, dict[str, str]]:
    """Give the settings per side that make the shop talk to a sandbox on `sandbox_port` of this machine."""
    host = f"127.0.0.1:{sandbox_port}"
    return {
        "fal": {
            "FAL_KEY": "sandbox-fal-key",
            "FAL_QUEUE_URL": f"http://{host}/fal/queue",
            "FAL_API_URL": f"http://{host}/fal/api/v1",
            "FAL_JWKS_URL": f"http://{host}/fal/.well-known/jwks.json",
            "FAL_MEDIA_HOSTS": host,
        },
        "stripe": {
            "STRIPE_SECRET_KEY": "sk_test_sandbox",
            "STRIPE_WEBHOOK_SECRET": "whsec_sandbox",
            "STRIPE_API_BASE": f"http://{host}/stripe",
        },
    }


def demo_environment(environ: Mapping[str, str], *, web_port: int, sandbox_port: int, var_dir: str) -> dict[str, str]:
    """Return `environ` completed for a demo on these ports; an empty value counts as not set.

    The ports are these whatever stands there: the addresses that lead to them are made of the same numbers.
    """
    ports = {"WEB_PORT": str(web_port), "SANDBOX_PORT": str(sandbox_port)}
    additions = {
        "PUBLIC_URL": f"http://127.0.0.1:{web_port}",
        "VAR_DIR": var_dir,
    }
    for side in sandbox_sides(environ):
        additions |= sandbox_settings(sandbox_port)[side]
    given = {name: value for name, value in environ.items() if value or name not in additions}
    return {**additions, **given, **ports}
