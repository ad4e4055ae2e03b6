"""Real videos made while the test runs: moving noise, so that damage cannot hide in a still picture."""

import io
import random
from fractions import Fraction
from functools import cache

import av
from PIL import Image


@cache
def video(
    *,
    seconds: float = 3,
    fps: int = 12,
    size: tuple[int, int] = (360, 640),
    codec: str = "libx264",
    pixels: str = "yuv420p",
    container: str = "mp4",
    audio: bool = False,
    cabac: bool = True,
    pattern: str = "noise",
) -> bytes:
    """The bytes of a video; every argument is what a test wants to be wrong."""
    out = io.BytesIO()
    with av.open(out, "w", format=container) as target:
        stream = target.add_stream(codec, rate=fps)
        stream.width, stream.height, stream.pix_fmt = *size, pixels
        if codec == "libx264":
            stream.options = {
                "preset": "ultrafast",
                "crf": "23",
                "g": "12",
                "bf": "2",
                "x264-params": f"cabac={cabac:d}",
            }
        sound = target.add_stream("aac", rate=44100) if audio else None
        if sound is not None:
            silence = av.AudioFrame(format="fltp", layout="stereo", samples=1024)
            for plane in silence.planes:
                plane.update(bytes(plane.buffer_size))
            silence.sample_rate, silence.pts, silence.time_base = 44100, 0, Fraction(1, 44100)
            target.mux(sound.encode(silence))
        for number in range(round(seconds * fps)):
            target.mux(stream.encode(av.VideoFrame.from_image(still(number, size, pattern))))
        target.mux(stream.encode(None))
        if sound is not None:
            target.mux(sound.encode(None))
    return out.getvalue()


def still(number: int, size: tuple[int, int], pattern: str) -> Image.Image:
    """Frame `number`: coloured noise, or a plain colour that gets lighter."""
    if pattern == "plain":
        return Image.new("RGB", size, (number * 5 % 256, 40, 40))
    noise = random.Random(number).randbytes((size[0] // 8) * (size[1] // 8) * 3)
    return Image.frombytes("RGB", (size[0] // 8, size[1] // 8), noise).resize(size)


def faststart_is_first(data: bytes) -> bool:
    """Looks at the bytes in its own way: is the index's name before the media's?"""
    return data.index(b"moov") < data.index(b"mdat")
