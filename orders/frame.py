"""What every page's frame needs."""

from django.conf import settings
from django.http import HttpRequest


def frame(request: HttpRequest) -> dict[str, object]:
    """Context of the base template: demo bar, seller, help address."""
    return {"demo": not settings.LIVE, "seller": settings.SELLER, "help_email": settings.HELP_EMAIL}
