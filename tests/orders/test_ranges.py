"""HTTP Range to the letter: every pair of numbers, and what players and caches send besides."""

from collections.abc import Iterator

import pytest
from django.http.response import HttpResponseBase
from django.test import RequestFactory
from hypothesis import given
from hypothesis import strategies as st

from orders.ranges import ranged_response

DATA = bytes(range(100))


def ask(method: str = "get", data: bytes = DATA, etag: str = "abc", **more) -> HttpResponseBase:
    """Send a request with these headers (RANGE="bytes=0-1") and get the answer."""
    options = {name: more.pop(name) for name in ("filename", "as_attachment") if name in more}
    request = getattr(RequestFactory(), method)(
        "/video/", headers={name.replace("_", "-"): more[name] for name in more}
    )

    def open_range(start: int, end: int) -> Iterator[bytes]:
        assert 0 <= start <= end <= len(data)
        return iter([data[start:end][:7], data[start:end][7:]])

    return ranged_response(
        request, size=len(data), open_range=open_range, content_type="video/mp4", etag=etag, **options
    )


def body(answer: HttpResponseBase) -> bytes:
    return b"".join(answer)


def test_the_whole_without_a_range():
    answer = ask()
    assert (answer.status_code, body(answer)) == (200, DATA)
    assert answer["Content-Length"] == "100"
    assert answer["Accept-Ranges"] == "bytes"
    assert answer["Cache-Control"] == "private"
    assert answer["ETag"] == '"abc"'
    assert answer["Content-Type"] == "video/mp4"
    assert not answer.has_header("Content-Range")


@pytest.mark.parametrize(
    ("wanted", "start", "end"),
    [
        ("bytes=0-1", 0, 2),
        ("bytes=0-0", 0, 1),
        ("bytes=99-99", 99, 100),
        ("bytes=10-", 10, 100),
        ("bytes=0-", 0, 100),
        ("bytes=90-999", 90, 100),
        ("bytes=-1", 99, 100),
        ("bytes=-30", 70, 100),
        ("bytes=-100", 0, 100),
        ("bytes=-5000", 0, 100),
        ("Bytes=3-4", 3, 5),
        ("bytes= 3-4 ", 3, 5),
    ],
)
def test_one_range_is_answered_to_the_byte(wanted: str, start: int, end: int):
    answer = ask(RANGE=wanted)
    assert (answer.status_code, body(answer)) == (206, DATA[start:end])
    assert answer["Content-Range"] == f"bytes {start}-{end - 1}/100"
    assert answer["Content-Length"] == str(end - start)


@pytest.mark.parametrize(
    "wanted", ["bytes=100-", "bytes=100-200", "bytes=5000-", "bytes=-0", "bytes=999999999999999999-"]
)
def test_a_range_beyond_the_end_is_416_with_the_size(wanted: str):
    answer = ask(RANGE=wanted)
    assert (answer.status_code, body(answer)) == (416, b"")
    assert answer["Content-Range"] == "bytes */100"


@pytest.mark.parametrize(
    "wanted",
    ["bytes=5-2", "bytes=-", "bytes=", "bytes", "", "bytes=a-b", "bytes=1-2-3", "items=0-1", "bytes=--1", "bytes=0x1-2",
     "bytes=٣-٤", "bytes=+1-2", "bytes=1 -2", "bytes=" + "9" * 5000 + "-", "0-1", "bytes=0-1, 5-6", "bytes=0-1,"],
)  # fmt: skip
def test_malformed_and_several_ranges_get_the_whole(wanted: str):
    answer = ask(RANGE=wanted)
    assert (answer.status_code, body(answer)) == (200, DATA)
    assert not answer.has_header("Content-Range")


@given(st.integers(0, 120), st.integers(0, 120))
def test_any_pair_of_numbers(first: int, last: int):
    answer = ask(RANGE=f"bytes={first}-{last}")
    if last < first:
        assert (answer.status_code, body(answer)) == (200, DATA)
    elif first >= 100:
        assert answer.status_code == 416
    else:
        assert (answer.status_code, body(answer)) == (206, DATA[first : last + 1])


@pytest.mark.parametrize(
    ("condition", "status"),
    [
        ('"abc"', 206),
        ('"other"', 200),
        ('W/"abc"', 200),
        ("abc", 200),
        ("Wed, 21 Oct 2026 07:28:00 GMT", 200),
        ("", 200),
    ],
)
def test_if_range_wants_the_very_same_bytes(condition: str, status: int):
    assert ask(RANGE="bytes=0-1", IF_RANGE=condition).status_code == status


def test_if_range_with_a_weak_tag_never_matches():
    assert ask(etag='W/"abc"', RANGE="bytes=0-1", IF_RANGE='W/"abc"').status_code == 200


@pytest.mark.parametrize("known", ['"abc"', 'W/"abc"', '"x", "abc"', "*"])
@pytest.mark.parametrize("method", ["get", "head"])
def test_what_the_asker_has_is_not_sent_again(known: str, method: str):
    answer = ask(method, IF_NONE_MATCH=known, RANGE="bytes=0-1")
    assert (answer.status_code, body(answer)) == (304, b"")
    assert answer["ETag"] == '"abc"'


def test_what_the_asker_does_not_have_is_sent():
    assert ask(IF_NONE_MATCH='"other"').status_code == 200


def test_head_tells_the_size_and_opens_nothing():
    request = RequestFactory().head("/video/", headers={"Range": "bytes=0-1"})
    answer = ranged_response(
        request, size=100, open_range=lambda start, end: pytest.fail("opened"), content_type="video/mp4", etag="abc"
    )
    assert (answer.status_code, answer["Content-Length"], body(answer)) == (200, "100", b"")


def test_nothing_at_all():
    assert (ask(data=b"").status_code, ask(data=b"")["Content-Length"]) == (200, "0")
    assert ask(data=b"", RANGE="bytes=0-1")["Content-Range"] == "bytes */0"
    assert ask(data=b"", RANGE="bytes=-5").status_code == 416


def test_the_file_name_is_told_to_browsers():
    assert not ask().has_header("Content-Disposition")
    assert ask(filename="heart.mp4")["Content-Disposition"] == 'inline; filename="heart.mp4"'
    assert ask(filename="heart.mp4", as_attachment=True)["Content-Disposition"] == 'attachment; filename="heart.mp4"'
    assert "\n" not in ask(filename="a\nb", as_attachment=True)["Content-Disposition"]


def test_missing_bytes_are_told_before_the_answer_begins():
    def gone(start: int, end: int) -> Iterator[bytes]:
        raise LookupError("gone")

    with pytest.raises(LookupError):
        ranged_response(RequestFactory().get("/"), size=9, open_range=gone, content_type="video/mp4", etag="abc")
