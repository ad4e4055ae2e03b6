"""What providers may ask of us: to take a hint, and to load the one picture a submission shows."""

import logging

from celery import current_app
from django.core.exceptions import ImproperlyConfigured
from django.db import IntegrityError, transaction
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST, require_safe

from generation import own_address, work
from generation.models import Submission
from generation.providers import provider_of
from generation.providers.base import BadSignature, HintRef, ProviderError
from generation.states import JOB
from waistheart import guards, storage
from waistheart.models import Hint

log = logging.getLogger(__name__)


@csrf_exempt
@require_POST
def hint(request: HttpRequest, provider: str, token: str) -> HttpResponse:
    """A callback. Its token names our submission, its signature stops strangers, its body is not believed: it causes a look."""
    submission = Submission.objects.filter(provider=provider, token=token).select_related("job", "account").first()
    if submission is None:
        guards.count("hint.unknown")
        raise Http404
    try:
        reference = provider_of(submission).verify_hint(request.headers, request.body)
    except BadSignature as error:
        guards.count(f"hint.unverified.{provider}")
        log.warning("hint for submission %s refused: %s", submission.pk, error)
        return HttpResponse("bad signature\n", status=401, content_type="text/plain")
    except (ProviderError, ImproperlyConfigured) as error:
        # Nobody can tell now whether it is theirs: they send it again, and the sweep looks anyway.
        log.error("hint for submission %s not read: %s", submission.pk, error)
        return HttpResponse("not now\n", status=503, content_type="text/plain")
    if keep(provider, submission, reference):
        guards.nudge(lambda: look_now(submission))
    return HttpResponse("ok\n", content_type="text/plain")


def keep(provider: str, submission: Submission, reference: HintRef) -> bool:
    """Store the hint; False for one that was stored before, which is normal and answered the same."""
    outcome = outcome_of(submission, reference)
    named = f" {reference.external_id}" if outcome != "looked at" and reference.external_id else ""
    try:
        with transaction.atomic():
            Hint.objects.create(
                source=provider,
                event_id=reference.event_id[:255],
                kind="submission",
                reference=f"submission:{submission.pk}{named}"[:255],
                outcome=outcome,
            )
    except IntegrityError:
        return False
    return True


def outcome_of(submission: Submission, reference: HintRef) -> str:
    """What staff read of it. An id that we do not know yet is kept for them, and adopted only from the provider's own list."""
    if submission.external_id is None:
        return "names an id not known yet"
    return "looked at" if reference.external_id == submission.external_id else "names another id"


def look_now(submission: Submission) -> None:
    """Have the row looked at: the job while it waits, the submission alone when its job has ended."""
    if submission.job.status in JOB.final:
        current_app.send_task("generation.watch", args=[submission.pk])
    else:
        work.nudge(submission.job_id)


@require_safe
def portrait(request: HttpRequest, token: str) -> HttpResponseBase:
    """The crop that one submission shows the provider, for as long as it may need it."""
    submission = own_address.open_now().filter(image_token=token).first()
    return picture(submission.image_key if submission else None)


@require_safe
def proof(request: HttpRequest, signed: str) -> HttpResponseBase:
    """The crop that a worker has stored for this moment, to see whether our image addresses work: given out like any other."""
    return picture(own_address.key_of(signed))


def picture(key: str | None) -> HttpResponseBase:
    """What lies under this key, to one who may have it; 404 when nobody may, or there is nothing."""
    size = None if key is None else storage.size(key=key)
    if key is None or size is None:
        raise Http404
    response = StreamingHttpResponse(storage.open_range(key=key), content_type="image/jpeg")
    response["Content-Length"] = str(size)
    # We compare every byte: a proxy that makes pictures smaller would look like an outage of ours.
    response["Cache-Control"] = "private, no-store, no-transform"
    response["X-Robots-Tag"] = "noindex"
    return response
