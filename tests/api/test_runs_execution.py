"""Runs that Weir executes, as workers and readers see them."""
import datetime
import json

import pytest

from harness.engine_calls import Engine, path_of
from harness.weir_server import wait_for
from harness.worker_calls import Worker

FAST = {"jobs.retry_base_ms": 20, "jobs.retry_cap_ms": 40, "queue.lease_ms": 3000, "queue.heartbeat_ms": 1000}


@pytest.fixture(name="server", scope="module")
def fast_server(module_weir):
    """Short backoff and leases."""
    return module_weir(settings=FAST)


@pytest.fixture(name="engine", scope="module")
def engine_of_module(server):
    """A tenant of its own for this module."""
    return Engine(server, "acme-work")


def parse_time(text):
    """A time on the wire."""
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


def claim_one(worker, step=None):
    """The next task, with patience; started."""
    task, = worker.claim(1, wait_ms=20000)
    assert step is None or task["step_id"] == step, task
    assert worker.start([task])[0]["ok"]
    return task


def test_a_task_of_a_step_carries_all_a_worker_needs(engine):
    """The keys of interfaces.md, no other; inputs are results of what it depends on."""
    engine.put_plan("task", {"stepId": "a", "config": {"table": "orders"}}, "b", "c<a,b", queue="task.queue")
    run_id = engine.start("task", params={"day": "2026-11-16"})
    with engine.worker("task.queue") as worker:
        first = worker.claim(10, wait_ms=20000)
        assert [t["step_id"] for t in first] == ["a", "b"]
        task = first[0]
        assert set(task) == {"task_id", "token", "kind", "run_id", "step_id", "queue", "attempt",
                             "lease_expires_at", "max_runtime_ms", "definition", "payload", "traceparent"}
        assert task["kind"] == "step" and task["run_id"] == run_id and task["queue"] == "task.queue"
        assert task["attempt"] == 1 and task["payload"] == {"inputs": {}}
        assert task["definition"] == {"planId": "task", "planVersion": "1", "config": {"table": "orders"},
                                      "params": {"day": "2026-11-16"}, "override": None, "target": None}
        worker.start(first)
        worker.finish(first[:1], result={"rows": [1, 2, {"x": None}]})
        worker.finish(first[1:])
        last = claim_one(worker, "c")
        assert last["payload"] == {"inputs": {"a": {"rows": [1, 2, {"x": None}]}, "b": None}}
        worker.finish([last])
    assert engine.wait_status(run_id, "COMPLETED")["steps"][0]["result"] == {"rows": [1, 2, {"x": None}]}


def test_events_of_a_diamond_are_in_order_and_complete(engine):
    """[RUN-004] [RUN-044] [RUN-045] [RUN-061] [RUN-062] Through one envelope, whoever worked: attempt 1 of
    the engine, keys as the contract says, the plan's names, the outputs."""
    engine.put_plan("diamond", "a", "b<a", "c<a", "d<b,c")
    run_id = engine.start("diamond")
    with engine.worker() as worker:
        for _ in range(4):
            worker.finish([claim_one(worker)], result={"ok": 1})
    engine.wait_status(run_id, "COMPLETED")
    names = engine.names(run_id)
    assert names[:4] == ["RunQueued", "RunStarted", "StepStarted a 1", "StepCompleted a 1"]
    assert names[4:8] == ["StepStarted b 1", "StepCompleted b 1", "StepStarted c 1", "StepCompleted c 1"]
    assert names[8:] == ["StepStarted d 1", "StepCompleted d 1", "RunCompleted"]
    for seq, record in enumerate(engine.events(run_id), 1):
        assert record["runSeq"] == seq and record["engineAttemptId"] == 1 and record["logicalAttemptId"] == 1
        assert (record["planId"], record["planVersion"], record["projectId"]) == ("diamond", "1", "shop")
        assert record.get("payload") == ({"output": {"ok": 1}} if record["eventType"] == "StepCompleted"
                                         else None)


