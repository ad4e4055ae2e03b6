"""Proof that stored bytes are the video we sell: the container whole, H.264, and every single frame decodes.

A truncated download often keeps a perfect header, so the header is believed in nothing that can be counted.
"""

import io
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import av
from av.container import InputContainer
from av.video.frame import VideoFrame
from av.video.stream import VideoStream
from PIL import Image

from generation import mp4, nal

# 8 bits, 4:2:0. The second name is the same layout with full-range levels, which every player shows as well.
PIXELS = {"yuv420p", "yuvj420p"}
ASPECT = 9 / 16
# Models round to multiples of 16 or 32: 480x832 and 704x1280 count as 9:16.
ASPECT_TOLERANCE = 0.03
MIN_SIDE, MAX_SIDE = 240, 4096
MIN_FPS, MAX_FPS = 8, 121
# A hair early, because times are sums of fractions.
POSTER_AT_SECONDS = 0.999
POSTER_BYTES = 150 * 1024
POSTER_WIDTHS = (720, 540, 360)
POSTER_QUALITIES = (85, 75, 65, 50, 35)

# A 4K film of 12 seconds at 30 frames a second, and some more: what takes longer to decode is not what we sell.
MAX_PIXELS = 4_000_000_000

Progress = Callable[[int], None]
Source = str | os.PathLike[str] | IO[bytes]


class NotAVideo(Exception):
    """The bytes are not what we sell. `reason`: empty, container, codec, pixels, aspect, duration or frames."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class VideoFacts:
    """What a verified video is; width and height are as shown, after any turn the file asks for."""

    duration_ms: int
    width: int
    height: int
    codec: str
    fps: float
    faststart: bool


def _silent(packets: int) -> None:
    """Nobody wanted to hear."""


def verify(
    source: Source, *, min_seconds: float = 2, max_seconds: float = 12, on_progress: Progress = _silent
) -> VideoFacts:
    """Decode every frame of a path or open file and return the facts, or raise `NotAVideo`; nothing else for any bytes.

    The file is read from its start whatever its position, stays open, and may be verified again with the same outcome.
    `on_progress` hears how many packets are decoded, after each, and may raise to stop; what it raises passes through.
    """
    with _opened(source) as file:
        index_first = _whole(file)
        with _container(file) as container:
            stream = _the_stream(container)
            length = _duration(stream, min_seconds, max_seconds)
            first, count = _decode_all(container, stream, length, on_progress)
        width, height = _shown(first, stream)
        return VideoFacts(round(length * 1000), width, height, "h264", round(count / length, 3), index_first)


def poster(source: Source, *, on_progress: Progress = _silent) -> bytes:
    """A JPEG of at most 150 KB: the frame at one second (the last, if there is none), in the video's shape."""
    with _opened(source) as file, _container(file) as container:
        stream = _the_stream(container)
        shown, begin = None, None
        for frame in _frames(container, stream, on_progress):
            shown, begin = frame, frame.time if begin is None else begin
            if frame.time is not None and begin is not None and frame.time - begin >= POSTER_AT_SECONDS:
                break
        if shown is None:
            raise NotAVideo("frames", "none")
        return _small_jpeg(_upright(shown, stream))


def faststart(source: IO[bytes]) -> IO[bytes]:
    """The same video with its index first, without re-encoding; the very same file when that is so already.

    A new file is an unlinked temporary one that the caller closes. Raises `NotAVideo` for what is no whole MP4.
    """
    try:
        return mp4.faststart(source)
    except mp4.NotBoxes as error:
        raise NotAVideo("container", str(error)) from error


@contextmanager
def _opened(source: Source) -> Iterator[IO[bytes]]:
    with ExitStack() as opened:
        file = opened.enter_context(Path(source).open("rb")) if isinstance(source, str | os.PathLike) else source
        if not file.seek(0, os.SEEK_END):
            raise NotAVideo("empty")
        yield file
        file.seek(0)


def _whole(file: IO[bytes]) -> bool:
    """Refuse a file that is cut; tell whether its index comes first."""
    try:
        return mp4.index_first(mp4.boxes(file))
    except mp4.NotBoxes as error:
        raise NotAVideo("container", str(error)) from error


@contextmanager
def _container(file: IO[bytes]) -> Iterator[InputContainer]:
    file.seek(0)
    try:
        # Also frames that an edit list hides must decode, or the count could not be compared.
        with av.open(file, mode="r", format="mp4", options={"err_detect": "explode", "ignore_editlist": "1"}) as opened:
            yield opened
    except (av.FFmpegError, ValueError, EOFError, UnicodeDecodeError) as error:
        raise NotAVideo("container", str(error)) from error


