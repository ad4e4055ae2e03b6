"""The bytes of one HTTP answer, judged while they pass: exactly as many as announced, decoded, limited, not a web page."""

import http.client
import socket
import zlib
from collections.abc import Iterator

from generation.outbound import TransferFailed

CHUNK_BYTES = 64 * 1024
# How long to wait for bytes beyond the announced end; a server that keeps to its word has closed by then.
BEYOND_SECONDS = 0.25
LOOKED_AT = 64
GONE = {403, 404, 410}
PAGES = {"text/html", "application/xhtml+xml"}
ZIPPED = {"gzip": 16 + zlib.MAX_WBITS, "x-gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}


def begin(answer: http.client.HTTPResponse, sock: socket.socket, max_bytes: int) -> tuple[int | None, Iterator[bytes]]:
    """Judge the head of an answer: the exact length of what follows (None: unknown) and the bytes themselves.

    Raises `TransferFailed`, here for the head and while iterating for the rest. The bytes are decoded; of an encoded body
    only the decoder knows the end, so the announced length says nothing about it.
    """
    _check_head(answer)
    encoding, length = _encoding(answer), _length(answer)
    if length is not None and length > max_bytes:
        raise TransferFailed("too_big", f"{length} bytes announced")
    if encoding:
        return None, _judged(_unzipped(_to_the_end(answer), encoding), max_bytes)
    if length is None:
        return None, _judged(_to_the_end(answer), max_bytes)
    return length, _judged(_exactly(answer, sock, length), max_bytes)


def _check_head(answer: http.client.HTTPResponse) -> None:
    if 300 <= answer.status < 400:
        raise TransferFailed("redirect", f"{answer.status}")
    if answer.status in GONE:
        raise TransferFailed("gone", f"{answer.status}")
    if answer.status != 200:
        raise TransferFailed(f"status:{answer.status}")
    if answer.headers.get_content_type() in PAGES:
        raise TransferFailed("html", "by its content type")


def _encoding(answer: http.client.HTTPResponse) -> str:
    """The name of the body's encoding, "" for none."""
    name = answer.headers.get("Content-Encoding", "").strip().lower()
    if name in {"", "identity"}:
        return ""
    if name not in ZIPPED:
        raise TransferFailed("encoding", name)
    return name


def _length(answer: http.client.HTTPResponse) -> int | None:
    """The announced length; a chunked body has none, whatever a header says beside it."""
    told = answer.headers.get("Content-Length", "").strip()
    return int(told) if told.isascii() and told.isdigit() and len(told) < 20 and not answer.chunked else None


def _exactly(answer: http.client.HTTPResponse, sock: socket.socket, length: int) -> Iterator[bytes]:
    # The library's own reading stops at the announced length and ends quietly before it.
    stream, total = answer.fp, 0
    while total < length:
        chunk = stream.read1(min(CHUNK_BYTES, length - total))
        if not chunk:
            raise TransferFailed("short", f"{total} of {length} bytes")
        total += len(chunk)
        yield chunk
    if _goes_on(answer, sock):
        raise TransferFailed("long", f"more than {length} bytes")


def _goes_on(answer: http.client.HTTPResponse, sock: socket.socket) -> bool:
    sock.settimeout(BEYOND_SECONDS)
    try:
        return answer.fp.read1(1) != b""
    except OSError:
        # Silence, or a connection that broke after its last byte.
        return False


def _to_the_end(answer: http.client.HTTPResponse) -> Iterator[bytes]:
    # Only chunked framing is left to the library: a length beside an encoding may be that of the decoded bytes.
    stream = answer if answer.chunked else answer.fp
    while chunk := stream.read1(CHUNK_BYTES):
        yield chunk


def _unzipped(raw: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    """Decode in bounded steps: a small body may unpack to any size."""
    decoder = None
    for piece in raw:
        decoder = decoder or zlib.decompressobj(_window(encoding, piece))
        yield from _steps(decoder, piece)
        if decoder.eof:
            return
    raise TransferFailed("short", "the encoded body broke off")


def _steps(decoder: "zlib._Decompress", piece: bytes) -> Iterator[bytes]:
    while True:
        try:
            plain = decoder.decompress(piece, CHUNK_BYTES)
        except zlib.error as error:
            raise TransferFailed("encoding", str(error)) from error
        if plain:
            yield plain
        piece = decoder.unconsumed_tail
        if decoder.eof or (not piece and len(plain) < CHUNK_BYTES):
            return


def _window(encoding: str, beginning: bytes) -> int:
    # Half of the world sends "deflate" without the header that the standard asks for.
    bare = encoding == "deflate" and beginning[0] & 0x0F != zlib.DEFLATED
    return -zlib.MAX_WBITS if bare else ZIPPED[encoding]


def _judged(chunks: Iterator[bytes], max_bytes: int) -> Iterator[bytes]:
    total, beginning = 0, b""
    for chunk in chunks:
        if len(beginning) < LOOKED_AT:
            beginning += chunk[:LOOKED_AT]
            if beginning.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"<"):
                raise TransferFailed("html", "by its first byte")
        total += len(chunk)
        if total > max_bytes:
            raise TransferFailed("too_big", f"more than {max_bytes} bytes")
        yield chunk
