"""Intake of portraits: whatever bytes arrive, either a clean upright JPEG comes out or a sentence that says what to do.

The content decides, never a name or a declared type. Only the re-encoded copy is kept: no EXIF, no place, no profile.
"""

import hashlib
import io
import logging
import math
from dataclasses import dataclass
from threading import BoundedSemaphore

import pi_heif
from PIL import Image, ImageCms, UnidentifiedImageError

from generation.crop import to_jpeg

logger = logging.getLogger(__name__)
pi_heif.register_heif_opener(thumbnails=False)

MAX_BYTES = 15 * 1024 * 1024
# A decoder needs several bytes for a pixel, and a file of 250 KB may ask for any number of pixels. JPEG is decoded at a fraction
# of its size; HEIF is what phones with 48 megapixels write. The others come from screens and programs.
MAX_PIXELS = {"JPEG": 60_000_000, "HEIF": 60_000_000}
MAX_PIXELS_WHOLE = 25_000_000
# Decodings at the same time in one process; the next one waits for its turn.
DECODING = BoundedSemaphore(2)
BAND_PIXELS = 2_000_000
MIN_SHORT_SIDE = 512
MAX_LONG_SIDE = 2560

# GIF is opened only to tell an animation from a wrong type.
OPENED = ("JPEG", "PNG", "WEBP", "HEIF", "AVIF", "GIF")
MAGIC = (b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n")
TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
PLAIN = ("RGB", "L", "CMYK")
SRGB = ImageCms.createProfile("sRGB")


class PhotoProblem(Exception):
    """Why a photo was not taken: a code for us, a sentence for the customer."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True)
class Portrait:
    """A photo as we keep it: upright sRGB JPEG without metadata. `sha256` is the JPEG's, `format` what came in."""

    jpeg: bytes
    width: int
    height: int
    sha256: str
    format: str


def intake(data: bytes) -> Portrait:
    """Turn uploaded bytes into a `Portrait`, or raise `PhotoProblem`; nothing else is ever raised."""
    if not data:
        raise PhotoProblem("empty", "This file is empty. Choose another photo")
    if len(data) > MAX_BYTES:
        raise _too_big(len(data))
    try:
        with DECODING, Image.open(io.BytesIO(data), formats=OPENED) as picture:
            return _portrait(picture, data)
    except PhotoProblem:
        raise
    except UnidentifiedImageError as error:
        raise (_unreadable() if _looks_like_a_photo(data) else _wrong_type()) from error
    except Exception as error:
        # Decoders raise anything for bytes made to break them. The log tells a new phone's format from an attack.
        logger.info("photo unreadable: %d bytes beginning %s: %.200r", len(data), data[:16].hex(), error)
        raise _unreadable() from error


def _portrait(picture: Image.Image, data: bytes) -> Portrait:
    # MPO is how phones write a JPEG with a second picture behind it.
    seen = "JPEG" if picture.format == "MPO" else str(picture.format)
    _check_before_decoding(picture, seen)
    if seen == "JPEG":
        # Half, quarter or eighth size straight from the decoder, when that is still more than we keep.
        picture.draft(picture.mode, (MAX_LONG_SIDE, MAX_LONG_SIDE))
    turn = TURNS.get(_orientation(picture))
    if seen == "HEIF":
        # Pillow's reader of several pictures in one file undoes at every step what was done to the first.
        picture = pi_heif.open_heif(io.BytesIO(data), remove_stride=False).to_pillow()
    picture.load()
    clean = _srgb(picture)
    upright = clean if turn is None else clean.transpose(turn)
    jpeg = to_jpeg(upright)
    return Portrait(jpeg, upright.width, upright.height, hashlib.sha256(jpeg).hexdigest(), seen)


def _check_before_decoding(picture: Image.Image, seen: str) -> None:
    """What the header tells: a bomb must never be unpacked to be measured."""
    # A phone's JPEG or HEIC may hold further pictures (depth, the other eye); the first is the photo.
    if seen not in {"JPEG", "HEIF"} and getattr(picture, "is_animated", False):
        raise PhotoProblem("animated", "Choose a still photo, not an animation")
    if seen == "GIF":
        raise _wrong_type()
    pixels, most = picture.width * picture.height, MAX_PIXELS.get(seen, MAX_PIXELS_WHOLE)
    if pixels > most:
        raise _too_many_pixels(pixels, most)
    short = min(picture.size)
    if short < MIN_SHORT_SIDE:
        words = f"Choose a larger photo. The short side is {short} pixels and must be at least {MIN_SHORT_SIDE}"
        raise PhotoProblem("small", words)
    if short * MAX_LONG_SIDE < MIN_SHORT_SIDE * max(picture.size):
        # It is kept with its long side made shorter, and so much of its short side would not be left.
        most = MAX_LONG_SIDE // MIN_SHORT_SIDE
        words = f"Choose another photo. One side of this one is more than {most} times as long as the other"
        raise PhotoProblem("small", words)


def _orientation(picture: Image.Image) -> int:
    """The turn that the file asks for; one with broken EXIF asks for none. (The HEIF and AVIF decoders take care that
    a turn they made themselves is not asked for again.)"""
    try:
        return int(picture.getexif().get(0x0112, 1))
    except Exception:  # noqa: BLE001 (a good photo may carry any rubbish as EXIF)
        return 1


def _srgb(picture: Image.Image) -> Image.Image:
    profile = picture.info.get("icc_profile")
    opaque = _reduced(_opaque(picture))
    if profile:
        try:
            source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
            converted = ImageCms.profileToProfile(opaque, source, SRGB, outputMode="RGB")
        except (ImageCms.PyCMSError, OSError, ValueError, TypeError):
            # A profile that does not fit the picture says nothing about it.
            converted = None
        if converted is not None:
            return converted
    return opaque.convert("RGB")


def _opaque(picture: Image.Image) -> Image.Image:
    """Eight bits and nothing that shines through, at a whole fraction of its size, but never below what we keep.

    Made in bands: every conversion copies what it is given, and five copies of a large picture are most of a small machine.
    """
    factor = max(1, max(picture.size) // MAX_LONG_SIDE)
    if picture.mode in PLAIN and not picture.has_transparency_data:
        return picture.reduce(factor) if factor > 1 else picture
    rows = factor * max(1, BAND_PIXELS // picture.width // factor)
    bands = range(0, picture.height, rows)
    whole = None
    for top in bands:
        band = picture.crop((0, top, picture.width, min(picture.height, top + rows)))
        done = _flattened(_eight_bit(band)).reduce(factor)
        if whole is None:
            whole = Image.new(done.mode, (done.width, -(-picture.height // factor)))
        whole.paste(done, (0, top // factor))
    return whole or picture


def _eight_bit(picture: Image.Image) -> Image.Image:
    """16-bit grey scaled down (a plain convert would clip it to white), palettes and rarities made plain colours."""
    if picture.mode.startswith("I"):
        return picture.convert("I").point(lambda level: level / 256).convert("L")
    if picture.mode in {*PLAIN, "RGBA", "LA"}:
        return picture
    return picture.convert("RGBA" if picture.has_transparency_data else "RGB")


def _flattened(picture: Image.Image) -> Image.Image:
    """On white, where the picture lets something through."""
    if not picture.has_transparency_data:
        return picture
    layer = picture.convert("RGBA")
    ground = Image.new("RGB", layer.size, "white")
    ground.paste(layer, mask=layer.getchannel("A"))
    return ground


def _reduced(picture: Image.Image) -> Image.Image:
    picture.thumbnail((MAX_LONG_SIDE, MAX_LONG_SIDE), Image.Resampling.LANCZOS)
    return picture


def _looks_like_a_photo(data: bytes) -> bool:
    return (
        data.startswith(MAGIC)
        or (data[:4] == b"RIFF" and data[8:12] == b"WEBP")
        or (data[4:8] == b"ftyp" and data[8:12] in {b"heic", b"heix", b"hevc", b"mif1", b"msf1", b"avif", b"avis"})
    )


def _too_big(size: int) -> PhotoProblem:
    # Rounded up, so that nobody reads that 15.0 is not smaller than 15.
    shown = math.ceil(size / (1024 * 1024) * 10) / 10
    return PhotoProblem("big", f"Choose a photo smaller than 15 MB. This one is {shown:g} MB")


def _too_many_pixels(pixels: int, most: int) -> PhotoProblem:
    shown = math.ceil(pixels / 1_000_000)
    words = f"Choose a smaller photo. This one has {shown} megapixels and must have at most {most // 1_000_000}"
    return PhotoProblem("pixels", words)


def _wrong_type() -> PhotoProblem:
    return PhotoProblem("type", "Choose a JPEG, PNG, WebP or HEIC photo")


def _unreadable() -> PhotoProblem:
    return PhotoProblem("unreadable", "We could not open this photo. Choose another or save it again as JPEG")
