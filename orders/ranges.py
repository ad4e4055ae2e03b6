"""HTTP Range, so that a phone plays, seeks and resumes a video. Players ask for the first two bytes first."""

import re
from collections.abc import Callable, Iterator

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.http import content_disposition_header, parse_etags, quote_etag

ONE_RANGE = re.compile(r"bytes=[ \t]*([0-9]{0,18})-([0-9]{0,18})[ \t]*", re.ASCII | re.IGNORECASE)

OpenRange = Callable[[int, int], Iterator[bytes]]


def ranged_response(
    request: HttpRequest,
    *,
    size: int,
    open_range: OpenRange,
    content_type: str,
    etag: str,
    filename: str | None = None,
    as_attachment: bool = False,
) -> HttpResponseBase:
    """Answer GET or HEAD for `size` stored bytes: 200, 206, 304 or 416.

    `open_range(start, end)` gives the bytes from `start` up to but without `end` and is called at most once, before the
    answer begins, so that its errors reach the view. `etag` names the bytes and must change with them. Several ranges
    at once, other units and malformed ones get the whole, as HTTP allows.
    """
    tag = quote_etag(etag)
    answer = _not_modified(request, tag) or _body(request, size, open_range, content_type, tag)
    answer["ETag"] = tag
    answer["Accept-Ranges"] = "bytes"
    answer["Cache-Control"] = "private"
    if answer.status_code in {200, 206} and (disposition := content_disposition_header(as_attachment, filename or "")):
        answer["Content-Disposition"] = disposition
    return answer


def _not_modified(request: HttpRequest, tag: str) -> HttpResponse | None:
    wanted = request.headers.get("If-None-Match", "")
    known = [each.removeprefix("W/") for each in parse_etags(wanted)]
    return HttpResponse(status=304) if "*" in known or tag.removeprefix("W/") in known else None


def _body(
    request: HttpRequest, size: int, open_range: OpenRange, content_type: str, tag: str
) -> HttpResponse | StreamingHttpResponse:
    if request.method == "HEAD":
        # A range is defined for GET alone.
        return HttpResponse(content_type=content_type, headers={"Content-Length": str(size)})
    chosen = _range(request, size, tag)
    if chosen is None:
        return _stream(open_range, 0, size, content_type)
    start, end = chosen
    if start >= end:
        return HttpResponse(status=416, content_type=content_type, headers={"Content-Range": f"bytes */{size}"})
    answer = _stream(open_range, start, end, content_type)
    answer.status_code = 206
    answer["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
    return answer


def _stream(open_range: OpenRange, start: int, end: int, content_type: str) -> StreamingHttpResponse:
    answer = StreamingHttpResponse(open_range(start, end), content_type=content_type)
    answer["Content-Length"] = str(end - start)
    return answer


def _range(request: HttpRequest, size: int, tag: str) -> tuple[int, int] | None:
    """Start and end (without) of the range asked for; None means the whole, an empty range that it cannot be had."""
    condition = request.headers.get("If-Range")
    # Only a strong tag proves that the rest belongs to what the asker has; we send no date to compare.
    if condition is not None and (condition.strip() != tag or tag.startswith("W/")):
        return None
    found = ONE_RANGE.fullmatch(request.headers.get("Range", "").strip())
    first, last = found.groups() if found else ("", "")
    if not first and not last:
        return None
    if not first:
        return max(0, size - int(last)), size
    if last and int(last) < int(first):
        return None
    return int(first), min(size, int(last) + 1) if last else size
