"""Jobs and submissions: all ordered pairs walked on real rows, the lease rule of each move, and the rules the database keeps."""

import uuid
from typing import Any

import pytest

from generation import moves
from generation.models import Job, JobEvent, ProviderAccount, Submission
from generation.moves import Seen
from generation.states import JOB, SUBMISSION
from tests.constraints import checks_of, negatives_are_refused, refused
from tests.rows import VIDEO, age, columns, new_account, new_job, new_submission, tried
from waistheart import clock
from waistheart.machine import Machine, Move

pytestmark = pytest.mark.django_db
MINE = uuid.UUID(int=1)
OTHER = uuid.UUID(int=2)


def test_the_counts_of_the_design():
    assert counts(JOB) == (6, 30, 13, 12)
    assert counts(SUBMISSION) == (7, 42, 9, 6)
    assert len(list(JOB.pairs())) - len(JOB.declared()) == 17


def counts(machine: Machine) -> tuple[int, int, int, int]:
    return len(machine.states), len(list(machine.pairs())), len(machine.declared()), len(machine.moves)


def leased_job(status: str, lease_id: uuid.UUID | None = MINE, seconds: float = 60) -> Job:
    """A job that came into its state a minute ago."""
    lease = {"lease_id": lease_id, "lease_until": clock.after(seconds)}
    return new_job(status=status, state_since=clock.ago(60), **lease)


def move(name: str, seen: Seen, lease_id: uuid.UUID | None = MINE) -> Any:
    fields = VIDEO if JOB.by_name[name].target == "completed" else {}
    return tried(moves.move_job, name=name, seen=seen, actor="tests", lease_id=lease_id, **fields)


def lease_for(rule: str) -> uuid.UUID | None:
    """A lease under which the move may be made: none stands in the way of a move that wants the job free."""
    return None if rule == "free" else MINE


@pytest.mark.parametrize(("source", "target"), JOB.pairs())
def test_every_pair_of_job_states_is_declared_or_refused(source: str, target: str):
    towards = [move for move in JOB.moves if move.target == target]
    assert towards, "every state is some move's target, so that each pair can be tried"
    for declared in towards:
        job = leased_job(source, lease_for(declared.lease))
        if source in declared.sources:
            assert_job_moves(declared, job)
        else:
            assert_job_stays(declared, job)


def assert_job_moves(declared: Move, job: Job) -> None:
    assert move(declared.name, Seen.of(job), job.lease_id).won
    moved = Job.objects.get(pk=job.pk)
    assert (moved.status, moved.version) == (declared.target, job.version + 1)
    assert (moved.lease_id, moved.lease_until, moved.tries, moved.failures) == (None, None, 0, 0)
    assert moved.state_since > job.state_since
    assert (moved.next_step_at is None) == (declared.target in JOB.final)
    event = JobEvent.objects.get(job=job, version=moved.version)
    assert (event.move, event.source, event.target, event.actor) == (declared.name, job.status, moved.status, "tests")


def assert_job_stays(declared: Move, job: Job) -> None:
    """Asked truly, the table refuses; asked with a lie about the state, the row does."""
    before = columns(job)
    with pytest.raises(ValueError, match="does not start from"):
        move(declared.name, Seen.of(job), job.lease_id)
    lied = Seen(job.pk, declared.sources[0], job.version)
    assert move(declared.name, lied, job.lease_id).lost == f"job.{declared.name}"
    assert columns(job) == before
    assert JobEvent.objects.filter(job=job).count() == 1


def test_a_decision_on_an_older_reading_moves_nothing():
    """The same state twice is not the same moment: only the version tells them apart."""
    job = leased_job("processing")
    stale = Seen(job.pk, "processing", job.version - 1)
    assert move("fail", stale).lost == "job.fail"
    assert Job.objects.get(pk=job.pk).status == "processing"


@pytest.mark.parametrize(("name", "source"), [(move.name, move.sources[0]) for move in JOB.moves])
def test_each_move_asks_for_the_lease_its_table_says(name: str, source: str):
    """Whose lease is on the row, and whether it still lives, against what the table says."""
    rule = JOB.by_name[name].lease
    cases = {
        "none": (None, 60, rule != "mine"),
        "my live lease": (MINE, 60, rule != "free"),
        "my expired lease, which nobody took": (MINE, -1, True),
        "another's live lease": (OTHER, 60, rule == "-"),
        "another's expired lease": (OTHER, -1, rule != "mine"),
    }
    for case, (lease_id, seconds, may) in cases.items():
        job = leased_job(source, lease_id, seconds)
        assert move(name, Seen.of(job)).won is may, case
        assert Job.objects.get(pk=job.pk).status == (JOB.by_name[name].target if may else source), case


