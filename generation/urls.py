"""Addresses that providers use. Both spellings of a hint's path are answered, never by a redirect."""

from django.urls import path

from generation import views

urlpatterns = [
    path("hints/<slug:provider>/<str:token>", views.hint),
    path("hints/<slug:provider>/<str:token>/", views.hint, name="hint"),
    path("portraits/probe.gif", views.probe_picture),
    path("portraits/<str:token>.jpg", views.portrait, name="portrait"),
]
