"""Signals judged by a policy decision point over HTTP: what it is asked, what its words do, and what happens
when it says nothing. The point is a real HTTP server; the way to it leads through the gateway."""
import json
import signal
import socket
import threading
import uuid

import pytest

from harness.engine_calls import UNLIMITED, Engine as Calls, Outside, signal_body
from harness.receiver import Receiver, hang_up
from harness.together import at_once
from harness.weir_server import wait_for

PATH = "/v1/data/weir/signal"
SILENT = "policy decision point did not answer"
PATIENT = {"engine.policy_timeout_ms": 60000, **UNLIMITED}


def says(body, status=200, headers=None):
    """An answer of the point: JSON, or bytes as they are."""
    text = body if isinstance(body, bytes) else json.dumps(body).encode()

    def answer(handler):
        handler.send_response(status)
        for name, value in (headers or {}).items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(text)))
        handler.end_headers()
        handler.wfile.write(text)
    return answer


YES, NO = says({"result": True}), says({"result": False})


class Gate:
    """An answer of the point that comes once the gate is open."""

    def __init__(self, then=YES):
        self.opened, self.then = threading.Event(), then

    def __call__(self, handler):
        self.opened.wait(60)
        self.then(handler)


class Engine(Calls):
    """The engine API of a server, as people of one tenant use it."""

    def run(self):
        """A run whose only step waits for a worker that never comes."""
        plan = {"planId": "wait", "planVersion": "1", "steps": [{"stepId": "only", "queue": "nobody"}]}
        assert self.call("POST", "/plans", plan).status in (200, 201)
        return self.start("wait")

    def send(self, run, kind="PAUSE", payload=None, reason=None, signal_id=None, **who):
        """Sends a signal, as an Operator unless said otherwise; the answer."""
        return self.signal(run, kind, payload, reason, signal_id, **{"roles": "Operator", **who})

    def decision(self, policy_id):
        """The record."""
        return self.call("GET", f"/signal-decisions/{policy_id}").expect(200)

    def refused(self, answer, code="AUTHZ_DENIED"):
        """The record of a refusal with this code, the words of both equal."""
        problem = answer.expect_problem(403, code)
        record = self.decision(problem["policyDecisionId"])
        assert record["decision"] == "REJECTED" and record["reason"] == problem["detail"]
        return record

    def accepted(self, answer):
        """The record of an acceptance."""
        record = self.decision(answer.expect(200)["policyDecisionId"])
        assert record["decision"] == "ACCEPTED"
        return record

    def status(self, run_id):
        """Of a run."""
        return self.call("GET", f"/runs/{run_id}").expect(200)["status"]


@pytest.fixture
def point():
    """A point that says yes until told otherwise, and its questions."""
    with Receiver() as made:
        made.answers = [YES]
        yield made


@pytest.fixture(scope="module")
def shared_point():
    """The point of the module's server."""
    with Receiver() as made:
        yield made


@pytest.fixture(scope="module")
def shared(module_weir, shared_point):
    """A server that refuses when the point is silent."""
    return Engine(module_weir(settings={"engine.policy_url": shared_point.url + PATH, **PATIENT,
                                        "engine.disabled_signals": "RETRY_RUN"}))


@pytest.fixture
def judged(shared, shared_point):
    """(engine, point): the point says yes and was asked nothing yet."""
    shared_point.answers = [YES]
    del shared_point.calls[:]
    return shared, shared_point


# ---- what it is asked, and what its words do

def test_the_point_is_asked_with_actor_signal_tenant_run_and_reason(judged):
    """[SIG-083] [SIG-098] And the id of the decision is ours, of version 4."""
    engine, point = judged
    run = engine.run()
    record = engine.accepted(engine.send(run, "UPDATE_PARAMS", {"params": {"day": "ä\u0000"}},
                                         reason=" why not ", roles="Engineer,Operator", sub="eve"))
    (call,) = point.calls
    assert call.path == PATH and call.headers["content-type"] == "application/json"
    assert call.json == {"input": {
        "actor": {"userId": "eve", "roles": ["Engineer", "Operator"], "tenantId": "acme"},
        "signal": {"type": "UPDATE_PARAMS", "payload": {"params": {"day": "ä\u0000"}}},
        "tenantId": "acme", "runId": run, "audit": {"reason": "why not"}}}
    assert uuid.UUID(record["policyDecisionId"]).version == 4


