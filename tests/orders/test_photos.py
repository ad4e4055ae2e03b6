"""Photos as phones and strangers send them: upright and clean, or refused with a sentence that helps."""

import hashlib
import io
import random
import re
import warnings
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageChops, ImageCms, ImageStat

from generation.crop import crop_box, crop_jpeg
from orders.photos import MAX_BYTES, MIN_SHORT_SIDE, PhotoProblem, intake

PHOTOS = Path(__file__).parent.parent / "data" / "photos"
GOOD = sorted(path.name for path in PHOTOS.glob("ok_*"))
BAD = {
    "bad_animated.gif": ("animated", "Choose a still photo, not an animation"),
    "bad_bomb_50000x50000.png": (
        "unreadable",
        "We could not open this photo. Choose another or save it again as JPEG",
    ),
    "bad_empty.jpg": ("empty", "This file is empty. Choose another photo"),
    "bad_html.jpg": ("type", "Choose a JPEG, PNG, WebP or HEIC photo"),
    "bad_svg.png": ("type", "Choose a JPEG, PNG, WebP or HEIC photo"),
    "bad_tiny_16x16.jpg": (
        "small",
        f"Choose a larger photo. The short side is 16 pixels and must be at least {MIN_SHORT_SIDE}",
    ),
    "bad_truncated.jpg": ("unreadable", "We could not open this photo. Choose another or save it again as JPEG"),
}


def photo(name: str) -> bytes:
    return (PHOTOS / name).read_bytes()


def picture(jpeg: bytes) -> Image.Image:
    opened = Image.open(io.BytesIO(jpeg))
    opened.load()
    return opened


def encoded(image: Image.Image, kind: str, **options) -> bytes:
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def difference(one: Image.Image, other: Image.Image) -> float:
    """Mean difference of two pictures in grey levels, whatever their size and colours."""
    small = [image.convert("L").resize((64, 64)) for image in (one, other)]
    return ImageStat.Stat(ImageChops.difference(*small)).mean[0]


@pytest.fixture(scope="module")
def upright() -> Image.Image:
    return picture(photo("ok_portrait.jpg"))


def test_the_cases_are_all_here():
    assert len(GOOD) == 10
    assert set(BAD) == {path.name for path in PHOTOS.glob("bad_*")}


@pytest.mark.parametrize("name", GOOD)
def test_a_good_photo_is_usable_and_upright(name: str, upright: Image.Image):
    portrait = intake(photo(name))
    kept = picture(portrait.jpeg)
    assert (kept.format, kept.mode, kept.size) == ("JPEG", "RGB", (portrait.width, portrait.height))
    assert portrait.sha256 == hashlib.sha256(portrait.jpeg).hexdigest()
    assert difference(kept, upright) < 14
    for turn in Image.Transpose:
        assert difference(kept.transpose(turn), upright) > 18


@pytest.mark.parametrize("name", GOOD)
def test_nothing_but_the_picture_is_kept(name: str):
    kept = intake(photo(name)).jpeg
    assert not set(segments(kept)) & {0xE1, 0xE2, 0xED, 0xEE, 0xFE}
    assert not picture(kept).getexif()
    assert not {"exif", "icc_profile", "xmp", "comment"} & set(picture(kept).info)


def segments(jpeg: bytes) -> list[int]:
    """The markers of a JPEG up to its picture data."""
    found, at = [], 2
    while jpeg[at + 1] != 0xDA:
        found.append(jpeg[at + 1])
        at += 2 + int.from_bytes(jpeg[at + 2 : at + 4], "big")
    return found


def test_a_comment_is_not_kept(upright: Image.Image):
    talking = encoded(upright, "JPEG", comment=b"51.5N 0.1W", xmp=b"<x/>", dpi=(300, 300))
    assert 0xFE in segments(talking)
    assert not set(segments(intake(talking).jpeg)) & {0xE1, 0xFE}
    assert picture(intake(talking).jpeg).info.get("dpi") in {None, (1, 1)}


def test_segments_would_see_metadata():
    assert 0xE1 in segments(photo("ok_exif_rotated_gps.jpg"))


