"""The list of jobs that wait for a person, oldest first, and the four things a person may do with them."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.files.uploadedfile import UploadedFile
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html

from generation import review, store
from generation.admin import JobAdmin
from generation.by_hand import store_upload
from generation.models import Job, JobInReview, Submission
from generation.verify import NotAVideo
from waistheart import console
from waistheart.console_acts import Act, Refused, WithActs
from waistheart.storage import StorageError

RED_AFTER_SECONDS = 3600
# Our short words for why a job is here, as a person reads them.
WHY = {
    "out_of_credits": "our account at the provider was empty for a day",
    "misconfigured": "our key, address or settings were wrong for too long",
    "unavailable": "the provider, or our own image address, was not reachable for too long",
    "unknown_submit": "the answer to a paid request was lost and it was not found",
    "deadline": "it took longer than it may",
    "gone": "the provider does not know the result any more",
    "bad_bytes": "three times the result was no whole video",
    "restore_incomplete": "credits could not be put back: closing it gives a new grant for what is missing",
    "poison": "it raised an error that nobody explains, ten times",
    "no_submission": "nothing is under way at the provider",
}


def resume(job: Job, actor: str) -> bool:
    """Wait again, if there is something to wait for."""
    if review.in_review(job) and not Submission.objects.filter(job=job, status="accepted").exists():
        raise Refused(
            "there is no request that the provider has accepted, so there is nothing to wait for: requeue or close it"
        )
    return review.resume(job=job, actor=actor)


def requeue(job: Job, actor: str) -> bool:
    """Try again, unless a worker is sending for it right now."""
    if review.in_review(job) and review.sending(job):
        raise Refused("a request is being sent for it at this moment: look again in a few minutes")
    return review.requeue(job=job, actor=actor)


ACTS = (
    Act(
        "requeue", "Requeue",
        "The job is submitted again from the start. What was sent before is written off as lost: the provider may still bill it.",
        "Is not told; the order page goes on.", "No: a second request may be paid for.",
        lambda job, actor, reason: requeue(job, actor),
    ),
    Act(
        "resume", "Resume",
        "We go on waiting for the request that the provider has accepted. A job without one is left where it is.",
        "Is not told; the order page goes on.", "It comes back here when its time is over again.",
        lambda job, actor, reason: resume(job, actor),
    ),
    Act(
        "close", "Close and give back",
        "The job ends as failed and its credits go back into the grants they came from; what is missing there is replaced by a "
        "new grant of ours. A request that still runs is asked to stop; it may be billed all the same.",
        "Gets the mail that the video could not be made, once the credits are back.", "No.",
        lambda job, actor, reason: review.close(job=job, actor=actor, reason=reason), needs_reason=True,
    ),
)  # fmt: skip


class DeliverForm(forms.Form):
    """One file, and the version of the job that the page had shown."""

    file = forms.FileField(
        label="Video", help_text="MP4, H.264, 9:16, 2 to 12 seconds; every frame is decoded before it is delivered"
    )
    version = forms.IntegerField(widget=forms.HiddenInput)


class ReviewAdmin(WithActs, JobAdmin):
    """Jobs in review. Everything else about them is on the job's own page."""

    acts = ACTS
    ordering = ("state_since", "pk")
    list_display: Any = ("id", "why", "since", "at_provider", "tried", "last_error", "late")
    list_filter = ("reason", "provider", "model", "state_since")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Job]:
        return super().get_queryset(request).filter(status=Job.Status.REVIEW)

    def version_of(self, row: Job) -> int:
        return row.version

    def row_now(self, row_id: int) -> Job | None:
        return Job.objects.filter(pk=row_id).first()

    def facts(self, row: Job) -> str:
        ages = console.age(row.state_since, red_after=RED_AFTER_SECONDS)
        return format_html("Job {}: {}, {}, here for {}", row.pk, row.status, why(row), ages)

    def get_urls(self) -> list[URLPattern]:
        deliver = self.admin_site.admin_view(self.deliver_view)
        return [path("<int:job_id>/deliver/", deliver, name="generation_jobinreview_deliver"), *super().get_urls()]

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        deliver = (
            reverse("admin:generation_jobinreview_deliver", args=[object_id]) if console.is_number(object_id) else ""
        )
        return super().change_view(request, object_id, form_url, {"deliver_url": deliver, **(extra_context or {})})

    def deliver_view(self, request: HttpRequest, job_id: int) -> HttpResponse:
        """Ask for a file, prove it is a video, store it, deliver it; a job that has moved on meanwhile stays as it is."""
        job = JobInReview.objects.filter(pk=job_id, status=Job.Status.REVIEW).first()
        if not self.has_act_permission(request):
            raise Http404
        if job is None:
            self.message_user(request, "Deliver a file: 1 had already moved on.", messages.WARNING)
            return HttpResponseRedirect(reverse("admin:generation_jobinreview_changelist"))
        form = DeliverForm(
            request.POST or None, request.FILES or None, initial={"version": request.GET.get("version", job.version)}
        )
        if request.method == "POST" and form.is_valid() and self._delivered(request, job, form):
            return HttpResponseRedirect(reverse("admin:generation_jobinreview_changelist"))
        context = {
            **self.admin_site.each_context(request),
            "title": "Deliver a file",
            "opts": self.opts,
            "media": self.media,
            "facts": self.facts(job),
            "form": form,
        }
        return TemplateResponse(request, "admin/deliver.html", context)

    def _delivered(self, request: HttpRequest, job: Job, form: DeliverForm) -> bool:
        """Whether there is nothing more to ask; a file that is no video, or storage that is away, is said on the form."""
        if job.version != form.cleaned_data["version"]:
            self.message_user(request, "Deliver a file: 1 had already moved on.", messages.WARNING)
            return True
        upload: UploadedFile = form.cleaned_data["file"]
        try:
            stored = store_upload(upload.file)  # type: ignore[arg-type]
        except (NotAVideo, StorageError) as error:
            form.add_error("file", f"This cannot be delivered: {error}")
            return False
        if review.deliver(job=job, stored=stored, actor=str(request.user)):
            self.message_user(request, "Deliver a file: 1 moved.", messages.SUCCESS)
        else:
            store.forget(stored)
            self.message_user(request, "Deliver a file: 1 had already moved on.", messages.WARNING)
        return True

    @admin.display(description="reason", ordering="reason")
    def why(self, job: Job) -> str:
        return why(job)

    @admin.display(description="provider")
    def at_provider(self, job: Any) -> str:
        return "a request is live" if job.live_submission else "nothing"

    @admin.display(description="accepted", ordering="accepted")
    def tried(self, job: Job) -> int:
        return job.accepted


def why(job: Job) -> str:
    """The reason in plain words, with our short one for what has none."""
    return WHY.get(job.reason, job.reason or "not said")
