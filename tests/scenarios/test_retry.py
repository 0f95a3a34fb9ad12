"""Retries: only of FAILED jobs, up to the maximum, after a backoff that grows."""
from datetime import datetime

import pytest

from conftest import end_server, start_server
from harness.history import check_chain
from harness.pace import Stopwatch
from harness.together import at_once
from harness.worker_calls import Worker

BASE_MS = 100
CAP_MS = 250


@pytest.fixture(scope="module")
def weir():
    """Backoff 100 ms, at most 250 ms, without jitter."""
    server = start_server(settings={"jobs.retry_base_ms": BASE_MS, "jobs.retry_cap_ms": CAP_MS,
                                    "jobs.retry_jitter": 0}).start()
    yield server
    end_server(server)


def seconds_of(text):
    """Seconds since the epoch of a time on the wire."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def test_retry_on_fail_fails_once_and_then_succeeds(weir, client):
    """[JOB-037] [JOB-065] [JOB-095] [JOB-119] [JOB-136] FAILED at attempt 1; the retry answers
    QUEUED and attempt 2; SUCCEEDED at attempt 2."""
    key, job_id = client.api_key, weir.submit(client.api_key, work_kind="RETRY_ON_FAIL")["job_id"]
    first = weir.wait_final(key, job_id)
    assert (first["state"], first["attempt"], first["error"]["retryable"]) == ("FAILED", 1, True)
    answer = weir.retry(key, job_id).expect(200)
    assert (answer["job_id"], answer["state"], answer["attempt"]) == (job_id, "QUEUED", 2)
    weir.api("GET", f"/v1/jobs/{job_id}/report", key=key)
    last = weir.wait_state(key, job_id, "SUCCEEDED")
    assert (last["attempt"], last["outcome"], last["error"]) == (2, "SUCCESS", None)
    events = check_chain(weir, key, job_id)
    assert [(e["prev_state"], e["next_state"]) for e in events].count(("FAILED", "QUEUED")) == 1


def test_retries_are_used_up_and_told_once(weir, client):
    """[JOB-038] [JOB-135] [JOB-138] [JOB-212] RETRY_LIMIT_REACHED: three retries accepted, each
    attempt FAILED, one final event with the last; every further call is 409 and adds nothing."""
    key, job_id = client.api_key, weir.submit(client.api_key,
                                              work_kind="RETRY_LIMIT_REACHED")["job_id"]
    for attempt in (1, 2, 3, 4):
        job = weir.wait_final(key, job_id)
        assert (job["state"], job["attempt"]) == ("FAILED", attempt)
        assert ("job.retries_exhausted" in weir.event_names(key, job_id)) == (attempt == 4)
        if attempt < 4:
            assert weir.retry(key, job_id).expect(200)["attempt"] == attempt + 1
    before = weir.events(key, job_id)
    for _ in range(3):
        weir.retry(key, job_id).expect_problem(409, "RFA_JOB_CONFLICT")
    assert weir.events(key, job_id) == before
    assert [e["event_name"] for e in before].count("job.retries_exhausted") == 1
    check_chain(weir, key, job_id)


def test_the_maximum_is_a_setting_and_a_job_may_ask_for_less(fresh_weir):
    """[JOB-135] jobs.retry_max=1: one retry accepted, the second refused; max_retries 0: none."""
    weir = fresh_weir(settings={"jobs.retry_max": 1, "jobs.retry_base_ms": 0})
    _, key = weir.new_client()
    job_id = weir.submit(key, work_kind="RETRY_LIMIT_REACHED")["job_id"]
    none = weir.submit(key, work_kind="RETRY_LIMIT_REACHED", max_retries=0)["job_id"]
    weir.wait_final(key, job_id)
    weir.retry(key, job_id).expect(200)
    assert weir.wait_final(key, job_id)["attempt"] == 2
    weir.retry(key, job_id).expect_problem(409, "RFA_JOB_CONFLICT")
    weir.wait_final(key, none)
    weir.retry(key, none).expect_problem(409, "RFA_JOB_CONFLICT")


def test_only_failed_jobs_are_retried(weir, client):
    """[JOB-134] [JOB-182] [JOB-073] In each other state: 200 with the current state, nothing
    changes."""
    key = client.api_key
    created = weir.submit(key, type="DEFERRED", execution_at="2099-01-01T00:00:00Z")["job_id"]
    canceled = weir.submit(key, queue="outside")["job_id"]
    weir.cancel(key, canceled).expect(200)
    with Worker(weir, key) as worker:
        ids = [weir.submit(key, queue="outside")["job_id"] for _ in range(3)]
        done, = worker.claim()
        running, = worker.claim()
        worker.start([done, running])
        worker.finish([done])
        queued = ids[2]
        worker_assigned = weir.submit(key, queue="outside", priority=9)["job_id"]
        assert worker.claim()[0]["job_id"] == worker_assigned
        for job_id, state in ((created, "CREATED"), (canceled, "CANCELED"), (queued, "QUEUED"),
                              (worker_assigned, "ASSIGNED"), (running["job_id"], "RUNNING"),
                              (done["job_id"], "SUCCEEDED")):
            before, events = weir.job(key, job_id), weir.events(key, job_id)
            assert before["state"] == state
            answer = weir.retry(key, job_id).expect(200)
            assert (answer["state"], answer["attempt"]) == (state, 1)
            assert weir.job(key, job_id) == before and weir.events(key, job_id) == events


def test_many_retries_at_once_are_one(weir, client):
    """[JOB-073] Sixteen at the same instant: the attempt grows by one, one event."""
    key, job_id = client.api_key, weir.submit(client.api_key, work_kind="FAIL_IMMEDIATE")["job_id"]
    weir.wait_final(key, job_id)
    answers = at_once(16, lambda _: weir.retry(key, job_id))
    assert {answer.status for answer in answers} == {200}
    assert {answer.json["attempt"] for answer in answers} == {2}
    moves = [(e["prev_state"], e["next_state"]) for e in weir.events(key, job_id)]
    assert moves.count(("FAILED", "QUEUED")) == 1


def test_the_backoff_doubles_up_to_the_cap_and_nobody_claims_before(weir, client):
    """[JOB-137] Base 100 ms, cap 250 ms: attempts 2, 3, 4 are claimed 100, 200 and 250 ms after
    their retry, not earlier."""
    key = client.api_key
    job_id = weir.submit(key, queue="backoff", retry="manual")["job_id"]
    with Worker(weir, key, "backoff") as worker:
        for expected_ms in (BASE_MS, 2 * BASE_MS, CAP_MS):
            watch = Stopwatch()
            tasks = worker.claim(wait_ms=5000)
            worker.start(tasks)
            worker.fail(tasks)
            weir.retry(key, job_id).expect(200)
            assert worker.claim() == []  # an explain sees it wait, a claim does not get it
            waiting = weir.api("GET", f"/v1/jobs/{job_id}/explain", key=key).expect(200)
            assert waiting["waiting_on"] == "backoff"
            task, = worker.claim(wait_ms=5000)
            events = weir.events(key, job_id)
            queued, assigned = (seconds_of(e["timestamp"]) for e in events[-2:])
            assert expected_ms - 1 <= (assigned - queued) * 1000 <= expected_ms + 500 + watch.stalled() * 1000
            worker.release([task])


def test_the_jitter_stays_within_its_share(fresh_weir):
    """[JOB-137] Base 400 ms, jitter 0.5: delays differ and lie in 200..600 ms."""
    weir = fresh_weir(settings={"jobs.retry_base_ms": 400, "jobs.retry_jitter": 0.5})
    _, key = weir.new_client()
    with Worker(weir, key) as worker:
        ids = [weir.submit(key, queue="outside", retry="manual")["job_id"] for _ in range(12)]
        tasks = worker.claim(most=12)
        worker.start(tasks)
        worker.fail(tasks)
        watch = Stopwatch()
        for job_id in ids:
            weir.retry(key, job_id).expect(200)
        claimed = []
        while len(claimed) < 12 and not watch.is_over(5):
            claimed += worker.claim(most=12, wait_ms=1000)
        assert len(claimed) == 12
        delays = []
        for job_id in ids:
            queued, assigned = (seconds_of(e["timestamp"]) for e in weir.events(key, job_id)[-2:])
            delays.append((assigned - queued) * 1000)
    assert min(delays) >= 199 and max(delays) <= 600 + 300 + watch.stalled() * 1000, delays
    assert max(delays) - min(delays) > 40, delays


def test_the_report_is_the_last_attempts_and_the_events_span_all(weir, client):
    """[JOB-009] No report while a retry is under way; afterwards one, of the new attempt."""
    key = client.api_key
    job_id = weir.submit(key, queue="reports", retry="manual")["job_id"]
    with Worker(weir, key, "reports") as worker:
        tasks = worker.claim()
        worker.start(tasks)
        worker.fail(tasks)
        first = weir.report(key, job_id)
        assert weir.report(key, job_id) == first
        weir.retry(key, job_id).expect(200)
        weir.api("GET", f"/v1/jobs/{job_id}/report", key=key).expect_problem(
            404, "RFA_JOB_REPORT_NOT_FOUND")
        tasks = worker.claim(wait_ms=5000)
        worker.start(tasks)
        worker.finish(tasks, result={"ok": 1})
    last = weir.report(key, job_id)
    assert (last["attempt"], last["outcome"], last["result"]) == (2, "SUCCESS", {"ok": 1})
    assert last["events"][:len(first["events"])] == first["events"]