@pytest.mark.parametrize("name", sorted(BAD))
def test_a_bad_file_gets_the_sentence_that_helps(name: str):
    with pytest.raises(PhotoProblem) as caught:
        intake(photo(name))
    assert (caught.value.code, caught.value.message) == BAD[name]


def test_too_many_bytes_are_named_in_megabytes():
    with pytest.raises(PhotoProblem) as caught:
        intake(photo("ok_portrait.jpg") + bytes(MAX_BYTES))
    assert (caught.value.code, caught.value.message) == (
        "big",
        "Choose a photo smaller than 15 MB. This one is 15.3 MB",
    )
    with pytest.raises(PhotoProblem, match=r"This one is 15\.1 MB"):
        intake(bytes(MAX_BYTES + 1))
    assert intake(photo("ok_portrait.jpg").ljust(MAX_BYTES, b"\0")).width == 1536


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "AVIF"])
def test_every_orientation_comes_out_upright_once(orientation: int, kind: str, upright: Image.Image):
    """A tall picture, so that a forgotten swap of the sides shows as well."""
    tall = upright.crop((200, 0, 1400, 1536)).resize((600, 768))
    undo = {2: 0, 3: 3, 4: 1, 5: 5, 6: 2, 7: 6, 8: 4}
    stored = tall if orientation == 1 else tall.transpose(Image.Transpose(undo[orientation]))
    exif = Image.Exif()
    exif[0x0112] = orientation
    portrait = intake(encoded(stored, kind, exif=exif))
    assert (portrait.width, portrait.height) == (600, 768)
    assert difference(picture(portrait.jpeg), tall) < 3
    again = intake(portrait.jpeg)
    assert difference(picture(again.jpeg), tall) < 3


def test_what_shines_through_becomes_white():
    clear = Image.new("RGBA", (700, 700), (255, 0, 0, 0))
    for kind in ("PNG", "WEBP"):
        assert min(picture(intake(encoded(clear, kind)).jpeg).getpixel((350, 350))) > 250
    palette = Image.new("P", (700, 700), 1)
    palette.putpalette([0, 0, 0, 10, 20, 30])
    assert min(picture(intake(encoded(palette, "PNG", transparency=1)).jpeg).getpixel((9, 9))) > 250
    assert max(picture(intake(encoded(palette, "PNG")).jpeg).getpixel((9, 9))) < 40


@pytest.mark.parametrize("size", [(5211, 3003), (3000, 2999)])
def test_a_large_picture_is_made_opaque_in_bands_without_seams(size: tuple[int, int]):
    plain = Image.linear_gradient("L").resize(size).convert("RGB")
    clear = plain.copy()
    clear.putalpha(255)
    kept, expected = (picture(intake(encoded(one, "PNG", compress_level=1)).jpeg) for one in (clear, plain))
    assert kept.size == expected.size
    assert max(high for _, high in ImageChops.difference(kept, expected).getextrema()) <= 2


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA"])
def test_every_kind_of_png_is_taken(mode: str):
    assert picture(intake(encoded(Image.new("RGB", (600, 600), "white").convert(mode), "PNG")).jpeg).getpixel(
        (5, 5)
    ) == (255, 255, 255)


@pytest.mark.parametrize(("level", "grey"), [(0, 0), (32768, 128), (65535, 255)])
def test_sixteen_bits_are_scaled_not_clipped(level: int, grey: int):
    deep = Image.new("I;16", (600, 600), level)
    assert abs(picture(intake(encoded(deep, "PNG")).jpeg).getpixel((5, 5))[0] - grey) <= 1


def test_a_colour_profile_is_applied_and_a_broken_one_is_ignored():
    swapped = Image.new("RGB", (600, 600), (200, 60, 60))
    lab = ImageCms.ImageCmsProfile(ImageCms.createProfile("LAB")).tobytes()
    plain = picture(intake(encoded(swapped, "PNG")).jpeg).getpixel((9, 9))
    for profile in (b"rubbish", lab, ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()):
        kept = picture(intake(encoded(swapped, "PNG", icc_profile=profile)).jpeg).getpixel((9, 9))
        assert max(abs(a - b) for a, b in zip(plain, kept, strict=True)) <= 3
    kept = picture(intake(encoded(swapped, "PNG", icc_profile=red_and_blue_swapped())).jpeg).getpixel((9, 9))
    assert max(abs(a - b) for a, b in zip(kept, (60, 60, 200), strict=True)) < 12


