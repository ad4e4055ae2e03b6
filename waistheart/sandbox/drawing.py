"""The drawn parts of the demo video: the heart outline of each pose and the DEMO mark."""

import math
from dataclasses import dataclass
from functools import lru_cache

from PIL import Image, ImageDraw, ImageFilter, ImageFont

SMOOTH = 2  # shapes are drawn twice too large and scaled down, since Pillow draws jagged edges
ROSE, CREAM = (255, 92, 122), (255, 250, 246)


@dataclass(frozen=True)
class Pose:
    """Where the heart of a pose is: its centre and width as shares of the frame, and its lean in degrees.

    headroom: the share of the frame that is added above the picture, so that a heart overhead covers no face.
    """

    name: str
    words: tuple[str, ...]
    centre: tuple[float, float]
    width: float
    lean: float
    headroom: float = 0.0


POSES = (
    Pose("overhead", ("overhead", "above"), (0.50, 0.125), 0.36, 0, headroom=0.2),
    Pose("cheek", ("cheek", "face"), (0.715, 0.365), 0.25, -12),
    Pose("finger", ("finger", "thumb"), (0.74, 0.47), 0.20, -10),
    Pose("waist", ("waist", "belly", "hip"), (0.50, 0.66), 0.46, 0),
)


def pose_of(prompt: str) -> Pose:
    """The pose a prompt speaks of; the waist heart when it names none."""
    text = prompt.lower()
    return next((pose for pose in POSES if any(word in text for word in pose.words)), POSES[-1])


@dataclass(frozen=True)
class Overlay:
    """A transparent picture and where its upper left corner goes."""

    image: Image.Image
    corner: tuple[int, int]


@lru_cache(maxsize=8)
def heart_frames(
    *, pose: Pose, size: tuple[int, int], draw: int, breath: int
) -> tuple[tuple[Overlay, ...], tuple[Overlay, ...]]:
    """The frames in which the outline is drawn, and one cycle in which it gently grows and shrinks."""
    drawn = tuple(_heart(pose, size, scale=1.0, part=_ease((step + 1) / draw)) for step in range(draw))
    rising = breath // 2
    scales = [1.0 + 0.035 * (1 - math.cos(math.pi * step / rising)) for step in range(rising + 1)]
    half = [_heart(pose, size, scale=scale, part=1.0) for scale in scales]
    return drawn, (*half, *half[-2:0:-1])


@lru_cache(maxsize=4)
def demo_mark(size: tuple[int, int]) -> Overlay:
    """A dark plate with the word DEMO at the upper left: players lay their buttons over the lower part of a picture."""
    unit = size[0] / 720
    font = ImageFont.load_default(round(46 * unit))
    small = ImageFont.load_default(round(21 * unit))
    width, height = round(176 * unit), round(96 * unit)
    image = Image.new("RGBA", (width, height), (0, 0, 0, 0))
    pen = ImageDraw.Draw(image)
    pen.rounded_rectangle((0, 0, width - 1, height - 1), radius=round(18 * unit), fill=(24, 16, 20, 190))
    pen.text((width / 2, height * 0.38), "DEMO", font=font, fill=CREAM, anchor="mm", stroke_width=1, stroke_fill=CREAM)
    pen.text((width / 2, height * 0.78), "Made with AI", font=small, fill=(*CREAM, 235), anchor="mm")
    return Overlay(image, (round(24 * unit), round(24 * unit)))


def _heart(pose: Pose, size: tuple[int, int], *, scale: float, part: float) -> Overlay:
    """The first `part` of the outline, with a soft shadow and glow so that it reads on light and dark pictures."""
    width = size[0] * pose.width * scale
    line = max(4.0, size[0] * 0.017 * (0.6 + pose.width))
    box = math.ceil(width * 1.35 + line * 6)
    points = _outline(box, width, pose.lean)
    stroke = _stroke(points[: max(2, round(len(points) * part))], box, line)
    image = Image.new("RGBA", (box, box), (0, 0, 0, 0))
    for colour, blur, strength in (((60, 10, 30), line * 1.1, 0.45), (ROSE, line * 0.9, 0.9)):
        soft = stroke.filter(ImageFilter.BoxBlur(blur)).point(lambda value, s=strength: round(value * s))
        image = Image.alpha_composite(image, _tinted(soft, colour))
    image = Image.alpha_composite(image, _tinted(stroke, ROSE))
    inner = _stroke(points[: max(2, round(len(points) * part))], box, line * 0.36)
    image = Image.alpha_composite(image, _tinted(inner, CREAM))
    corner = (round(size[0] * pose.centre[0] - box / 2), round(size[1] * pose.centre[1] - box / 2))
    return Overlay(image, corner)


def _outline(box: int, width: float, lean: float, steps: int = 240) -> list[tuple[float, float]]:
    """Points of a heart that starts and ends at its lower tip, in the middle of a square box."""
    turn = math.radians(lean)
    points = []
    for step in range(steps + 1):
        angle = math.pi + 2 * math.pi * step / steps
        x = 16 * math.sin(angle) ** 3
        y = -(13 * math.cos(angle) - 5 * math.cos(2 * angle) - 2 * math.cos(3 * angle) - math.cos(4 * angle)) - 2.5
        x, y = x * width / 32, y * width / 32
        points.append(
            (
                box / 2 + x * math.cos(turn) - y * math.sin(turn),
                box / 2 + x * math.sin(turn) + y * math.cos(turn),
            )
        )
    return points


def _stroke(points: list[tuple[float, float]], box: int, line: float) -> Image.Image:
    mask = Image.new("L", (box * SMOOTH, box * SMOOTH), 0)
    pen = ImageDraw.Draw(mask)
    large = [(x * SMOOTH, y * SMOOTH) for x, y in points]
    pen.line(large, fill=255, width=round(line * SMOOTH), joint="curve")
    radius = line * SMOOTH / 2
    for x, y in (large[0], large[-1]):
        pen.ellipse((x - radius, y - radius, x + radius, y + radius), fill=255)
    return mask.resize((box, box), Image.Resampling.BOX)


def _tinted(mask: Image.Image, colour: tuple[int, int, int]) -> Image.Image:
    image = Image.new("RGBA", mask.size, (*colour, 0))
    image.putalpha(mask)
    return image


def _ease(share: float) -> float:
    return share * share * (3 - 2 * share)
