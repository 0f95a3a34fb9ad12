"""Runs that Weir executes, as workers and readers see them. What becomes of steps and attempts:
tests/unit/engine/test_execution.c."""
import pytest

from harness.engine_calls import Engine
from harness.worker_calls import Worker

FAST = {"jobs.retry_base_ms": 20, "jobs.retry_cap_ms": 40}


@pytest.fixture(name="server", scope="module")
def fast_server(module_weir):
    """Short pauses."""
    return module_weir(settings=FAST)


@pytest.fixture(name="engine", scope="module")
def engine_of_module(server):
    """A tenant of its own for this module."""
    return Engine(server, "acme-work")


def claim_one(worker, step=None):
    """The next task, with patience; started."""
    task, = worker.claim(1, wait_ms=20000)
    assert step is None or task["step_id"] == step, task
    assert worker.start([task])[0]["ok"]
    return task


def test_a_task_of_a_step_carries_all_a_worker_needs(engine):
    """The keys of interfaces.md, no other; inputs are results of what it depends on."""
    engine.put_plan("task", {"stepId": "a", "config": {"table": "orders"}, "timeoutMs": 30000}, "b",
                    "c<a,b", queue="task.queue")
    run_id = engine.start("task", params={"day": "2026-11-16"})
    with engine.worker("task.queue") as worker:
        first = worker.claim(10, wait_ms=20000)
        assert [t["step_id"] for t in first] == ["a", "b"]
        task = first[0]
        assert set(task) == {"task_id", "token", "kind", "run_id", "step_id", "queue", "attempt",
                             "lease_expires_at", "max_runtime_ms", "definition", "payload", "traceparent"}
        assert task["kind"] == "step" and task["run_id"] == run_id and task["queue"] == "task.queue"
        assert task["attempt"] == 1 and task["payload"] == {"inputs": {}} and task["max_runtime_ms"] == 30000
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


def test_a_failure_that_says_no_more_is_tried_again(engine):
    """Only retryable false ends the attempts; whoever leaves it out has not said so."""
    engine.put_plan("terse", {"stepId": "a", "maxAttempts": 3})
    run_id, vague = engine.start("terse"), {"error": {"code": "failed", "message": "no word of another try"}}
    with engine.worker() as worker:
        for n in (1, 2, 3):
            task = claim_one(worker, "a")
            assert task["attempt"] == n
            worker.finish([task], "failure", **(vague if n > 1 else {}))
    engine.wait_status(run_id, "FAILED")
    failed = [r for r in engine.events(run_id) if r["eventType"] == "StepFailed"]
    assert [r["logicalAttemptId"] for r in failed] == [1, 2, 3]
    assert {(r["payload"]["reason"], r["payload"]["error"]["retryable"]) for r in failed} == {
        ("failed", True)}


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
    other_client = server.new_client()
    engine.start("keyed")
    with Worker(server, other_client.api_key, "mixed") as worker:
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