def test_the_point_stands_in_place_of_the_table_of_roles(judged):
    """[SIG-084] It allows what the table would not, and denies what the table would allow."""
    engine, point = judged
    run = engine.run()
    engine.accepted(engine.send(run, "UPDATE_PARAMS", {"params": {"a": 1}}, reason="x", roles="Operator"))
    point.answers = [NO]
    assert engine.refused(engine.send(run, "PAUSE", roles="Admin"))["reason"] == "denied by policy"
    assert engine.status(run) == "PENDING"


@pytest.mark.parametrize("result, decision, reason", [
    ({"allowed": True, "reason": "office hours", "requiresApproval": False}, "ACCEPTED", "office hours"),
    ({"allowed": False, "requiresApproval": True}, "REJECTED", "denied by policy"),
])
def test_a_decision_may_be_an_object(judged, result, decision, reason):
    """[SIG-084] allowed, reason and requiresApproval; its words are recorded, as far as there is room."""
    engine, point = judged
    point.answers = [says({"result": result, "decision_id": "theirs"})]
    answer = engine.send(engine.run())
    record = engine.accepted(answer) if decision == "ACCEPTED" else engine.refused(answer)
    assert record.get("reason") == reason


def test_the_point_may_ask_for_approval_by_another_admin(judged):
    """[SIG-081] [SIG-084] Held without effect until then."""
    engine, point = judged
    run = engine.run()
    point.answers = [says({"result": {"allowed": True, "requiresApproval": True, "reason": "four eyes"}})]
    held = engine.send(run, roles="Operator").expect(202)
    assert held["decision"] == "REVISION_REQUIRED" and engine.status(run) == "PENDING"
    assert engine.decision(held["policyDecisionId"])["reason"].endswith(": four eyes")
    engine.call("POST", f"/signal-decisions/{held['policyDecisionId']}:approve", {}).expect(200)
    assert engine.status(run) == "PAUSED" and len(point.calls) == 1  # nobody asks about the approval


# ---- what it has no say in


def test_a_point_is_not_asked_about_what_it_cannot_change(judged):
    """[SIG-025] Another tenant's run, a signal that is off or the System's, a run that is not there."""
    engine, point = judged
    run = engine.run()
    engine.send(run, tenant="other").expect_problem(403, "AUTHZ_TENANT_FORBIDDEN")
    off = engine.refused(engine.send(run, "RETRY_RUN", roles="Admin"))
    assert off["reason"] == "this signal is not enabled"
    engine.refused(engine.send(run, "ESCALATE_ALERT", {"level": "P1"}, roles="Admin"))
    assert engine.send("no-such-run").status in (403, 404)
    assert engine.send(run, "PAUSE", {"no": "such member"}).status == 400
    assert not point.calls


@pytest.mark.sqlite_only("the Unix socket is the same on every store")
def test_the_system_itself_is_not_judged(judged):
    """[SIG-009] Its socket is inside: the table knows what it may, also when the point says no."""
    engine, point = judged
    run = engine.run()
    point.answers = [NO]
    body = signal_body("ESCALATE_ALERT", {"level": "P1"})
    engine.system("POST", f"/runs/{run}/signals", body).expect(200)
    assert not point.calls


def test_a_signal_that_was_decided_is_not_judged_again(judged):
    """[SIG-100] The same answer as before, though the point has changed its mind."""
    engine, point = judged
    run, signal_id = engine.run(), str(uuid.uuid4())
    first = engine.send(run, signal_id=signal_id).expect(200)
    point.answers = [NO]
    again = engine.send(run, signal_id=signal_id)
    assert again.expect(200) == first and again.headers["idempotency-replayed"] == "true"
    assert len(point.calls) == 1


def test_the_gateways_questions_are_not_for_others(judged):
    """Over TCP there is no such path: neither to read questions nor to answer them."""
    engine, _ = judged
    for verb, body in (("take", {"instance": 1, "birth": 1, "max": 9, "wait_ms": 0}),
                       ("answer", {"answers": [{"id": 1, "answered": True, "allowed": True}]})):
        assert engine.weir.api("POST", f"/internal/v1/policy:{verb}", body).status == 404


# ---- when it says nothing of use

