"""Sample clips for a demo without customers: a drawn person strikes the pose, and the renderer does the rest."""

import io
import random
from dataclasses import dataclass

import av
from PIL import Image, ImageDraw, ImageFilter

from waistheart.sandbox.drawing import Pose, pose_of
from waistheart.sandbox.render import HEIGHT, WIDTH, Style, render_video

DRAWN_AT = 2  # twice too large and scaled down, since Pillow draws jagged edges
POSTER_SECOND = 2.5
# No page shows a sample wider than a phone is.
STYLE = Style(width=540, height=960, seconds=4)
Point = tuple[float, float]


@dataclass(frozen=True)
class Sample:
    """A clip (MP4) and one still of it (JPEG), made by nobody's portrait."""

    video: bytes
    poster: bytes


@dataclass(frozen=True)
class Look:
    """One drawn person: colours, and per arm the way from the shoulder over the elbow to the hand."""

    wall: tuple[str, str]
    skin: str
    hair: str
    shirt: str
    long_hair: bool
    arms: tuple[tuple[Point, ...], tuple[Point, ...]]


LOOKS = {
    "waist": Look(
        ("#f7d9c9", "#e9a58b"), "#d99a74", "#3a241c", "#2f4858", True,
        (((0.29, 0.60), (0.14, 0.74), (0.40, 0.74)), ((0.71, 0.60), (0.86, 0.74), (0.60, 0.74))),
    ),
    "finger": Look(
        ("#d5e3f0", "#93b4d1"), "#f0c6a4", "#7a4a21", "#b3123f", False,
        (((0.29, 0.60), (0.20, 0.80), (0.24, 1.00)), ((0.71, 0.60), (0.90, 0.70), (0.75, 0.52))),
    ),
    "cheek": Look(
        ("#e4dcf2", "#b39ed0"), "#8d5a3b", "#1c1412", "#f2b632", True,
        (((0.29, 0.60), (0.20, 0.80), (0.24, 1.00)), ((0.71, 0.60), (0.88, 0.60), (0.69, 0.41))),
    ),
    "overhead": Look(
        ("#dcefe2", "#8fc3a3"), "#e6b58d", "#5b2d16", "#3d5a80", False,
        (((0.29, 0.58), (0.14, 0.38), (0.43, 0.125)), ((0.71, 0.58), (0.86, 0.38), (0.57, 0.125))),
    ),
}  # fmt: skip


def render_sample(*, prompt: str) -> Sample:
    """A four-second clip of the pose that `prompt` speaks of, and its poster; takes about a second of one core."""
    video = render_video(image=_as_jpeg(draw_person(pose=pose_of(prompt))), prompt=prompt, style=STYLE)
    return Sample(video=video, poster=_still(video))


def draw_person(*, pose: Pose) -> Image.Image:
    """The same picture for the same pose, every time."""
    look = LOOKS[pose.name]
    picture = _wall(look)
    pen = ImageDraw.Draw(picture)
    _body(pen, look)
    _head(pen, look)
    for arm in look.arms:
        _arm(pen, look, arm)
    return picture.resize((WIDTH, HEIGHT), Image.Resampling.LANCZOS)


def _wall(look: Look) -> Image.Image:
    size = (WIDTH * DRAWN_AT, HEIGHT * DRAWN_AT)
    shade = Image.linear_gradient("L").resize(size)
    wall = Image.composite(Image.new("RGB", size, look.wall[1]), Image.new("RGB", size, look.wall[0]), shade)
    lights = Image.new("L", size, 0)
    pen, dice = ImageDraw.Draw(lights), random.Random(look.shirt)  # noqa: S311  (where dots of light fall)
    for _ in range(14):
        x, y, r = dice.random() * size[0], dice.random() * size[1] * 0.7, dice.uniform(0.03, 0.09) * size[0]
        pen.ellipse((x - r, y - r, x + r, y + r), fill=dice.randrange(20, 60))
    wall.paste("white", mask=lights.filter(ImageFilter.GaussianBlur(18)))
    return wall


