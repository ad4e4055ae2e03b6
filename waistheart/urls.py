"""Every address of the shop."""

from django.contrib import admin
from django.urls import include, path

from waistheart import health

urlpatterns = [
    path("livez", health.livez),
    path("readyz", health.readyz),
    path("admin/", admin.site.urls),
    path("", include("generation.urls")),
    path("", include("orders.urls")),
]
