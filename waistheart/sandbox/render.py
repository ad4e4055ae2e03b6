"""Renders the demo video: one portrait, a slow zoom, a heart that breathes where the pose has it, and a DEMO mark."""

import io
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import cast

import av
from av.video.stream import VideoStream
from PIL import Image, ImageFilter, ImageOps

from waistheart.sandbox.drawing import Pose, demo_mark, heart_frames, pose_of

WIDTH, HEIGHT = 720, 1280
FRAMES_PER_SECOND = 24
TICK = Fraction(1, FRAMES_PER_SECOND)
COMMENT = "Made with AI - DEMO"
ZOOM = 0.10
# One breath takes 18 frames, that is 1.33 a second: well under the three flashes a second that can harm people.
BREATH_FRAMES = 18
DRAW_FRAMES = 20
Image.MAX_IMAGE_PIXELS = 80_000_000


@dataclass(frozen=True)
class Style:
    """How the file is made. The defaults are right; anything else is a fault that somebody ordered."""

    codec: str = "libx264"
    width: int = WIDTH
    height: int = HEIGHT
    seconds: int = 5
    faststart: bool = True


class UnreadableImageError(ValueError):
    """The bytes are no picture that can be decoded."""


def render_video(*, image: bytes, prompt: str, style: Style = Style()) -> bytes:
    """An MP4 made from these image bytes; takes about two seconds of one core.

    Raises UnreadableImageError for bytes that are no picture. The same input gives the same pictures.
    """
    return encode(picture=open_picture(image), pose=pose_of(prompt), style=style)


def open_picture(data: bytes) -> Image.Image:
    """Decode a picture upright and in RGB, transparent parts on white."""
    try:
        with Image.open(io.BytesIO(data)) as image:
            upright = ImageOps.exif_transpose(image)
            rgba = upright.convert("RGBA")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise UnreadableImageError(str(error)) from error
    white = Image.new("RGBA", rgba.size, "white")
    return Image.alpha_composite(white, rgba).convert("RGB")


def encode(*, picture: Image.Image, pose: Pose, style: Style) -> bytes:
    """Write the frames as an MP4 file and return its bytes."""
    # The muxer reads its own file again to move the index to the front, so it needs a real file.
    descriptor, path = tempfile.mkstemp(prefix="sandbox-", suffix=".mp4")
    os.close(descriptor)
    try:
        flags = {"movflags": "+faststart"} if style.faststart else {}
        with av.open(path, "w", format="mp4", options=flags) as container:
            container.metadata["comment"] = COMMENT
            stream = cast(
                VideoStream, container.add_stream(style.codec, rate=FRAMES_PER_SECOND, options=_options(style.codec))
            )
            stream.width, stream.height, stream.pix_fmt = style.width, style.height, "yuv420p"
            stream.codec_context.thread_count = 1
            for number, image in enumerate(frames(picture=picture, pose=pose, style=style)):
                frame = av.VideoFrame.from_image(image).reformat(format="yuv420p", dst_colorspace="itu709")
                frame.pts, frame.time_base = number, TICK
                container.mux(stream.encode(frame))
            container.mux(stream.encode())
        return Path(path).read_bytes()
    finally:
        Path(path).unlink()


def frames(*, picture: Image.Image, pose: Pose, style: Style) -> Iterator[Image.Image]:
    """Every frame in order: the picture fills the frame and comes nearer, the heart is drawn and then breathes."""
    size = (style.width, style.height)
    total = style.seconds * FRAMES_PER_SECOND
    source = _fill(picture, (size[0] * 6 // 5, size[1] * 6 // 5), headroom=pose.headroom)
    mark = demo_mark(size)
    drawn, breath = heart_frames(pose=pose, size=size, draw=DRAW_FRAMES, breath=BREATH_FRAMES)
    for number in range(total):
        image = source.resize(size, Image.Resampling.BILINEAR, box=_window(source.size, number / total))
        overlay = drawn[number] if number < len(drawn) else breath[(number - len(drawn)) % len(breath)]
        image.paste(overlay.image, overlay.corner, overlay.image)
        image.paste(mark.image, mark.corner, mark.image)
        yield image


def _fill(picture: Image.Image, size: tuple[int, int], *, headroom: float) -> Image.Image:
    """The picture cut to fill this size; headroom continues its upper edge upwards as a soft backdrop."""
    above = round(size[1] * headroom)
    lower = ImageOps.fit(picture, (size[0], size[1] - above), Image.Resampling.LANCZOS, centering=(0.5, 0.3))
    if not above:
        return lower
    edge = lower.crop((0, 0, size[0], 6)).resize((size[0], above + 40), Image.Resampling.BILINEAR)
    edge = edge.filter(ImageFilter.BoxBlur(24))
    blend = Image.linear_gradient("L").rotate(180).resize((size[0], 40))
    lower.paste(edge.crop((0, above, size[0], above + 40)), (0, 0), blend)
    whole = Image.new("RGB", size)
    whole.paste(edge, (0, 0))
    whole.paste(lower, (0, above))
    return whole


def _window(size: tuple[int, int], progress: float) -> tuple[float, float, float, float]:
    """The part of the source that fills the frame at this moment; ends nearer than it began, on the upper half."""
    share = 1.0 - ZOOM * progress
    width, height = size[0] * share, size[1] * share
    left, top = (size[0] - width) / 2, (size[1] - height) * 0.4
    return left, top, left + width, top + height


def _options(codec: str) -> dict[str, str]:
    colours = "colorprim=bt709:transfer=bt709:colormatrix=bt709"
    if codec == "libx265":
        return {"preset": "ultrafast", "crf": "30", "tag": "hvc1", "x265-params": f"log-level=none:pools=1:{colours}"}
    return {"preset": "veryfast", "crf": "19", "profile": "high", "x264-params": f"threads=1:{colours}"}
