"""Thousands of mixed jobs from several threads: none lost, none twice, none stuck; races have one
winner.

Commit size is a minute's work of a small machine under sanitizers; `make test-long` multiplies
it."""
import random
import threading
from collections import Counter

import pytest

from harness.history import check_client, list_jobs
from harness.kept import Kept
from harness.together import at_once
from harness.weir_server import wait_for
from harness.worker_calls import Worker

FAST_KINDS = ["SUCCESS_FAST", "FAIL_IMMEDIATE", "FAIL_AFTER_RETRYABLE", "RETRY_ON_FAIL", "PAYLOAD_SMALL",
              "MANY_SMALL_OUTPUTS", "IO_HEAVY", "CPU_BURST", "DUPLICATE_SUBMIT_SAME_KEY"]
SUBMITTERS = 4


@pytest.fixture(scope="module")
def weir():
    """Much capacity, simulated time a thousand times faster, quiet logs."""
    from conftest import end_server, start_server
    server = start_server(settings={
        "runner.time_scale": 0.001, "jobs.max_runtime_ms": 60000000,  # scaled: a minute
        "runner.workers": 16, "jobs.max_active": 100000,
        "jobs.queue_size": 100000, "log.level": "warn", "jobs.retry_base_ms": 5}).start()
    yield server
    end_server(server)


def drained(weir, key, timeout=60):
    """Waits until the client has no unfinished job; the summary."""
    def over():
        by_state = weir.api("GET", "/v1/reports/summary", key=key).expect(200)["by_state"]
        return by_state if not any(by_state.get(s) for s in
                                   ("CREATED", "QUEUED", "ASSIGNED", "RUNNING")) else None
    return wait_for(over, timeout, "everything to end", weir)


def mixed_body(rng, i):
    """One of the mixes: plain kinds, keys that repeat, drawn kinds, priorities."""
    body = {"type": "EXECUTE", "work_kind": rng.choice(FAST_KINDS), "priority": rng.randrange(10)}
    if i % 5 == 0:
        body["idempotency_key"] = f"key-{i // 10}"  # each such key comes twice, with an equal body
        body.update(work_kind="DUPLICATE_SUBMIT_SAME_KEY", priority=4)
    return body


