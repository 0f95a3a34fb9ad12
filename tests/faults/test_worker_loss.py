"""Workers that die or freeze, built-in and outside: found within lease + 1 s, never believed when
they come back."""
import json
import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from conftest import end_server, start_server
from harness.history import check_chain
from harness.pace import Stopwatch
from harness.weir_server import REPOSITORY
from harness.worker_calls import Worker

LEASE_SECONDS = 2.0
# When the first lease ends is asked of PostgreSQL once a second, which a busy machine draws out.
FOUND_SECONDS_MAX = LEASE_SECONDS + (5.0 if os.environ.get("WEIR_TEST_STORE") == "postgres" else 1.0)

# A worker process of our own: claims one task, starts it when told to, says so, then beats.
OUTSIDE_WORKER = textwrap.dedent("""
    import json, sys, time
    sys.path.insert(0, sys.argv[1])
    from harness.kept import Kept
    address, key, how = (sys.argv[2], int(sys.argv[3])), sys.argv[4], sys.argv[5]
    kept = Kept(address, key)
    def call(verb, body): return kept.call("POST", "/worker/v1/" + verb, body).expect(200)
    task, = call("claim", {"worker_id": "other-process", "queues": ["outside"], "max": 1,
                           "wait_ms": 5000})["tasks"]
    item = {"tasks": [{"task_id": task["task_id"], "token": task["token"]}]}
    if how == "run":
        call("start", item)
    print(json.dumps(task), flush=True)
    while True:
        time.sleep(0.2)
        beat = call("heartbeat", item)["results"][0]
        if not beat["ok"]:  # woken up: a careless worker reports its result all the same
            item["tasks"][0]["outcome"] = "success"
            print(json.dumps(call("finish", item)["results"][0]), flush=True)
            break
""")


@pytest.fixture(scope="module")
def weir():
    """Leases of two seconds; two runner processes; a runtime limit that plays no part."""
    server = start_server(settings={"queue.lease_ms": int(LEASE_SECONDS * 1000), "queue.heartbeat_ms": 400,
                                    "runner.time_scale": 0.01, "runner.processes": 2, "runner.workers": 2,
                                    "jobs.max_runtime_ms": 1000000,
                                    "runtime.agents.max_restarts": 1000,
                                    "runtime.agents.max_seconds": 1}).start()
    yield server
    end_server(server)


@pytest.fixture
def outside_worker(weir, client):
    """A factory of worker processes: gives (process, task)."""
    made = []

    def start(how):
        process = subprocess.Popen(
            [sys.executable, "-B", "-c", OUTSIDE_WORKER, os.path.join(REPOSITORY, "tests"), "127.0.0.1",
             str(weir.port), client.api_key, how], stdout=subprocess.PIPE, text=True)
        made.append(process)
        return process, json.loads(process.stdout.readline())

    yield start
    for process in made:
        process.kill()
        process.wait()
        process.stdout.close()


def test_workers_lost_before_the_start_give_their_jobs_back(weir, client, outside_worker):
    """[JOB-143] [JOB-174] One killed, one frozen after the claim: both jobs are QUEUED within lease
    + 1 s, no attempt spent, and another worker runs them to the end."""
    jobs = [weir.submit(client.api_key, queue="outside")["job_id"] for _ in range(2)]
    killed, first = outside_worker("hold")
    frozen, second = outside_worker("hold")
    lost = Stopwatch()
    killed.kill()
    frozen.send_signal(signal.SIGSTOP)
    with Worker(weir, client.api_key, worker_id="rescuer") as rescuer:
        again = []
        while len(again) < 2:
            again += rescuer.claim(most=2, wait_ms=8000)
            assert lost.quiet() <= FOUND_SECONDS_MAX
        assert sorted(task["job_id"] for task in again) == sorted(jobs)
        assert {task["attempt"] for task in again} == {1}
        assert min(int(t["token"]) for t in again) > max(int(first["token"]), int(second["token"]))
        rescuer.start(again)
        assert all(result["ok"] for result in rescuer.finish(again, result={"by": "rescuer"}))
    for job_id in jobs:
        names = [event["event_name"] for event in check_chain(weir, client.api_key, job_id)]
        assert names.count("job.lease_expired") == 1


