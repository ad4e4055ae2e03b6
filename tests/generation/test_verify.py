"""Only a whole video with every frame passes: damage of each kind is refused and named."""

import io
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import av
import pytest
from PIL import Image

from generation import mp4
from generation import verify as verify_module
from generation.verify import NotAVideo, faststart, poster, verify
from tests.generation.videos import faststart_is_first, video


def reason(data: bytes, **limits) -> str:
    """Why it is refused, "" when it is not."""
    try:
        verify(io.BytesIO(data), **limits)
    except NotAVideo as refused:
        return refused.reason
    return ""


def fast() -> bytes:
    """A whole video whose index comes first, so that its header outlives a cut."""
    return faststart(io.BytesIO(video())).read()


def media_at(data: bytes) -> int:
    return data.index(b"mdat") + 4


def test_the_facts_of_a_whole_video():
    facts = verify(io.BytesIO(video(seconds=4, fps=24, audio=True)))
    assert (facts.duration_ms, facts.width, facts.height, facts.codec) == (4000, 360, 640, "h264")
    assert facts.fps == pytest.approx(24)
    assert not facts.faststart


def test_a_path_and_an_open_file_are_the_same_and_may_be_verified_again(tmp_path: Path):
    path = tmp_path / "video.mp4"
    path.write_bytes(video())
    with tempfile.TemporaryFile() as file:
        file.write(video())
        assert verify(path) == verify(str(path)) == verify(file) == verify(file)
        assert not file.closed


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"codec": "mpeg4"}, "codec"),
        ({"codec": "libx265", "seconds": 2}, "codec"),
        ({"pixels": "yuv444p"}, "pixels"),
        ({"pixels": "yuv420p10le"}, "pixels"),
        ({"size": (640, 360)}, "aspect"),
        ({"size": (480, 640)}, "aspect"),
        ({"size": (640, 640)}, "aspect"),
        ({"size": (90, 160)}, "aspect"),
        ({"seconds": 1.5}, "duration"),
        ({"seconds": 13, "size": (240, 426)}, "duration"),
        ({"fps": 4}, "frames"),
        ({"container": "mov"}, "container"),
        ({"container": "matroska"}, "container"),
        ({"container": "mpegts"}, "container"),
    ],
)
def test_what_we_do_not_sell_is_refused_by_name(wrong: dict, named: str):
    if wrong.get("codec", "libx264") not in av.codecs_available:
        pytest.skip("no such encoder here")
    assert reason(video(**wrong)) == named


def test_the_limits_may_be_given():
    assert reason(video(), min_seconds=3.5) == "duration"
    assert reason(video(), max_seconds=2.5) == "duration"
    assert reason(video(), min_seconds=3, max_seconds=3) == ""


@pytest.mark.parametrize("size", [(360, 640), (480, 832), (704, 1280), (544, 960)])
def test_what_models_call_9_to_16_is_accepted(size: tuple[int, int]):
    assert reason(video(size=size, seconds=2)) == ""


