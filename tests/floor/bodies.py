"""Bodies for storage tests, made while they are read."""

from collections.abc import Iterator

MIB = 1024 * 1024


def pieces(length: int, step: int = 64 * 1024) -> Iterator[bytes]:
    """That many bytes in steps of 64 KiB."""
    for at in range(0, length, step):
        yield bytes([at // step % 256]) * min(step, length - at)


def broken(length: int, error: Exception) -> Iterator[bytes]:
    """That many bytes, then the error."""
    yield from pieces(length)
    raise error