def red_and_blue_swapped() -> bytes:
    """sRGB whose red primary is called blue and the other way round."""
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    return profile.replace(b"rXYZ", b"????").replace(b"bXYZ", b"rXYZ").replace(b"????", b"bXYZ")


def test_a_big_photo_is_reduced_and_keeps_its_shape():
    portrait = intake(encoded(Image.new("RGB", (6000, 4000), "teal"), "JPEG"))
    assert (portrait.width, portrait.height) == (2560, 1707)


@pytest.mark.parametrize("size", [(12000, 600), (600, 3100)])
def test_a_long_strip_would_be_kept_too_small(size: tuple[int, int]):
    with pytest.raises(PhotoProblem, match="more than 5 times as long as the other"):
        intake(encoded(Image.new("RGB", size, "teal"), "JPEG"))
    assert intake(encoded(Image.new("RGB", (3000, 600), "teal"), "JPEG")).height == 512


@pytest.mark.parametrize(("kind", "most"), [("PNG", 25), ("JPEG", 60)])
def test_too_many_pixels_are_named_and_nothing_is_decoded(kind: str, most: int, monkeypatch: pytest.MonkeyPatch):
    data = empty_png(5000, most * 200 + 1) if kind == "PNG" else empty_jpeg(6000, 10_001)
    monkeypatch.setattr(Image.Image, "load", lambda self: pytest.fail("decoded"))
    with pytest.raises(PhotoProblem) as caught:
        intake(data)
    words = f"Choose a smaller photo. This one has {most + 1} megapixels and must have at most {most}"
    assert (caught.value.code, caught.value.message) == ("pixels", words)


def test_a_bomb_is_not_even_warned_about():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for side, words in (
            (7800, "smaller"),
            (10_000, "smaller"),
            (60_000, "could not open"),
            (2**31 - 1, "could not"),
        ):
            with pytest.raises(PhotoProblem, match=words):
                intake(empty_png(side, side))


def empty_jpeg(width: int, height: int) -> bytes:
    """A JPEG whose header promises more than its bytes hold."""
    small = encoded(Image.new("RGB", (600, 601)), "JPEG")
    size = (601).to_bytes(2, "big") + (600).to_bytes(2, "big")
    return small.replace(size, height.to_bytes(2, "big") + width.to_bytes(2, "big"), 1)


def empty_png(width: int, height: int) -> bytes:
    """A PNG whose header promises a picture that its few bytes do not hold."""

    def chunk(name: bytes, body: bytes) -> bytes:
        return len(body).to_bytes(4, "big") + name + body + zlib.crc32(name + body).to_bytes(4, "big")

    header = width.to_bytes(4, "big") + height.to_bytes(4, "big") + bytes([8, 2, 0, 0, 0])
    parts = chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(bytes(100))), chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def test_the_short_side_decides():
    assert intake(encoded(Image.new("RGB", (MIN_SHORT_SIDE, 2000)), "PNG")).width == MIN_SHORT_SIDE
    with pytest.raises(PhotoProblem, match=f"short side is {MIN_SHORT_SIDE - 1} pixels"):
        intake(encoded(Image.new("RGB", (2000, MIN_SHORT_SIDE - 1)), "PNG"))


@pytest.mark.parametrize("kind", ["GIF", "PNG", "WEBP", "AVIF"])
def test_animations_are_refused_as_such(kind: str):
    frames = [Image.new("RGB", (700, 700), colour) for colour in ("red", "blue", "green")]
    with pytest.raises(PhotoProblem) as caught:
        intake(encoded(frames[0], kind, save_all=True, append_images=frames[1:], duration=100))
    assert caught.value.code == "animated"


@pytest.mark.parametrize("kind", ["GIF", "BMP", "TIFF", "PPM", "ICO"])
def test_other_picture_types_are_refused_as_such(kind: str):
    with pytest.raises(PhotoProblem) as caught:
        intake(encoded(Image.new("RGB", (700, 700), "red"), kind))
    assert caught.value.code == "type"