def test_a_worker_killed_in_the_run_fails_the_job_and_a_retry_succeeds(weir, client, outside_worker):
    """[JOB-144] [JOB-176] Beats keep it beyond its lease; after the kill FAILED with worker_lost
    within lease + 1 s, never stuck in RUNNING; the retry runs elsewhere."""
    job_id = weir.submit(client.api_key, queue="outside", retry="manual")["job_id"]
    process, _ = outside_worker("run")
    time.sleep(LEASE_SECONDS + 0.5)
    assert weir.job(client.api_key, job_id)["state"] == "RUNNING"
    process.kill()
    lost = Stopwatch()
    job = weir.wait_final(client.api_key, job_id, timeout=8)
    assert lost.quiet() <= FOUND_SECONDS_MAX
    assert (job["state"], job["error"]["code"], job["error"]["retryable"]) == ("FAILED", "worker_lost", True)
    assert weir.events(client.api_key, job_id)[-1]["payload"]["reason"] == "worker_lost"
    assert weir.retry(client.api_key, job_id).expect(200)["attempt"] == 2
    with Worker(weir, client.api_key, worker_id="rescuer") as rescuer:
        tasks = rescuer.claim(wait_ms=5000)
        rescuer.start(tasks)
        rescuer.finish(tasks)
    assert weir.job(client.api_key, job_id)["state"] == "SUCCEEDED"
    check_chain(weir, client.api_key, job_id)


def test_a_frozen_worker_that_wakes_up_is_not_believed(weir, client, outside_worker):
    """[JOB-176] SIGSTOP past the lease, a retry finished by another, SIGCONT: the zombie's beat
    and finish are lease_lost, and the other's result stays."""
    job_id = weir.submit(client.api_key, queue="outside", retry="manual")["job_id"]
    process, _ = outside_worker("run")
    process.send_signal(signal.SIGSTOP)
    stopped = Stopwatch()
    assert weir.wait_final(client.api_key, job_id, timeout=8)["error"]["code"] == "worker_lost"
    assert stopped.quiet() <= FOUND_SECONDS_MAX
    weir.retry(client.api_key, job_id).expect(200)
    with Worker(weir, client.api_key, worker_id="rescuer") as rescuer:
        tasks = rescuer.claim(wait_ms=5000)
        rescuer.start(tasks)
        process.send_signal(signal.SIGCONT)
        assert '"lease_lost"' in process.stdout.readline()
        assert weir.job(client.api_key, job_id)["state"] == "RUNNING"
        rescuer.finish(tasks, result={"by": "rescuer"})
    assert weir.report(client.api_key, job_id)["result"] == {"by": "rescuer"}
    check_chain(weir, client.api_key, job_id)


def test_lost_runners_are_found_and_their_jobs_can_be_retried(weir, client):
    """[JOB-174] [JOB-176] One runner killed, the other frozen in the middle of their work: every
    job is FAILED with worker_lost within lease + 1 s; a retry succeeds on the runner that root
    started, or that woke up."""
    jobs = [weir.submit(client.api_key, work_kind="SUCCESS_SLOW")["job_id"] for _ in range(4)]  # 0.9 s
    for job_id in jobs:
        weir.wait_state(client.api_key, job_id, "RUNNING")
    killed, frozen = weir.wait_pids("runner", 2)
    lost = Stopwatch()
    os.kill(frozen, signal.SIGSTOP)
    os.kill(killed, signal.SIGKILL)
    try:
        for job_id in jobs:
            job = weir.wait_final(client.api_key, job_id, timeout=8)
            assert job["state"] == "FAILED" and job["error"]["code"] == "worker_lost"
        assert lost.quiet() <= FOUND_SECONDS_MAX
    finally:
        os.kill(frozen, signal.SIGCONT)
    for job_id in jobs:
        weir.retry(client.api_key, job_id).expect(200)
    for job_id in jobs:
        assert weir.wait_final(client.api_key, job_id, timeout=15)["state"] == "SUCCEEDED"
        check_chain(weir, client.api_key, job_id)


def test_the_runner_beats_while_it_works(fresh_weir):
    """[JOB-028] [JOB-144] [JOB-147] [JOB-148] RUNS_LONG for five leases: heartbeats arrive at their
    interval and the job SUCCEEDS."""
    weir = fresh_weir(settings={"queue.lease_ms": 500, "queue.heartbeat_ms": 100,
                                "runner.time_scale": 0.0227})
    _, key = weir.new_client()
    watch = Stopwatch()
    job_id = weir.submit(key, work_kind="RUNS_LONG")["job_id"]  # 2.5 s
    assert weir.wait_final(key, job_id)["state"] == "SUCCEEDED"
    beats = weir.metric("weir_http_requests_total", operation="heartbeatTasks")
    assert 15 <= beats <= 30 + watch.stalled() * 10
    defaults = weir.cli("config", "show").stdout.split()
    assert defaults[defaults.index("queue.heartbeat_ms") + 1] == "5000"
    assert defaults[defaults.index("queue.lease_ms") + 1] == "30000"
