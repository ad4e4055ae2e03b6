"""Every state of the work, and every allowed move, on one screen. `moves.py` is the only code that writes them."""

from django.db import models

from waistheart.machine import ANY, FREE, FREE_OR_MINE, MINE, Machine, Move


class JobStatus(models.TextChoices):
    QUEUED = "queued"
    PROCESSING = "processing"
    STORING = "storing"
    REVIEW = "review"
    COMPLETED = "completed"
    FAILED = "failed"


class SubmissionStatus(models.TextChoices):
    SENDING = "sending"
    UNKNOWN = "unknown"
    ACCEPTED = "accepted"
    DONE = "done"
    FAILED = "failed"
    REFUSED = "refused"
    LOST = "lost"


LIVE_SUBMISSION = ("sending", "unknown", "accepted")
MAX_ACCEPTED = 3  # accepted submissions since the last requeue, after which a provider failure ends the job

# A move is a line.
# fmt: off
JOB = Machine(
    name="Job",
    states=tuple(JobStatus.values),
    initial="queued",
    final=frozenset({"completed", "failed"}),
    moves=(
        Move("submit", ("queued",), "processing", MINE, "-", "is accepted", "runner"),
        Move("refuse", ("queued",), "failed", MINE, "release", "was refused for its input", "runner"),
        Move("cancel", ("queued",), "failed", FREE, "release", "none live", "customer, staff; the sweep when its grant owes"),
        Move("finish", ("processing",), "storing", ANY, "-", "-", "runner: the provider's result was read and has an address on a pinned host"),
        Move("retry", ("processing",), "queued", ANY, "-", "failed", "runner: the provider failed and is known not to bill, or could not load our image; at most 3 accepted"),
        Move("fail", ("processing",), "failed", ANY, "release", "failed", "runner: the provider gave up, refused or cancelled"),
        Move("store", ("storing",), "completed", MINE, "settle", "done", "runner: bytes stored and verified"),
        Move("park", ("queued", "processing", "storing"), "review", FREE_OR_MINE, "-", "stays", "sweep or runner, with a reason"),
        Move("requeue", ("review",), "queued", ANY, "-", "lost", "staff, after a warning that it may still be billed"),
        Move("resume", ("review",), "processing", ANY, "-", "live and accepted", "staff; the sweep at most twice per submission"),
        Move("deliver", ("review",), "completed", ANY, "settle", "stays watched", "staff, with a file that passed verification"),
        Move("close", ("review",), "failed", ANY, "release", "stays watched", "staff; the customer while nothing is live; the sweep after 72 h"),
    ),
    note="Mine: the guard names my lease. Free: no live lease exists. Every move adds 1 to the job's version and clears its lease.",
)

SUBMISSION = Machine(
    name="Submission",
    states=tuple(SubmissionStatus.values),
    initial="sending",
    final=frozenset({"done", "failed", "refused", "lost"}),
    moves=(
        Move("accept", ("sending", "unknown"), "accepted", by="the POST's answer, recover, or a hint whose id the provider confirms"),
        Move("refuse", ("sending", "unknown"), "refused", by="the POST's answer (input, account, too fast), not sent, proof of absence"),
        Move("lose_answer", ("sending",), "unknown", by="the runner (answer lost), or the sweep when its lease lives no more"),
        Move("done", ("accepted",), "done", by="store; or the watcher, when the job is final"),
        Move("fail", ("accepted",), "failed", by="retry, fail; or the watcher, in review and final"),
        Move("lose", ("unknown", "accepted"), "lost", by="requeue; or the watcher's limit"),
    ),
    note="Live, and taking one of the provider's slots: sending, unknown, accepted.",
)
# fmt: on
