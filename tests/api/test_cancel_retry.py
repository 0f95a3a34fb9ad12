"""Cancel and retry: what they change, what they leave alone, and that repeating them is safe."""
import uuid

import pytest

from harness.together import at_once


def test_cancel_answers_with_the_new_state(weir, client):
    """[JOB-064 JOB-093 JOB-113] 200 with job_id, state CANCELED, updated_at; GET agrees."""
    job_id = weir.submit(client.api_key, queue="o")["job_id"]
    told = weir.cancel(client.api_key, job_id).expect(200)
    assert set(told) == {"job_id", "state", "updated_at"}
    job = weir.job(client.api_key, job_id)
    assert told == {"job_id": job_id, "state": "CANCELED", "updated_at": job["updated_at"]}
    assert job["state"] == "CANCELED" and job["outcome"] == "CANCELED"
    last = weir.events(client.api_key, job_id)[-1]
    assert (last["event_name"], last["prev_state"], last["next_state"]) == (
        "job.canceled", "QUEUED", "CANCELED")


def test_an_assigned_and_a_running_job_are_canceled_at_once(weir, client):
    """The worker's start or result afterwards is refused and changes nothing."""
    key = client.api_key
    assigned = weir.submit(key, queue="outside")["job_id"]
    task = weir.claim(key)[0]
    assert weir.cancel(key, assigned).expect(200)["state"] == "CANCELED"
    assert weir.tell("start", key, task)["ok"] is False
    running = weir.submit(key, queue="outside")["job_id"]
    task = weir.claim(key)[0]
    weir.tell("start", key, task)
    assert weir.cancel(key, running).expect(200)["state"] == "CANCELED"
    assert weir.tell("heartbeat", key, task)["cancel"] is True
    assert weir.tell("finish", key, task, outcome="success", result={})["code"] == "lease_lost"
    for job_id in (assigned, running):
        assert weir.job(key, job_id)["state"] == "CANCELED"
        assert weir.event_names(key, job_id)[-1] == "job.canceled"


def test_a_repeated_cancel_tells_the_state_and_adds_nothing(weir, client):
    """[JOB-072] Second 200 has the same state and updated_at; no new event."""
    job_id = weir.submit(client.api_key, queue="o")["job_id"]
    first = weir.cancel(client.api_key, job_id).expect(200)
    events = weir.events(client.api_key, job_id)
    assert weir.cancel(client.api_key, job_id).expect(200) == first
    assert weir.events(client.api_key, job_id) == events


def test_cancel_of_a_final_job_changes_nothing(weir, client):
    """[JOB-181] 200 with the state it has: SUCCEEDED, FAILED."""
    key = client.api_key
    good = weir.submit(key, queue="outside")["job_id"]
    weir.end_outside(key, good, "success", result={})
    for job_id, state in ((good, "SUCCEEDED"), (weir.failed_job(key), "FAILED")):
        before = weir.job(key, job_id), weir.report(key, job_id)
        assert weir.cancel(key, job_id).expect(200)["state"] == state
        assert (weir.job(key, job_id), weir.report(key, job_id)) == before


def test_retry_puts_a_failed_job_back_with_one_more_attempt(weir, client):
    """[JOB-065 JOB-095 JOB-242] 200 with state QUEUED, attempt 2, updated_at; GET agrees; with the
    report gone while the job exists, the report endpoint says not found."""
    job_id = weir.failed_job(client.api_key)
    told = weir.retry(client.api_key, job_id).expect(200)
    assert set(told) == {"job_id", "state", "updated_at", "attempt"}
    assert (told["state"], told["attempt"]) == ("QUEUED", 2) and type(told["attempt"]) is int
    job = weir.job(client.api_key, job_id)
    assert (job["state"], job["attempt"], job["outcome"]) == ("QUEUED", 2, None)
    assert job["updated_at"] == told["updated_at"]
    last = weir.events(client.api_key, job_id)[-1]
    assert (last["prev_state"], last["next_state"]) == ("FAILED", "QUEUED")
    weir.api("GET", f"/v1/jobs/{job_id}/report", key=client.api_key).expect_problem(
        404, "RFA_JOB_REPORT_NOT_FOUND")


def test_a_repeated_retry_counts_once(weir, client):
    """[JOB-073] Retry twice quickly: attempt grows once, one retry event."""
    job_id = weir.failed_job(client.api_key)
    first = weir.retry(client.api_key, job_id).expect(200)
    assert weir.retry(client.api_key, job_id).expect(200) == first
    told = [a.expect(200) for a in at_once(16, lambda _: weir.retry(client.api_key, job_id))]
    assert all(t == first for t in told)
    assert weir.event_names(client.api_key, job_id).count("job.queued") == 2


