"""The shop window: poses, their sample clips, prices. No cookie, the same for everybody."""

from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from orders.models import Pose
from orders.views.common import closed, public, slow, sold
from orders.views.media import stored


@require_safe
@public(300)
def gallery(request: HttpRequest) -> HttpResponse:
    poses = [sold(each) for each in Pose.objects.filter(active=True)]
    cheapest = min(poses, key=lambda one: one["amount"], default=None)
    price = cheapest and cheapest["price"]
    context = {
        "poses": poses,
        "price": price,
        "one_price": price if len({each["price"] for each in poses}) == 1 else "",
        "closed": closed(),
        "slow": slow(),
    }
    return render(request, "pages/gallery.html", context)


@require_safe
@public(300)
def pose(request: HttpRequest, slug: str) -> HttpResponse:
    chosen = get_object_or_404(Pose, slug=slug)
    others = [sold(other) for other in Pose.objects.filter(active=True).exclude(pk=chosen.pk)]
    if not chosen.active:
        return render(request, "pages/pose_retired.html", {"pose": chosen, "poses": others}, status=410)
    return render(request, "pages/pose.html", {**sold(chosen), "poses": others, "closed": closed(), "slow": slow()})


@require_safe
@public(86400)
def sample(request: HttpRequest, slug: str) -> HttpResponseBase:
    chosen = get_object_or_404(Pose, slug=slug)
    if not chosen.sample_key:
        raise Http404
    return stored(request, key=chosen.sample_key, content_type="video/mp4")


@require_safe
@public(86400)
def poster(request: HttpRequest, slug: str) -> HttpResponseBase:
    chosen = get_object_or_404(Pose, slug=slug)
    if not chosen.poster_key:
        raise Http404
    return stored(request, key=chosen.poster_key, content_type="image/jpeg")
