"""Which addresses a body may come from, and a connection to exactly the address that was checked.

A result's address is a stranger's word. Resolving its name twice (once to check, once to connect) would let a name
server answer differently the second time, so the socket is opened to the checked number itself.
"""

import http.client
import ipaddress
import socket
import ssl
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from urllib.parse import SplitResult, quote, urlsplit

from requests.utils import DEFAULT_CA_BUNDLE_PATH

from waistheart.wire import plain

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

DEFAULT_PORTS = {"https": 443, "http": 80}
CONNECT_SECONDS = 10.0
# Numbers of version 6 that stand for one of version 4: the world's translator, and one that a house runs for itself.
TRANSLATED = ipaddress.IPv6Network("64:ff9b::/96")
TRANSLATED_INSIDE = ipaddress.IPv6Network("64:ff9b:1::/48")


class TransferFailed(Exception):
    """A body did not arrive whole. `reason` is one of: host, scheme, address, redirect, status:<n>, gone, short, long,
    too_big, slow, network, html, encoding."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(plain(f"{reason}: {detail}" if detail else reason))
        self.reason = reason


class NotPinned(TransferFailed):
    """A well-formed address, refused by nothing but our own list of hosts."""


@dataclass(frozen=True, slots=True)
class Target:
    """An address that may be asked, taken apart."""

    scheme: str
    host: str
    port: int
    path: str


def target(url: str, *, allowed_hosts: Sequence[str], live: bool) -> Target:
    """Check an address against the pinned hosts ("host" means its scheme's usual port, else "host:port").

    Live it must be https; otherwise http to one of the listed hosts of this machine. Raises `TransferFailed` with
    scheme or host; `NotPinned` where only the list refuses it. Asks nobody: the numbers behind the name are checked when connecting.
    """
    parts = _split(url)
    if parts.scheme != ("https" if live else "http"):
        raise TransferFailed("scheme", parts.scheme)
    host, port = _host_and_port(parts)
    default = DEFAULT_PORTS[parts.scheme]
    allowed = {entry.lower() if _has_port(entry) else f"{entry.lower()}:{default}" for entry in allowed_hosts}
    shown = f"[{host}]" if ":" in host else host
    if f"{shown}:{port}" not in allowed:
        raise NotPinned("host", f"{shown}:{port}")
    path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~")
    query = quote(parts.query, safe="/%:@!$&'()*+,;=~?[]")
    return Target(parts.scheme, host, port, f"{path}?{query}" if query else path)


def connect(wanted: Target, *, live: bool, deadline: float, read_seconds: float) -> http.client.HTTPConnection:
    """A connection to one of the target's checked numbers, not yet used. `deadline` is on the monotonic clock.

    Raises `TransferFailed`: address when any number behind the name is not where bodies may come from, slow, network.
    """
    numbers = _resolved(wanted, live)
    connection = http.client.HTTPConnection(wanted.host, wanted.port)
    # Or the port would stand in the Host header, and some servers know themselves only without it.
    connection.default_port = DEFAULT_PORTS[wanted.scheme]
    connection.sock = _socket(numbers, wanted, deadline)
    connection.sock.settimeout(min(read_seconds, max(0.001, deadline - time.monotonic())))
    return connection


def _split(url: str) -> SplitResult:
    if not url.isascii() or not url.isprintable() or " " in url or "\\" in url:
        raise TransferFailed("host", "not a plain address")
    try:
        return urlsplit(url)
    except ValueError as error:
        raise TransferFailed("host", str(error)) from error


def _host_and_port(parts: SplitResult) -> tuple[str, int]:
    try:
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise TransferFailed("host", str(error)) from error
    if not host or "@" in parts.netloc or "%" in host:
        raise TransferFailed("host", "none, or with a name and password")
    return host, port or DEFAULT_PORTS[parts.scheme]


def _has_port(entry: str) -> bool:
    return entry.rpartition("]")[2].rpartition(":")[2].isdigit()


def _resolved(wanted: Target, live: bool) -> list[str]:
    try:
        found = socket.getaddrinfo(wanted.host, wanted.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise TransferFailed("network", f"the name {wanted.host} has no number: {error}") from error
    numbers = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    for number in numbers:
        if not _permitted(number, live):
            raise TransferFailed("address", f"{wanted.host} is {number}")
    return numbers


def _permitted(number: str, live: bool) -> bool:
    try:
        address = _meant(ipaddress.ip_address(number))
    except ValueError:
        return False
    return _is_public(address) if live else address.is_loopback


def _meant(address: IPAddress) -> IPAddress:
    """The number of version 4 that one of version 6 stands for, else the number itself."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in TRANSLATED:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address


def _is_public(address: IPAddress) -> bool:
    if isinstance(address, ipaddress.IPv6Address):
        tunnelled = address.sixtofour or address.teredo or address in TRANSLATED_INSIDE
        if tunnelled:
            return False
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified)


def _socket(numbers: list[str], wanted: Target, deadline: float) -> socket.socket:
    trouble: OSError | None = None
    for number in numbers:
        seconds = min(CONNECT_SECONDS, deadline - time.monotonic())
        if seconds <= 0:
            break
        try:
            return _secured(socket.create_connection((number, wanted.port), timeout=seconds), wanted)
        except OSError as error:
            trouble = error
    reason = "slow" if trouble is None or isinstance(trouble, TimeoutError) else "network"
    raise TransferFailed(reason, f"no connection to {wanted.host}: {trouble}") from trouble


def _secured(plain: socket.socket, wanted: Target) -> socket.socket:
    if wanted.scheme == "http":
        return plain
    try:
        return tls().wrap_socket(plain, server_hostname=wanted.host)
    except BaseException:
        plain.close()
        raise


@cache
def tls() -> ssl.SSLContext:
    """Whom we trust: the machine's list of authorities and the one that comes with the library."""
    context = ssl.create_default_context()
    context.load_verify_locations(DEFAULT_CA_BUNDLE_PATH)
    return context
