"""Signals over HTTP: what each of the eleven answers and does. Every signal in every state of run and step:
tests/unit/engine/test_signals.c."""
import uuid

import pytest

from harness.engine_calls import DESTRUCTIVE, UNLIMITED, Engine, Outside

QUICK = {**UNLIMITED, "jobs.retry_base_ms": 20, "jobs.retry_cap_ms": 40, "engine.cancel_grace_ms": 400}


@pytest.fixture(name="server", scope="module")
def server_of_module(module_weir):
    """No limits, short pauses."""
    return module_weir(settings=QUICK)


@pytest.fixture(name="engine", scope="module")
def engine_of_module(server):
    """A tenant of its own for this module."""
    return Engine(server, "acme-signals")


class Case:
    """A run of `plan` and a worker of a queue that only this run has: steps are taken to where they shall
    be."""

    def __init__(self, engine, *steps, **fields):
        self.queue = "q" + uuid.uuid4().hex[:12]
        self.engine = engine
        plan_id = "plan-" + self.queue
        engine.put_plan(plan_id, *steps, queue=self.queue, onFailure="wait")
        self.run_id = engine.start(plan_id, **fields)
        self.worker = engine.worker(self.queue)
        self.tasks = {}

    def begin(self, *steps):
        """These are claimed and started."""
        while not set(steps) <= set(self.tasks):
            tasks = self.worker.claim(len(steps), wait_ms=20000)
            assert tasks, f"no task for {steps}"
            assert all(r["ok"] for r in self.worker.start(tasks))
            self.tasks.update({t["step_id"]: t for t in tasks})
        return [self.tasks.pop(step) for step in steps]

    def succeed(self, *steps, **fields):
        """These are done."""
        for step in steps:
            assert self.worker.finish(self.begin(step), **fields)[0]["ok"]
        return self

    def fail(self, *steps, retryable=False):
        """These have failed."""
        for step in steps:
            assert self.worker.fail(self.begin(step), retryable=retryable)[0]["ok"]
        return self

    def signal(self, kind, payload=None, **fields):
        """One to the run."""
        reason = {"reason": "because"} if kind in DESTRUCTIVE else {}
        return self.engine.signal(self.run_id, kind, payload, **{**reason, **fields})

    def refused(self, code, kind, payload=None):
        """It is refused with this code; nothing changes; the record tells of it."""
        before = self.engine.run(self.run_id)
        signal_id = str(uuid.uuid4())
        problem = self.signal(kind, payload, signal_id=signal_id).expect_problem(409, code)
        assert self.engine.run(self.run_id) == before
        record = self.engine.decision(self.run_id, signal_id)
        assert record["policyDecisionId"] == problem["policyDecisionId"] and record["decision"] == "ACCEPTED"
        assert record["engineResult"] == {"status": "failure", "errorCode": code}
        return problem

    def at(self):
        """The run's status."""
        return self.engine.status(self.run_id)

    def step(self, name):
        """(status, attempt) of a step."""
        return self.engine.steps(self.run_id)[name]

    def names(self):
        """What happened."""
        return self.engine.names(self.run_id)


@pytest.fixture(name="case")
def case_factory(engine):
    """Case(...) with the module's engine; workers are closed at the end."""
    made = []

    def make(*steps, **fields):
        made.append(Case(engine, *steps, **fields))
        return made[-1]

    yield make
    for one in made:
        one.worker.close()


# ---- PAUSE and RESUME

def test_pause_stops_new_steps_and_lets_running_ones_end(case):
    """[SIG-002] [RUN-061] No new StepStarted; the running one completes; PAUSED with the reason."""
    run = case("a", "b<a", "c")
    task, = run.begin("a")
    answer = run.signal("PAUSE", {"reason": "lunch"}, roles="Operator").expect(200)
    assert answer["decision"] == "ACCEPTED" and answer["engineResult"] == {"status": "success"}
    assert run.at() == "PAUSED" and not run.worker.claim(5)
    run.worker.heartbeat([task])
    assert run.worker.finish([task])[0]["ok"]
    assert run.step("a") == ("SUCCESS", 1) and not run.worker.claim(5)
    assert run.names()[2:] == ["StepStarted a 1", "RunPaused", "StepCompleted a 1"] or \
        run.names()[2:] == ["StepStarted a 1", "StepStarted c 1", "RunPaused", "StepCompleted a 1"]
    paused, = [r for r in run.engine.events(run.run_id) if r["eventType"] == "RunPaused"]
    assert paused["payload"] == {"reason": "lunch"}


