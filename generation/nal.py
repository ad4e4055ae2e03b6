"""The units inside one H.264 sample. A decoder paints zeros as a picture; the rules of the format give them away.

Arithmetic coding has no checksum, so a decoder may read a hole to its end without noticing. But no unit may contain
three zero bytes, nor two followed by 1 or 2, and blocks that were never written are zeros.
"""

FORBIDDEN = (b"\0\0\0", b"\0\0\1", b"\0\0\2")


class BadUnits(Exception):
    """This sample was not written by any encoder."""


def length_bytes(extradata: bytes | None) -> int:
    """How many bytes hold the length of each unit. Raises `BadUnits` when the track's header does not say so."""
    if not extradata or len(extradata) < 7 or extradata[0] != 1:
        raise BadUnits("no decoder configuration")
    return (extradata[4] & 3) + 1


def check(sample: bytes, width: int) -> None:
    """Raise `BadUnits` unless units with lengths of `width` bytes fill the sample and none holds a forbidden row."""
    at = 0
    while at < len(sample):
        start = at + width
        at = start + int.from_bytes(sample[at:start], "big")
        if at > len(sample) or at == start:
            raise BadUnits("a unit's length is wrong")
        # Some writers leave zeros behind the last unit; they belong to no picture.
        unit = sample[start:at].rstrip(b"\0")
        if not unit or any(row in unit for row in FORBIDDEN):
            raise BadUnits("a unit holds bytes that no encoder writes")
