"""Which addresses a result may be fetched from, and what the connection to them refuses."""

import ipaddress
import os
import socket
import ssl
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from generation import outbound
from generation.transfer import TransferFailed, fetch
from tests.generation.rude_server import head, rude

DATA = b"\0\0\0\x18ftypmp42" + os.urandom(300_000)


@pytest.mark.parametrize(
    ("url", "allowed", "live", "word"),
    [
        ("https://evil.example/x", ["v3.fal.media"], True, "host"),
        ("https://v3.fal.media.evil.example/x", ["v3.fal.media"], True, "host"),
        ("https://evil.example/v3.fal.media", ["v3.fal.media"], True, "host"),
        ("https://v3.fal.media@evil.example/x", ["v3.fal.media"], True, "host"),
        ("https://user:pw@v3.fal.media/x", ["v3.fal.media"], True, "host"),
        ("https://evil.example#@v3.fal.media/x", ["v3.fal.media"], True, "host"),
        ("https://evil.example\\@v3.fal.media/x", ["v3.fal.media"], True, "host"),
        ("https://v3.fal.media:8443/x", ["v3.fal.media"], True, "host"),
        ("https://v3.fal.media:0x50/x", ["v3.fal.media"], True, "host"),
        ("https://v3.fal.media/\r\nX: y", ["v3.fal.media"], True, "host"),
        ("https://v3.fal.mediа/x", ["v3.fal.media"], True, "host"),
        ("https:///x", ["v3.fal.media"], True, "host"),
        ("https://[::1/x", ["v3.fal.media"], True, "host"),
        ("http://v3.fal.media/x", ["v3.fal.media"], True, "scheme"),
        ("ftp://v3.fal.media/x", ["v3.fal.media"], True, "scheme"),
        ("file:///etc/passwd", ["v3.fal.media"], True, "scheme"),
        ("", ["v3.fal.media"], True, "scheme"),
        ("https://127.0.0.1:8001/x", ["127.0.0.1:8001"], False, "scheme"),
        ("http://127.0.0.1:8002/x", ["127.0.0.1:8001"], False, "host"),
        ("http://127.0.0.1/x", ["127.0.0.1:8001"], False, "host"),
        ("http://localhost:8001/x", ["127.0.0.1:8001"], False, "host"),
    ],
)
def test_only_pinned_hosts_are_asked(url: str, allowed: list[str], live: bool, word: str):
    with (
        pytest.raises(TransferFailed) as caught,
        fetch(url=url, allowed_hosts=allowed, live=live, max_bytes=9, deadline_seconds=3),
    ):
        pass
    assert caught.value.reason == word


@pytest.mark.parametrize(
    ("url", "entry", "live"),
    [
        ("https://v3.fal.media/x", "v3.fal.media", True),
        ("https://V3.FAL.media:443/x", "v3.fal.MEDIA", True),
        ("https://v3.fal.media:8443/x", "v3.fal.media:8443", True),
        ("http://127.0.0.1:8001/x", "127.0.0.1:8001", False),
        ("http://[::1]:8001/x", "[::1]:8001", False),
    ],
)
def test_pinned_hosts_may_be_asked(url: str, entry: str, live: bool):
    assert outbound.target(url, allowed_hosts=["other.example", entry], live=live).path == "/x"


INSIDE = [
    "127.0.0.1", "127.9.9.9", "10.0.0.5", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0",
    "224.0.0.1", "255.255.255.255", "192.0.2.1", "240.0.0.1", "::1", "::", "fe80::1", "fe80::1%eth0", "fd00::1",
    "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::a00:1",
    "2002:7f00:1::", "2002:a00:1::", "ff02::1", "2001:db8::1",
]  # fmt: skip


@pytest.mark.parametrize("number", INSIDE)
def test_live_never_asks_a_number_inside(number: str, monkeypatch: pytest.MonkeyPatch):
    """Also when a public number stands beside it: the name server may belong to a stranger."""
    resolving(monkeypatch, "1.1.1.1", number)
    monkeypatch.setattr(outbound, "_socket", lambda *arguments: pytest.fail("connected"))
    assert refused_as("https://v3.fal.media/x", "v3.fal.media", live=True) == "address"


@pytest.mark.parametrize("number", ["1.1.1.1", "104.18.2.3", "2606:4700::1111", "64:ff9b::101:101", "::ffff:1.1.1.1"])
def test_live_asks_public_numbers(number: str):
    assert outbound._permitted(number, live=True)
    assert not outbound._permitted(number, live=False)


