"""The worker API as a worker in any language sees it: over TCP, with a client's API key. Every rule of
claims, leases and tokens: tests/unit/kernel/test_workers.c."""
import threading
import time
import uuid

import pytest

from harness.history import check_chain
from harness.pace import Stopwatch
from harness.weir_server import wait_for
from harness.worker_calls import Worker, names

WAKE_SECONDS_MAX = 0.05  # from a submit's answer to the answer of a waiting claim


def queue_of_its_own():
    """A queue no other test uses."""
    return "q-" + uuid.uuid4().hex[:12]


@pytest.fixture
def worker(weir, client):
    """A worker with a queue of its own."""
    with Worker(weir, client.api_key, queue_of_its_own()) as one:
        yield one


def submit(weir, client, worker, **fields):
    """A job for this worker, which nobody retries; its id."""
    return weir.submit(client.api_key, queue=worker.queues[0], work_kind="SUCCESS_FAST", retry="manual",
                       **fields)["job_id"]


def test_a_job_goes_from_claim_to_its_report(weir, client, worker):
    """[JOB-141] [JOB-147] [JOB-112] [JOB-114] [JOB-116] Claim gives a lease of queue.lease_ms and
    names the worker; start, heartbeat and finish carry its token; the result is in the report."""
    job_id = submit(weir, client, worker, payload={"n": 7})
    before, watch = time.time(), Stopwatch()
    task, = worker.claim()
    assert (task["job_id"], task["kind"], task["attempt"]) == (job_id, "job", 1)
    assert task["payload"] == {"n": 7} and task["definition"]["work_kind"] == "SUCCESS_FAST"
    assert isinstance(task["token"], str)
    lease = seconds_of(task["lease_expires_at"]) - before
    assert 29 <= lease <= 31 + watch.stalled()
    assert weir.job(client.api_key, job_id)["state"] == "ASSIGNED"
    assigned = weir.events(client.api_key, job_id)[-1]
    assert assigned["payload"]["worker_id"] == "worker-1"
    assert worker.start([task]) == [{"task_id": job_id, "ok": True}]
    assert weir.job(client.api_key, job_id)["state"] == "RUNNING"
    beat, = worker.heartbeat([task])
    assert beat["ok"] is True and beat["cancel"] is False
    assert seconds_of(beat["lease_expires_at"]) >= seconds_of(task["lease_expires_at"])
    assert worker.finish([task], result={"sum": 8})[0]["ok"] is True
    assert weir.report(client.api_key, job_id)["result"] == {"sum": 8}
    check_chain(weir, client.api_key, job_id)


def test_a_claim_may_start_what_it_gives(weir, client, worker):
    """[JOB-141] [JOB-112] With `start` a job is RUNNING when the claim is answered: both events are there,
    finish needs no call of start, a repeated start changes nothing."""
    job_id, other = submit(weir, client, worker), submit(weir, client, worker)
    task, second = worker.claim(most=2, start=True)
    assert (task["job_id"], second["job_id"]) == (job_id, other)
    assert weir.job(client.api_key, job_id)["state"] == "RUNNING"
    assert [e["event_name"] for e in weir.events(client.api_key, job_id)][-2:] == [
        "job.assigned", "job.running"]
    assert worker.start([task]) == [{"task_id": job_id, "ok": True}]
    assert worker.heartbeat([task])[0]["ok"] is True
    assert worker.finish([task, second]) == [{"task_id": job_id, "ok": True},
                                             {"task_id": other, "ok": True}]
    for done in (job_id, other):
        check_chain(weir, client.api_key, done)
    body = {"worker_id": "w", "queues": worker.queues, "max": 1, "start": 1}
    weir.api("POST", "/worker/v1/claim", body, client.api_key).expect_problem(
        400, "RFA_REQUEST_MALFORMED")


def seconds_of(text):
    """Seconds since the epoch of a time on the wire."""
    from datetime import datetime
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def test_a_failure_keeps_code_message_and_flag(weir, client, worker):
    """[JOB-117] What the worker said is what the client reads."""
    job_id = submit(weir, client, worker)
    tasks = worker.claim()
    worker.start(tasks)
    worker.finish(tasks, "failure",
                  error={"code": "no_disk", "message": "tape is full", "retryable": True})
    assert weir.job(client.api_key, job_id)["error"] == {
        "code": "no_disk", "message": "tape is full", "retryable": True}
    assert weir.events(client.api_key, job_id)[-1]["payload"]["reason"] == "no_disk"


