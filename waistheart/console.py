"""What the staff console's pages share: they show everything and change nothing, except through labelled buttons that call one verb."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, ClassVar

from django.contrib import admin
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ChangeList
from django.db import DataError
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString


class ReadOnly:
    """Nobody adds, changes or deletes a row here."""

    def has_add_permission(self, *_: Any, **__: Any) -> bool:
        return False

    def has_change_permission(self, *_: Any, **__: Any) -> bool:
        return False

    def has_delete_permission(self, *_: Any, **__: Any) -> bool:
        return False


class Console(admin.ModelAdmin):
    """A list of 50 rows, newest first, whose search finds exactly what was typed: a code, an address, a reference."""

    list_per_page = 50
    show_full_result_count = False
    ordering: ClassVar[Any] = ("-pk",)

    class Media:
        css = {"all": ["waistheart/console.css"]}

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        title = str(self.opts.verbose_name_plural).capitalize()
        return super().changelist_view(request, {"title": title, **(extra_context or {})})

    def get_changelist_instance(self, request: HttpRequest) -> ChangeList:
        """A filter typed into the address that no row can have (the year 99999) is answered like any other that is unknown."""
        try:
            return super().get_changelist_instance(request)
        except (ValueError, OverflowError, DataError) as error:
            raise IncorrectLookupParameters from error

    def find(self, term: str) -> Q:
        """Which rows a search term means."""
        return Q(pk=int(term)) if is_number(term) else Q(pk__in=[])

    def get_search_results(self, request: HttpRequest, queryset: QuerySet, search_term: str) -> tuple[QuerySet, bool]:
        term = search_term.strip()
        return (queryset.filter(self.find(term)) if term else queryset), False


class Window(ReadOnly, Console):
    """A list and pages to look at. `computed` names what a page shows beside the row's own columns."""

    computed: ClassVar[tuple[str, ...]] = ()

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> list[str]:
        return [*(field.name for field in self.opts.concrete_fields), *self.computed]


class WindowInline(ReadOnly, admin.TabularInline):
    """Rows below a page, to look at."""

    extra = 0
    max_num = 0
    show_change_link = False

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> Any:
        return self.fields


def is_number(term: str) -> bool:
    """Whether a search term can be a row's number."""
    return term.isascii() and term.isdigit() and len(term) < 19


def link(row: Model | None, text: str = "") -> str:
    """A link to a row's page in the console; a dash for none."""
    if row is None:
        return "–"
    meta = row._meta  # noqa: SLF001  (public by its documentation)
    url = reverse(f"admin:{meta.app_label}_{meta.model_name}_change", args=[row.pk])
    return format_html('<a href="{}">{}</a>', url, text or str(row))


def age(since: datetime | None, *, red_after: float = 0) -> str:
    """How long ago that was; red when longer than `red_after` seconds (0: never)."""
    if since is None:
        return "–"
    seconds = max(0.0, (timezone.now() - since).total_seconds())
    words = span(seconds)
    return format_html('<strong class="late">{}</strong>', words) if red_after and seconds > red_after else words


def span(seconds: float) -> str:
    """A length of time in its two largest units: "3 d 4 h", "2 h 5 min", "40 s"."""
    parts = []
    rest = int(seconds)
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min"), (1, "s")):
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2]) or "0 s"


def lines(rows: Sequence[str]) -> SafeString:
    """A list of already safe or plain texts, one below the other."""
    return format_html('<ul class="lines">{}</ul>', format_html_join("", "<li>{}</li>", ((row,) for row in rows)))


def pictures(figures: Sequence[str]) -> str:
    """Figures side by side; a dash for none."""
    rows = ((figure,) for figure in figures)
    return format_html('<div class="pictures">{}</div>', format_html_join("", "{}", rows)) if figures else "–"
