"""Help, and one short page each on money, deletion, privacy, accessibility and terms. The numbers come from the settings."""

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from orders.views.common import public

PAGES = ("refunds", "retention", "privacy", "accessibility", "terms")


@require_safe
@public(3600)
def help_page(request: HttpRequest, page: str = "") -> HttpResponse:
    if page and page not in PAGES:
        raise Http404
    context = {
        "draft_kept": settings.DRAFT_SECONDS,
        "photo_kept": settings.PHOTO_KEPT_SECONDS,
        "video_kept": settings.VIDEO_KEPT_SECONDS,
        "credit_kept": settings.RETURNED_GRANT_SECONDS,
        "person_after": settings.QUEUE_DEADLINE_SECONDS,
        "gives_back_after": settings.REVIEW_GIVE_BACK_SECONDS,
        "retry_every": settings.OUT_OF_CREDITS_RETRY_SECONDS,
    }
    return render(request, f"help/{page or 'index'}.html", context)
