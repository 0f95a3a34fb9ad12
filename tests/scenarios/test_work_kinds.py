"""Every kind of the work catalog: what is stored when it is submitted, and how it ends.

The kinds that need something from outside (a cancel, a retry, a schedule, a second submit) get it
here.
"""
import json
import time
from datetime import datetime, timedelta, timezone

import pytest

from harness.history import check_chain
from harness.pace import Stopwatch

SCALE = 0.01  # of the default fixture: 90 s are 0.9 s
LONG_SCALE = 0.1  # of the longest run: 1.5 s are left to its limit, more than a busy machine takes
LIMIT_MS = 125000  # jobs.max_runtime_ms

# kind: (duration_ms, should_fail, payload KB, final state of the first attempt)
CATALOG = {
    "SUCCESS_FAST": (1000, False, 4, "SUCCEEDED"),
    "SUCCESS_NORMAL": (10000, False, 16, "SUCCEEDED"),
    "SUCCESS_SLOW": (90000, False, 32, "SUCCEEDED"),
    "FAIL_IMMEDIATE": (500, True, 1, "FAILED"),
    "FAIL_AFTER_PROGRESS": (20000, True, 8, "FAILED"),
    "FAIL_AFTER_RETRYABLE": (5000, True, 8, "FAILED"),
    "RUNS_LONG": (110000, False, 32, "SUCCEEDED"),
    "RUNS_OVER_TIMEOUT": (LIMIT_MS + 1000, True, 8, "FAILED"),
    "CPU_BURST": (8000, False, 4, "SUCCEEDED"),
    "MEMORY_SPIKE": (12000, False, 64, "SUCCEEDED"),
    "IO_HEAVY": (15000, False, 32, "SUCCEEDED"),
    "MANY_SMALL_OUTPUTS": (9000, False, 16, "SUCCEEDED"),
    "LARGE_OUTPUT": (9000, False, 256, "SUCCEEDED"),
    "CANCEL_BEFORE_START": (5000, False, 4, "SUCCEEDED"),
    "CANCEL_DURING_RUN": (10000, False, 4, "SUCCEEDED"),
    "RETRY_ON_FAIL": (3000, True, 4, "FAILED"),
    "RETRY_LIMIT_REACHED": (3000, True, 4, "FAILED"),
    "DUPLICATE_SUBMIT_SAME_KEY": (2000, False, 4, "SUCCEEDED"),
    "DUPLICATE_SUBMIT_DIFFERENT_KEY": (2000, False, 4, "SUCCEEDED"),
    "WEBHOOK_SUCCESS": (2000, False, 4, "SUCCEEDED"),
    "WEBHOOK_TIMEOUT": (2000, False, 4, "SUCCEEDED"),
    "WEBHOOK_5XX": (2000, False, 4, "SUCCEEDED"),
    "WEBHOOK_RETRIES_EXHAUSTED": (2000, False, 4, "SUCCEEDED"),
    "WEBHOOK_SLOW_RECEIVER": (2000, False, 4, "SUCCEEDED"),
    "SCHEDULED_ON_TIME": (2000, False, 4, "SUCCEEDED"),
    "SCHEDULED_LATE_RECOVERY": (2000, False, 4, "SUCCEEDED"),
    "SCHEDULED_FAR_FUTURE": (2000, False, 4, "SUCCEEDED"),
    "PAYLOAD_SMALL": (2000, False, 1, "SUCCEEDED"),
    "PAYLOAD_MEDIUM": (2000, False, 16, "SUCCEEDED"),
    "PAYLOAD_LARGE": (2000, False, 256, "SUCCEEDED"),
}


late_ms = []  # what a busy machine may have added to a run of `finished`


@pytest.fixture(scope="module")
def finished(weir):
    """Every kind twice, all at once: {kind: [(job, report), (job, report)]}, and the key."""
    _, key = weir.new_client()
    watch = Stopwatch()
    ids = {kind: [weir.submit(key, work_kind=kind)["job_id"] for _ in range(2)]
           for kind in CATALOG if kind != "RUNS_LONG"}
    done = {kind: [(weir.wait_final(key, job_id, 60), weir.report(key, job_id)) for job_id in pair]
            for kind, pair in ids.items()}
    late_ms.append(watch.stalled() * 1000)
    return key, done


