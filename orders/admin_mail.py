"""The outbox in the staff console: every mail, those that nothing tries any more, and the buttons that have one tried again or let it be."""

from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse

from orders import outbox
from orders.models import Mail
from waistheart import console
from waistheart.console_acts import Act, Refused, WithActs


class NeedsAPerson(admin.SimpleListFilter):
    """The mails that the console's first page counts."""

    title, parameter_name = "handing over", "needs"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("person", "Not handed over")]

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        return queryset.filter(outbox.needs_a_person()) if self.value() == "person" else queryset


def again(mail: Mail, actor: str, reason: str) -> bool:
    """Have it tried again, unless something does that by itself or nothing needs to."""
    _refuse_unless_tried_no_more(mail)
    return outbox.again(mail)


def drop(mail: Mail, actor: str, reason: str) -> bool:
    """Take it off the list without having it tried again."""
    _refuse_unless_tried_no_more(mail)
    return outbox.drop(mail)


def _refuse_unless_tried_no_more(mail: Mail) -> None:
    if not tried_no_more(mail):
        raise Refused(f"it is {mail.status}: only a mail that failed, or whose answers were all lost, waits for staff")


def tried_no_more(mail: Mail) -> bool:
    """What `outbox.needs_a_person` says of a row that was read already."""
    return mail.status == Mail.Status.FAILED or (mail.status == Mail.Status.UNKNOWN and mail.next_step_at is None)


ACTS = (
    Act(
        "again", "Hand over again",
        "The same mail, with the same Message-ID, is due now and tried like a new one. One whose answers were lost may have arrived: "
        "it is handed over one time more, and not repeated by itself.",
        "Gets the mail; one that is unknown perhaps once more.", "No.",
        again, needs_reason=True,
    ),
    Act(
        "drop", "Let it be",
        "The mail leaves this list for good and is not tried any more: its address cannot be reached, or its customer was told "
        "otherwise. The order and its page stay as they are.",
        "Gets nothing more of this mail.", "No.",
        drop, needs_reason=True,
    ),
)  # fmt: skip


@admin.register(Mail)
class MailAdmin(WithActs, console.Window):
    acts = ACTS
    list_display = ("created_at", "kind", "to", "order", "status", "handed_over", "next_step_at", "last_error")
    list_filter = (NeedsAPerson, "kind", "status", "created_at")
    list_select_related = ("order",)
    search_fields = ("to", "reference")

    def find(self, term: str) -> Q:
        return Q(to=term.lower()) if "@" in term else Q(reference=f"order:{term.upper()}")

    def version_of(self, row: Mail) -> int:
        """When it came into its state, in microseconds: a mail may fail, be handed over again, and fail again."""
        return int(row.state_since.timestamp() * 1_000_000)

    def row_now(self, row_id: int) -> Mail | None:
        return Mail.objects.select_related("order").filter(pk=row_id).first()

    def facts(self, row: Mail) -> str:
        return (
            f"{row.kind} to {row.to}, {row.reference}: {row.get_status_display()}, handed over {row.handed_over} times"
            f"{', so it may have arrived' if row.handed_over else ''}"
        )

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The buttons stand only where they would do something."""
        row = self.row_now(int(object_id)) if console.is_number(object_id) else None
        nothing = {} if row is not None and tried_no_more(row) else {"acts": ()}
        return super().change_view(request, object_id, form_url, {**nothing, **(extra_context or {})})
