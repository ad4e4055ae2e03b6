"""Pictures and videos behind an order's unguessable address. Bytes that are missing or cannot be read now the middleware answers."""

from hashlib import sha256

from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.text import slugify
from django.views.decorators.http import require_safe

from generation import crop
from generation.states import JobStatus
from orders import ranges
from orders.models import Order, OrderItem, Photo
from orders.views import common
from orders.views.common import owner_only
from waistheart import storage

KEPT_BY_THE_BROWSER = "private, max-age=3600"


@require_safe
@owner_only
def video(request: HttpRequest, code: str, key: str, number: int = 1) -> HttpResponseBase:
    """The delivered bytes, whole or a part; with `?download=1` under a name that says what they are."""
    order, item = _placed(code, key, number)
    job = item.job
    if job is None or job.status != JobStatus.COMPLETED or job.deleted_at or not job.video_key:
        raise Http404
    place = f"-{number}" if job.lot_size > 1 else ""
    name = f"waistheart-{slugify(item.pose_name) or 'video'}-{order.code}{place}.mp4"
    return _private(
        stored(
            request, key=job.video_key, content_type="video/mp4", download=name if request.GET.get("download") else ""
        )
    )


@require_safe
@owner_only
def poster(request: HttpRequest, code: str, key: str, number: int = 1) -> HttpResponseBase:
    _, item = _placed(code, key, number)
    if item.job is None or item.job.deleted_at or not item.job.poster_key:
        raise Http404
    return _private(stored(request, key=item.job.poster_key, content_type="image/jpeg"))


@require_safe
@owner_only
def photo(request: HttpRequest, code: str, key: str, number: int = 1) -> HttpResponseBase:
    """The part of the customer's photo that the video is made from."""
    order, item = _placed(code, key, number)
    if item.photo is None or order.status == Order.Status.EXPIRED:
        raise Http404
    return _private(_cropped(item.photo, item.job.crop if item.job else item.crop))


@require_safe
@owner_only
def draft_photo(request: HttpRequest, key: str) -> HttpResponseBase:
    """A draft's photo: the shop's own crop, or with `?whole=1` all of it for the slider."""
    order = common.draft(key=key)
    item = order.items.select_related("photo").first()
    if order.status not in (Order.Status.DRAFT, Order.Status.AWAITING_PAYMENT) or item is None or item.photo is None:
        raise Http404
    if request.GET.get("whole"):
        return _picture(_photo_bytes(item.photo))
    return _cropped(item.photo, item.crop)


def stored(request: HttpRequest, *, key: str, content_type: str, download: str = "") -> HttpResponseBase:
    """Stored bytes, whole or a part; Http404 when storage has none. `download` is the name under which they are to be saved."""
    size = storage.size(key=key)
    if size is None:
        raise Http404
    return ranges.ranged_response(
        request,
        size=size,
        open_range=lambda start, end: storage.open_range(key=key, start=start, end=end),
        content_type=content_type,
        # Bytes never change under a key, so the key names them; hashed, because it is nobody's business.
        etag=sha256(key.encode()).hexdigest()[:32],
        filename=download or None,
        as_attachment=bool(download),
    )


def _placed(code: str, key: str, number: int) -> tuple[Order, OrderItem]:
    order = common.placed_order(code=code, key=key)
    item = order.items.select_related("job", "photo").filter(number=number).first()
    if item is None:
        raise Http404
    return order, item


def _cropped(kept: Photo, position: int) -> HttpResponse:
    return _picture(crop.crop_jpeg(_photo_bytes(kept), position))


def _photo_bytes(kept: Photo) -> bytes:
    if kept.deleted_at:
        raise Http404
    return storage.read(key=kept.key)


def _picture(jpeg: bytes) -> HttpResponse:
    return HttpResponse(jpeg, content_type="image/jpeg")


def _private(response: HttpResponseBase) -> HttpResponseBase:
    if response.status_code in (200, 206, 304):
        response["Cache-Control"] = KEPT_BY_THE_BROWSER
    return response