@pytest.mark.parametrize(("source", "target"), SUBMISSION.pairs())
def test_every_pair_of_submission_states_is_declared_or_refused(source: str, target: str):
    for declared in SUBMISSION.moves if target != "sending" else []:
        if declared.target != target:
            continue
        submission = new_submission(status=source, state_since=clock.ago(60))
        submission.refresh_from_db()
        before = columns(submission)
        won = tried(moves.move_submission, name=declared.name, submission_id=submission.pk, **needs(target)).won
        assert won is (source in declared.sources)
        now = Submission.objects.get(pk=submission.pk)
        if won:
            assert now.status == target
            assert now.state_since > submission.state_since
            assert (now.next_look_at is None) == (target in SUBMISSION.final)
        else:
            assert columns(submission) == before
    assert SUBMISSION.allows(source, target) == any(
        source in move.sources and target == move.target for move in SUBMISSION.moves
    )


def needs(target: str) -> dict[str, str]:
    return {"accepted": {"external_id": uuid.uuid4().hex}, "refused": {"refusal": "input"}}.get(target, {})


def test_no_move_leads_back_to_sending():
    """A submit is never repeated on its own row."""
    assert [move.name for move in SUBMISSION.moves if move.target == "sending"] == []


def test_an_optional_move_of_a_submission_goes_on_without_it():
    done = new_submission(status="done")
    assert tried(moves.may_move_submission, name="fail", submission_id=done.pk).value is False
    accepted = new_submission(status="accepted")
    assert tried(moves.may_move_submission, name="fail", submission_id=accepted.pk).value is True


def test_the_database_keeps_the_rules_of_the_work():
    """Each CHECK is broken once past all code; a new one without a line here fails."""
    completed, queued, leased = new_job(status="completed"), new_job(), leased_job("queued")
    accepted, refusal = new_submission(status="accepted"), new_submission(status="refused")
    account = new_account()
    refused("job_status_known", queued, status="dreaming")
    for empty in ({"video_key": ""}, {"video_size": 0}, {"video_size": None}, {"video_sha256": ""}):
        refused("completed_job_has_a_video", completed, **empty)
    refused("lease_has_an_end", leased, lease_until=None)
    refused("unfinished_job_has_a_next_step", queued, next_step_at=None)
    refused("submission_status_known", accepted, status="dreaming")
    refused("accepted_submission_has_an_id", accepted, external_id=None)
    refused("refused_submission_says_why", refusal, refusal="")
    refused("outage_is_probed", account, state="unavailable")
    assert checks_of("generation") == {
        "job_status_known", "completed_job_has_a_video", "lease_has_an_end", "unfinished_job_has_a_next_step",
        "submission_status_known", "accepted_submission_has_an_id", "refused_submission_says_why", "outage_is_probed",
    }  # fmt: skip
    assert [negatives_are_refused(row) for row in (queued, accepted, account)] == [15, 4, 3]


def test_a_video_that_was_deleted_may_be_missing():
    job = new_job(status="completed")
    Job.objects.filter(pk=job.pk).update(deleted_at=clock.now(), video_key="", video_size=None, video_sha256="")


def test_rows_that_may_exist_once_exist_once():
    live = new_submission(status="accepted", number=1)
    same = {"job": live.job, "account": live.account}
    ended = new_submission(**same, status="failed", number=2)
    refused("one_live_submission_per_job|job_id", ended, status="unknown")
    refused("submission_number_per_job|number", ended, number=1)
    refused("one_submission_per_external_id|external_id", ended, external_id=live.external_id)
    job, other = new_job(), new_job()
    refused("one_job_per_place_in_lot|lot_number", other, lot=job.lot)
    refused("hold_id", other, hold_id=job.hold_id)
    event = JobEvent.objects.get(job=other)
    refused("one_event_per_version|version", event, job_id=job.pk)
    account, second = ProviderAccount.objects.get(pk=live.account_id), new_account()
    refused("one_account_per_key_and_model|key_print", second, key_print=account.key_print)


def test_ages_count_from_the_last_move():
    job = new_job(status="processing")
    age(job, 1000, "state_since")
    assert move("retry", Seen.of(Job.objects.get(pk=job.pk)), None).won
    assert Job.objects.filter(pk=job.pk, state_since__gt=clock.ago(60)).exists()