def test_attempts_go_on_until_they_are_used_up(engine):
    """[RUN-046] [RUN-043] Each is a new logical attempt of the same engine attempt; then the run fails."""
    engine.put_plan("tries", {"stepId": "a", "maxAttempts": 3}, "b<a")
    run_id = engine.start("tries")
    with engine.worker() as worker:
        for n in (1, 2, 3):
            task = claim_one(worker, "a")
            assert task["attempt"] == n
            worker.fail([task])
    run = engine.wait_status(run_id, "FAILED")
    assert engine.names(run_id)[2:] == [f"Step{what} a {n}" for n in (1, 2, 3)
                                        for what in ("Started", "Failed")] + [
        "RunFailed"]
    records = engine.events(run_id)
    assert {r["engineAttemptId"] for r in records} == {1}
    assert records[3]["payload"]["error"] == {"code": "broken", "message": "as asked", "retryable": True}
    assert run["steps"][0]["failure"]["error"]["code"] == "broken" and run["steps"][1]["status"] == "PENDING"


@pytest.mark.parametrize("fields", [{}, {"error": {"code": "failed", "message": "no word of another try"}}])
def test_a_failure_that_says_no_more_is_tried_again(engine, fields):
    """Only retryable false ends the attempts; whoever leaves it out has not said so."""
    plan = "terse" + str(len(fields))
    engine.put_plan(plan, {"stepId": "a", "maxAttempts": 3})
    run_id = engine.start(plan)
    with engine.worker() as worker:
        for n in (1, 2, 3):
            task = claim_one(worker, "a")
            assert task["attempt"] == n
            worker.finish([task], "failure", **fields)
    engine.wait_status(run_id, "FAILED")
    failed = [r for r in engine.events(run_id) if r["eventType"] == "StepFailed"]
    assert [r["logicalAttemptId"] for r in failed] == [1, 2, 3]
    assert {(r["payload"]["reason"], r["payload"]["error"]["retryable"]) for r in failed} == {
        ("failed", True)}


def test_what_is_not_retryable_is_not_tried_again(engine):
    """And the other branch goes on before the run fails."""
    engine.put_plan("final", {"stepId": "a", "maxAttempts": 5}, "b", "c<b", "d<a")
    run_id = engine.start("final")
    with engine.worker() as worker:
        tasks = {t["step_id"]: t for t in worker.claim(2, wait_ms=20000)}
        worker.start(list(tasks.values()))
        worker.fail([tasks["a"]], retryable=False)
        assert engine.status(run_id) == "RUNNING"
        worker.finish([tasks["b"]])
        worker.finish([claim_one(worker, "c")])
    engine.wait_status(run_id, "FAILED")
    assert engine.steps(run_id) == {"a": ("FAILED", 1), "b": ("SUCCESS", 1), "c": ("SUCCESS", 1),
                                    "d": ("PENDING", 0)}


def test_a_plan_that_waits_stays_running_until_it_is_retried(engine):
    """onFailure wait; RETRY_STEP re-arms what depends on it. [SIG-005]"""
    engine.put_plan("patient", "a", "b<a", onFailure="wait")
    run_id = engine.start("patient")
    with engine.worker() as worker:
        worker.fail([claim_one(worker, "a")])
        assert engine.status(run_id) == "RUNNING" and not worker.claim(1)
        engine.signal(run_id, "RETRY_STEP", {"stepId": "a"}, roles="Engineer").expect(200)
        task = claim_one(worker, "a")
        assert task["attempt"] == 2
        worker.finish([task])
        worker.finish([claim_one(worker, "b")])
    engine.wait_status(run_id, "COMPLETED")
    assert engine.names(run_id)[2:8] == ["StepStarted a 1", "StepFailed a 1", "StepStarted a 2",
                                         "StepCompleted a 2", "StepStarted b 1", "StepCompleted b 1"]