@pytest.mark.parametrize("answer", [
    says({"result": {"allowed": "yes"}}), says({"result": True}, 500),
    says(b'{"result":true}' + b" " * 65536),
    says(b"", 307, {"Location": "http://127.0.0.1:1/yes"}), hang_up,
    lambda handler: handler.wfile.write(b"HELLO {\"result\":true}\r\n\r\n"),
], ids=lambda answer: None)
def test_anything_but_a_decision_is_none(judged, answer):
    """Refused by the fallback, and recorded: what is no decision (all forms: tests/unit/gateway), no answer,
    one that is too long, another place."""
    engine, point = judged
    run = engine.run()
    point.answers = [answer]
    assert engine.refused(engine.send(run))["reason"] == SILENT
    point.answers = [says(b'{"result":true}' + b" " * (65536 - 15))]
    engine.accepted(engine.send(run))  # the control: the same question, and a decision as long as it may be
    assert engine.status(run) == "PAUSED"


def test_who_watches_hears_when_the_point_goes_and_comes(judged):
    """One line each, and counters."""
    engine, point = judged
    run, weir = engine.run(), engine.weir
    engine.accepted(engine.send(run))
    asked, silent = weir.metric("weir_policy_questions_total"), weir.metric("weir_policy_unanswered_total")
    lines = len(weir.logs(event="policy_point_away"))
    point.answers = [says(b"", 503), says(b"", 503), YES]
    for _ in range(2):
        engine.refused(engine.send(run))
    engine.accepted(engine.send(run))
    assert weir.metric("weir_policy_questions_total") == asked + 3
    assert weir.metric("weir_policy_unanswered_total") == silent + 2
    away = weir.logs(at_least=lines + 1, event="policy_point_away")
    assert len(away) == lines + 1 and away[-1]["status"] == 503
    wait_for(lambda: len(weir.logs(event="policy_point_back")) == len(away), 20, "the point is back", weir)


def test_it_is_asked_behind_the_validation_and_before_the_record(judged):
    """[SIG-077] A payload that is wrong is not asked about. While the question is open nothing is recorded,
    alerted or done; the record comes with the answer, and of that one question."""
    engine, point = judged
    run, gate = engine.run(), Gate(NO)
    point.answers = [gate]
    engine.send(run, "PAUSE", {"reason": 1}).expect_problem(400, "SIGNAL_INVALID_PAYLOAD")
    engine.send(run, "SKIP_STEP", {"stepId": "none"}).expect_problem(400, "SIGNAL_INVALID_PAYLOAD")
    assert engine.call("GET", f"/runs/{run}/signals").expect(200)["items"] == []
    asked_too_early = len(point.calls)
    engine.token("Operator")
    seen = []

    def look():
        point.wait(asked_too_early + 1)
        seen.append(engine.call("GET", f"/runs/{run}/signals").expect(200)["items"])
        seen.append(engine.call("GET", f"/alerts?runId={run}").expect(200)["items"])
        seen.append(engine.status(run))
        gate.opened.set()

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        record = engine.refused(engine.send(run))
    finally:
        gate.opened.set()
        watcher.join(60)
    assert seen == [[], [], "PENDING"]
    assert [call.json["input"]["signal"]["type"] for call in point.calls] == ["PAUSE"]
    assert engine.call("GET", f"/runs/{run}/signals").expect(200)["items"] == [record]


def test_a_step_that_the_run_has_is_asked_about(judged):
    """Of a plan, and of an engine outside, of which it is what was heard of; any other is refused unasked."""
    engine, point = judged
    outside = Outside(Calls(engine.weir, "acme"))
    outside.tell("RunStarted", "StepStarted x 1", "StepFailed x 1")
    for run, step, other in ((engine.run(), "only", "x"), (outside.run_id, "x", "only")):
        del point.calls[:]
        for name in (other, step + "\u0000", step[:-1] + "X"):
            engine.send(run, "RETRY_STEP", {"stepId": name}).expect_problem(400, "SIGNAL_INVALID_PAYLOAD")
        assert point.calls == []
        assert engine.send(run, "RETRY_STEP", {"stepId": step}).status in (200, 409)  # the point says yes
        assert [call.json["input"]["signal"]["payload"] for call in point.calls] == [{"stepId": step}]


# ---- nobody waits for it