def test_thousands_of_mixed_jobs_end_as_they_should(weir, long_run):
    """[JOB-003] [JOB-151] [JOB-153] [JOB-183] Four threads submit, some cancel and retry: as many
    jobs as were accepted with different keys, each once, each final with outcome and report, each
    chain legal, each end the one its kind has."""
    _, key = weir.new_client()
    count = (20000 if long_run else 2000) // SUBMITTERS
    accepted = [[] for _ in range(SUBMITTERS)]

    def submitter(n):
        rng = random.Random(n)
        with Kept(weir.address, key) as kept:
            for i in range(count):
                body = mixed_body(rng, i)
                if "idempotency_key" in body:
                    body["idempotency_key"] += f"-{n}"
                job = kept.call("POST", "/v1/jobs", body).expect(202)
                accepted[n].append((job["job_id"], body))
                if i % 17 == 0:
                    kept.call("POST", f"/v1/jobs/{job['job_id']}/cancel").expect(200)
                if i % 13 == 0 and i:
                    old = accepted[n][i // 2][0]
                    assert kept.call("POST", f"/v1/jobs/{old}/retry").status in (200, 409)

    at_once(SUBMITTERS, submitter)
    drained(weir, key)
    flat = [pair for part in accepted for pair in part]
    ids = {job_id for job_id, _ in flat}
    by_key = {}
    for job_id, body in flat:
        if "idempotency_key" in body:
            by_key.setdefault(body["idempotency_key"], set()).add(job_id)
    assert by_key and all(len(found) == 1 for found in by_key.values())
    seen = check_client(weir, key)
    assert set(seen) == ids, (len(seen), len(ids))
    for job_id, body in flat:
        job, events = seen[job_id]
        assert job["work_kind"] == body["work_kind"]
        if job["state"] == "SUCCEEDED":
            assert not job["work_kind"].startswith("FAIL")
        elif job["state"] == "FAILED":
            assert job["work_kind"].startswith(("FAIL", "RETRY"))
        attempts = Counter(e["payload"]["attempt"] for e in events if e["event_name"] == "job.assigned")
        assert all(n == 1 for n in attempts.values()), (job_id, attempts)


def test_eight_workers_and_a_thousand_jobs_each_assigned_once(weir, long_run):
    """[JOB-142] [JOB-140] Eight workers claim from one queue: every job is handed out exactly once,
    and each worker holds what it asked for, one."""
    _, key = weir.new_client()
    count = 10000 if long_run else 1000
    for _ in range(count // 500):
        body = {"jobs": [{"type": "EXECUTE", "queue": "outside"}] * 500}
        weir.api("POST", "/v1/jobs:batch", body, key).expect(202)

    def run_worker(i):
        taken = []
        with Worker(weir, key, worker_id=f"w{i}") as worker:
            while tasks := worker.claim(wait_ms=100):
                assert len(tasks) == 1
                taken += [task["job_id"] for task in tasks]
                assert worker.start(tasks)[0]["ok"] and worker.finish(tasks)[0]["ok"]
        return taken

    taken = at_once(8, run_worker)
    handed_out = [job_id for part in taken for job_id in part]
    assert len(handed_out) == len(set(handed_out)) == count
    assert all(taken), "a worker got nothing"
    listed = list_jobs(weir, key)
    assert {job["job_id"] for job in listed} == set(handed_out)
    assert {job["state"] for job in listed} == {"SUCCEEDED"}
    sample = random.Random(1).sample(handed_out, 50)
    for job_id in sample:
        assert weir.event_names(key, job_id).count("job.assigned") == 1


def test_cancel_against_finish_five_hundred_times_has_one_winner(weir):
    """[JOB-185] [JOB-150] Both sent at the same instant: one final event each; whoever lost is
    told the state that won."""
    _, key = weir.new_client()
    races, wins = 500, Counter()
    weir.api("POST", "/v1/jobs:batch", {"jobs": [{"type": "EXECUTE", "queue": "outside"}] * races},
             key).expect(202)
    gate, tasks, results = threading.Barrier(2), [], {}
    with Worker(weir, key) as worker:
        while batch := worker.claim(most=100):
            worker.start(batch)
            tasks += batch
    assert len(tasks) == races

    def finisher():
        with Worker(weir, key) as worker:
            for task in tasks:
                gate.wait(timeout=30)
                results[task["job_id"], "finish"] = worker.finish([task])[0]["ok"]

    def canceller():
        with Kept(weir.address, key) as kept:
            for task in tasks:
                gate.wait(timeout=30)
                answer = kept.call("POST", f"/v1/jobs/{task['job_id']}/cancel").expect(200)
                results[task["job_id"], "cancel"] = answer["state"]

    at_once(2, lambda i: (finisher, canceller)[i]())
    jobs = check_client(weir, key)
    for job_id, (job, events) in jobs.items():
        finals = [e for e in events if e["next_state"] in ("SUCCEEDED", "FAILED", "CANCELED")]
        assert len(finals) == 1
        assert results[job_id, "cancel"] == job["state"]
        assert results[job_id, "finish"] == (job["state"] == "SUCCEEDED")
        wins[job["state"]] += 1
    assert len(jobs) == races and set(wins) == {"SUCCEEDED", "CANCELED"}, wins


def test_one_key_from_fifty_callers_is_one_job(weir):
    """[JOB-183] [JOB-070] All at the same instant: one job id in all answers, one job."""
    _, key = weir.new_client()
    answers = at_once(50, lambda _: weir.submit(key, idempotency_key="same", work_kind="SUCCESS_FAST"))
    assert len({answer["job_id"] for answer in answers}) == 1
    assert len(list_jobs(weir, key)) == 1
