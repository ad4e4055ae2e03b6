"""The file itself and its host: a real video made from that portrait, and every way a download goes wrong."""

import gzip
import io
import itertools
import time

import av
import pytest
import requests
from PIL import Image, ImageChops, ImageStat

from tests.sandbox.fal_client import Fal, Listener
from tests.sandbox_process import Sandbox

PLAIN = {"Accept-Encoding": "identity"}


def download(fal: Fal, **body: object) -> bytes:
    return requests.get(fal.video_url(**body), headers=PLAIN, timeout=30).content


def decoded(film: bytes) -> list[av.VideoFrame]:
    with av.open(io.BytesIO(film), "r") as container:
        return list(container.decode(video=0))


@pytest.fixture
def full_size(sandbox: Sandbox) -> None:
    """Films as the demo has them."""
    sandbox.settings(film_height=1280)


def difference(one: av.VideoFrame, two: av.VideoFrame) -> float:
    """How far apart two pictures are, 0 to 255."""
    apart = ImageChops.difference(one.to_image(), two.to_image())
    return sum(ImageStat.Stat(apart).mean) / 3


@pytest.mark.usefixtures("full_size")
def test_the_film_is_what_a_shop_can_sell(fal: Fal) -> None:
    film = download(fal)
    with av.open(io.BytesIO(film), "r") as container:
        [stream] = container.streams.video
        assert len(container.streams) == 1
        context = stream.codec_context
        assert (context.name, context.profile, context.pix_fmt) == ("h264", "High", "yuv420p")
        assert (context.width, context.height) == (720, 1280)
        assert 4 <= (container.duration or 0) / 1_000_000 <= 8
        assert stream.average_rate == 24
        assert container.metadata["comment"] == "Made with AI - DEMO"
        assert len(list(container.decode(video=0))) == stream.frames == 120
    assert film[4:8] == b"ftyp"
    assert film.index(b"moov") < film.index(b"mdat")
    assert 100_000 < len(film) < 4_000_000


def test_another_portrait_is_another_film_and_another_pose_another_place(fal: Fal, listener: Listener) -> None:
    waist = decoded(download(fal))[60]
    assert difference(waist, decoded(download(fal))[60]) == 0
    assert difference(waist, decoded(download(fal, prompt="a finger heart"))[60]) > 1
    other = decoded(download(fal, image_url=listener.photo("ok_grey.jpg")))[60]
    assert difference(waist, other) > 10


@pytest.mark.usefixtures("full_size")
def test_the_film_shows_the_portrait(fal: Fal, listener: Listener) -> None:
    answer = requests.get(fal.image_url, timeout=30)
    portrait = Image.open(io.BytesIO(answer.content)).convert("RGB")
    side = portrait.height * 9 / 16
    left = (portrait.width - side) / 2
    cut = portrait.crop((round(left), 0, round(left + side), portrait.height)).resize((720, 1280))
    frame = decoded(download(fal))[0].to_image()
    apart = ImageStat.Stat(ImageChops.difference(cut, frame)).mean
    assert sum(apart) / 3 < 6


def test_nothing_flashes_and_the_heart_moves(fal: Fal) -> None:
    frames = decoded(download(fal))
    steps = [difference(one, two) for one, two in itertools.pairwise(frames)]
    assert 0 < max(steps) < 12
    brightness = [ImageStat.Stat(frame.to_image().convert("L")).mean[0] for frame in frames]
    assert max(brightness) - min(brightness) < 12


@pytest.mark.parametrize("photo", ["ok_cmyk.jpg", "ok_transparent.png"])
def test_odd_but_good_pictures_are_rendered(fal: Fal, listener: Listener, photo: str) -> None:
    assert len(decoded(download(fal, image_url=listener.photo(photo), duration="4"))) == 96


def test_hevc_video_is_healthy_but_not_h264(fal: Fal, sandbox: Sandbox) -> None:
    sandbox.fault("hevc_video")
    with av.open(io.BytesIO(download(fal, duration="4")), "r") as container:
        assert container.streams.video[0].codec_context.name == "hevc"


def test_wrong_aspect_lies_on_its_side(fal: Fal, sandbox: Sandbox) -> None:
    sandbox.fault("wrong_aspect")
    with av.open(io.BytesIO(download(fal, duration="4")), "r") as container:
        context = container.streams.video[0].codec_context
        assert (context.width, context.height) == (448, 252)


def test_moov_last_has_its_index_at_the_end(fal: Fal, sandbox: Sandbox) -> None:
    sandbox.fault("moov_last")
    film = download(fal, duration="4")
    assert film.index(b"moov") > film.index(b"mdat")
    assert len(decoded(film)) == 96