def check_kind(weir, key, pair, kind, scale, late):
    """Two jobs of a kind: definition, time and final state are as the catalog says, and the same for both."""
    duration_ms, should_fail, kilobytes, state = CATALOG[kind]
    for job, report in pair:
        definition = job["definition"]
        assert definition["work_kind"] == job["work_kind"] == kind
        assert definition["duration_ms"] == duration_ms
        assert definition["should_fail"] is should_fail
        assert definition["payload_size"] == kilobytes * 1024
        assert job["state"] == state
        assert report["outcome"] == job["outcome"] == {"SUCCEEDED": "SUCCESS"}.get(state, state)
        least_ms = min(duration_ms, LIMIT_MS) * scale
        assert least_ms - 1 <= report["duration_ms"] <= least_ms + 2000 + late
        events = check_chain(weir, key, job["job_id"])
        assert {event["payload"]["scenario"] for event in events} == {kind}
    first, second = (job["definition"] for job, _ in pair)
    assert {**first, "seed": 0} == {**second, "seed": 0}


@pytest.mark.parametrize("kind", [kind for kind in CATALOG if kind != "RUNS_LONG"])
def test_a_kind_is_defined_and_ends_as_the_catalog_says(weir, finished, kind):
    """[JOB-022] [JOB-023] [JOB-024] [JOB-025] [JOB-026] [JOB-030] [JOB-031] [JOB-032]
    [JOB-033] [JOB-034] [JOB-049] [JOB-050] [JOB-051] [JOB-013] [JOB-054] [JOB-021] Stored
    definition, time it takes and final state, the same for two jobs of a kind."""
    key, done = finished
    check_kind(weir, key, done[kind], kind, SCALE, late_ms[-1])


def test_a_long_run_ends_within_its_limit(fresh_weir):
    """[JOB-028] 110 s of the 125 s that a job of the catalog may take."""
    weir = fresh_weir(settings={"runner.time_scale": LONG_SCALE})
    _, key = weir.new_client()
    watch = Stopwatch()
    ids = [weir.submit(key, work_kind="RUNS_LONG")["job_id"] for _ in range(2)]
    pair = [(weir.wait_final(key, job_id, 60), weir.report(key, job_id)) for job_id in ids]
    check_kind(weir, key, pair, "RUNS_LONG", LONG_SCALE, watch.stalled() * 1000)


@pytest.mark.parametrize("kind,retryable", [("FAIL_IMMEDIATE", False), ("FAIL_AFTER_PROGRESS", False),
                                            ("FAIL_AFTER_RETRYABLE", True), ("RETRY_ON_FAIL", True)])
def test_a_failure_tells_its_reason_and_whether_a_retry_may_help(finished, kind, retryable):
    """[JOB-025] [JOB-026] [JOB-027] The reason is in the error and in the event."""
    for job, report in finished[1][kind]:
        assert job["error"]["code"] and job["error"]["message"]
        assert job["error"]["retryable"] is retryable
        failed = report["events"][-1]
        assert failed["event_name"] == "job.failed"
        assert failed["payload"]["reason"] == job["error"]["code"]


def test_a_run_beyond_the_limit_ends_at_the_limit_with_a_timeout(finished):
    """[JOB-029] [JOB-195] [JOB-290] Stopped at max_runtime, FAILED with reason timeout."""
    for job, report in finished[1]["RUNS_OVER_TIMEOUT"]:
        assert report["events"][-1]["event_name"] == "job.timed_out"
        assert report["events"][-1]["payload"]["reason"] == "timeout"
        assert job["error"]["code"] == "RFA_EXEC_TIMEOUT"
        assert report["duration_ms"] < (LIMIT_MS + 1000) * SCALE + 1000 + late_ms[-1]


def test_the_runtime_limit_is_a_setting_and_the_kind_follows_it(fresh_weir):
    """[JOB-029] [JOB-178] [JOB-295] With jobs.max_runtime_ms=60000 the duration is 61000, it ends
    at 0.6 s, and its worker, the only one, takes the next job at once."""
    weir = fresh_weir(settings={"jobs.max_runtime_ms": 60000, "runner.processes": 1, "runner.workers": 1})
    _, key = weir.new_client()
    watch = Stopwatch()
    job_id = weir.submit(key, work_kind="RUNS_OVER_TIMEOUT")["job_id"]
    after = weir.submit(key, work_kind="SUCCESS_FAST")["job_id"]
    job = weir.wait_final(key, job_id)
    assert weir.wait_final(key, after, timeout=1)["state"] == "SUCCEEDED"
    assert job["definition"]["duration_ms"] == 61000
    assert weir.event_names(key, job_id)[-1] == "job.timed_out"
    took_ms = weir.report(key, job_id)["duration_ms"]  # both ends are cut to whole ms
    assert 599 <= took_ms < 1000 + watch.stalled() * 1000


