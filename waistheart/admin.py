"""The floor in the staff console: this installation, callbacks, what was lost and counted, what must beat."""

from django.contrib import admin
from django.contrib.auth import admin as _auth_admin  # noqa: F401  (registers what is unregistered below)
from django.contrib.auth.models import Group
from django.db.models import Q

from waistheart import console
from waistheart.models import GuardTally, Heartbeat, Hint, Installation, User

admin.site.site_header = "WaistHeart staff console"
admin.site.site_title = "WaistHeart"
admin.site.index_title = "Everything is shown here; only labelled buttons change anything"
admin.site.enable_nav_sidebar = True
admin.site.unregister(Group)  # registered by django.contrib.auth.admin; groups get a meaning with roles


@admin.register(User)
class PeopleAdmin(console.Window):
    list_display = ("email", "is_staff", "is_active", "date_joined", "last_login")
    list_filter = ("is_staff", "is_active")
    search_fields = ("email",)
    fields = ("email", "is_staff", "is_superuser", "is_active", "date_joined", "last_login")

    def find(self, term: str) -> Q:
        return Q(email=term.lower()) if "@" in term else super().find(term)


@admin.register(Installation)
class InstallationAdmin(console.Window):
    list_display = ("ident", "mode", "created_at")


@admin.register(Hint)
class HintAdmin(console.Window):
    list_display = ("received_at", "source", "kind", "reference", "outcome", "event_id")
    list_filter = ("source", "outcome", "received_at")
    search_fields = ("reference", "event_id")

    def find(self, term: str) -> Q:
        return Q(event_id=term) | Q(reference=term) | Q(reference__startswith=f"{term} ")


@admin.register(GuardTally)
class GuardTallyAdmin(console.Window):
    """Lost races and alarms, by day. A race that is lost is no error; a name that grows is a question."""

    list_display = ("day", "guard", "lost", "last_lost")
    list_filter = ("day",)
    search_fields = ("guard",)
    ordering = ("-day", "guard")

    def find(self, term: str) -> Q:
        return Q(guard__startswith=term)


@admin.register(Heartbeat)
class HeartbeatAdmin(console.Window):
    list_display = ("name", "at", "ago")
    ordering = ("name",)

    @admin.display(description="age")
    def ago(self, beat: Heartbeat) -> str:
        return console.age(beat.at)