def _body(pen: ImageDraw.ImageDraw, look: Look) -> None:
    if look.long_hair:
        pen.rounded_rectangle(_box(0.315, 0.26, 0.685, 0.56), radius=_length(0.17), fill=look.hair)
    pen.rounded_rectangle(_box(0.235, 0.535, 0.765, 1.2), radius=_length(0.13), fill=look.shirt)
    pen.rounded_rectangle(_box(0.435, 0.46, 0.565, 0.575), radius=_length(0.06), fill=look.skin)


def _head(pen: ImageDraw.ImageDraw, look: Look) -> None:
    pen.ellipse(_box(0.335, 0.235, 0.665, 0.40), fill=look.hair)
    pen.ellipse(_box(0.355, 0.265, 0.645, 0.49), fill=look.skin)
    pen.chord(_box(0.345, 0.245, 0.655, 0.41), 185, 355, fill=look.hair)
    for x in (0.44, 0.56):
        pen.ellipse(_box(x - 0.013, 0.365, x + 0.013, 0.3825), fill="#241a18")
        pen.arc(_box(x - 0.035, 0.337, x + 0.035, 0.365), 205, 335, fill=look.hair, width=round(_length(0.009)))
        pen.ellipse(_box(x * 1.16 - 0.107, 0.40, x * 1.16 - 0.053, 0.425), fill=_blend(look.skin, "#ff5c7a", 0.28))
    pen.chord(_box(0.445, 0.395, 0.555, 0.452), 15, 165, fill="#fffaf6", outline="#9c3b44", width=round(_length(0.006)))


def _arm(pen: ImageDraw.ImageDraw, look: Look, joints: tuple[Point, ...]) -> None:
    """A sleeve to the elbow, bare skin from there, round at every joint."""
    shoulder, elbow, hand = (_point(joint) for joint in joints)
    _limb(pen, shoulder, elbow, look.shirt, 0.125)
    _limb(pen, elbow, hand, look.skin, 0.085)
    _limb(pen, shoulder, elbow, look.shirt, 0.125)
    _dot(pen, hand, 0.06, look.skin)


def _limb(pen: ImageDraw.ImageDraw, start: Point, end: Point, colour: str, width: float) -> None:
    pen.line((start, end), fill=colour, width=round(_length(width)))
    for joint in (start, end):
        _dot(pen, joint, width / 2, colour)


def _dot(pen: ImageDraw.ImageDraw, centre: Point, radius: float, colour: str) -> None:
    r = _length(radius)
    pen.ellipse((centre[0] - r, centre[1] - r, centre[0] + r, centre[1] + r), fill=colour)


def _blend(first: str, second: str, share: float) -> tuple[int, ...]:
    pairs = zip(bytes.fromhex(first[1:]), bytes.fromhex(second[1:]), strict=True)
    return tuple(round(a * (1 - share) + b * share) for a, b in pairs)


def _point(share: Point) -> Point:
    return share[0] * WIDTH * DRAWN_AT, share[1] * HEIGHT * DRAWN_AT


def _box(left: float, top: float, right: float, bottom: float) -> tuple[float, float, float, float]:
    return (*_point((left, top)), *_point((right, bottom)))


def _length(share: float) -> float:
    return share * WIDTH * DRAWN_AT


def _as_jpeg(picture: Image.Image, quality: int = 90) -> bytes:
    written = io.BytesIO()
    picture.save(written, "JPEG", quality=quality)
    return written.getvalue()


def _still(video: bytes) -> bytes:
    with av.open(io.BytesIO(video), mode="r") as container:
        for frame in container.decode(video=0):
            if frame.time is not None and frame.time >= POSTER_SECOND:
                return _as_jpeg(frame.to_image(), quality=82)
    raise ValueError("the clip is shorter than its poster's moment")
