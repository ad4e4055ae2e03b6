"""How the ages in the settings must fit together. A shop whose ages contradict each other submits twice or deletes too early."""

from collections.abc import Iterator

from django.conf import settings

from waistheart.problems import Problem, Rule, broken

SUBMIT_WITHIN_SECONDS = 30  # a lease may be this old when the first byte of a submit is sent
DEADLINES = (
    "QUEUE_DEADLINE_SECONDS",
    "PROCESSING_DEADLINE_SECONDS",
    "STORING_DEADLINE_SECONDS",
    "UNKNOWN_SUBMIT_REVIEW_SECONDS",
    "REVIEW_GIVE_BACK_SECONDS",
    "DRAFT_SECONDS",
    "IMAGE_URL_SECONDS",
)
POSITIVE = (
    *DEADLINES, "LEASE_SECONDS", "SUBMIT_DEADLINE_SECONDS", "LONGEST_RUN_SECONDS", "SWEEP_SECONDS",
    "OUT_OF_CREDITS_RETRY_SECONDS", "ORPHAN_WINDOW_SECONDS", "GRANT_SECONDS", "RETURNED_GRANT_SECONDS",
    "PHOTO_KEPT_SECONDS", "VIDEO_KEPT_SECONDS", "MAX_VIDEO_BYTES", "MAX_PHOTO_BYTES", "PROVIDER_MAX_IN_FLIGHT",
)  # fmt: skip


def problems() -> list[Problem]:
    """Every contradiction between ages and limits; empty when they fit."""
    return broken(RULES, live=settings.LIVE)


def _not_positive() -> Iterator[str]:
    yield from (f"{name} is {getattr(settings, name)}" for name in POSITIVE if getattr(settings, name) <= 0)


def _short_lease() -> Iterator[str]:
    least = SUBMIT_WITHIN_SECONDS + settings.SUBMIT_DEADLINE_SECONDS
    if least >= settings.LEASE_SECONDS:
        yield f"LEASE_SECONDS is {settings.LEASE_SECONDS}: a submit may take until {least} s after the lease was taken"


def _unknown_too_early() -> Iterator[str]:
    if settings.UNKNOWN_SUBMIT_REVIEW_SECONDS < settings.LONGEST_RUN_SECONDS:
        yield "UNKNOWN_SUBMIT_REVIEW_SECONDS is shorter than LONGEST_RUN_SECONDS"
    if settings.UNKNOWN_SUBMIT_REVIEW_SECONDS > settings.PROCESSING_DEADLINE_SECONDS:
        yield "UNKNOWN_SUBMIT_REVIEW_SECONDS is longer than PROCESSING_DEADLINE_SECONDS"


def _short_orphan_window() -> Iterator[str]:
    longest = max(DEADLINES, key=lambda name: getattr(settings, name))
    if getattr(settings, longest) >= settings.ORPHAN_WINDOW_SECONDS:
        yield f"ORPHAN_WINDOW_SECONDS is not longer than {longest}"


def _short_image_address() -> Iterator[str]:
    needed = settings.PROCESSING_DEADLINE_SECONDS + settings.UNKNOWN_SUBMIT_REVIEW_SECONDS
    if needed >= settings.IMAGE_URL_SECONDS:
        yield f"IMAGE_URL_SECONDS is {settings.IMAGE_URL_SECONDS}: the provider may need the picture for {needed} s"


RULES = (
    Rule("waistheart.E031", None, _not_positive, "Ages and limits are above zero"),
    Rule("waistheart.E032", None, _short_lease,
         "LEASE_SECONDS must be more than 30 s longer than SUBMIT_DEADLINE_SECONDS, or two workers submit one job"),
    Rule("waistheart.E033", None, _unknown_too_early,
         "LONGEST_RUN_SECONDS <= UNKNOWN_SUBMIT_REVIEW_SECONDS <= PROCESSING_DEADLINE_SECONDS"),
    Rule("waistheart.E034", None, _short_orphan_window, "Bytes may be called orphans only after every deadline is over"),
    Rule("waistheart.E035", None, _short_image_address,
         "IMAGE_URL_SECONDS must outlive PROCESSING_DEADLINE_SECONDS + UNKNOWN_SUBMIT_REVIEW_SECONDS"),
)  # fmt: skip