def test_resume_goes_on_and_a_second_cycle_is_another_event(case):
    """[SIG-003] [SIG-028] In the order they were received; cycles are numbered (AR-06)."""
    run = case("a", "b<a")
    for n in (1, 2, 3):
        run.signal("PAUSE", {"reason": f"lunch {n}"}, roles="Operator").expect(200)
        assert run.at() == "PAUSED" and not run.worker.claim(1)
        run.signal("RESUME", roles="Operator").expect(200)
        assert run.at() == "RUNNING"
    run.succeed("a", "b")
    run.engine.wait_status(run.run_id, "COMPLETED")
    events = [r for r in run.engine.events(run.run_id) if r["eventType"] in ("RunPaused", "RunResumed")]
    assert [(r["eventType"], r["logicalAttemptId"]) for r in events] == [
        (kind, n) for n in (1, 2, 3) for kind in ("RunPaused", "RunResumed")]
    assert [d["signalType"] for d in reversed(run.engine.decisions(run.run_id))] == ["PAUSE", "RESUME"] * 3


# ---- CANCEL and EMERGENCY_STOP

def test_cancel_tells_running_steps_and_waits_for_them(case):
    """[SIG-004] [SIG-016] [SIG-017] The heartbeat says so; the step ends cleanly before RunCancelled."""
    run = case("a", "b", "c<a")
    tasks = run.begin("a")
    run.signal("CANCEL", {"reason": "wrong day"}, roles="Operator").expect(200)
    assert run.at() == "RUNNING" and run.engine.run(run.run_id)["ending"] is True
    assert not run.worker.claim(5)
    beat, = run.worker.heartbeat(tasks)
    assert beat["ok"] and beat["cancel"] is True
    assert run.worker.finish(tasks, result={"done": "anyway"})[0]["ok"]
    assert run.at() == "CANCELLED"
    assert run.names()[-2:] == ["StepCompleted a 1", "RunCancelled"]
    assert run.engine.events(run.run_id)[-1]["payload"] == {"reason": "wrong day"}
    assert run.step("c") == ("PENDING", 0)


def test_emergency_stop_ends_the_run_whatever_its_steps_do(case):
    """[SIG-012] [SIG-018] [SIG-019] RunCancelled says so; one P1 alert names the run and the actor; what is
    sent to the run that has ended is refused."""
    run = case("a", "b<a")
    tasks = run.begin("a")
    answer = run.signal("EMERGENCY_STOP", {"reason": "fire", "forceKill": True}, sub="ada").expect(200)
    assert run.at() == "CANCELLED"
    last = run.engine.events(run.run_id)[-1]
    assert last["eventType"] == "RunCancelled"
    assert last["payload"] == {"reason": "fire", "emergencyStop": True, "forceKill": True}
    assert run.step("a") == ("FAILED", 1) and run.worker.finish(tasks)[0]["ok"] is False
    alert, = run.engine.alerts(run.run_id)
    assert alert["severity"] == "P1" and alert["category"] == "destructive_signal"
    assert alert["runId"] == run.run_id and alert["actorId"] == "ada"
    assert alert["signalDecisionId"] == answer["signalDecisionId"] and alert["eventId"] is None
    run.refused("RUN_TERMINAL", "CANCEL")


# ---- steps

def test_retry_step_gives_a_failed_step_a_new_attempt(case):
    """[SIG-005] Which the step needs to be FAILED for: neither before its end nor a success."""
    run = case("a", "b<a")
    run.refused("STEP_NOT_TERMINAL", "RETRY_STEP", {"stepId": "a", "force": True})
    run.fail("a")
    assert run.step("a") == ("FAILED", 1)
    run.signal("RETRY_STEP", {"stepId": "a"}, roles="Engineer").expect(200)
    run.succeed("a").refused("STEP_TERMINAL", "RETRY_STEP", {"stepId": "a"})
    run.succeed("b").engine.wait_status(run.run_id, "COMPLETED")
    assert run.step("a") == ("SUCCESS", 2) and run.step("b") == ("SUCCESS", 1)


