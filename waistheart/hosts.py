"""Is a host of the settings this machine, a private one, or somebody else's? Decided by the name alone: nothing is resolved."""

import ipaddress
import socket
from urllib.parse import urlsplit

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
# Names that no public name server answers for.
INSIDE = (".localhost", ".localdomain", ".local", ".internal", ".lan", ".home.arpa", ".test", ".invalid")


def host_of(address: str) -> str:
    """The host of a URL or of "host[:port]", in lower letters; empty when there is none."""
    try:
        return (urlsplit(address if "//" in address else f"//{address}").hostname or "").rstrip(".")
    except ValueError:
        return ""


def is_loopback(host: str) -> bool:
    """Whether the host is this machine and can be nothing else."""
    number = _number(host)
    return number.is_loopback if number else host == "localhost" or host.endswith(".localhost")


def is_this_machine(host: str) -> bool:
    """Whether the host is this machine, also by its own name or by the address that stands for all of its own."""
    number = _number(host)
    return is_loopback(host) or (number.is_unspecified if number else host == socket.gethostname().lower())


def is_within(host: str, domain: str) -> bool:
    """Whether the host is the domain or below it."""
    return host == domain or host.endswith(f".{domain}")


def is_inside(host: str) -> bool:
    """Whether the host is this machine or a private one: nothing that the world can reach, and nothing of a provider."""
    number = _number(host)
    if number:
        return not number.is_global
    return "." not in host or host.endswith(INSIDE) or host == socket.gethostname().lower()


def _number(host: str) -> IPAddress | None:
    """The address a host is written as, also in the short ways (127.1) that every library understands."""
    try:
        number = ipaddress.ip_address(host)
    except ValueError:
        try:
            return ipaddress.IPv4Address(socket.inet_aton(host))
        except OSError:
            return None
    mapped = number.ipv4_mapped if isinstance(number, ipaddress.IPv6Address) else None
    return mapped or number