@pytest.mark.tsan
def test_requests_that_wait_for_the_point_hold_up_nobody(judged):
    """More of them than there are threads; others are served, then all go on."""
    engine, point = judged
    run, gate = engine.run(), Gate()
    engine.token("Operator")
    point.answers = [gate]
    answers = []

    def others():
        point.wait(40)
        for _ in range(20):
            assert engine.weir.api("GET", "/readyz").status == 200
            answers.append(engine.status(run))
        gate.opened.set()

    watcher = threading.Thread(target=others)
    watcher.start()
    try:
        sent = at_once(40, lambda _: engine.send(run, "UPDATE_PARAMS", {"params": {}}, reason="x"))
    finally:
        gate.opened.set()
        watcher.join()
    assert answers == ["PENDING"] * 20
    assert [answer.status for answer in sent] == [200] * 40


def raw_signals(engine, run, count):
    """So many signals on connections of their own, none of them read yet."""
    token, sockets = engine.token("Operator"), []
    for _ in range(count):
        body = json.dumps({"signalId": str(uuid.uuid4()), "signalType": "PAUSE", "payload": {}})
        wire = socket.create_connection(engine.weir.address, timeout=60)
        wire.sendall((f"POST /engine/v1/runs/{run}/signals HTTP/1.1\r\nHost: localhost\r\n"
                      "Connection: close\r\n"
                      f"Authorization: Bearer {token}\r\nContent-Type: application/json\r\n"
                      f"Content-Length: {len(body)}\r\n\r\n{body}").encode())
        sockets.append(wire)
    return sockets


@pytest.mark.tsan
def test_more_questions_than_there_is_room_for_fall_back_at_once(judged):
    """A thousand wait; what is beyond is refused while they do, and they are answered all the same."""
    engine, point = judged
    run, gate = engine.run(), Gate()
    point.answers = [gate]
    weir = engine.weir
    silent = weir.metric("weir_policy_unanswered_total")
    sockets = raw_signals(engine, run, 1020)
    try:
        wait_for(lambda: weir.metric("weir_policy_unanswered_total") == silent + 20, 60, "20 refusals", weir)
        gate.opened.set()
        answers = [b"".join(iter(lambda wire=wire: wire.recv(65536), b"")) for wire in sockets]
    finally:
        gate.opened.set()
        for wire in sockets:
            wire.close()
    assert sum(answer.startswith(b"HTTP/1.1 200 ") for answer in answers) == 1000
    assert sum(SILENT.encode() in answer for answer in answers) == 20


@pytest.mark.tsan
def test_a_question_survives_the_gateway_that_took_it(judged):
    """The next one asks again; the answer is the point's, not the fallback's."""
    engine, point = judged
    run, gate = engine.run(), Gate()
    engine.token("Operator")
    point.answers = [gate, YES]
    before = engine.weir.pids("gateway")

    def kill():
        point.wait(1)
        engine.weir.kill9_kind("gateway")

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        engine.accepted(engine.send(run))
    finally:
        gate.opened.set()
        killer.join()
    assert len(point.calls) == 2 and point.calls[0].json == point.calls[1].json
    assert engine.weir.wait_pids("gateway", 1) != before


# ---- timeouts and fallbacks, on servers of their own

def test_a_slow_point_and_a_stopped_gateway_end_at_the_timeout(fresh_weir, point):
    """Refused by the fallback; late words change nothing."""
    engine = Engine(fresh_weir(settings={"engine.policy_url": point.url + PATH, **UNLIMITED,
                                         "engine.policy_timeout_ms": 400}))
    run, gate = engine.run(), Gate()
    point.answers = [gate, YES]
    assert engine.refused(engine.send(run))["reason"] == SILENT
    gate.opened.set()
    engine.weir.kill9_kind("gateway", signal.SIGSTOP)
    try:
        assert engine.refused(engine.send(run))["reason"] == SILENT
    finally:
        engine.weir.kill9_kind("gateway", signal.SIGCONT)
    assert engine.status(run) == "PENDING"
    wait_for(lambda: engine.send(run).status == 200, 30, "the point is heard again", engine.weir)


def alerts_of(engine, run):
    """Of one run."""
    return engine.call("GET", f"/alerts?runId={run}").expect(200)["items"]


