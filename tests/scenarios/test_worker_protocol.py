"""The worker API as a worker in any language sees it: over TCP, with a client's API key."""
import threading
import time
import uuid

import pytest

from harness.history import check_chain
from harness.pace import Stopwatch
from harness.weir_server import wait_for
from harness.worker_calls import Worker, names

WAKE_SECONDS_MAX = 0.05  # from a submit's answer to the answer of a waiting claim
LEASE_MS = 600  # of the server with short leases
LATE_SECONDS_MAX = 5  # a second at most, and a busy machine's time


@pytest.fixture(scope="module")
def short_leases():
    """A server for the tests that wait for a lease to end."""
    from conftest import end_server, start_server
    server = start_server(settings={"queue.lease_ms": LEASE_MS, "queue.heartbeat_ms": 100,
                                    "runner.processes": 0}).start()
    yield server
    end_server(server)


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


def test_claims_come_in_creation_order(weir, client, worker):
    """[JOB-139] One worker, 20 jobs: the order of assignment is the order of creation."""
    jobs = [submit(weir, client, worker) for _ in range(20)]
    claimed = [worker.claim()[0]["job_id"] for _ in range(20)]
    assert claimed == jobs
    events = [weir.events(client.api_key, job_id)[-1] for job_id in jobs]
    assert [e["event_name"] for e in events] == ["job.assigned"] * 20
    assert [e["timestamp"] for e in events] == sorted(e["timestamp"] for e in events)


def test_a_higher_priority_goes_first_and_ties_keep_creation_order(weir, client, worker):
    """[JOB-139] Priority high to low, then creation order."""
    given = [0, 9, 4, 4, 9, 1, 5]
    jobs = [(submit(weir, client, worker, priority=p), p) for p in given]
    expected = [job for job, _ in sorted(jobs, key=lambda pair: -pair[1])]
    assert [task["job_id"] for task in worker.claim(most=20)] == expected


def test_one_claim_takes_one_job_unless_it_asks_for_more(weir, client, worker):
    """[JOB-140] max=1 gives one of three; max=256 gives the other two."""
    for _ in range(3):
        submit(weir, client, worker)
    assert len(worker.claim()) == 1
    assert len(worker.claim(most=256)) == 2


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


def test_an_unstarted_task_cannot_be_finished(weir, client, worker):
    """finish from ASSIGNED is refused; the job is untouched and can still run."""
    job_id = submit(weir, client, worker)
    task, = worker.claim()
    refused = worker.finish([task])[0]
    assert refused["ok"] is False and refused["code"]
    assert weir.job(client.api_key, job_id)["state"] == "ASSIGNED"
    worker.start([task])
    assert worker.finish([task])[0]["ok"] is True


def test_a_second_start_of_the_same_lease_changes_nothing(weir, client, worker):
    """A worker that lost the answer may ask again."""
    job_id = submit(weir, client, worker)
    task, = worker.claim()
    assert worker.start([task])[0]["ok"] and worker.start([task])[0]["ok"]
    assert weir.event_names(client.api_key, job_id).count("job.running") == 1


def test_release_gives_an_unstarted_task_back_at_once(weir, client, worker):
    """QUEUED by the recovery edge, reason released, no attempt spent."""
    job_id = submit(weir, client, worker)
    task, = worker.claim()
    assert worker.release([task])[0]["ok"] is True
    event = weir.events(client.api_key, job_id)[-1]
    assert event["event_name"] == "job.lease_expired" and event["payload"]["reason"] == "released"
    again, = worker.claim()
    assert again["attempt"] == 1


def test_items_of_one_call_stand_alone(weir, client, worker):
    """One good and one stale item: the good one happens."""
    submit(weir, client, worker)
    submit(weir, client, worker)
    one, two = worker.claim(most=2)
    results = worker.start([one, {**two, "token": "77"},
                            {"task_id": str(uuid.uuid4()), "token": "1"}])
    assert [result["ok"] for result in results] == [True, False, False]


def test_a_cancel_while_running_is_told_by_heartbeat(weir, client, worker):
    """[JOB-118] ok with cancel:true until the lease ends; the late finish is refused."""
    job_id = submit(weir, client, worker)
    tasks = worker.claim()
    worker.start(tasks)
    assert weir.cancel(client.api_key, job_id).expect(200)["state"] == "CANCELED"
    for _ in range(3):
        beat, = worker.heartbeat(tasks)
        assert beat["ok"] is True and beat["cancel"] is True
    assert worker.finish(tasks)[0]["code"] == "lease_lost"
    events = check_chain(weir, client.api_key, job_id)
    assert events[-1]["event_name"] == "job.canceled"


def test_a_cancel_before_start_stops_the_start(weir, client, worker):
    """[JOB-115] Held between claim and start, cancelled: it never runs."""
    job_id = submit(weir, client, worker)
    tasks = worker.claim()
    assert weir.cancel(client.api_key, job_id).expect(200)["state"] == "CANCELED"
    assert worker.start(tasks)[0]["code"] == "lease_lost"
    assert "job.running" not in weir.event_names(client.api_key, job_id)


