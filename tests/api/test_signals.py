"""Signals: what each of the eleven does, and what the state of run and step forbids."""
import json
import uuid

import pytest

from harness.engine_calls import DESTRUCTIVE, SIGNALS, UNLIMITED, Engine, Outside
from harness.weir_server import wait_for

QUICK = {**UNLIMITED, "jobs.retry_base_ms": 20, "jobs.retry_cap_ms": 40, "engine.cancel_grace_ms": 400}


@pytest.fixture(name="server", scope="module")
def server_of_module(module_weir):
    """No limits, short pauses."""
    return module_weir(settings=QUICK)


@pytest.fixture(name="engine", scope="module")
def engine_of_module(server):
    """A tenant with the plans of these tests."""
    engine = Engine(server, "acme-signals")
    engine.put_plan("chain", "a", "b<a")
    engine.put_plan("wait", "a", "b<a", onFailure="wait")
    engine.put_plan("tries", {"stepId": "a", "maxAttempts": 9}, onFailure="wait")
    return engine


class Case:
    """A run of `plan` and a worker of a queue that only this run has: steps are taken to where they shall
    be."""

    def __init__(self, engine, *steps, **fields):
        self.queue = "q" + uuid.uuid4().hex[:12]
        self.engine = engine
        plan_id = "plan-" + self.queue
        engine.put_plan(plan_id, *(steps or ("a", "b<a")), queue=self.queue,
                        **{"onFailure": "wait", **{k: v for k, v in fields.items() if k == "onFailure"}})
        self.run_id = engine.start(plan_id, **{k: v for k, v in fields.items() if k != "onFailure"})
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

    def refused(self, code, kind, payload=None, status=409):
        """It is refused with this code; nothing changes; the record tells of it."""
        before = self.engine.run(self.run_id)
        signal_id = str(uuid.uuid4())
        problem = self.signal(kind, payload, signal_id=signal_id).expect_problem(status, code)
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


def test_pausing_what_is_paused_and_resuming_what_runs_is_fine(case):
    """Accepted, success, no event (AS-17)."""
    run = case("a")
    run.begin("a")
    assert run.signal("RESUME").expect(200)["engineResult"] == {"status": "success"}
    run.signal("PAUSE").expect(200)
    before = run.names()
    assert run.signal("PAUSE").expect(200)["engineResult"] == {"status": "success"}
    assert run.names() == before and run.at() == "PAUSED"


def test_a_run_that_ends_while_paused_ends_when_it_is_resumed(case):
    """The last step completes in between."""
    run = case("a")
    tasks = run.begin("a")
    run.signal("PAUSE").expect(200)
    run.worker.finish(tasks)
    assert run.at() == "PAUSED"
    run.signal("RESUME").expect(200)
    assert run.at() == "COMPLETED" and run.names()[-2:] == ["RunResumed", "RunCompleted"]


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


def test_cancel_closes_what_does_not_listen_after_its_grace(case):
    """[SIG-017] StepFailed with reason cancelled, then RunCancelled; the late finish is refused."""
    run = case("a")
    tasks = run.begin("a")
    run.signal("CANCEL").expect(200)
    run.engine.wait_status(run.run_id, "CANCELLED")
    assert run.names()[-2:] == ["StepFailed a 1", "RunCancelled"]
    assert run.engine.events(run.run_id)[-2]["payload"]["reason"] == "cancelled"
    assert run.worker.finish(tasks)[0]["ok"] is False and run.step("a") == ("FAILED", 1)


@pytest.mark.parametrize("paused", [False, True])
def test_cancel_of_what_does_nothing_ends_at_once(case, paused):
    """[SIG-017] From PENDING and from PAUSED; twice is no second event."""
    run = case("a")
    if paused:
        run.signal("PAUSE").expect(200)
    first = run.signal("CANCEL").expect(200)
    assert first["engineResult"] == {"status": "success"} and run.at() == "CANCELLED"
    run.refused("RUN_TERMINAL", "CANCEL")
    assert run.names().count("RunCancelled") == 1 and not run.worker.claim(1)


