"""The outermost boxes of an MP4: is the file whole, does its index come first? Moves it there without re-encoding."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import IO

from waistheart.storage import own_disk

COPY_BYTES = 256 * 1024
MAX_INDEX_BYTES = 16 * 1024 * 1024
MAX_BOXES = 1000
# The boxes on the way from the index down to the tables that hold places in the file.
WAY_DOWN = (b"trak", b"mdia", b"minf", b"stbl")


class NotBoxes(Exception):
    """These bytes are no whole MP4: a box runs over the end, or what must be there is missing."""


@dataclass(frozen=True, slots=True)
class Box:
    """One outermost box: its kind (b"moov"), where it starts and how many bytes it has with its header."""

    kind: bytes
    start: int
    size: int


def boxes(file: IO[bytes]) -> list[Box]:
    """The outermost boxes in order. Raises `NotBoxes` unless they fill the file exactly and are those of an MP4."""
    end = file.seek(0, os.SEEK_END)
    found = list(islice(_walk(file, end), MAX_BOXES + 1))
    kinds = [box.kind for box in found]
    if len(found) > MAX_BOXES or kinds[:1] != [b"ftyp"] or kinds.count(b"moov") != 1 or b"mdat" not in kinds:
        raise NotBoxes("no MP4")
    file.seek(8)
    if file.read(4) == b"qt  ":
        raise NotBoxes("QuickTime, not MP4")
    return found


def index_first(found: list[Box]) -> bool:
    """Whether a player can begin before it has the whole file."""
    kinds = [box.kind for box in found]
    return kinds.index(b"moov") < kinds.index(b"mdat")


def faststart(file: IO[bytes]) -> IO[bytes]:
    """The same video with its index first: the very same file when it is so already, else a new temporary one.

    Not one coded byte changes; the caller closes both, and the new one has no name to remove. Raises `NotBoxes` for what is no
    whole MP4, `StorageError` when there is no room for the new one.
    """
    with own_disk():
        return _index_first(file)


def _index_first(file: IO[bytes]) -> IO[bytes]:
    found = boxes(file)
    if index_first(found):
        file.seek(0)
        return file
    moov = next(box for box in found if box.kind == b"moov")
    if moov.size > MAX_INDEX_BYTES:
        raise NotBoxes("index too big")
    first = next(box for box in found if box.kind == b"mdat")
    index = bytearray(_bytes(file, moov))
    _shift(memoryview(index), WAY_DOWN, range(first.start, moov.start), moov.size)
    out = tempfile.TemporaryFile()  # noqa: SIM115 (handed to the caller)
    try:
        for box in found:
            if box is first:
                out.write(index)
            if box is not moov:
                _copy(file, box, out)
        out.seek(0)
    except BaseException:
        # Closing writes what is still in its buffer, for which there may be no room either.
        with suppress(OSError):
            out.close()
        raise
    return out


def _walk(file: IO[bytes], end: int) -> Iterator[Box]:
    at = 0
    while at < end:
        file.seek(at)
        header = file.read(16)
        size, kind, least = int.from_bytes(header[:4], "big"), header[4:8], 8
        if size == 1:
            size, least = int.from_bytes(header[8:16], "big"), 16
        elif size == 0:
            size = end - at
        if len(header) < least or size < least or at + size > end:
            raise NotBoxes("a box runs over the end")
        yield Box(kind, at, size)
        at += size


def _shift(index: memoryview, way: tuple[bytes, ...], moving: range, by: int) -> None:
    """Every place in the file between the first media byte and the old index moves back by the index's size."""
    at = 8
    while at + 8 <= len(index):
        size, kind = int.from_bytes(index[at : at + 4], "big"), bytes(index[at + 4 : at + 8])
        if size < 8 or at + size > len(index):
            raise NotBoxes("a box of the index runs over its end")
        if way and kind == way[0]:
            _shift(index[at : at + size], way[1:], moving, by)
        elif not way and kind in {b"stco", b"co64"}:
            _shift_table(index[at : at + size], 4 if kind == b"stco" else 8, moving, by)
        at += size


def _shift_table(table: memoryview, width: int, moving: range, by: int) -> None:
    count = int.from_bytes(table[12:16], "big")
    if 16 + count * width > len(table):
        raise NotBoxes("a table of the index runs over its end")
    for at in range(16, 16 + count * width, width):
        place = int.from_bytes(table[at : at + width], "big")
        if place in moving:
            place += by
        if place >= 1 << (8 * width):
            raise NotBoxes("too big for its table")
        table[at : at + width] = place.to_bytes(width, "big")


def _bytes(file: IO[bytes], box: Box) -> bytes:
    file.seek(box.start)
    return file.read(box.size)


def _copy(file: IO[bytes], box: Box, out: IO[bytes]) -> None:
    file.seek(box.start)
    left = box.size
    while left:
        piece = file.read(min(COPY_BYTES, left))
        if not piece:
            raise NotBoxes("the file ended while it was copied")
        out.write(piece)
        left -= len(piece)
