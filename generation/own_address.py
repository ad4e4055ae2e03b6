"""Is our own image address reachable? A provider that cannot load our image says nothing about the customer's photo until we can."""

import logging

import requests
from django.conf import settings

from generation import accounts
from generation.models import ProviderAccount

log = logging.getLogger(__name__)
# A 1x1 GIF served at a fixed address, so that the address can be tried without anybody's portrait.
PIXEL = bytes.fromhex("47494638396101000100800000000000ffffff21f90401000000002c00000000010001000002024401003b")
PATH = "/portraits/probe.gif"


def reachable() -> bool:
    """Fetch the probe picture from our public address, over the network like a provider would."""
    try:
        response = requests.get(settings.PUBLIC_URL + PATH, timeout=(5, 10), allow_redirects=False)
    except requests.RequestException:
        return False
    return response.status_code == 200 and response.content == PIXEL


def check(account: ProviderAccount) -> bool:
    """Look, and when it is not reachable stop submitting: that is our outage, with one alarm, and nobody's photo is to blame."""
    if reachable():
        return True
    accounts.open_outage(account, state=accounts.STATE.UNAVAILABLE, detail="our own image address is not reachable")
    return False
