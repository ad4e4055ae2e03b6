"""Every address of the shop."""

from django.contrib import admin
from django.urls import include, path

from waistheart import error_pages, health

urlpatterns = [
    path("livez", health.livez),
    path("readyz", health.readyz),
    path("admin/", admin.site.urls),
    path("", include("generation.urls")),
    path("", include("orders.urls")),
]

handler400 = error_pages.bad_request
handler403 = error_pages.permission_denied
handler404 = error_pages.page_not_found
handler500 = error_pages.server_error