@pytest.mark.parametrize("force", [True, False])
def test_emergency_stop_ends_the_run_whatever_its_steps_do(case, force):
    """[SIG-012] [SIG-018] [SIG-019] At once with forceKill, after a second without; RunCancelled says so; one
    P1 alert names the run and the actor."""
    run = case("a", "b<a")
    tasks = run.begin("a")
    answer = run.signal("EMERGENCY_STOP", {"reason": "fire", "forceKill": force}, sub="ada").expect(200)
    if force:
        assert run.at() == "CANCELLED"
    run.engine.wait_status(run.run_id, "CANCELLED")
    last = run.engine.events(run.run_id)[-1]
    assert last["eventType"] == "RunCancelled"
    assert last["payload"] == {"reason": "fire", "emergencyStop": True, "forceKill": force}
    assert run.step("a") == ("FAILED", 1) and run.worker.finish(tasks)[0]["ok"] is False
    alert, = run.engine.alerts(run.run_id)
    assert alert["severity"] == "P1" and alert["category"] == "destructive_signal"
    assert alert["runId"] == run.run_id and alert["actorId"] == "ada"
    assert alert["signalDecisionId"] == answer["signalDecisionId"] and alert["eventId"] is None


def test_an_emergency_stop_overtakes_a_cancel(case):
    """That is still waiting for a step."""
    run = case("a", onFailure="fail")
    run.begin("a")
    run.signal("CANCEL").expect(200)
    run.signal("EMERGENCY_STOP", {"reason": "now", "forceKill": True}).expect(200)
    assert run.at() == "CANCELLED" and run.names().count("RunCancelled") == 1
    assert run.engine.events(run.run_id)[-1]["payload"]["emergencyStop"] is True


# ---- steps

def test_retry_step_gives_a_failed_step_a_new_attempt(case):
    """[SIG-005] Which the step needs to be FAILED for."""
    run = case("a", "b<a").fail("a")
    assert run.step("a") == ("FAILED", 1)
    run.signal("RETRY_STEP", {"stepId": "a"}, roles="Engineer").expect(200)
    run.succeed("a", "b")
    run.engine.wait_status(run.run_id, "COMPLETED")
    assert run.step("a") == ("SUCCESS", 2) and run.step("b") == ("SUCCESS", 1)


def test_what_the_state_of_a_step_forbids(case):
    """[SIG-029] [SIG-030] [SIG-031] [SIG-126] [SIG-127] [SIG-128] AS-08, AS-14 and AS-25 as a table: signal,
    step status, code."""
    run = case("pending<running", "running", "success", "failed", "skipped")
    run.signal("SKIP_STEP", {"stepId": "skipped"}).expect(200)
    run.succeed("success").fail("failed").begin("running")
    states = {name: run.step(name)[0] for name in ("pending", "running", "success", "failed", "skipped")}
    assert states == {name: name.upper() for name in states}
    more = {"RETRY_STEP": {}, "SKIP_STEP": {}, "INJECT_OVERRIDE": {"override": {}},
            "UPDATE_TARGET": {"newTarget": {}}}
    table = {("RETRY_STEP", "pending"): "STEP_NOT_TERMINAL", ("RETRY_STEP", "running"): "STEP_NOT_TERMINAL",
             ("RETRY_STEP", "success"): "STEP_TERMINAL", ("RETRY_STEP", "skipped"): "STEP_TERMINAL",
             ("SKIP_STEP", "running"): "STEP_NOT_TERMINAL", ("SKIP_STEP", "success"): "STEP_TERMINAL",
             ("SKIP_STEP", "failed"): "STEP_TERMINAL", ("SKIP_STEP", "skipped"): "STEP_TERMINAL"}
    for kind in ("INJECT_OVERRIDE", "UPDATE_TARGET"):
        table.update({(kind, "running"): "STEP_NOT_TERMINAL", (kind, "success"): "STEP_TERMINAL",
                      (kind, "skipped"): "STEP_TERMINAL"})
        for step in ("pending", "failed"):
            run.signal(kind, {"stepId": step, **more[kind]}).expect(200)
    for (kind, step), code in table.items():
        run.refused(code, kind, {"stepId": step, **more[kind]})
    run.refused("STEP_NOT_TERMINAL", "RETRY_RUN")


