"""The 9:16 frame of a portrait: what the customer approves, what the provider is given, the same pixels both times."""

import io

from PIL import Image

JPEG_QUALITY = 92
# A portrait keeps its face above the middle: a quarter of the slack above the frame puts it into the upper third.
DEFAULT_POSITION = 25
SIZES = ((1080, 1920), (720, 1280))


def crop_box(width: int, height: int, position: int = DEFAULT_POSITION) -> tuple[int, int, int, int]:
    """The biggest 9:16 frame inside the picture, as (left, top, right, bottom).

    In a tall picture `position` moves it, 0 at the top and 100 at the bottom (values outside count as the nearest);
    in any other the frame has the full height and stands in the middle.
    """
    position = min(100, max(0, position))
    if width * 16 <= height * 9:
        tall = max(1, min(height, round(width * 16 / 9)))
        top = round((height - tall) * position / 100)
        return 0, top, width, top + tall
    wide = max(1, min(width, round(height * 9 / 16)))
    left = (width - wide) // 2
    return left, 0, left + wide, height


def crop_jpeg(jpeg: bytes, position: int = DEFAULT_POSITION) -> bytes:
    """Cut a portrait's JPEG to the 9:16 frame: 1080x1920 when it has that many pixels, else 720x1280.

    The same bytes and position give the same picture again.
    """
    with Image.open(io.BytesIO(jpeg), formats=["JPEG"]) as picture:
        box = crop_box(picture.width, picture.height, position)
        size = next((size for size in SIZES if size[0] <= box[2] - box[0]), SIZES[-1])
        return to_jpeg(picture.convert("RGB").resize(size, Image.Resampling.LANCZOS, box=box))


def to_jpeg(picture: Image.Image) -> bytes:
    """Encode a picture without any metadata; the encoder would copy comments and profiles out of `info`."""
    picture.info = {}
    out = io.BytesIO()
    picture.save(out, "JPEG", quality=JPEG_QUALITY, optimize=True)
    return out.getvalue()