@pytest.mark.parametrize("number", ["1.1.1.1", "10.0.0.5", "192.168.0.9", "169.254.169.254", "::ffff:10.0.0.1"])
def test_the_demo_asks_nothing_but_this_machine(number: str, monkeypatch: pytest.MonkeyPatch):
    resolving(monkeypatch, "127.0.0.1", number)
    assert refused_as("http://media.example:8001/x", "media.example:8001", live=False) == "address"


def resolving(monkeypatch: pytest.MonkeyPatch, *numbers: str) -> None:
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (number, 443)) for number in numbers]
    monkeypatch.setattr(outbound.socket, "getaddrinfo", lambda *arguments, **more: found)


def refused_as(url: str, entry: str, *, live: bool) -> str:
    with (
        pytest.raises(TransferFailed) as caught,
        fetch(url=url, allowed_hosts=[entry], live=live, max_bytes=9, deadline_seconds=3),
    ):
        pass
    return caught.value.reason


def test_the_socket_goes_to_the_number_that_was_checked(monkeypatch: pytest.MonkeyPatch):
    """A name that answers differently the second time changes nothing: it is not asked twice."""
    real, asked = socket.getaddrinfo, []

    def rebinding(host: str, *arguments, **more):
        if host != "media.example":
            return real(host, *arguments, **more)
        asked.append(host)
        return real("127.0.0.1" if len(asked) == 1 else "10.0.0.1", *arguments, **more)

    monkeypatch.setattr(outbound.socket, "getaddrinfo", rebinding)
    with rude(head(Content_Length=5), b"heart") as server:
        host = f"media.example:{server.port}"
        with fetch(url=f"http://{host}/x", allowed_hosts=[host], live=False, max_bytes=9, deadline_seconds=3) as body:
            assert b"".join(body.chunks) == b"heart"
        assert f"Host: {host}".encode() in server.requests[0]
    assert asked == ["media.example"]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for media.example with its key."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(1).not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("media.example")]), critical=True)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    plain = serialization.NoEncryption()
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
        + made.public_bytes(serialization.Encoding.PEM)
    )
    return path


@pytest.mark.parametrize(("name", "trusted", "word"), [("media.example", True, ""), ("other.example", True, "network"),
                                                       ("media.example", False, "network")])  # fmt: skip
def test_live_the_certificate_must_be_the_names(
    name: str, trusted: bool, word: str, certificate: Path, monkeypatch: pytest.MonkeyPatch
):
    real = socket.getaddrinfo
    local = {"media.example": "127.0.0.1", "other.example": "127.0.0.1"}
    monkeypatch.setattr(outbound.socket, "getaddrinfo", lambda host, *a, **k: real(local.get(host, host), *a, **k))
    # The only way to speak TLS to this machine: its number counts as public for this one test.
    monkeypatch.setattr(outbound, "_permitted", lambda number, live: True)
    if trusted:
        monkeypatch.setattr(outbound, "tls", lambda: ssl.create_default_context(cafile=str(certificate)))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with rude(head(Content_Length=len(DATA)), DATA, context=context) as server:
        host = f"{name}:{server.port}"
        options = {"allowed_hosts": [host], "live": True, "max_bytes": 10**6, "deadline_seconds": 5}
        found = ""
        try:
            with fetch(url=f"https://{host}/x", **options) as body:
                assert b"".join(body.chunks) == DATA
        except TransferFailed as error:
            found = error.reason
    assert found == word


def test_tls_drips_end_at_the_deadline_too(certificate: Path, monkeypatch: pytest.MonkeyPatch):
    resolving(monkeypatch, "127.0.0.1")
    monkeypatch.setattr(outbound, "_permitted", lambda number, live: True)
    monkeypatch.setattr(outbound, "tls", lambda: ssl.create_default_context(cafile=str(certificate)))
    monkeypatch.setattr(
        outbound.socket, "create_connection", lambda address, timeout: connected((address[0], server.port), timeout)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with rude(
        head(Content_Length=len(DATA)), *[part for _ in range(200) for part in (b"x", 0.1)], context=context
    ) as server:
        began = time.monotonic()
        options = {"allowed_hosts": ["media.example"], "live": True, "max_bytes": 10**6, "deadline_seconds": 0.8}
        with pytest.raises(TransferFailed) as caught, fetch(url="https://media.example/x", **options) as body:
            list(body.chunks)
    assert caught.value.reason == "slow"
    assert time.monotonic() - began < 3


def connected(address: tuple[str, int], seconds: float) -> socket.socket:
    made = socket.socket()
    made.settimeout(seconds)
    made.connect(address)
    return made


def test_the_numbers_inside_are_numbers():
    for number in INSIDE:
        assert ipaddress.ip_address(number)