def test_a_lost_worker_is_a_failed_attempt(engine):
    """The lease ends while it runs: worker_lost; its late finish changes nothing."""
    engine.put_plan("lost", {"stepId": "a", "maxAttempts": 2})
    run_id = engine.start("lost")
    with engine.worker() as worker:
        gone = claim_one(worker, "a")
        task = claim_one(worker, "a")
        assert task["attempt"] == 2 and task["task_id"] != gone["task_id"]
        late = worker.finish([gone], result={"late": True})[0]
        assert late == {"task_id": gone["task_id"], "ok": False, "code": "lease_lost"}
        worker.finish([task], result={"late": False})
    run = engine.wait_status(run_id, "COMPLETED")
    failed, = [r for r in engine.events(run_id) if r["eventType"] == "StepFailed"]
    assert failed["payload"]["reason"] == "worker_lost" and run["steps"][0]["result"] == {"late": False}


def test_a_released_task_costs_no_attempt(engine):
    """Nor does a lease that ends before the start."""
    engine.put_plan("release", "a")
    run_id = engine.start("release")
    with engine.worker() as worker:
        task, = worker.claim(1, wait_ms=20000)
        assert worker.release([task])[0]["ok"]
        task, = worker.claim(1, wait_ms=20000)
        again, = worker.claim(1, wait_ms=20000)  # the lease has to end first
        assert again["attempt"] == 1 and again["token"] != task["token"]
        assert worker.start([task])[0] == {"task_id": task["task_id"], "ok": False, "code": "lease_lost"}
        worker.release([again], delay_ms=100)
        assert not worker.claim(1)
        again, = worker.claim(1, wait_ms=20000)
        worker.start([again])
        assert worker.heartbeat([again], progress={"percent": 1})[0]["ok"]
        assert worker.release([again])[0]["code"] == "not_releasable"
        assert [worker.finish([again])[0]["ok"] for _ in range(3)] == [True] * 3
        assert worker.fail([again])[0]["code"] == "lease_lost"
    engine.wait_status(run_id, "COMPLETED")
    assert engine.names(run_id)[1:] == ["RunStarted", "StepStarted a 1", "StepCompleted a 1", "RunCompleted"]


def test_heartbeats_keep_a_step(engine):
    """Longer than its lease."""
    engine.put_plan("beat", "a")
    run_id = engine.start("beat")
    with engine.worker() as worker:
        task = claim_one(worker, "a")
        ends = [task["lease_expires_at"]]
        wait_for(lambda: ends.append(beat(worker, task)) or ends[-1] > ends[0], 20, "a longer lease")
        worker.finish([task])
    engine.wait_status(run_id, "COMPLETED")


def beat(worker, task):
    """One heartbeat: until when the lease holds."""
    result, = worker.heartbeat([task])
    assert result["ok"] and result["cancel"] is False
    return result["lease_expires_at"]


def test_the_built_in_runner_executes_steps_of_the_default_queue(engine):
    """The catalog of simulated work by config.work_kind, or nothing at all."""
    engine.put_plan("builtin", {"stepId": "a", "config": {"work_kind": "SUCCESS_FAST"}}, "b<a", "c<a",
                    {"stepId": "d", "dependsOn": ["b", "c"], "config": {"work_kind": "PAYLOAD_SMALL"}},
                    queue="default")
    run_id = engine.start("builtin")
    engine.wait_status(run_id, "COMPLETED")
    engine.put_plan("builtin-bad", {"stepId": "a", "config": {"work_kind": "FAIL_IMMEDIATE"}},
                    queue="default")
    failed = engine.start("builtin-bad")
    engine.wait_status(failed, "FAILED")
    engine.put_plan("builtin-none", {"stepId": "a", "config": {"work_kind": "NO_SUCH_KIND"}}, queue="default")
    engine.wait_status(engine.start("builtin-none"), "FAILED")


