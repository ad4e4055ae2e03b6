"""Addresses that providers use. Both spellings of a hint's path are answered, never by a redirect."""

from django.urls import path, register_converter
from django.urls.converters import StringConverter

from generation import views


class Token(StringConverter):
    """A submission's secret: anything of another shape is the same 404 as a wrong one, and never reaches the database."""

    regex = r"[A-Za-z0-9_-]{20,64}"


register_converter(Token, "token")

urlpatterns = [
    path("hints/<slug:provider>/<token:token>", views.hint),
    path("hints/<slug:provider>/<token:token>/", views.hint, name="hint"),
    path("portraits/proof-<str:signed>.jpg", views.proof),
    path("portraits/<token:token>.jpg", views.portrait, name="portrait"),
]