def test_skip_step_satisfies_what_depends_on_it(case):
    """[SIG-010] PENDING to SKIPPED; its dependants see null."""
    run = case("a", "b<a")
    run.signal("SKIP_STEP", {"stepId": "a", "reason": "known"}, roles="Engineer").expect(200)
    assert run.step("a") == ("SKIPPED", 1) and run.at() == "RUNNING"
    task, = run.begin("b")
    assert task["payload"] == {"inputs": {"a": None}}
    run.worker.finish([task])
    run.engine.wait_status(run.run_id, "COMPLETED")
    skipped = run.engine.events(run.run_id)[2]
    assert skipped["eventType"] == "StepSkipped" and skipped["payload"] == {"reason": "known"}


def test_changes_are_seen_by_the_task_that_is_given_next(case):
    """[SIG-007] [SIG-008] [SIG-011] Params as RFC 7396 merges them, an override once, a target from then on;
    the step that runs keeps what it was given."""
    run = case({"stepId": "a", "maxAttempts": 3}, params={"keep": 1, "drop": 2, "deep": {"x": 1, "y": 2}})
    run.signal("INJECT_OVERRIDE", {"stepId": "a", "override": {"speed": "slow"}}).expect(200)
    run.signal("UPDATE_TARGET", {"stepId": "a", "newTarget": {"schema": "blue"}}).expect(200)
    task, = run.begin("a")
    run.signal("UPDATE_PARAMS",
               {"params": {"drop": None, "deep": {"x": 9, "y": None}, "new": [1]}}).expect(200)
    given = task["definition"]
    assert given["params"] == {"keep": 1, "drop": 2, "deep": {"x": 1, "y": 2}}
    assert given["override"] == {"speed": "slow"} and given["target"] == {"schema": "blue"}
    run.worker.fail([task])
    again, = run.begin("a")
    given = again["definition"]
    assert again["attempt"] == 2 and given["params"] == {"keep": 1, "deep": {"x": 9}, "new": [1]}
    assert given["override"] is None and given["target"] == {"schema": "blue"}
    assert run.engine.run(run.run_id)["params"] == given["params"]


# ---- RETRY_RUN

def test_retry_run_is_a_new_run_and_leaves_the_old_one_as_it_is(case):
    """[SIG-006] [SIG-021] [SIG-022] [SIG-023] A completed one needs force (AS-07)."""
    run = case("a", params={"x": 1})
    run.succeed("a").engine.wait_status(run.run_id, "COMPLETED")
    run.refused("RUN_TERMINAL", "RETRY_RUN", {"force": False})
    before = run.engine.run(run.run_id), run.engine.events(run.run_id)
    signal_id = str(uuid.uuid4())
    answer = run.signal("RETRY_RUN", {"force": True}, signal_id=signal_id, roles="Engineer").expect(200)
    new_id = answer["engineResult"]["newRunId"]
    assert answer["engineResult"]["status"] == "success" and new_id != run.run_id
    assert (run.engine.run(run.run_id), run.engine.events(run.run_id)) == before
    new = run.engine.run(new_id)
    assert new["metadata"]["originalRunId"] == run.run_id and new["params"] == {"x": 1}
    assert new["status"] == "PENDING" and new["planId"] == before[0]["planId"]
    again = run.signal("RETRY_RUN", {"force": True}, signal_id=signal_id, roles="Engineer")
    assert again.expect(200) == answer and again.headers["idempotency-replayed"] == "true"
    assert run.engine.decision(run.run_id, signal_id)["engineResult"] == answer["engineResult"]
    run.succeed("a")
    run.engine.wait_status(new_id, "COMPLETED")
    assert run.engine.names(new_id)[:2] == ["RunQueued", "RunStarted"]


# ---- ESCALATE_ALERT