def _the_stream(container: InputContainer) -> VideoStream:
    videos = container.streams.video
    if len(videos) != 1:
        raise NotAVideo("container", f"{len(videos)} video streams")
    stream = videos[0]
    if stream.codec_context is None or stream.codec_context.name != "h264":
        raise NotAVideo("codec", "not H.264")
    if stream.format is None or stream.format.name not in PIXELS:
        raise NotAVideo("pixels", stream.format.name if stream.format else "none")
    if not all(MIN_SIDE <= side <= MAX_SIDE for side in (stream.width, stream.height)):
        raise NotAVideo("aspect", f"{stream.width}x{stream.height}")
    return stream


def _duration(stream: VideoStream, least: float, most: float) -> float:
    length = float(stream.duration * stream.time_base) if stream.duration and stream.time_base else 0.0
    if not least <= length <= most:
        raise NotAVideo("duration", f"{length:.2f} s")
    if not MIN_FPS <= stream.frames / length <= MAX_FPS:
        raise NotAVideo("frames", f"the index claims {stream.frames}")
    return length


def _decode_all(
    container: InputContainer, stream: VideoStream, length: float, on_progress: Progress
) -> tuple[VideoFrame, int]:
    """Decode to the end. The frames must be as many as the index claims and fill the time it claims."""
    first, count, last_time = None, 0, float("-inf")
    _check_work(stream.width, stream.height, stream.frames)
    for frame in _frames(container, stream, on_progress):
        if first is None:
            _check_shape(frame, stream)
            _check_work(frame.width, frame.height, stream.frames)
            first = frame
        if count == stream.frames:
            raise NotAVideo("frames", f"more than the {count} that the index claims")
        if frame.is_corrupt or frame.time is None or frame.time <= last_time:
            raise NotAVideo("frames", f"frame {count} is damaged")
        if (frame.width, frame.height) != (first.width, first.height) or frame.format.name not in PIXELS:
            raise NotAVideo("frames", f"frame {count} has another shape")
        count, last_time = count + 1, frame.time
    if first is None or first.time is None or count != stream.frames:
        raise NotAVideo("frames", f"{count} of {stream.frames} decode")
    missing = length - (last_time - first.time) - length / count
    if abs(missing) > max(0.2, 0.05 * length):
        raise NotAVideo("frames", f"{missing:.2f} s of {length:.2f} s without a frame")
    return first, count


def _check_work(width: int, height: int, frames: int) -> None:
    if width * height * frames > MAX_PIXELS:
        raise NotAVideo("frames", f"{frames} of {width}x{height} are too much")


def _frames(container: InputContainer, stream: VideoStream, on_progress: Progress) -> Iterator[VideoFrame]:
    # Without these the decoder paints over what it cannot read and calls it a picture.
    stream.codec_context.options = {"err_detect": "crccheck+bitstream+buffer+explode"}
    # Threads that share a frame also swallow its errors.
    stream.codec_context.thread_type = "NONE"
    try:
        width = nal.length_bytes(stream.codec_context.extradata)
        for packets, packet in enumerate(container.demux(stream), 1):
            if packet.is_corrupt:
                raise NotAVideo("frames", "a packet is damaged")
            nal.check(bytes(packet), width)
            yield from _decoded(packet)
            on_progress(packets)
    except (av.FFmpegError, nal.BadUnits, ValueError, EOFError) as error:
        raise NotAVideo("frames", str(error)) from error


def _decoded(packet: Any) -> list[VideoFrame]:
    frames: list[VideoFrame] = packet.decode()
    return frames


def _check_shape(frame: VideoFrame, stream: VideoStream) -> None:
    width, height = _shown(frame, stream)
    if abs(width / height / ASPECT - 1) > ASPECT_TOLERANCE:
        raise NotAVideo("aspect", f"{width}x{height}")


def _shown(frame: VideoFrame, stream: VideoStream) -> tuple[int, int]:
    """Width and height as a player shows them: pixels that are not square stretched, a turn made."""
    ratio = stream.sample_aspect_ratio or 1
    width, height = round(frame.width * ratio), frame.height
    return (height, width) if frame.rotation % 180 else (width, height)


def _upright(frame: VideoFrame, stream: VideoStream) -> Image.Image:
    picture: Image.Image = frame.to_image()
    if frame.rotation % 360:
        picture = picture.rotate(frame.rotation, expand=True)
    shape = _shown(frame, stream)
    return picture if picture.size == shape else picture.resize(shape)


def _small_jpeg(picture: Image.Image) -> bytes:
    for width in POSTER_WIDTHS:
        small = picture
        if picture.width > width:
            small = picture.resize((width, round(picture.height * width / picture.width)), Image.Resampling.LANCZOS)
        for quality in POSTER_QUALITIES:
            out = io.BytesIO()
            small.save(out, "JPEG", quality=quality, optimize=True)
            if out.tell() <= POSTER_BYTES:
                return out.getvalue()
    raise NotAVideo("frames", "no poster small enough")
