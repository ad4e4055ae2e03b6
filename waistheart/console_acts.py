"""Labelled buttons of the staff console: a page that asks, then one verb per row, guarded by what the page had shown.

What was seen of each row (its version) travels in the forms of the list and of the page that asks. A row that has moved on since
is left alone and counted: a stale page moves nothing.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from waistheart import console

LONGEST_REASON = 200


class Refused(Exception):
    """A verb would not act on a row, for a reason that staff should read."""


@dataclass(frozen=True)
class Act:
    """One button. `happens`, `told` and `undone` are the three lines of the page that asks; `do` answers whether the row moved
    (or whatever `done` calls it), or raises Refused. Whoever acted, and why, is kept in the row's history."""

    name: str
    label: str
    happens: str
    told: str
    undone: str
    do: Callable[[Any, str, str], bool]
    needs_reason: bool = False
    done: str = "moved"


class WithActs(console.Window):
    """A list whose rows can be acted on. Subclasses name `acts` and say which number is a row's version."""

    acts: tuple[Act, ...] = ()
    change_form_template = "admin/acts_change_form.html"

    def version_of(self, row: Any) -> int:
        """What a move of this row would be guarded by."""
        raise NotImplementedError

    def row_now(self, row_id: int) -> Any:
        """The row as it is now, in or out of this list; None when there is none."""
        raise NotImplementedError

    def facts(self, row: Any) -> str:
        """What the page that asks says about one row."""
        return str(row)

    def has_act_permission(self, request: HttpRequest) -> bool:
        """Seeing the list does not allow to act on it."""
        return bool(request.user.is_active and request.user.is_superuser)

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        if not self.has_act_permission(request):
            return {}
        return {act.name: (self._action_of(act), act.name, act.label) for act in self.acts}

    @admin.display(description=SafeString('<input type="checkbox" id="action-toggle" aria-label="Select all">'))
    def action_checkbox(self, obj: Model) -> SafeString:
        seen = format_html('<input type="hidden" name="version_{}" value="{}">', obj.pk, self.version_of(obj))
        return format_html("{}{}", super().action_checkbox(obj), seen)

    def response_action(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse | None:
        """Only numbers name rows; whatever else a form says was chosen was not."""
        form = request.POST.copy()
        form.setlist(
            ACTION_CHECKBOX_NAME, [one for one in form.getlist(ACTION_CHECKBOX_NAME) if console.is_number(str(one))]
        )
        request.POST = form  # type: ignore[assignment]
        return super().response_action(request, *args, **kwargs)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        row = self.get_object(request, object_id)
        offered = self.acts if row is not None and self.has_act_permission(request) else ()
        context = {"acts": offered, "version": self.version_of(row) if row else 0, **(extra_context or {})}
        return super().change_view(request, object_id, form_url, context)

    def _action_of(self, act: Act) -> Callable[..., HttpResponse | None]:
        def action(_admin: object, request: HttpRequest, _rows: object) -> HttpResponse | None:
            return self._ask_or_do(request, act)

        action.__name__ = act.name
        return action

    def _ask_or_do(self, request: HttpRequest, act: Act) -> HttpResponse | None:
        seen = seen_versions(request)
        reason = request.POST.get("reason", "").strip()
        fault = reason_fault(act, reason) if request.POST.get("confirmed") else ""
        if request.POST.get("confirmed") and not fault:
            self._do(request, act, seen, reason)
            return None
        rows = [row for row in map(self.row_now, seen) if row is not None]
        context = {
            **self.admin_site.each_context(request),
            "title": act.label,
            "act": act,
            "opts": self.opts,
            "media": self.media,
            "rows": [(self.facts(row), self.version_of(row) != seen[row.pk]) for row in rows],
            "seen": seen.items(),
            "fault": fault,
            "longest": LONGEST_REASON,
        }
        return TemplateResponse(request, "admin/confirm_act.html", context)

    def _do(self, request: HttpRequest, act: Act, seen: dict[int, int], reason: str) -> None:
        moved, left = 0, 0
        for row_id, version in seen.items():
            try:
                if self._do_one(request, act, row_id, version, reason):
                    moved += 1
                else:
                    left += 1
            except Refused as refused:
                self.message_user(request, f"{act.label}, {self.opts.verbose_name} {row_id}: {refused}", messages.ERROR)
        words = [f"{moved} {act.done}"] if moved else []
        words += [f"{left} had already moved on"] if left else []
        if words:
            self.message_user(
                request, f"{act.label}: {', '.join(words)}.", messages.WARNING if left else messages.SUCCESS
            )

    def _do_one(self, request: HttpRequest, act: Act, row_id: int, version: int, reason: str) -> bool:
        row = self.row_now(row_id)
        if row is None or self.version_of(row) != version or not act.do(row, str(request.user), reason):
            return False
        self.log_change(request, row, f"{act.label}: {reason}" if reason else act.label)
        return True


def reason_fault(act: Act, reason: str) -> str:
    """What is wrong with a reason; empty when nothing is."""
    if act.needs_reason and not reason:
        return "Say why: the reason is kept with the row."
    if len(reason) > LONGEST_REASON:
        return f"Say why in {LONGEST_REASON} characters. These are {len(reason)}."
    return ""


def seen_versions(request: HttpRequest) -> dict[int, int]:
    """The chosen rows with the version that was shown of each; a row without one was not shown and is not touched."""
    chosen: Iterable[str] = dict.fromkeys(request.POST.getlist(ACTION_CHECKBOX_NAME))
    pairs = ((row_id, request.POST.get(f"version_{row_id}", "")) for row_id in chosen)
    return {int(a): int(b) for a, b in pairs if console.is_number(a) and console.is_number(b)}