def test_the_system_escalates_an_alert_and_may_nothing_else(case):
    """[SIG-009] [SIG-024] [SIG-025] [SIG-027] [SIG-095] Over the Unix socket; in the run's stream with level
    and note."""
    run, level = case("a"), "CRITICAL"
    pause = {"signalId": str(uuid.uuid4()), "signalType": "PAUSE", "payload": {}}
    run.engine.system("POST", f"/runs/{run.run_id}/signals", pause).expect_problem(403, "AUTHZ_DENIED")
    body = {"signalId": str(uuid.uuid4()), "signalType": "ESCALATE_ALERT",
            "payload": {"level": level, "note": "hot"}}
    before = run.engine.run(run.run_id)
    answer = run.engine.system("POST", f"/runs/{run.run_id}/signals", body).expect(200)
    assert answer["decision"] == "ACCEPTED"
    event = run.engine.events(run.run_id)[-1]
    assert event["eventType"] == "ALERT_ESCALATED" and event["payload"] == {"level": level, "note": "hot"}
    after = run.engine.run(run.run_id)
    assert {**after, "lastRunSeq": 0} == {**before, "lastRunSeq": 0}
    alert, = run.engine.alerts(run.run_id, "escalation")
    assert alert["severity"] == level and alert["category"] == "escalation" and alert["note"] == "hot"
    assert alert["eventId"] == event["eventId"] and alert["runSeq"] == event["runSeq"]
    record = run.engine.decision(run.run_id, body["signalId"])
    assert record["audit"]["actorRole"] == "System" and record["audit"]["tenantId"] == run.engine.tenant
    again = run.engine.system("POST", f"/runs/{run.run_id}/signals", body)
    assert again.expect(200) == answer and len(run.engine.alerts(run.run_id, "escalation")) == 1


# ---- runs of engines outside

def test_an_engine_outside_finds_what_it_has_to_process(engine):
    """?pending=true, oldest of it still there until :processed; the result stands in the record."""
    run = Outside(engine)
    run.tell("RunStarted", "StepStarted a 1")
    pause, cancel = str(uuid.uuid4()), str(uuid.uuid4())
    answer = engine.signal(run.run_id, "PAUSE", signal_id=pause).expect(200)
    assert answer["decision"] == "ACCEPTED" and answer["engineResult"] is None
    engine.signal(run.run_id, "CANCEL", signal_id=cancel).expect(200)
    assert engine.status(run.run_id) == "RUNNING"
    waiting = engine.decisions(run.run_id, "?pending=true")
    assert {d["signalId"] for d in waiting} == {pause, cancel}
    done = f"/runs/{run.run_id}/signals/{pause}:processed"
    engine.call("POST", done, {"status": "success"}, roles="Operator").expect_problem(403, "AUTHZ_DENIED")
    engine.call("POST", done, {"status": "success"}, roles="Engine").expect(200)
    engine.call("POST", done, {"status": "success"}, roles="Engine").expect(200)
    engine.call("POST", done, {"status": "failure"}, roles="Engine").expect_problem(409, "SIGNAL_DUPLICATE")
    engine.call("POST", f"/runs/{run.run_id}/signals/{cancel}:processed",
                {"status": "failure", "errorCode": "STEP_NOT_TERMINAL"}, roles="Engine").expect(200)
    assert not engine.decisions(run.run_id, "?pending=true") and len(engine.decisions(run.run_id)) == 2
    record = engine.decision(run.run_id, pause)
    assert record["engineResult"] == {"status": "success"} and record["engineProcessedAt"]
    assert engine.decision(run.run_id, cancel)["engineResult"] == {
        "status": "failure", "errorCode": "STEP_NOT_TERMINAL"}
    assert engine.signal(run.run_id, "PAUSE",
                         signal_id=pause).expect(200)["engineResult"] == {"status": "success"}


def test_a_signal_nobody_sent_cannot_be_processed(engine):
    """Nor one that was rejected."""
    run = Outside(engine)
    run.tell("RunStarted")
    path = f"/runs/{run.run_id}/signals/"
    engine.call("POST", path + f"{uuid.uuid4()}:processed", {"status": "success"},
                roles="Engine").expect_problem(
        404, "SIGNAL_NOT_FOUND")
    denied = str(uuid.uuid4())
    engine.signal(run.run_id, "RETRY_RUN", signal_id=denied, roles="Operator").expect_problem(
        403, "AUTHZ_DENIED")
    answer = engine.call("POST", path + f"{denied}:processed", {"status": "success"}, roles="Engine")
    assert answer.status == 409, answer
    for body in ({}, {"status": "maybe"}, {"status": "success", "more": 1}):
        engine.call("POST", path + f"{denied}:processed", body, roles="Engine").expect_problem(
            400, "RFA_REQUEST_MALFORMED")