def test_only_a_failed_job_is_retried(weir, client):
    """[JOB-134 JOB-182] In every other state: 200 with what it is; state, attempt, events same."""
    key = client.api_key
    created = weir.submit(key, type="DEFERRED", execution_at=weir.soon(3600))["job_id"]
    queued = weir.submit(key, queue="o")["job_id"]
    canceled = weir.submit(key, queue="o")["job_id"]
    weir.cancel(key, canceled).expect(200)
    good = weir.submit(key, queue="outside")["job_id"]
    weir.end_outside(key, good, "success", result={})
    running = weir.submit(key, queue="outside")["job_id"]
    weir.tell("start", key, weir.claim(key)[0])
    assigned = weir.submit(key, queue="outside")["job_id"]
    weir.claim(key)
    for job_id, state in ((created, "CREATED"), (queued, "QUEUED"), (canceled, "CANCELED"),
                          (good, "SUCCEEDED"), (running, "RUNNING"), (assigned, "ASSIGNED")):
        before = weir.job(key, job_id), weir.events(key, job_id)
        told = weir.retry(key, job_id).expect(200)
        assert (told["state"], told["attempt"]) == (state, 1)
        assert (weir.job(key, job_id), weir.events(key, job_id)) == before


@pytest.fixture(scope="module")
def eager(module_weir):
    """No backoff, so that attempts follow each other at once."""
    return module_weir(settings={"jobs.retry_base_ms": 0, "jobs.retry_cap_ms": 0,
                                 "runner.processes": 0})


@pytest.mark.parametrize("fields, allowed", [({"max_retries": 1}, 1), ({"max_retries": 0}, 0)])
def test_retries_end_at_their_limit(eager, fields, allowed):
    """[JOB-135 JOB-138 JOB-096 JOB-212] 409 RFA_JOB_CONFLICT ever after; one final event."""
    weir = eager
    key = weir.new_client().api_key
    job_id = weir.failed_job(key, **fields)
    for attempt in range(2, allowed + 2):
        assert weir.retry(key, job_id).expect(200)["attempt"] == attempt
        weir.end_outside(key, job_id)
    before = weir.job(key, job_id), weir.report(key, job_id)
    for _ in range(3):
        weir.retry(key, job_id).expect_problem(409, "RFA_JOB_CONFLICT")
    assert (weir.job(key, job_id), weir.report(key, job_id)) == before
    events = weir.events(key, job_id)
    last = events[-1]
    assert (last["event_name"], last["payload"]["transition"]) == ("job.retries_exhausted", False)
    assert [e["event_name"] for e in events].count("job.retries_exhausted") == 1
    assert before[0]["attempt"] == allowed + 1 and before[0]["state"] == "FAILED"


@pytest.mark.parametrize("verb", ["cancel", "retry"])
def test_cancel_and_retry_refuse_what_they_must(weir, client, verb):
    """[JOB-094 JOB-096] Malformed id 400, no key 401, foreign 403, unknown 404, a body 400."""
    job_id = weir.failed_job(client.api_key)
    before = weir.job(client.api_key, job_id)
    for malformed in ("nonsense", "0", job_id[:-1], job_id + "0", job_id.replace("-", "")):
        weir.api("POST", f"/v1/jobs/{malformed}/{verb}", key=client.api_key).expect_problem(
            400, "RFA_REQUEST_MALFORMED")
    path = f"/v1/jobs/{job_id}/{verb}"
    weir.api("POST", path).expect_problem(401, "RFA_AUTH_INVALID_CREDENTIALS")
    weir.api("POST", path, key=weir.new_client().api_key).expect_problem(403, "RFA_AUTH_FORBIDDEN")
    twisted = job_id[:-1] + ("0" if job_id[-1] != "0" else "1")
    for unknown in (uuid.uuid4(), twisted):
        weir.api("POST", f"/v1/jobs/{unknown}/{verb}", key=client.api_key).expect_problem(
            404, "RFA_JOB_NOT_FOUND")
    for body in ({"force": True}, [], 1, None, "{"):
        if body is not None:
            weir.api("POST", path, body, client.api_key).expect_problem(
                400, "RFA_REQUEST_MALFORMED")
    assert weir.job(client.api_key, job_id) == before
    weir.api("POST", path, {}, client.api_key).expect(200)