def test_a_broad_plan_runs_its_branches_side_by_side(engine):
    """A hundred steps between two: all ready at once, the last one only when all are done."""
    middle = [f"m{n}<first" for n in range(100)]
    engine.put_plan("broad", "first", *middle, {"stepId": "last", "dependsOn": [f"m{n}" for n in range(100)]})
    run_id = engine.start("broad")
    with engine.worker() as worker:
        worker.finish([claim_one(worker, "first")], result={"n": 5})
        tasks = worker.claim(256, wait_ms=20000)
        assert len(tasks) == 100 and all(t["payload"] == {"inputs": {"first": {"n": 5}}} for t in tasks)
        worker.start(tasks)
        worker.finish(tasks[:99])
        assert not worker.claim(1)
        worker.finish(tasks[99:], result={"me": 1})
        last = claim_one(worker, "last")
        assert len(last["payload"]["inputs"]) == 100
        assert last["payload"]["inputs"][tasks[99]["step_id"]] == {"me": 1}
        worker.finish([last])
    engine.wait_status(run_id, "COMPLETED")
    assert engine.run(run_id)["lastRunSeq"] == 3 + 2 * 102


def test_a_finish_of_another_form_is_refused(engine):
    """And a result that is too large fails the step."""
    engine.put_plan("large", "a")
    run_id = engine.start("large")
    with engine.worker() as worker:
        task = claim_one(worker, "a")
        wrong = {"tasks": [{"task_id": task["task_id"], "token": task["token"], "outcome": "maybe"}]}
        refused = worker.kept.call("POST", "/worker/v1/finish", wrong).expect(200)["results"][0]
        assert refused["code"] == "malformed"
        assert worker.finish([task], result={"x": "y" * 300000})[0]["ok"]
    run = engine.wait_status(run_id, "FAILED")
    assert run["steps"][0]["failure"]["error"]["code"] == "output_too_large"
    assert len(json.dumps(run)) < 5000


# ---- who may work

def test_a_token_of_role_worker_claims_its_tenants_steps_and_no_others(engine, server):
    """Nor may it touch another tenant's task by its id."""
    engine.put_plan("private", "a", queue="shared")
    run_id = engine.start("private")
    other = Engine(server, "acme-envious")
    with other.worker("shared") as thief, engine.worker("shared") as worker:
        assert not thief.claim(1)
        task, = worker.claim(1, wait_ms=20000)
        for verb in ("start", "heartbeat", "release"):
            assert thief.tell(verb, [{"task_id": task["task_id"],
                                      "token": task["token"]}])[0]["code"] == "lease_lost"
        assert thief.finish([task])[0]["code"] == "lease_lost"
        worker.start([task])
        worker.finish([task])
    engine.wait_status(run_id, "COMPLETED")
    for roles in ("Admin", "Engineer", "Engine", "Operator"):
        with Worker(server, engine.token(roles), "shared") as nobody:
            nobody.kept.call("POST", "/worker/v1/claim", {"worker_id": "w", "queues": ["shared"], "max": 1}
                             ).expect_problem(403, "AUTHZ_DENIED")


def test_a_client_whose_id_is_the_tenant_works_with_its_api_key(server):
    """Jobs and steps of one queue, from one claim."""
    client = server.new_client()
    engine = Engine(server, client.client_id)
    engine.put_plan("keyed", "a", "b<a", queue="mixed")
    run_id = engine.start("keyed")
    job = server.submit(client.api_key, queue="mixed")["job_id"]
    with Worker(server, client.api_key, "mixed") as worker:
        tasks = {t["kind"]: t for t in worker.claim(2, wait_ms=20000)}
        assert tasks["step"]["run_id"] == run_id and tasks["job"]["job_id"] == job
        worker.start(list(tasks.values()))
        worker.finish(list(tasks.values()), result={})
        worker.finish([claim_one(worker, "b")])
    engine.wait_status(run_id, "COMPLETED")
    assert server.job(client.api_key, job)["state"] == "SUCCEEDED"
    stranger = server.new_client()
    engine.start("keyed")
    with Worker(server, stranger.api_key, "mixed") as worker:
        assert not worker.claim(1)
    with Worker(server, engine.token("Worker"), "mixed") as worker:  # the tenant's token finds the same
        assert len(worker.claim(1, wait_ms=20000)) == 1