def test_a_worker_sees_and_touches_its_own_clients_tasks_only(weir, client, worker):
    """Another client's key claims nothing of ours, and our token helps it nothing."""
    other = weir.new_client()
    job_id = submit(weir, client, worker)
    with Worker(weir, other.api_key, worker.queues) as thief:
        assert thief.claim() == []
        task, = worker.claim()
        for verb in (thief.start, thief.heartbeat, thief.finish, thief.release):
            assert verb([task])[0]["code"] == "lease_lost"
    assert weir.job(client.api_key, job_id)["state"] == "ASSIGNED"
    assert worker.start([task])[0]["ok"] is True


def test_a_worker_needs_a_key(weir):
    """No key, junk key: 401."""
    body = {"worker_id": "w", "queues": ["outside"], "max": 1, "wait_ms": 0}
    for key in (None, "wk_junk"):
        weir.api("POST", "/worker/v1/claim", body, key).expect_problem(
            401, "RFA_AUTH_INVALID_CREDENTIALS")


def test_queues_are_apart_and_a_worker_may_serve_several(weir, client):
    """A job waits for a worker of its own queue, and the built-in runner leaves it alone."""
    one, two = queue_of_its_own(), queue_of_its_own()
    jobs = [weir.submit(client.api_key, queue=q)["job_id"] for q in (one, two, one)]
    with Worker(weir, client.api_key, queue_of_its_own()) as elsewhere:
        assert elsewhere.claim(most=10) == []
    assert {weir.job(client.api_key, job_id)["state"] for job_id in jobs} == {"QUEUED"}
    with Worker(weir, client.api_key, two) as second:
        assert [task["job_id"] for task in second.claim(most=10)] == [jobs[1]]
    with Worker(weir, client.api_key, [one, two]) as both:
        assert [task["job_id"] for task in both.claim(most=10)] == [jobs[0], jobs[2]]


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


def test_a_waiting_claim_ends_empty_when_its_time_is_over(worker):
    """wait_ms is kept, neither early nor much later."""
    watch = Stopwatch()
    assert worker.claim(wait_ms=300) == []
    assert watch.seconds() >= 0.3 and watch.quiet() < 0.3 + LATE_SECONDS_MAX


def test_a_lease_that_ends_before_the_start_queues_the_job_again(short_leases):
    """[JOB-143] [JOB-147] No start: QUEUED when the lease is over, not before, and never
    again the old worker's; heartbeats do not lengthen an unstarted lease."""
    weir = short_leases
    client = weir.new_client()
    with Worker(weir, client.api_key) as worker:
        job_id = submit(weir, client, worker)
        old, = worker.claim()
        claimed = Stopwatch()
        while claimed.seconds() < 0.3:
            assert worker.heartbeat([old])[0]["ok"] is True
        new, = worker.claim(wait_ms=30000)
        assert claimed.seconds() >= LEASE_MS / 1000 - 0.05
        assert claimed.quiet() <= LEASE_MS / 1000 + LATE_SECONDS_MAX
        assert new["attempt"] == 1 and new["token"] != old["token"]
        assert worker.start([old])[0]["code"] == "lease_lost"
        worker.start([new])
        worker.finish([new])
    names_seen = [event["event_name"] for event in check_chain(weir, client.api_key, job_id)]
    assert names_seen.count("job.lease_expired") == 1


def test_heartbeats_keep_a_running_job_and_silence_loses_it(short_leases):
    """[JOB-144] [JOB-176] Beating for three leases keeps it RUNNING; then worker_lost soon
    after a lease."""
    weir = short_leases
    client = weir.new_client()
    with Worker(weir, client.api_key) as worker:
        job_id = submit(weir, client, worker)
        tasks = worker.claim()
        worker.start(tasks)
        started = time.monotonic()
        while time.monotonic() - started < 3 * LEASE_MS / 1000:
            assert worker.heartbeat(tasks)[0]["ok"] is True
            time.sleep(LEASE_MS / 6000)
        assert weir.job(client.api_key, job_id)["state"] == "RUNNING"
        silent = Stopwatch()
        job = weir.wait_final(client.api_key, job_id)
        assert silent.quiet() <= LEASE_MS / 1000 + LATE_SECONDS_MAX
        assert job["state"] == "FAILED" and job["error"]["code"] == "worker_lost"
        assert worker.finish(tasks)[0]["code"] == "lease_lost"
    check_chain(weir, client.api_key, job_id)


def test_a_finish_after_the_runtime_limit_is_a_timeout(weir, client, worker):
    """[JOB-178] [JOB-195] An outside worker gets its limit too; the late result is not taken."""
    job_id = submit(weir, client, worker, max_runtime_ms=200)
    tasks = worker.claim()
    worker.start(tasks)
    job = weir.wait_final(client.api_key, job_id)
    assert job["state"] == "FAILED" and job["error"]["code"] == "RFA_EXEC_TIMEOUT"
    assert worker.finish(tasks)[0]["ok"] is False
    assert weir.event_names(client.api_key, job_id)[-1] == "job.timed_out"


def test_a_result_over_the_payload_limit_is_a_failure(weir, client, worker):
    """[JOB-180] Output that cannot be taken ends FAILED with a reason, never SUCCESS."""
    job_id = submit(weir, client, worker)
    tasks = worker.claim()
    worker.start(tasks)
    assert worker.finish(tasks, result={"data": "x" * 262144})[0]["ok"] is True
    job = weir.job(client.api_key, job_id)
    assert job["state"] == "FAILED" and job["error"]["code"] == "output_too_large"