@pytest.mark.parametrize(
    ("data", "named"),
    [
        (b"", "empty"),
        (b"<html><body>not found</body></html>", "container"),
        (b'{"detail": "expired"}', "container"),
        (bytes(4096), "container"),
        (b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom", "container"),
        (b"\0\0\0\x10ftypmp42\0\0\0\0" + b"\0\0\0\x08free" * 50_000, "container"),
    ],
)
def test_other_bytes_are_refused(data: bytes, named: str):
    assert reason(data) == named


def test_two_video_streams_are_refused():
    out = io.BytesIO()
    with av.open(out, "w", format="mp4") as target:
        streams = [target.add_stream("libx264", rate=12) for _ in range(2)]
        for stream in streams:
            stream.width, stream.height, stream.pix_fmt = 360, 640, "yuv420p"
        for _ in range(36):
            for stream in streams:
                target.mux(stream.encode(av.VideoFrame.from_image(Image.new("RGB", (360, 640)))))
        for stream in streams:
            target.mux(stream.encode(None))
    assert reason(out.getvalue()) == "container"


def test_a_fragmented_file_claims_nothing_that_could_be_counted():
    out = io.BytesIO()
    with (
        av.open(io.BytesIO(video())) as source,
        av.open(out, "w", format="mp4", options={"movflags": "frag_keyframe+empty_moov"}) as target,
    ):
        stream = target.add_stream_from_template(source.streams.video[0])
        for packet in source.demux(source.streams.video[0]):
            if packet.dts is not None:
                packet.stream = stream
                target.mux(packet)
    assert reason(out.getvalue()) in {"container", "duration", "frames"}


@pytest.mark.parametrize("share", [0.02, 0.3, 0.6, 0.9, 0.99])
@pytest.mark.parametrize("front", [True, False])
def test_a_cut_file_is_refused(share: float, front: bool):
    data = fast() if front else video()
    assert reason(data[: int(len(data) * share)]) == "container"
    assert reason(data[:-1]) == "container"


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_cut_file_whose_header_was_made_to_fit_is_refused(share: float):
    """The right header and half of the frames: only decoding can tell."""
    data = fast()
    start = media_at(data) - 8
    cut = bytearray(data[: start + int((len(data) - start) * share)])
    cut[start : start + 4] = (len(cut) - start).to_bytes(4, "big")
    assert faststart_is_first(bytes(cut))
    assert reason(bytes(cut)) == "frames"


@pytest.mark.parametrize("share", [0.1, 0.5, 0.95])
@pytest.mark.parametrize(("length", "filling"), [(4, b"\0"), (1000, b"\0"), (50_000, b"\0"), (50_000, b"\xff")])
def test_a_hole_in_the_middle_is_refused(share: float, length: int, filling: bytes):
    data = bytearray(fast())
    at = media_at(data) + int((len(data) - media_at(data)) * share)
    length = min(length, len(data) - at)
    data[at : at + length] = filling * length
    assert reason(bytes(data)) == "frames"


@pytest.mark.parametrize("share", [0.1, 0.5, 0.95])
def test_other_bytes_in_a_simple_stream_are_refused(share: float):
    """A kilobyte of other bytes in the stream of a simple encoder, which has no arithmetic coder that eats them."""
    data = bytearray(faststart(io.BytesIO(video(cabac=False))).read())
    at = media_at(data) + int((len(data) - media_at(data)) * share)
    data[at : at + 1000] = random.Random(share).randbytes(1000)
    assert reason(bytes(data)) == "frames"


def test_a_second_half_of_zeros_is_refused():
    data = fast()
    assert reason(data[: len(data) // 2].ljust(len(data), b"\0")) == "frames"


def test_more_frames_claimed_than_there_are_is_refused():
    """The index says there is more: the sizes' table is left, the samples are gone."""
    whole, short = fast(), faststart(io.BytesIO(video(seconds=2))).read()
    assert reason(whole[: media_at(whole)] + short[media_at(short) :]) != ""


def test_random_damage_raises_nothing_but_not_a_video():
    """Damage anywhere: header, index and frames. Nothing else may come out, and bad frames must not pass."""
    data, dice = fast(), random.Random(7)
    passed = 0
    for _ in range(60):
        hurt = bytearray(data)
        for _ in range(dice.choice([1, 4, 30])):
            hurt[dice.randrange(dice.choice([64, media_at(data), len(data)]))] = dice.randrange(256)
        passed += reason(bytes(hurt)) == ""
        try:
            faststart(io.BytesIO(bytes(hurt)))
            poster(io.BytesIO(bytes(hurt)))
        except NotAVideo:
            continue
    assert passed < 30


def test_the_poster_is_the_frame_at_one_second_and_small():
    data = video(seconds=3, fps=24, size=(720, 1280), pattern="plain")
    jpeg = poster(io.BytesIO(data))
    shown = Image.open(io.BytesIO(jpeg))
    assert (shown.format, shown.size) == ("JPEG", (720, 1280))
    assert len(jpeg) <= 150 * 1024
    with av.open(io.BytesIO(data)) as container:
        reds = [frame.to_image().getpixel((300, 300))[0] for frame in container.decode(video=0)]
    assert abs(reds[24] - reds[23]) > 3
    assert abs(shown.getpixel((300, 300))[0] - reds[24]) <= 1


def test_a_poster_of_noise_is_small_as_well():
    jpeg = poster(io.BytesIO(video(seconds=2, size=(1080, 1920))))
    assert len(jpeg) <= 150 * 1024
    width, height = Image.open(io.BytesIO(jpeg)).size
    assert width / height == pytest.approx(9 / 16, rel=0.01)


def test_a_poster_of_no_video_is_refused():
    for data in (b"", b"<html>", video()[:5000]):
        with pytest.raises(NotAVideo):
            poster(io.BytesIO(data))


def pictures(data: bytes) -> list[int]:
    with av.open(io.BytesIO(data)) as container:
        return [hash(frame.to_image().tobytes()) for frame in container.decode(video=0)]


@pytest.mark.parametrize("audio", [False, True])
def test_the_index_is_moved_first_and_not_one_picture_changes(audio: bool):
    late = video(audio=audio)
    assert not faststart_is_first(late)
    with faststart(io.BytesIO(late)) as moved:
        early = moved.read()
        assert verify(moved).faststart
    assert faststart_is_first(early)
    assert len(early) == len(late)
    assert pictures(early) == pictures(late)


def test_the_index_moves_past_wide_places_too(monkeypatch: pytest.MonkeyPatch):
    """A table of 8-byte places, as big files have."""
    late = bytearray(video())
    at = late.index(b"stco")
    count = int.from_bytes(late[at + 8 : at + 12], "big")
    places = [int.from_bytes(late[at + 12 + 4 * n : at + 16 + 4 * n], "big") for n in range(count)]
    table = b"co64" + bytes(4) + count.to_bytes(4, "big") + b"".join(place.to_bytes(8, "big") for place in places)
    grown = len(table) + 4 - int.from_bytes(late[at - 4 : at], "big")
    late[at - 4 : at + 12 + 4 * count] = (len(table) + 4).to_bytes(4, "big") + table
    for parent in (b"moov", b"trak", b"mdia", b"minf", b"stbl"):
        size = late.index(parent) - 4
        late[size : size + 4] = (int.from_bytes(late[size : size + 4], "big") + grown).to_bytes(4, "big")
    assert reason(bytes(late)) == ""
    early = faststart(io.BytesIO(bytes(late))).read()
    assert pictures(early) == pictures(video())


def test_an_index_that_is_first_stays_the_very_same_file():
    file = io.BytesIO(fast())
    assert faststart(file) is file
    assert file.tell() == 0


def test_boxes_fill_the_file():
    found = mp4.boxes(io.BytesIO(video()))
    assert sum(box.size for box in found) == len(video())


def test_a_turned_video_is_measured_as_it_is_shown():
    """Landscape frames with a quarter turn in the header are an upright video for every player."""
    data = bytearray(video(size=(640, 360), seconds=2, pattern="plain"))
    at = data.index(b"tkhd") + 4 + 40
    assert data[at : at + 4] == b"\0\1\0\0"
    one, minus = (1 << 16).to_bytes(4, "big"), (-(1 << 16)).to_bytes(4, "big", signed=True)
    data[at : at + 36] = bytes(4) + one + bytes(4) + minus + bytes(12) + bytes(4) + (1 << 30).to_bytes(4, "big")
    facts = verify(io.BytesIO(bytes(data)))
    assert (facts.width, facts.height) == (360, 640)
    assert Image.open(io.BytesIO(poster(io.BytesIO(bytes(data))))).size == (360, 640)


def test_frames_beyond_what_the_index_claims_are_not_decoded(monkeypatch: pytest.MonkeyPatch):
    """The index says how much work there is; a stream that goes on and on is stopped at its word."""
    frames, asked_for = verify_module._frames, []

    def on_and_on(*given: Any) -> Iterator[Any]:
        last = None
        for last in frames(*given):
            yield last
        assert last is not None
        for number in range(1000):
            asked_for.append(number)
            last.pts += 1000
            yield last

    monkeypatch.setattr(verify_module, "_frames", on_and_on)
    assert reason(video()) == "frames"
    assert asked_for == [0]


@pytest.mark.parametrize(("size", "fps"), [((2304, 4096), 120), ((2160, 3840), 60)])
def test_work_that_would_take_minutes_is_refused(size: tuple[int, int], fps: int):
    with pytest.raises(NotAVideo, match="too much"):
        verify_module._check_work(*size, fps * 12)


def test_a_film_of_too_many_pixels_is_refused_before_a_frame_is_decoded(monkeypatch: pytest.MonkeyPatch):
    heard: list[int] = []
    monkeypatch.setattr(verify_module, "MAX_PIXELS", 360 * 640 * 35)
    assert reason(video(), on_progress=heard.append) == "frames"
    assert heard == []
    monkeypatch.setattr(verify_module, "MAX_PIXELS", 360 * 640 * 36)
    assert reason(video(), on_progress=heard.append) == ""
    assert heard == list(range(1, len(heard) + 1))
    assert len(heard) >= 36


def test_whoever_listens_may_stop_the_proof():
    class Enough(Exception):
        pass

    def stop(packets: int) -> None:
        if packets == 5:
            raise Enough

    with pytest.raises(Enough):
        verify(io.BytesIO(video()), on_progress=stop)
    with pytest.raises(Enough):
        poster(io.BytesIO(video()), on_progress=stop)
