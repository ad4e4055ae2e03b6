"""What no page wants to see: text that nobody can decode, and NUL, which PostgreSQL refuses and no person types. Each is a 400."""

import codecs
import errno
import logging
from collections.abc import Callable, Iterable
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, UnreadablePostError
from django.http.response import HttpResponseBase
from django.utils.http import parse_header_parameters

from waistheart import error_pages
from waistheart.storage_base import BlobMissing, StorageError

log = logging.getLogger(__name__)
FULL = (errno.ENOSPC, errno.EDQUOT)  # where a large upload waits to be read, say
CHARSETS = ("utf-8", "ascii", "iso8859-1")  # as Python names them


def readable_types(application: WSGIApplication) -> WSGIApplication:
    """Answer 400 for a content type that cannot be parsed or names a charset nobody sends: Django would fail before any of its
    middleware is asked."""

    def gate(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if is_readable(environ.get("CONTENT_TYPE", "")):
            return application(environ, start_response)
        response = error_pages.bad_request(None)
        response.headers["Content-Length"] = str(len(response.content))
        start_response(f"400 {response.reason_phrase}", list(response.items()))
        return [response.content]

    return gate


def is_readable(content_type: str) -> bool:
    """Whether a content type can be parsed and its charset, if it names one, is one of ours."""
    try:
        charset = parse_header_parameters(content_type)[1].get("charset", "utf-8")
        return codecs.lookup(charset).name in CHARSETS
    except (LookupError, ValueError, TypeError):
        return False


class SayNoProperly:
    """Outermost: no NUL in a path, a query or a cookie, no error where storage or the database is away, and no answer above 399
    that a cache would keep or a search engine list."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        query = request.META.get("QUERY_STRING", "")
        if "%00" in query or any("\0" in text for text in (request.path_info, query, *request.COOKIES.values())):
            return error_pages.bad_request(request)
        response = self.get_response(request)
        if response.status_code >= 400:
            error_pages.mark(response)
        return response

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """The one place that knows for all pages what storage and the database raise: bytes that are missing are a page not found;
        what is away, full or locked is our fault for now, in one line of the log, and whoever asked may ask again."""
        if isinstance(exception, BlobMissing):
            return error_pages.page_not_found(request)
        if isinstance(exception, StorageError) or getattr(exception, "errno", None) in FULL:
            log.error("storage is away or full: %s: %s", type(exception).__name__, exception)
            return error_pages.unavailable("files")
        if isinstance(exception, OperationalError | InterfaceError):
            log.error("the database is away or busy: %s: %s", type(exception).__name__, exception)
            return error_pages.unavailable("records")
        return None


class WholeForms:
    """After the CSRF check, which reads the form anyway: no NUL in any of its values, and none that broke off on its way.

    A view without that check reads its body itself, or not at all (callbacks, bodies that are too long).
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_view(self, request: HttpRequest, view: Callable[..., Any], *_: object) -> HttpResponse | None:
        if request.method != "POST" or getattr(view, "csrf_exempt", False):
            return None
        try:
            unfit = any("\0" in str(value) for _name, values in request.POST.lists() for value in values)
        except UnreadablePostError:
            unfit = True
        return error_pages.bad_request(request) if unfit else None

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        return error_pages.bad_request(request) if isinstance(exception, UnreadablePostError) else None
