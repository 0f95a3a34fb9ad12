"""Negative controls of the judge: every planted fault is seen, and a true history is not blamed."""
import copy

import pytest

from harness.history import Operation, chain_faults, job_faults, judge

GOOD = [("job.created", None, "CREATED", 1), ("job.queued", "CREATED", "QUEUED", 1),
        ("job.assigned", "QUEUED", "ASSIGNED", 1), ("job.running", "ASSIGNED", "RUNNING", 1),
        ("job.failed", "RUNNING", "FAILED", 1), ("job.queued", "FAILED", "QUEUED", 2),
        ("job.assigned", "QUEUED", "ASSIGNED", 2), ("job.lease_expired", "ASSIGNED", "QUEUED", 2),
        ("job.canceled", "QUEUED", "CANCELED", 2)]


def chain(steps=None):
    """Events as the server writes them."""
    return [{"event_id": f"e{i}", "job_id": "j", "seq": i + 1, "event_name": name,
             "prev_state": prev, "next_state": to, "timestamp": f"2026-01-01T00:00:00.{i:06}Z",
             "payload": {"scenario": "SUCCESS_FAST", "attempt": attempt}}
            for i, (name, prev, to, attempt) in enumerate(steps or GOOD)]


def test_a_true_chain_is_not_blamed():
    """Also one that ends with the note about used-up retries."""
    assert not chain_faults(chain())
    exhausted = GOOD[:5] + [("job.retries_exhausted", "FAILED", "FAILED", 1)]
    assert not chain_faults(chain(exhausted))


def change(index, **fields):
    """A chain with one event altered."""
    events = chain()
    events[index] = {**events[index], **fields}
    return events


@pytest.mark.parametrize("events", [
    pytest.param([], id="none"),
    pytest.param(chain()[:3] + chain()[4:], id="one missing"),
    pytest.param(chain()[:2] + chain()[1:], id="one twice"),
    pytest.param(change(4, seq=9), id="seq jumps"),
    pytest.param(change(4, timestamp=chain()[3]["timestamp"]), id="time stands"),
    pytest.param(change(4, event_id="e1"), id="event id twice"),
    pytest.param(change(4, event_name="job.succeeded"), id="name and move differ"),
    pytest.param(change(7, event_name="job.queued"), id="requeued by nobody"),
    pytest.param(change(5, payload={"attempt": 1}), id="retry without an attempt"),
    pytest.param(chain(GOOD[:2] + [("job.running", "QUEUED", "RUNNING", 1)]), id="skipped a state"),
    pytest.param(chain(GOOD + [("job.canceled", "CANCELED", "CANCELED", 2)]), id="final twice"),
    pytest.param(chain(GOOD[:6] + [("job.retries_exhausted", "FAILED", "FAILED", 2)]),
                 id="the note of a queued job"),
])
def test_every_planted_fault_of_a_chain_is_seen(events):
    """[JOB-151] The checker of the load and crash tests sees each kind of impossible sequence."""
    assert chain_faults(events)


def test_state_outcome_and_report_must_agree_with_the_events():
    """[JOB-153] A final job without report or outcome, or with another story, is seen."""
    job = {"job_id": "j", "state": "CANCELED", "outcome": "CANCELED"}
    report = {"outcome": "CANCELED", "events": chain()}
    assert not job_faults(job, chain(), report)
    assert job_faults(job, chain(), None)
    assert job_faults({**job, "outcome": None}, chain(), report)
    assert job_faults({**job, "state": "QUEUED", "outcome": None}, chain(), None)
    assert job_faults(job, chain(), {**report, "events": chain()[:-1]})


def submit(name, result, value=None):
    """One submit of a history."""
    return Operation(0.0, "submit", name, result, value)


TRUE_HISTORY = [submit("a", "ok", "1"), submit("b", "unknown"), submit("b", "ok", "2"),
                submit("c", "unknown"), submit("d", "refused"), submit("e", "unknown"),
                Operation(0.0, "cancel", "a", "ok", ("1", "CANCELED"))]
TRUE_JOBS = {"1": ("a", "CANCELED"), "2": ("b", "SUCCEEDED"), "3": ("e", "FAILED")}


def test_a_true_history_is_not_blamed():
    """An unknown submit may be there or not; a refused one is not."""
    assert not judge(TRUE_HISTORY, TRUE_JOBS)


@pytest.mark.parametrize("doctor", [
    pytest.param(lambda ops, jobs: jobs.pop("1"), id="an acknowledged job is lost"),
    pytest.param(lambda ops, jobs: jobs.update({"4": ("d", "SUCCEEDED")}), id="a refused one runs"),
    pytest.param(lambda ops, jobs: jobs.update({"4": ("z", "SUCCEEDED")}), id="a phantom"),
    pytest.param(lambda ops, jobs: jobs.update({"4": ("e", "SUCCEEDED")}), id="stored twice"),
    pytest.param(lambda ops, jobs: ops.append(submit("a", "ok", "3")), id="one key, two jobs"),
    pytest.param(lambda ops, jobs: jobs.update({"2": ("a", "SUCCEEDED")}), id="another's work"),
    pytest.param(lambda ops, jobs: jobs.update({"1": ("a", "SUCCEEDED")}), id="a cancel undone"),
    pytest.param(lambda ops, jobs: jobs.update({"3": ("e", "RUNNING")}), id="stuck"),
])
def test_every_planted_fault_of_a_run_is_seen(doctor):
    """What the kill loops would have to find."""
    operations, jobs = copy.deepcopy(TRUE_HISTORY), copy.deepcopy(TRUE_JOBS)
    doctor(operations, jobs)
    assert judge(operations, jobs)