@pytest.mark.parametrize("fallback", ["deny", "allow_with_flag"])
def test_a_slow_point_is_told_as_degraded_and_its_signals_are_for_review(fresh_weir, point, fallback):
    """[TOP-048] [TOP-049] [TOP-050] [TOP-056] Denied, or allowed, as the setting says; flagged either way;
    the next signal goes the usual way, and no process ended."""
    engine = Engine(fresh_weir(settings={"engine.policy_url": point.url + PATH, **UNLIMITED,
                                         "engine.policy_timeout_ms": 1000,
                                         "engine.policy_fallback": fallback}))
    run, gate, pids = engine.run(), Gate(NO), sorted(engine.weir.pids())
    assert not engine.weir.logs(event="weir.runtime.failure")
    point.answers = [gate, YES]
    answer = engine.send(run, roles="Engineer")
    gate.opened.set()
    if fallback == "deny":
        record = engine.refused(answer)
        assert record["reason"] == SILENT and engine.status(run) == "PENDING"
    else:
        record = engine.accepted(answer)
        assert record["reason"] == SILENT + ": allowed for review" and engine.status(run) == "PAUSED"
    (line,) = engine.weir.logs(at_least=1, event="weir.runtime.failure", mode="policy_timeout")
    assert (line["component"], line["failure_class"], line["timeout_ms"], line["fallback"]) == (
        "engine", "degraded", 1000, fallback) and line["policy_module"] == point.url + PATH
    alerts = alerts_of(engine, run)
    assert [a for a in alerts if a["code"] == "POLICY_REVIEW" and a["category"] == "security"]
    engine.accepted(engine.send(run, "RESUME" if fallback != "deny" else "PAUSE"))
    assert len(engine.weir.logs(event="weir.runtime.failure")) == 1
    assert sorted(engine.weir.pids()) == pids
    alerts = alerts_of(engine, run)
    assert len([a for a in alerts if a["code"] == "POLICY_REVIEW"]) == 1, "an answered one is not for review"


def test_without_a_gateway_the_fallback_decides_at_once(fresh_weir, point):
    """The timeout is a minute; nobody waits for it, and the log says why."""
    engine = Engine(fresh_weir(settings={"engine.policy_url": point.url + PATH, **PATIENT,
                                         "gateway.processes": 0}))
    assert engine.refused(engine.send(engine.run()))["reason"] == SILENT and not point.calls
    assert engine.weir.logs(at_least=1, event="policy_point_not_asked")


def test_a_server_that_stops_decides_nothing(fresh_weir, point):
    """Who still waits is told to come back; the same signal is judged after the restart."""
    engine = Engine(fresh_weir(settings={"engine.policy_url": point.url + PATH, **PATIENT,
                                         "runtime.drain_ms": 200}))
    run, signal_id, gate, answers = engine.run(), str(uuid.uuid4()), Gate(), []
    engine.token("Operator")
    point.answers = [gate, YES]
    sender = threading.Thread(target=lambda: answers.append(engine.send(run, signal_id=signal_id)))
    sender.start()
    try:
        point.wait(1)
        engine.weir.restart()
    finally:
        gate.opened.set()
        sender.join()
    answers[0].expect_problem(503, "RFA_STORAGE_UNAVAILABLE")
    answer = engine.send(run, signal_id=signal_id)
    engine.accepted(answer)
    assert "idempotency-replayed" not in answer.headers and len(point.calls) == 2


def test_doctor_looks_at_the_point(judged):
    """Whether it answers, and what decides when it does not; nothing when there is none."""
    engine, point = judged
    shown = ["--set=engine.policy_url=" + point.url + PATH, "--set=engine.policy_fallback=builtin"]

    def found(*args):
        checks = json.loads(engine.weir.cli("doctor", "-o", "json", *args).stdout)["checks"]
        return [check for check in checks if check["check"] == "policy point"]

    (good,) = found(*shown)
    assert good["result"] == "ok" and good["found"].endswith("answers; the fallback is builtin")
    point.answers = [says(b"", 404)]
    (bad,) = found(*shown)
    assert bad["result"] == "warn" and "answers 404" in bad["found"]
    assert "gateway.processes is 0" in found(*shown, "--set=gateway.processes=0")[0]["found"]
    assert not found()


def test_a_point_that_nobody_could_ask_is_refused_at_start(fresh_weir):
    """The setting is named."""
    done = fresh_weir(start=False).cli("serve", "--set", "engine.policy_url=ftp://host/")
    assert done.returncode != 0 and "engine.policy_url" in done.stderr