def test_the_large_output_fills_the_payload_bound_exactly(finished):
    """[JOB-034] A result of 256 KB, all of it stored and given back, is accepted."""
    for _, report in finished[1]["LARGE_OUTPUT"]:
        result = report["result"]
        assert len(result["data"]) == result["payload_bytes"]
        assert len(json.dumps(result, separators=(",", ":"))) == 256 * 1024


def test_a_running_job_is_cancelled_and_its_runner_is_free_again(fresh_weir):
    """[JOB-036] [JOB-118] CANCEL_DURING_RUN on the only worker there is: CANCELED at once, and the worker
    takes the next job long before the cancelled one would have ended."""
    weir = fresh_weir(settings={"runner.processes": 1, "runner.workers": 1, "runner.time_scale": 6,
                                "queue.heartbeat_ms": 200})
    _, key = weir.new_client()
    job_id = weir.submit(key, work_kind="CANCEL_DURING_RUN")["job_id"]  # 60 s
    weir.wait_state(key, job_id, "RUNNING")
    assert weir.cancel(key, job_id).expect(200)["state"] == "CANCELED"
    after = weir.submit(key, work_kind="FAIL_IMMEDIATE")["job_id"]  # 3 s
    weir.wait_final(key, after, timeout=10)
    assert check_chain(weir, key, job_id)[-1]["event_name"] == "job.canceled"


def test_retries_are_used_up_and_told_once(fresh_weir):
    """[JOB-038] [JOB-135] [JOB-138] [JOB-212] RETRY_LIMIT_REACHED: three retries accepted, each attempt
    FAILED, one final event with the last; a further call is 409 and adds nothing."""
    weir = fresh_weir(settings={"jobs.retry_base_ms": 20})
    _, key = weir.new_client()
    job_id = weir.submit(key, work_kind="RETRY_LIMIT_REACHED")["job_id"]
    for attempt in (1, 2, 3, 4):
        job = weir.wait_final(key, job_id)
        assert (job["state"], job["attempt"]) == ("FAILED", attempt)
        assert ("job.retries_exhausted" in weir.event_names(key, job_id)) == (attempt == 4)
        if attempt < 4:
            assert weir.retry(key, job_id).expect(200)["attempt"] == attempt + 1
    weir.retry(key, job_id).expect_problem(409, "RFA_JOB_CONFLICT")
    assert [e["event_name"] for e in check_chain(weir, key, job_id)].count("job.retries_exhausted") == 1


def test_a_deferred_job_stays_created_until_due_and_then_runs(weir, client):
    """[JOB-128] [JOB-059] [JOB-046] [JOB-060] [JOB-110] SCHEDULED_ON_TIME: CREATED until due, QUEUED within
    a second of it, then SUCCEEDED. Restarts across a due time: ../faults/test_restart.py."""
    watch, key = Stopwatch(), client.api_key
    due = datetime.now(timezone.utc).replace(microsecond=0) + timedelta(seconds=2)
    answer = weir.submit(key, type="DEFERRED", execution_at=due.strftime("%Y-%m-%dT%H:%M:%SZ"),
                         work_kind="SCHEDULED_ON_TIME")
    assert answer["state"] == "CREATED"
    while weir.job(key, answer["job_id"])["state"] == "CREATED":
        assert datetime.now(timezone.utc) < due + timedelta(seconds=1 + watch.stalled())
        time.sleep(0.02)
    assert datetime.now(timezone.utc) >= due
    job = weir.wait_state(key, answer["job_id"], "SUCCEEDED")
    assert datetime.fromisoformat(job["execution_at"].replace("Z", "+00:00")) == due
    assert {"work_kind", "execution_at", "duration_ms", "should_fail"} <= job["definition"].keys()
    check_chain(weir, key, answer["job_id"])


def test_the_invalid_payload_is_refused_and_leaves_nothing(weir):
    """[JOB-052] PAYLOAD_INVALID: 400 RFA_JOB_VALIDATION_FAILED, no job row, no event."""
    _, key = weir.new_client()
    before = weir.metric("jobs_submitted_total")
    weir.try_submit(key, work_kind="PAYLOAD_INVALID").expect_problem(400,
                                                                     "RFA_JOB_VALIDATION_FAILED")
    assert weir.api("GET", "/v1/jobs", key=key).expect(200)["items"] == []
    assert weir.metric("jobs_submitted_total") == before


def test_the_catalog_of_this_test_is_the_catalog_of_the_contract(weir):
    """31 kinds: every one is accepted but PAYLOAD_INVALID, and the contract names no other."""
    text = weir.api("GET", "/openapi/jobs.yaml").text
    listed = {word.strip(" -[]\n\r,") for word in text.replace(",", "\n").splitlines()}
    assert set(CATALOG) | {"PAYLOAD_INVALID"} <= listed
    assert len(CATALOG) == 30
