"""Every address of the customer's pages."""

from django.urls import URLPattern, URLResolver, include, path, register_converter

from orders import hints
from orders.views import gallery, help, make, media, order, pay, review, way_back


class LinkKey:
    """The unguessable part of an order's address; anything of another shape is the same 404 as a wrong one."""

    regex = r"[A-Za-z0-9_-]{24}"

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return value


class PaymentKey(LinkKey):
    """What names a payment on the way back from its page. It opens no order for longer than that way is open."""

    regex = r"[0-9a-f]{32}"


class Code(LinkKey):
    """An order's eight letters."""

    regex = r"[A-HJ-NP-Z2-9]{8}"


register_converter(LinkKey, "key")
register_converter(PaymentKey, "payment")
register_converter(Code, "code")

draft: list[URLPattern] = [
    path("photo/", make.photo, name="draft-photo"),
    path("photo.jpg", media.draft_photo, name="draft-picture"),
    path("review/", review.review, name="review"),
    path("crop/", review.crop, name="draft-crop"),
    path("pose/", review.pose, name="draft-pose"),
    path("email/", review.email, name="draft-email"),
    path("reopen/", pay.reopen, name="draft-reopen"),
    path("pay/", pay.pay, name="pay"),
]
placed: list[URLPattern] = [
    path("", order.order, name="order"),
    path("progress/", order.progress, name="order-progress"),
    path("cancel/", order.cancel, name="order-cancel"),
    path("video.mp4", media.video, name="order-video"),
    path("poster.jpg", media.poster, name="order-poster"),
    path("photo.jpg", media.photo, name="order-photo"),
    path("<int:number>/video.mp4", media.video, name="item-video"),
    path("<int:number>/poster.jpg", media.poster, name="item-poster"),
    path("<int:number>/photo.jpg", media.photo, name="item-photo"),
]
urlpatterns: list[URLPattern | URLResolver] = [
    path("", gallery.gallery, name="gallery"),
    path("poses/<slug:slug>/", gallery.pose, name="pose"),
    path("poses/<slug:slug>/sample.mp4", gallery.sample, name="pose-sample"),
    path("poses/<slug:slug>/poster.jpg", gallery.poster, name="pose-poster"),
    path("make/<slug:slug>/", make.new, name="make"),
    path("make/<key:key>/", include(draft)),
    path("pay/return/", way_back.returned, name="pay-return"),
    path("pay/cancelled/<payment:key>/", way_back.cancelled, name="pay-cancelled"),
    path("o/<code:code>-<key:key>/", include(placed)),
    path("hints/stripe", hints.stripe),
    path("hints/stripe/", hints.stripe, name="stripe-hint"),
    path("help/", help.help_page, name="help"),
    path("help/<slug:page>/", help.help_page, name="help-page"),
]
