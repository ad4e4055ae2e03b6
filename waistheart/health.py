"""Is this process alive, and could it serve?"""

from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse


def livez(request: HttpRequest) -> HttpResponse:
    """200 as long as the process answers; touches nothing."""
    return HttpResponse("ok\n", content_type="text/plain")


def readyz(request: HttpRequest) -> HttpResponse:
    """200 when the database answers, else 503."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return HttpResponse("no database\n", status=503, content_type="text/plain")
    return HttpResponse("ok\n", content_type="text/plain")
