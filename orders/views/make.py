"""Step 1: the photo and the e-mail address, for a new draft and for one that is changed."""

import logging
import re
import secrets
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.csrf import csrf_exempt, csrf_protect
from django.views.decorators.http import require_http_methods

from generation.crop import DEFAULT_POSITION
from orders import drafts, forms, photos
from orders.forms import Fault
from orders.models import Order, OrderItem, Pose
from orders.views import common
from orders.views.common import SeeOther, owner_only
from waistheart.storage import StorageError

# Far above a photo: a body that is only somewhat too big is read (to disk), so that its form can come back with a sentence.
LONGEST_BODY = 64 * 1024 * 1024
NOT_SAVED = Fault("photo", "We cannot save photos right now. Choose it again in a few minutes")

log = logging.getLogger(__name__)


class NotADraft(Exception):
    """The order moved on while this form was open."""


@csrf_exempt  # checked in the inner view: the check reads the body, and a huge one must be refused unread
@require_http_methods(["GET", "HEAD", "POST"])
@owner_only
def new(request: HttpRequest, slug: str) -> HttpResponse:
    return too_long(request) or _new(request, slug)


@csrf_exempt
@require_http_methods(["GET", "HEAD", "POST"])
@owner_only
def photo(request: HttpRequest, key: str) -> HttpResponse:
    return too_long(request) or _photo(request, key)


def too_long(request: HttpRequest) -> HttpResponse | None:
    """413 for a body no photo can have, without reading it."""
    try:
        length = int(request.META.get("CONTENT_LENGTH") or 0)
    except ValueError:
        length = 0
    return render(request, "413.html", status=413) if length > LONGEST_BODY else None


@csrf_protect
def _new(request: HttpRequest, slug: str) -> HttpResponse:
    pose = get_object_or_404(Pose, slug=slug)
    if not pose.active:
        return SeeOther(f"/poses/{pose.slug}/")
    if common.closed():
        return common.closed_page(request)
    if request.method != "POST":
        return _page(request, pose, request_key=secrets.token_urlsafe(24))
    key = _request_key(request)
    if forms.upload(request) is None:
        faults = [fault for fault in (Fault("photo", forms.NO_PHOTO), _email_fault(request)) if fault]
        return _page(request, pose, faults=faults, request_key=key)
    order = drafts.start(pose=pose, request_key=key)
    return common.moved_on(request, order) or _save(request, order)


@csrf_protect
def _photo(request: HttpRequest, key: str) -> HttpResponse:
    order = common.draft(key=key)
    elsewhere = common.moved_on(request, order)
    if elsewhere:
        return elsewhere
    if request.method == "POST":
        return common.closed_page(request, order=order) if common.closed() else _save(request, order)
    return _page(request, _item(order).pose, order=order, email=order.email)


def _save(request: HttpRequest, order: Order) -> HttpResponse:
    """Keep whatever is right, then go on to the review or show the form again with what is not."""
    try:
        faults = [fault for fault in (_keep_photo(request, order), _keep_email(request, order)) if fault]
    except NotADraft:
        return common.conflict(request, order)
    if not faults:
        return SeeOther(common.draft_url("review", order))
    return _page(request, _item(order).pose, faults=faults, order=order)


def _keep_photo(request: HttpRequest, order: Order) -> Fault | None:
    file, crop, item = forms.upload(request), forms.position(request.POST.get("crop")), _item(order)
    if file is None:
        if item.photo is None:
            return Fault("photo", forms.NO_PHOTO)
        if crop is not None and crop != item.crop:
            _must(drafts.set_crop(order=order, crop=crop))
        return None
    problem = forms.upload_fault(file)
    if problem:
        return Fault("photo", problem)
    place = DEFAULT_POSITION if crop is None else crop
    try:
        _must(drafts.put_photo(order=order, data=file.read(), name=file.name or "", crop=place))
    except photos.PhotoProblem as error:
        return Fault("photo", error.message)
    except StorageError as error:
        log.error("a photo could not be saved: %s: %s", type(error).__name__, error)
        return NOT_SAVED
    return None


def _keep_email(request: HttpRequest, order: Order) -> Fault | None:
    fault = _email_fault(request)
    if fault is None and _email(request) != order.email:
        _must(drafts.set_email(order=order, email=_email(request)))
    return fault


def _page(
    request: HttpRequest,
    pose: Pose,
    *,
    faults: list[Fault] | None = None,
    order: Order | None = None,
    request_key: str = "",
    email: str = "",
) -> HttpResponse:
    """The form, with 200 also when something is wrong: it is an answer to a form, not an error of the web. Ours is one: 503."""
    item = _item(order) if order else None
    context: dict[str, Any] = {
        **common.sold(pose),
        "faults": faults or [],
        "fault": {fault.field: fault.message for fault in faults or []},
        "order": order,
        "item": item,
        "email": _email(request) if request.method == "POST" else email,
        "request_key": request_key,
        "crop": item.crop if item and item.photo else DEFAULT_POSITION,
    }
    return render(request, "pages/photo.html", context, status=503 if NOT_SAVED in (faults or []) else 200)


def _item(order: Order) -> OrderItem:
    return order.items.select_related("pose", "photo").get(number=1)


def _email(request: HttpRequest) -> str:
    return request.POST.get("email", "").strip()


def _email_fault(request: HttpRequest) -> Fault | None:
    problem = forms.email_fault(_email(request))
    return Fault("email", problem) if problem else None


def _request_key(request: HttpRequest) -> str:
    """The form's own key, so that the same form sent twice stays one order."""
    sent = request.POST.get("request_key", "")
    return sent if re.fullmatch(r"[A-Za-z0-9_-]{16,64}", sent) else secrets.token_urlsafe(24)


def _must(done: bool) -> None:
    if not done:
        raise NotADraft