def test_force_lifts_no_rule_of_state(case):
    """RETRY_STEP with force on what is not FAILED."""
    run = case("a", "b<a")
    run.begin("a")
    run.refused("STEP_NOT_TERMINAL", "RETRY_STEP", {"stepId": "a", "force": True})


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


def test_a_run_whose_steps_are_all_skipped_is_completed(case):
    """Nobody has to work."""
    run = case("a", "b<a")
    run.signal("SKIP_STEP", {"stepId": "b"}).expect(200)
    run.signal("SKIP_STEP", {"stepId": "a"}).expect(200)
    assert run.at() == "COMPLETED"
    assert run.names() == ["RunQueued", "RunStarted", "StepSkipped b 1", "StepSkipped a 1", "RunCompleted"]


def test_an_unknown_step_is_an_invalid_payload_and_leaves_no_record(case):
    """AS-11, AS-09: the signalId is free for the corrected one."""
    run = case("a", "b<a")
    signal_id = str(uuid.uuid4())
    run.signal("SKIP_STEP", {"stepId": "ghost"}, signal_id=signal_id).expect_problem(
        400, "SIGNAL_INVALID_PAYLOAD")
    run.engine.call("GET", f"/runs/{run.run_id}/signals/{signal_id}").expect_problem(404, "SIGNAL_NOT_FOUND")
    run.signal("SKIP_STEP", {"stepId": "b"}, signal_id=signal_id).expect(200)


# ---- changes that the next task sees

def test_update_params_is_merged_and_seen_by_later_steps(case):
    """[SIG-007] RFC 7396; the step that runs keeps what it was given."""
    run = case("a", "b<a", params={"keep": 1, "drop": 2, "deep": {"x": 1, "y": 2}})
    task, = run.begin("a")
    run.signal("UPDATE_PARAMS",
               {"params": {"drop": None, "deep": {"x": 9, "y": None}, "new": [1]}}).expect(200)
    assert task["definition"]["params"] == {"keep": 1, "drop": 2, "deep": {"x": 1, "y": 2}}
    run.worker.finish([task])
    later, = run.begin("b")
    assert later["definition"]["params"] == {"keep": 1, "deep": {"x": 9}, "new": [1]}
    assert run.engine.run(run.run_id)["params"] == later["definition"]["params"]


def test_an_override_holds_for_the_next_attempt_alone(case):
    """[SIG-008]"""
    run = case({"stepId": "a", "maxAttempts": 3})
    run.signal("INJECT_OVERRIDE", {"stepId": "a", "override": {"speed": "slow"}}).expect(200)
    task, = run.begin("a")
    assert task["definition"]["override"] == {"speed": "slow"}
    run.worker.fail([task])
    again, = run.begin("a")
    assert again["attempt"] == 2 and again["definition"]["override"] is None


def test_a_target_holds_from_then_on(case):
    """[SIG-011]"""
    run = case({"stepId": "a", "maxAttempts": 3}, "b")
    run.signal("UPDATE_TARGET", {"stepId": "a", "newTarget": {"schema": "blue"}}).expect(200)
    one, two = run.begin("a", "b")
    assert one["definition"]["target"] == {"schema": "blue"} and two["definition"]["target"] is None
    run.worker.fail([one])
    again, = run.begin("a")
    assert again["definition"]["target"] == {"schema": "blue"}


@pytest.mark.parametrize("kind, member", [("INJECT_OVERRIDE", "override"), ("UPDATE_TARGET", "newTarget"),
                                          ("UPDATE_PARAMS", "params")])
