"""Who may press the switches: programs and pages of this machine, never a page of somebody else that is open in a browser here.

A browser sends any page's form to any address, and a name of a stranger may lead to this machine: the first names its page as the
Origin, the second itself as the Host.
"""

import ipaddress
from urllib.parse import urlsplit

from waistheart.sandbox.server import Request, Response, json_response


def refused(request: Request, *, own: str) -> Response | None:
    """403 for a switch or a button that a stranger presses; None for everybody else. `own` is the host we listen on."""
    switch, button = request.path.startswith("/control"), request.path.startswith("/stripe/pay/")
    if not switch and not (button and request.method != "GET"):
        return None
    host, origin = request.headers.get("Host", ""), request.headers.get("Origin")
    if not is_ours(host, own):
        return json_response(403, {"detail": "This address is only for this machine."})
    if origin not in (None, f"http://{host}", f"https://{host}"):
        return json_response(403, {"detail": "A page from elsewhere may not do this."})
    return None


def is_ours(host: str, own: str) -> bool:
    """Whether a Host header names this machine, or the very host we were told to listen on."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    try:
        return name == own or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost" or name.endswith(".localhost")