def test_a_worker_of_a_tenant_nobody_has_heard_of_waits_and_finds_nothing(server):
    """Until it exists."""
    engine = Engine(server, "acme-unborn")
    with engine.worker("early") as worker:
        assert not worker.claim(1, wait_ms=50)
        engine.put_plan("early", "a", queue="early")
        engine.start("early")
        assert len(worker.claim(1, wait_ms=20000)) == 1


def test_runs_outlive_a_restart_and_a_kill(fresh_weir):
    """Leases, params and what is ready are as before; no event is lost or doubled."""
    weir = fresh_weir(settings={"queue.lease_ms": 60000})
    engine = Engine(weir)
    engine.put_plan("outlive", "a", "b<a", "c<b")
    run_id = engine.start("outlive", params={"x": 1})
    with engine.worker() as worker:
        task = claim_one(worker, "a")
        weir.restart()
        worker.close()  # the connection ended with the server
        assert worker.finish([task], result={"n": 1})[0]["ok"]
    weir.kill9()
    weir.start()
    with engine.worker() as worker:
        task = claim_one(worker, "b")
        assert task["payload"] == {"inputs": {"a": {"n": 1}}} and task["definition"]["params"] == {"x": 1}
        weir.kill9()
        weir.start()
    with engine.worker() as worker:
        assert worker.finish([task])[0]["ok"]
        worker.finish([claim_one(worker, "c")])
    engine.wait_status(run_id, "COMPLETED")
    assert engine.names(run_id) == ["RunQueued", "RunStarted", "StepStarted a 1", "StepCompleted a 1",
                                    "StepStarted b 1", "StepCompleted b 1", "StepStarted c 1",
                                    "StepCompleted c 1", "RunCompleted"]
    assert engine.call("GET", path_of(run_id)).status == 200
    weir.stop()
    done = weir.cli("verify")
    assert done.returncode == 0, done.stdout


def test_a_step_with_a_timeout_of_its_own_fails_and_is_tried_again(engine):
    """`timeoutMs` is told to the worker; an attempt that takes longer has failed as timed out."""
    engine.put_plan("slow", {"stepId": "a", "timeoutMs": 300, "maxAttempts": 2}, queue="slow.queue")
    run_id = engine.start("slow")
    with engine.worker("slow.queue") as worker:
        first = claim_one(worker, "a")
        assert first["max_runtime_ms"] == 300
        second = claim_one(worker, "a")  # comes by itself, once the first is over its time
        assert second["attempt"] == 2
        worker.finish([second])
    engine.wait_status(run_id, "COMPLETED")
    failed, = (e for e in engine.events(run_id) if e["eventType"] == "StepFailed")
    assert failed["payload"]["reason"] == "timeout" and failed["payload"]["error"]["retryable"] is True


def test_a_step_with_a_delay_is_claimed_only_when_it_is_over(engine):
    """`delayMs` counts from the end of the last dependency, by the times of the run's own events."""
    engine.put_plan("late", "a", {"stepId": "b", "dependsOn": ["a"], "delayMs": 700}, queue="late.queue")
    run_id = engine.start("late")
    with engine.worker("late.queue") as worker:
        worker.finish([claim_one(worker, "a")])
        assert worker.claim(1, wait_ms=0) == []
        worker.finish([claim_one(worker, "b")])
    steps = {s["stepId"]: s for s in engine.wait_status(run_id, "COMPLETED")["steps"]}
    waited = parse_time(steps["b"]["startedAt"]) - parse_time(steps["a"]["endedAt"])
    assert waited.total_seconds() >= 0.7