def test_what_tasks_are_given_has_a_bound(case, kind, member):
    """jobs.payload_max_bytes, as it is; one byte more is refused, and what was there stays."""
    run, step = case("a"), {} if kind == "UPDATE_PARAMS" else {"stepId": "a"}
    large = {"x": "y" * (262144 - len('{"x": ""}'))}
    assert len(json.dumps(large)) == 262144
    run.signal(kind, {**step, member: large}).expect(200)
    run.refused("SIGNAL_INVALID_PAYLOAD", kind, {**step, member: {"x": large["x"] + "yy"}}, 400)
    task, = run.begin("a")
    assert task["definition"][{"newTarget": "target"}.get(member, member)] == large


# ---- RETRY_RUN

@pytest.mark.parametrize("how", ["FAILED", "CANCELLED", "COMPLETED"])
def test_retry_run_is_a_new_run_and_leaves_the_old_one_as_it_is(case, how):
    """[SIG-006] [SIG-021] [SIG-022] [SIG-023] A completed one needs force (AS-07)."""
    run = case("a", onFailure="fail", params={"x": 1})
    if how == "FAILED":
        run.fail("a")
    elif how == "COMPLETED":
        run.succeed("a")
        run.refused("RUN_TERMINAL", "RETRY_RUN")
        run.refused("RUN_TERMINAL", "RETRY_RUN", {"force": False})
    else:
        run.signal("CANCEL").expect(200)
    run.engine.wait_status(run.run_id, how)
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


# ---- ended runs

@pytest.mark.parametrize("how", ["COMPLETED", "FAILED", "CANCELLED"])
def test_an_ended_run_refuses_all_but_two(case, how):
    """[SIG-032] [SIG-033] [SIG-126] RUN_TERMINAL; ESCALATE_ALERT of the system is allowed and moves
    nothing."""
    run = case("a", onFailure="fail")
    if how == "CANCELLED":
        run.signal("CANCEL").expect(200)
    else:
        (run.succeed if how == "COMPLETED" else run.fail)("a")
    run.engine.wait_status(run.run_id, how)
    for kind, payload in SIGNALS.items():
        if kind not in ("RETRY_RUN", "ESCALATE_ALERT"):
            run.refused("RUN_TERMINAL", kind, payload)
    body = {"signalId": str(uuid.uuid4()), "signalType": "ESCALATE_ALERT", "payload": {"level": "P1"}}
    run.engine.system("POST", f"/runs/{run.run_id}/signals", body).expect(200)
    assert run.at() == how and run.names()[-1] == "ALERT_ESCALATED"


# ---- ESCALATE_ALERT

@pytest.mark.parametrize("level", ["INFO", "WARNING", "CRITICAL", "P1"])
def test_the_system_escalates_an_alert(case, level):
    """[SIG-009] [SIG-024] [SIG-025] [SIG-027] Over the Unix socket; in the run's stream with level and
    note."""
    run = case("a")
    body = {"signalId": str(uuid.uuid4()), "signalType": "ESCALATE_ALERT",
            "payload": {"level": level, "note": "hot"}}
    before = run.engine.run(run.run_id)
    answer = run.engine.system("POST", f"/runs/{run.run_id}/signals", body).expect(200)
    assert answer["decision"] == "ACCEPTED"
    event = run.engine.events(run.run_id)[-1]
    assert event["eventType"] == "ALERT_ESCALATED" and event["payload"] == {"level": level, "note": "hot"}
    after = run.engine.run(run.run_id)
    assert {**after, "lastRunSeq": 0} == {**before, "lastRunSeq": 0}
    alert, = run.engine.alerts(run.run_id)
    assert alert["severity"] == level and alert["category"] == "escalation" and alert["note"] == "hot"
    assert alert["eventId"] == event["eventId"] and alert["runSeq"] == event["runSeq"]
    record = run.engine.decision(run.run_id, body["signalId"])
    assert record["audit"]["actorRole"] == "System" and record["audit"]["tenantId"] == run.engine.tenant
    again = run.engine.system("POST", f"/runs/{run.run_id}/signals", body)
    assert again.expect(200) == answer and len(run.engine.alerts(run.run_id)) == 1


