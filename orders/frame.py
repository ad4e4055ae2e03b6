"""What every page's frame needs."""

from django.conf import settings
from django.http import HttpRequest


def frame(request: HttpRequest) -> dict[str, object]:
    """Context of every template: demo bar, seller, help address, words about tax, and how long things are kept (seconds)."""
    return {
        "demo": not settings.LIVE,
        "seller": settings.SELLER,
        "help_email": settings.HELP_EMAIL,
        "tax_text": settings.TAX_TEXT,
        "kept": {
            "draft": settings.DRAFT_SECONDS,
            "photo": settings.PHOTO_KEPT_SECONDS,
            "video": settings.VIDEO_KEPT_SECONDS,
        },
    }