def test_a_phones_jpeg_with_a_second_picture_is_one_photo(upright: Image.Image):
    second = upright.resize((160, 160))
    portrait = intake(encoded(upright, "MPO", save_all=True, append_images=[second]))
    assert (portrait.format, portrait.width) == ("JPEG", 1536)
    assert difference(picture(portrait.jpeg), upright) < 3


@pytest.mark.parametrize("name", GOOD)
def test_changed_and_cut_bytes_raise_nothing_but_photo_problems(name: str):
    """Random damage to each real file: 60 cuts and 60 changes, seeded by the file's name."""
    dice, whole = random.Random(name), photo(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for turn in range(120):
            hurt = bytearray(whole[: dice.randrange(len(whole))] if turn % 2 else whole)
            for _ in range(dice.choice([1, 5, 50])):
                if hurt:
                    where = dice.randrange(min(len(hurt), dice.choice([64, 1024, len(hurt)])))
                    hurt[where] = dice.randrange(256)
            survives(bytes(hurt))


BEGINNINGS = [
    b"",
    b"\xff\xd8\xff\xe0",
    b"\x89PNG\r\n\x1a\n",
    b"RIFF\0\0\0\0WEBPVP8 ",
    b"\0\0\0\x18ftypheic\0\0\0\0mif1heic",
    b"\0\0\0\x18ftypavif\0\0\0\0mif1avif",
    b"GIF89a",
    b"<svg ",
]


@given(st.binary(max_size=300), st.sampled_from(BEGINNINGS))
def test_any_bytes_raise_nothing_but_photo_problems(rest: bytes, beginning: bytes):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        survives(beginning + rest)


def survives(data: bytes) -> None:
    try:
        jpeg = intake(data).jpeg
    except PhotoProblem as problem:
        code, message = problem.code, problem.message
    else:
        assert picture(jpeg).format == "JPEG"
        return
    assert code in {"empty", "type", "big", "small", "animated", "pixels", "unreadable"}
    assert not re.search(r"please|sorry|invalid|oops", message, re.IGNORECASE)


@given(st.integers(1, 4000), st.integers(1, 4000), st.integers(-10, 110))
def test_the_frame_lies_inside_and_is_as_big_as_can_be(width: int, height: int, position: int):
    left, top, right, bottom = crop_box(width, height, position)
    assert 0 <= left < right <= width
    assert 0 <= top < bottom <= height
    assert (left, right) == (0, width) or (top, bottom) == (0, height)
    assert abs((right - left) * 16 - (bottom - top) * 9) <= 16


def test_the_frame_moves_in_tall_pictures_and_stays_in_the_middle_of_wide_ones():
    assert [crop_box(900, 2000, position)[1] for position in (0, 50, 100)] == [0, 200, 400]
    assert crop_box(900, 2000) == (0, 100, 900, 1700)
    assert crop_box(1600, 900, 0) == crop_box(1600, 900, 100) == (547, 0, 1053, 900)


@pytest.mark.parametrize(
    ("size", "cropped"), [((1536, 1536), (720, 1280)), ((2000, 2000), (1080, 1920)), ((512, 512), (720, 1280))]
)
def test_a_crop_is_a_full_frame(size: tuple[int, int], cropped: tuple[int, int], upright: Image.Image):
    jpeg = crop_jpeg(encoded(upright.resize(size), "JPEG"), 30)
    assert picture(jpeg).size == cropped
    assert not set(segments(jpeg)) & {0xE1, 0xE2, 0xFE}


def test_a_crop_shows_the_part_that_was_chosen():
    tall = Image.new("RGB", (720, 2560), "red")
    tall.paste("blue", (0, 1280, 720, 2560))
    jpeg = encoded(tall, "JPEG")
    for position, colour in ((0, (254, 0, 0)), (100, (0, 0, 254))):
        for y in (10, 1270):
            seen = picture(crop_jpeg(jpeg, position)).getpixel((360, y))
            assert max(abs(a - b) for a, b in zip(seen, colour, strict=True)) < 4
