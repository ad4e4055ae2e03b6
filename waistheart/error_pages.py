"""The pages that say no, for every address. They read nothing of a request's body: that body may be why they are shown.

Django's own ask for a CSRF token first, which reads the form once more and raises once more, this time out of Django.
"""

import logging

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.template import loader

log = logging.getLogger(__name__)


def bad_request(request: HttpRequest | None, exception: Exception | None = None) -> HttpResponse:
    """400: we could not read what was sent. Needs no request."""
    return _page(None, 400)


def permission_denied(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """403: not for you."""
    return _page(request, 403)


def page_not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """404: the same for every reason."""
    return _page(request, 404)


def unavailable(away: str) -> HttpResponse:
    """503: our "files" or our "records" are away, full or locked, and the next try may succeed. Needs no request."""
    response = _page(None, 503, away=away)
    response.headers["Retry-After"] = "60"
    return response


def server_error(request: HttpRequest) -> HttpResponse:
    """500: our fault. Needs neither the database nor a request."""
    return _page(None, 500)


def mark(response: HttpResponseBase) -> None:
    """No cache keeps what says no, and no search engine lists it: tomorrow the same address may have an answer."""
    response.headers.setdefault("Cache-Control", "no-store")
    response.headers.setdefault("X-Robots-Tag", "noindex, nofollow")


def _page(request: HttpRequest | None, status: int, **words: str) -> HttpResponse:
    try:
        response = HttpResponse(loader.render_to_string(f"{status}.html", words, request=request), status=status)
    except Exception:
        # Whatever broke the page may break this one as well: static files that were not collected, say.
        log.exception("the page for %s cannot be shown", status)
        response = HttpResponse(status=status, content_type="text/plain")
        response.content = f"{status} {response.reason_phrase}\n"
    mark(response)
    return response