@pytest.mark.parametrize("kind", [k for k in SIGNALS if k != "ESCALATE_ALERT"])
def test_the_system_may_nothing_else(case, kind):
    """[SIG-095] Ten of eleven are denied."""
    run = case("a")
    body = {"signalId": str(uuid.uuid4()), "signalType": kind, "payload": SIGNALS[kind],
            "audit": {"reason": "r"}}
    run.engine.system("POST", f"/runs/{run.run_id}/signals", body).expect_problem(403, "AUTHZ_DENIED")
    assert run.at() == "PENDING"


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


def test_an_engine_outside_tells_which_run_repeats_another(engine):
    """engineResult.newRunId, as Weir tells its own; of no other signal, and of no failure."""
    run, new_id = Outside(engine), "again-" + "x" * 240
    run.tell("RunStarted", "RunFailed")
    retry = str(uuid.uuid4())
    engine.signal(run.run_id, "RETRY_RUN", signal_id=retry).expect(200)
    done = f"/runs/{run.run_id}/signals/{retry}:processed"
    for body in ({"status": "failure", "newRunId": new_id}, {"status": "success", "newRunId": ""},
                 {"status": "success", "newRunId": 5}):
        engine.call("POST", done, body, roles="Engine").expect_problem(400, "RFA_REQUEST_MALFORMED")
    for _ in range(2):
        engine.call("POST", done, {"status": "success", "newRunId": new_id}, roles="Engine").expect(200)
    result = {"status": "success", "newRunId": new_id}
    assert engine.decision(run.run_id, retry)["engineResult"] == result
    assert engine.signal(run.run_id, "RETRY_RUN", signal_id=retry).expect(200)["engineResult"] == result
    other = engine.call("POST", done, {"status": "success", "newRunId": "b"}, roles="Engine")
    problem = other.expect_problem(409, "SIGNAL_DUPLICATE")
    assert problem["policyDecisionId"] == engine.decision(run.run_id, retry)["policyDecisionId"]
    running, pause = Outside(engine), str(uuid.uuid4())
    running.tell("RunStarted")
    engine.signal(running.run_id, "PAUSE", signal_id=pause).expect(200)
    engine.call("POST", f"/runs/{running.run_id}/signals/{pause}:processed", result,
                roles="Engine").expect_problem(400, "RFA_REQUEST_MALFORMED")


def test_the_rules_of_state_hold_for_runs_outside_too(engine):
    """By what the projector says of them."""
    run = Outside(engine)
    run.tell("RunStarted", "StepStarted a 1", "StepStarted b 1", "StepCompleted b 1")
    engine.signal(run.run_id, "RETRY_STEP", {"stepId": "a"}).expect_problem(409, "STEP_NOT_TERMINAL")
    engine.signal(run.run_id, "SKIP_STEP", {"stepId": "b"}).expect_problem(409, "STEP_TERMINAL")
    engine.signal(run.run_id, "SKIP_STEP", {"stepId": "ghost"}).expect_problem(400, "SIGNAL_INVALID_PAYLOAD")
    run.tell("RunFailed")
    engine.signal(run.run_id, "PAUSE").expect_problem(409, "RUN_TERMINAL")
    assert not engine.decisions(run.run_id, "?pending=true")


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


def test_a_paused_step_waits_for_the_resume_and_keeps_its_tries(case):
    """An attempt that waits behind its backoff is taken back and given again."""
    run = case({"stepId": "a", "maxAttempts": 2})
    run.fail("a", retryable=True)
    run.signal("PAUSE").expect(200)
    assert not run.worker.claim(1, wait_ms=200)
    run.signal("RESUME").expect(200)
    run.fail("a", retryable=True)
    wait_for(lambda: run.step("a") == ("FAILED", 2), 20, "the second failure")
    assert not run.worker.claim(1, wait_ms=200)