def test_at_most_256_tasks_a_claim(weir, client, worker):
    """300 jobs wait: a claim of 256 gives 256; 257, 0 and a wait above 30 s are refused."""
    for start in range(0, 300, 100):
        body = {"jobs": [{"type": "EXECUTE", "queue": worker.queues[0]} for _ in range(100)]}
        weir.api("POST", "/v1/jobs:batch", body, client.api_key).expect(202)
        assert start < 300
    for wrong in ({"max": 257}, {"max": 0}, {"max": "1"}, {"wait_ms": 30001}, {"queues": []}):
        body = {"worker_id": "w", "queues": worker.queues, "max": 1, "wait_ms": 0, **wrong}
        weir.api("POST", "/worker/v1/claim", body, client.api_key).expect_problem(
            400, "RFA_REQUEST_MALFORMED")
    tasks = worker.claim(most=256)
    assert len(tasks) == 256
    assert all(result["ok"] for result in worker.start(tasks))
    assert all(result["ok"] for result in worker.finish(tasks))
    assert len(worker.claim(most=256)) == 44


def test_a_stale_token_is_refused_by_every_call_and_changes_nothing(weir, client, worker):
    """[JOB-184] A finish of a QUEUED job, and older, newer, foreign and garbled tokens give
    lease_lost."""
    job_id = submit(weir, client, worker)
    old, = worker.claim()
    assert worker.release([old])[0]["ok"] is True
    assert worker.finish([old])[0]["code"] == "lease_lost"
    assert weir.job(client.api_key, job_id)["state"] == "QUEUED"
    new, = worker.claim()
    assert int(new["token"]) > int(old["token"])
    before = weir.events(client.api_key, job_id)
    for token in (old["token"], str(int(new["token"]) + 1), "0", "-1", "", "x", "9" * 40):
        item = {"task_id": job_id, "token": token}
        for verb in ("start", "heartbeat", "release"):
            assert worker.tell(verb, [item]) == [
                {"task_id": job_id, "ok": False, "code": "lease_lost"}], (verb, token)
        assert worker.tell("finish", [{**item, "outcome": "success"}])[0]["code"] == "lease_lost"
    assert weir.events(client.api_key, job_id) == before
    worker.start([new])
    assert worker.finish([new])[0]["ok"] is True
    for verb, more in (("start", {}), ("heartbeat", {}), ("finish", {"outcome": "failure"}), ("release", {})):
        assert worker.tell(verb, [names(new, **more)])[0]["code"] == "lease_lost", verb


def test_release_gives_an_unstarted_task_back_at_once(weir, client, worker):
    """QUEUED by the recovery edge, reason released, no attempt spent."""
    job_id = submit(weir, client, worker)
    task, = worker.claim()
    assert worker.release([task])[0]["ok"] is True
    event = weir.events(client.api_key, job_id)[-1]
    assert event["event_name"] == "job.lease_expired" and event["payload"]["reason"] == "released"
    again, = worker.claim()
    assert again["attempt"] == 1


def test_a_worker_needs_a_key(weir):
    """No key, junk key: 401."""
    body = {"worker_id": "w", "queues": ["outside"], "max": 1, "wait_ms": 0}
    for key in (None, "wk_junk"):
        weir.api("POST", "/worker/v1/claim", body, key).expect_problem(
            401, "RFA_AUTH_INVALID_CREDENTIALS")


def test_a_waiting_claim_wakes_within_50_ms_of_a_submit(weir, client, worker):
    """[JOB-053] Ten times: the long poll answers right after the submit (median, and none much later), on a
    machine that has nothing else to do."""
    late = []
    for _ in range(10):
        got = []
        poll = threading.Thread(
            target=lambda: got.extend([worker.claim(wait_ms=20000), time.monotonic()]))
        poll.start()
        wait_for(lambda: weir_waits(weir), 5, "the claim to wait", weir)
        time.sleep(0.02)  # the claim is on its way to the commit thread; nothing shows its arrival
        submit(weir, client, worker)
        watch = Stopwatch()
        poll.join(timeout=60)
        assert len(got[0]) == 1
        late.append(got[1] - watch.began - watch.stalled())
    assert sorted(late)[5] <= WAKE_SECONDS_MAX, late
    assert max(late) <= 4 * WAKE_SECONDS_MAX, late


def weir_waits(weir):
    """True as soon as a request other than ours is open: the claim has arrived."""
    return weir.metric("weir_http_connections") >= 2