@pytest.mark.parametrize("fault", ["corrupt_frames", "half_video"])
def test_a_bad_file_has_a_good_header_and_frames_that_do_not_decode(fal: Fal, sandbox: Sandbox, fault: str) -> None:
    sandbox.fault(fault)
    video = fal.result().json()["video"]
    film = requests.get(video["url"], headers=PLAIN, timeout=30).content
    assert len(film) == video["file_size"]
    with av.open(io.BytesIO(film), "r") as container:
        assert container.streams.video[0].frames == 120
        with pytest.raises(av.error.FFmpegError):
            list(container.decode(video=0))


def test_slow_body_is_whole_and_slow(fal: Fal, sandbox: Sandbox) -> None:
    url = fal.video_url()
    whole = requests.get(url, headers=PLAIN, timeout=30).content
    sandbox.fault("slow_body", seconds=1)
    started = time.monotonic()
    assert requests.get(url, headers=PLAIN, timeout=30).content == whole
    assert time.monotonic() - started > 0.9


def test_truncated_body_ends_before_its_length(fal: Fal, sandbox: Sandbox) -> None:
    url = fal.video_url()
    sandbox.fault("truncated_body", share=0.25)
    with pytest.raises(requests.exceptions.ChunkedEncodingError, match="IncompleteRead") as cut:
        requests.get(url, headers=PLAIN, timeout=30)
    incomplete = cut.value.args[0].args[1]
    assert incomplete.partial == (incomplete.partial + incomplete.expected) // 4 > 0


def test_gzip_body_announces_the_compressed_length(fal: Fal, sandbox: Sandbox) -> None:
    url = fal.video_url()
    sandbox.fault("gzip_body")
    with requests.get(url, headers=PLAIN, timeout=30, stream=True) as answer:
        raw = answer.raw.read(decode_content=False)
    assert answer.headers["Content-Encoding"] == "gzip"
    assert int(answer.headers["Content-Length"]) == len(raw)
    assert gzip.decompress(raw) == requests.get(url, headers=PLAIN, timeout=30).content


@pytest.mark.parametrize("share", [1, 0.5])
def test_no_content_length_cannot_be_told_from_a_cut(fal: Fal, sandbox: Sandbox, share: float) -> None:
    url = fal.video_url()
    whole = requests.get(url, headers=PLAIN, timeout=30).content
    sandbox.fault("no_content_length", share=share)
    answer = requests.get(url, headers=PLAIN, timeout=30)
    assert "Content-Length" not in answer.headers
    assert "Transfer-Encoding" not in answer.headers
    assert answer.content == whole[: int(len(whole) * share)]


@pytest.mark.parametrize("content_type", ["text/html", "video/mp4"])
def test_html_instead_of_video(fal: Fal, sandbox: Sandbox, content_type: str) -> None:
    url = fal.video_url()
    sandbox.fault("html_instead_of_video", content_type=content_type)
    answer = requests.get(url, timeout=30)
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, content_type)
    assert answer.content.startswith(b"<!doctype html>")


@pytest.mark.parametrize("status", [403, 404])
def test_media_expires_until_the_result_is_read_again(fal: Fal, sandbox: Sandbox, status: int) -> None:
    accepted = fal.submit().json()
    fal.completed(accepted)
    url = fal.get(accepted["response_url"]).json()["video"]["url"]
    sandbox.fault("media_expires", status=status)
    assert [requests.get(url, timeout=30).status_code for _ in range(2)] == [status, status]
    fresh = fal.get(accepted["response_url"]).json()["video"]["url"]
    assert fresh != url
    assert requests.get(fresh, timeout=30).status_code == 200


def test_media_expires_only_after_its_seconds(fal: Fal, sandbox: Sandbox) -> None:
    url = fal.video_url()
    sandbox.fault("media_expires", seconds=60)
    assert requests.get(url, timeout=30).status_code == 200


def test_redirect_other_host(fal: Fal, sandbox: Sandbox) -> None:
    url = fal.video_url()
    sandbox.fault("redirect_other_host", host="192.0.2.1")
    answer = requests.get(url, timeout=30, allow_redirects=False)
    assert answer.status_code == 302
    assert answer.headers["Location"].startswith("http://192.0.2.1/fal/media/")
    assert requests.get(url, timeout=30, allow_redirects=False).status_code == 200


def test_the_media_host_may_have_trouble_of_its_own(fal: Fal, sandbox: Sandbox) -> None:
    url = fal.video_url()
    sandbox.fault("error_503", on="media", times=2)
    assert [requests.get(url, timeout=30).status_code for _ in range(3)] == [503, 503, 200]
