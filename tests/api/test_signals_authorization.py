"""Signals: who may send which, what is recorded, alerted, logged, limited and approved."""
import hashlib
import json
import os
import re
import uuid
from datetime import datetime, timedelta, timezone

import pytest

from harness.engine_calls import DESTRUCTIVE, SIGNALS, UNLIMITED, Engine, Outside, signal_body
from harness.together import at_once
from harness.weir_server import REPOSITORY, wait_for

ROLES = {"Operator": {"PAUSE", "RESUME", "CANCEL"},
         "Engineer": {"PAUSE", "RESUME", "CANCEL", "RETRY_STEP", "RETRY_RUN", "SKIP_STEP"},
         "Admin": set(SIGNALS) - {"ESCALATE_ALERT"}, "Engine": set(), "Worker": set()}
ISO_UTC = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
RECORD = {"signalDecisionId", "signalId", "runId", "decision", "policyDecisionId", "audit", "signalType",
          "signalPayload"}


@pytest.fixture(name="server", scope="module")
def server_of_module(module_weir):
    """No limits; addresses are kept."""
    return module_weir(settings={**UNLIMITED, "engine.source_ip": "on"})


@pytest.fixture(name="engine", scope="module")
def engine_of_module(server):
    """A tenant of its own for this module."""
    return Engine(server, "acme-auth")


def new_run(engine, **fields):
    """A RUNNING run of an engine outside, with a step a in PENDING or what is told; nothing executes it."""
    run = Outside(engine, **fields)
    run.tell("RunStarted", "StepStarted a 1", "StepFailed a 1")
    return run.run_id


# ---- roles

@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("kind", SIGNALS)
def test_the_table_of_roles(engine, role, kind):
    """[SIG-001] [SIG-013] [SIG-015] [SIG-025] [SIG-026] [SIG-063] [SIG-078] [SIG-092] [SIG-093] [SIG-094]
    [SIG-095] [SIG-115] [SIG-120] Eleven signals times the roles: allowed or AUTHZ_DENIED; a record of each; a
    P1 alert for each of the four destructive ones accepted, a security alert for each denial, none else."""
    run_id, signal_id = new_run(engine), str(uuid.uuid4())
    answer = engine.signal(run_id, kind, SIGNALS[kind], "because", signal_id, roles=role)
    record = engine.decision(run_id, signal_id)
    alerts = engine.alerts(run_id)
    if kind in ROLES[role]:
        assert answer.status in (200, 409), answer  # 409: the state's word, not the policy's
        assert record["decision"] == "ACCEPTED" and record["audit"]["actorRole"] == role
        assert [(a["severity"], a["category"]) for a in alerts] == (
            [("P1", "destructive_signal")] if kind in DESTRUCTIVE else [])
    else:
        problem = answer.expect_problem(403, "AUTHZ_DENIED")
        assert record["decision"] == "REJECTED" and record["policyDecisionId"] == problem["policyDecisionId"]
        assert record["reason"] == problem["detail"] and "engineProcessedAt" not in record
        assert [(a["severity"], a["category"], a["code"])
                for a in alerts] == [("WARNING", "security", "AUTHZ_DENIED")]
    assert all(a["signalDecisionId"] == record["signalDecisionId"] for a in alerts)


@pytest.mark.parametrize("roles, kind, effective", [
    ("Admin,Operator", "PAUSE", "Operator"), ("Operator,Admin", "PAUSE", "Operator"),
    ("Admin,Engineer", "RETRY_RUN", "Engineer"), ("Operator,Engineer", "RETRY_STEP", "Engineer"),
    ("Admin,Operator,Engineer", "UPDATE_PARAMS", "Admin"),
    ("Operator", "RETRY_RUN", "Operator"), ("Engineer,Admin", "ESCALATE_ALERT", "Engineer"),
    ("Painter", "PAUSE", "NONE"), ("Painter,Admin", "PAUSE", "Admin")])
def test_the_least_permissive_role_that_suffices_is_recorded(engine, roles, kind, effective):
    """[SIG-067] [SIG-085] [SIG-086] [SIG-087] [SIG-088] [SIG-089] [SIG-090] [SIG-091] Without one the least
    that is held, NONE without any (AS-24)."""
    run_id, signal_id = new_run(engine), str(uuid.uuid4())
    engine.signal(run_id, kind, SIGNALS[kind], "why", signal_id, roles=roles, sub="ada@acme")
    audit = engine.decision(run_id, signal_id)["audit"]
    assert audit["actorRole"] == effective and audit["actorId"] == "ada@acme"


# ---- the record

def test_a_record_holds_what_was_asked_and_what_became_of_it(engine):
    """[SIG-061] [SIG-062] [SIG-065] [SIG-066] [SIG-068] [SIG-069] [SIG-070] [SIG-071] [SIG-072]
    [SIG-073] [SIG-074] [SIG-100] All its fields, and the same record by either id."""
    engine.put_plan("record", "a", queue="never")
    run_id, signal_id = engine.start("record"), str(uuid.uuid4())
    payload, before = {"params": {"deep": [1, {"x": 2.5}], "text": "ü"}}, datetime.now(timezone.utc)
    answer = engine.signal(run_id, "UPDATE_PARAMS", payload, "  customer asked  ", signal_id,
                           sub="ada").expect(200)
    record = engine.decision(run_id, signal_id)
    assert set(record) == RECORD | {"engineProcessedAt", "engineResult"}
    assert record["signalId"] == signal_id and record["runId"] == run_id and record["decision"] == "ACCEPTED"
    assert record["signalType"] == "UPDATE_PARAMS" and record["signalPayload"] == payload
    assert set(record["audit"]) == {"actorId", "actorRole", "tenantId", "timestamp", "reason", "sourceIp"}
    assert record["audit"]["reason"] == "customer asked" and record["audit"]["sourceIp"].startswith(
        "127.0.0.1")
    assert record["audit"]["tenantId"] == engine.tenant and ISO_UTC.fullmatch(record["audit"]["timestamp"])
    at = datetime.fromisoformat(record["audit"]["timestamp"].replace("Z", "+00:00"))
    assert before - timedelta(milliseconds=1) <= at <= datetime.now(timezone.utc)
    assert record["engineResult"] == {"status": "success"} and record["engineProcessedAt"].endswith("Z")
    for name in ("signalDecisionId", "policyDecisionId"):
        assert uuid.UUID(record[name]).version == 4 and answer[name] == record[name]
    by_policy = engine.call("GET", f"/signal-decisions/{record['policyDecisionId']}").expect(200)
    assert by_policy == record  # [SIG-057] [SIG-058]
    assert engine.decisions(run_id) == [record]


def test_the_answer_needs_no_further_reading(engine):
    """[SIG-059] Four members; what else there is stands in the record."""
    answer = engine.signal(new_run(engine), "PAUSE").expect(200)
    assert set(answer) == {"signalDecisionId", "decision", "policyDecisionId", "engineResult"}


def test_decisions_are_listed_newest_first_in_pages(engine):
    """[SIG-107] By run, over time."""
    run_id = new_run(engine)
    ids = [str(uuid.uuid4()) for _ in range(7)]
    for n, signal_id in enumerate(ids):
        engine.signal(run_id, ("PAUSE", "RESUME")[n % 2], signal_id=signal_id).expect(200)
    for limit in (200, 3):
        assert [d["signalId"] for d in engine.decisions(run_id, f"?limit={limit}")] == ids[::-1]
    stamps = [d["audit"]["timestamp"] for d in engine.decisions(run_id)]
    assert stamps == sorted(stamps, reverse=True)


def test_a_decision_nobody_made_is_not_found(engine, server):
    """[SIG-057] [SIG-124] By signal, by policy decision, of another tenant, of another form."""
    run_id, signal_id = new_run(engine), str(uuid.uuid4())
    policy = engine.signal(run_id, "PAUSE", signal_id=signal_id).expect(200)["policyDecisionId"]
    for wrong in (str(uuid.uuid4()), "junk"):
        engine.call("GET", f"/runs/{run_id}/signals/{wrong}").expect_problem(404, "SIGNAL_NOT_FOUND")
        engine.call("GET", f"/signal-decisions/{wrong}").expect_problem(404, "SIGNAL_NOT_FOUND")
    other = Engine(server, "acme-nosy")
    other.call("GET", f"/signal-decisions/{policy}").expect_problem(404, "SIGNAL_NOT_FOUND")
    other.call("POST", f"/signal-decisions/{policy}:approve", {}).expect_problem(404, "SIGNAL_NOT_FOUND")


# ---- requests and payloads

@pytest.mark.parametrize("change", [
    {"signalId": None}, {"signalType": None}, {"payload": None}, {"payload": []}, {"payload": "x"},
    {"signalId": "junk"}, {"signalId": "3c4ad9a0-0ea6-11ef-9262-0242ac120002"}, {"signalId": 7},
    {"signalId": "74738ff5-5367-5958-9aee-98fffdcd1876"}, {"signalType": "DANCE"}, {"signalType": "pause"}],
    ids=str)
def test_a_request_without_its_parts_is_refused(engine, change):
    """[SIG-048] [SIG-049] [SIG-050] Nothing is recorded."""
    run_id = new_run(engine)
    body = {name: value for name, value in {**signal_body("PAUSE"), **change}.items() if value is not None}
    answer = engine.call("POST", f"/runs/{run_id}/signals", body)
    assert answer.status == 400, answer
    assert answer.json["code"] in ("SIGNAL_INVALID_PAYLOAD", "RFA_REQUEST_MALFORMED")
    if change.get("signalType"):
        assert answer.json["code"] == "SIGNAL_INVALID_PAYLOAD"
    assert not engine.decisions(run_id)


BAD = [("PAUSE", {"reason": 5}), ("RESUME", {"reason": "x"}), ("CANCEL", {"reason": 5}), ("RETRY_STEP", {}),
       ("RETRY_STEP", {"stepId": ""}), ("RETRY_STEP", {"stepId": "a", "force": "x"}),
       ("RETRY_RUN", {"force": "x"}),
       ("UPDATE_PARAMS", {}), ("UPDATE_PARAMS", {"params": []}), ("INJECT_OVERRIDE", {"stepId": "a"}),
       ("INJECT_OVERRIDE", {"override": {}}), ("ESCALATE_ALERT", {}), ("ESCALATE_ALERT", {"level": "LOW"}),
       ("ESCALATE_ALERT", {"level": "info"}), ("SKIP_STEP", {}), ("SKIP_STEP", {"stepId": "a", "reason": 1}),
       ("UPDATE_TARGET", {"stepId": "a"}), ("UPDATE_TARGET", {"newTarget": {}}), ("EMERGENCY_STOP", {}),
       ("EMERGENCY_STOP", {"reason": "r", "forceKill": 1})]
BAD += [(kind, {**payload, "surprise": 1}) for kind, payload in SIGNALS.items()]
BAD += [(kind, {**payload, "forceKill": True}) for kind, payload in SIGNALS.items()
        if kind != "EMERGENCY_STOP"]


@pytest.mark.parametrize("kind, payload", BAD, ids=str)
def test_a_payload_that_does_not_fit_is_refused_before_anybody_is_asked(engine, server, kind, payload):
    """[SIG-020] [SIG-024] [SIG-034] [SIG-035] [SIG-036] [SIG-076] [SIG-125] Whoever sends it, of whatever
    tenant; no record, no alert, one log line (AS-09); the signalId is free for the corrected one."""
    run_id, signal_id = new_run(engine), str(uuid.uuid4())
    for actor in ({"roles": "Admin"}, {"roles": "Painter"}, {"roles": "Admin", "tenant": "acme-foreign"}):
        problem = engine.signal(run_id, kind, payload, "why", signal_id, **actor).expect_problem(
            400, "SIGNAL_INVALID_PAYLOAD")
        server.wait_log(event="request", request_id=problem["instance"].split(":")[-1],
                        error_code="SIGNAL_INVALID_PAYLOAD")
    assert not engine.decisions(run_id) and not engine.alerts(run_id)
    engine.signal(run_id, "PAUSE", signal_id=signal_id).expect(200)


def test_each_type_has_its_schema_file():
    """[SIG-037] [SIG-038] [SIG-039] [SIG-040] [SIG-041] [SIG-042] [SIG-043] [SIG-044] [SIG-045] [SIG-046]
    [SIG-047] Under the names of the contract; closed objects."""
    folder = os.path.join(REPOSITORY, "contracts", "schemas", "signal")
    for kind in SIGNALS:
        name = "".join(word.capitalize() for word in kind.split("_")) + ".v1.json"
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            schema = json.load(file)
        assert schema["type"] == "object" and schema["additionalProperties"] is False
        assert set(SIGNALS[kind]) == set(schema.get("properties", {})), name


# ---- reasons

@pytest.mark.parametrize("kind", DESTRUCTIVE)
def test_a_destructive_signal_needs_a_reason(engine, kind):
    """[SIG-014] [SIG-064] [SIG-096] [SIG-097] [SIG-121] Missing, empty and blank; the contract's
    words; REJECTED; no P1 alert but a security one."""
    for said in (None, "", "  \t"):
        run_id, signal_id = new_run(engine), str(uuid.uuid4())
        payload = {**SIGNALS[kind], **({"reason": said or ""} if kind == "EMERGENCY_STOP" else {})}
        problem = engine.signal(run_id, kind, payload, said,
                                signal_id).expect_problem(403, "AUTHZ_REASON_REQUIRED")
        assert problem["detail"] == "Destructive signal requires justification"
        record = engine.decision(run_id, signal_id)
        assert record["decision"] == "REJECTED" and record["reason"] == problem["detail"]
        assert [a["category"] for a in engine.alerts(run_id)] == ["security"]
        assert engine.status(run_id) == "RUNNING"


@pytest.mark.parametrize("said", [None, "", " \t"])
def test_the_reason_of_a_payload_will_do(engine, said):
    """[SIG-096] AS-01: where the schema has one, and audit.reason is missing or blank; else that counts."""
    run_id, signal_id = new_run(engine), str(uuid.uuid4())
    engine.signal(run_id, "EMERGENCY_STOP", {"reason": " fire "}, said, signal_id).expect(200)
    assert engine.decision(run_id, signal_id)["audit"]["reason"] == "fire"
    run_id, signal_id = new_run(engine), str(uuid.uuid4())
    engine.signal(run_id, "EMERGENCY_STOP", {"reason": "fire"}, "drill", signal_id).expect(200)
    assert engine.decision(run_id, signal_id)["audit"]["reason"] == "drill"


REFUSALS = {"role": ("AUTHZ_DENIED", "RETRY_RUN", "r", {"roles": "Operator"}),
            "reason": ("AUTHZ_REASON_REQUIRED", "UPDATE_PARAMS", None, {"roles": "Admin"}),
            "project": ("AUTHZ_DENIED", "PAUSE", None, {"roles": "Operator", "project": "elsewhere"}),
            "tenant": ("AUTHZ_TENANT_FORBIDDEN", "PAUSE", None, {"roles": "Operator", "tenant": "other"})}


@pytest.mark.parametrize("why", REFUSALS)
def test_a_refusal_tells_the_policy_decision_its_record_is_found_by(engine, why):
    """[SIG-080] The id in the problem is the record's, also when the signal is sent again; the record says
    REJECTED and holds the same words."""
    code, kind, reason, actor = REFUSALS[why]
    run_id, signal_id = new_run(engine), str(uuid.uuid4())
    problem = engine.signal(run_id, kind, SIGNALS[kind], reason, signal_id, **actor).expect_problem(403, code)
    record = engine.call("GET", f"/signal-decisions/{problem['policyDecisionId']}").expect(200)
    assert record["signalId"] == signal_id and record["runId"] == run_id and record["decision"] == "REJECTED"
    assert record["policyDecisionId"] == problem["policyDecisionId"] and record["reason"] == problem["detail"]
    assert record == engine.decision(run_id, signal_id)
    again = engine.signal(run_id, kind, SIGNALS[kind], reason, signal_id, **actor).expect_problem(403, code)
    assert again["policyDecisionId"] == problem["policyDecisionId"]


# ---- tenants and projects

@pytest.mark.parametrize("roles", ["Admin", "Operator"])
def test_another_tenants_signal_is_rejected_recorded_and_alerted(engine, server, roles):
    """[SIG-055] [SIG-068] [SIG-110] [SIG-111] [SIG-112] [SIG-115] [SIG-122] Under the run's tenant, which
    sees who it was; the caller sees the code and the policyDecisionId alone."""
    run_id, signal_id = new_run(engine), str(uuid.uuid4())
    thief = Engine(server, "acme-thief")
    problem = thief.signal(run_id, "CANCEL", {}, "mine now", signal_id, roles=roles,
                           sub="mallory").expect_problem(
        403, "AUTHZ_TENANT_FORBIDDEN")
    assert engine.tenant not in json.dumps(problem)
    thief.call("GET", f"/signal-decisions/{problem['policyDecisionId']}").expect_problem(
        404, "SIGNAL_NOT_FOUND")
    record = engine.decision(run_id, signal_id)
    assert record["decision"] == "REJECTED" and record["policyDecisionId"] == problem["policyDecisionId"]
    assert record["audit"]["tenantId"] == engine.tenant and record["audit"]["actorId"] == "mallory"
    assert record["audit"]["actorTenantId"] == "acme-thief"
    alert, = engine.alerts(run_id)
    assert alert["category"] == "security" and alert["code"] == "AUTHZ_TENANT_FORBIDDEN"
    assert "mallory" in alert["actorId"] and "acme-thief" in alert["actorId"]
    line = server.wait_log(event="alert", alert_code="AUTHZ_TENANT_FORBIDDEN",
                           about=record["signalDecisionId"])
    assert "acme-thief" in line["detail"]
    assert engine.status(run_id) == "RUNNING" and not thief.alerts()


def test_an_unknown_run_is_hidden(engine):
    """AS-11: 404 with AUTHZ_DENIED, for whoever asks; also without a run id. [SIG-056]"""
    for actor in ({}, {"roles": "Operator"}):
        engine.signal(str(uuid.uuid4()), "PAUSE", **actor).expect_problem(404, "AUTHZ_DENIED")
    engine.system("POST", f"/runs/{uuid.uuid4()}/signals", signal_body("ESCALATE_ALERT", {"level": "P1"})
                  ).expect_problem(404, "AUTHZ_DENIED")
    assert engine.call("POST", "/runs//signals", signal_body("PAUSE")).status in (400, 404)


def test_a_token_reaches_only_its_projects(engine):
    """Reading is 404; starting, appending and signalling 403; a signal that is refused so is recorded."""
    inside = {"roles": "Admin", "sub": "pat", "project": "shop,other"}
    outside = {"roles": "Admin", "sub": "kim", "project": "other"}
    run_id = new_run(engine, project="shop")
    assert engine.call("GET", f"/runs/{run_id}", **inside).status == 200
    for path in ("", "/events", "/signals"):
        engine.call("GET", f"/runs/{run_id}{path}", **outside).expect_problem(404, "RUN_NOT_FOUND")
    assert run_id in [r["runId"] for r in engine.call("GET", "/runs", **inside).json["items"]]
    assert run_id not in [r["runId"] for r in engine.call("GET", "/runs", **outside).json["items"]]
    run = Outside(engine, run_id)
    run.send(run.event("RunCompleted"), **outside).expect_problem(403, "AUTHZ_DENIED")
    run.event_id("a" * 64, **outside).expect_problem(403, "AUTHZ_DENIED")
    engine.put_plan("scoped", "a", queue="never")
    engine.try_start("scoped", project="shop", actor=outside).expect_problem(403, "AUTHZ_DENIED")
    signal_id = str(uuid.uuid4())
    problem = engine.signal(run_id, "PAUSE", signal_id=signal_id, **outside).expect_problem(
        403, "AUTHZ_DENIED")
    record = engine.decision(run_id, signal_id)
    assert record["decision"] == "REJECTED" and record["policyDecisionId"] == problem["policyDecisionId"]
    engine.call("GET", f"/signal-decisions/{problem['policyDecisionId']}", **outside).expect_problem(
        404, "SIGNAL_NOT_FOUND")
    engine.signal(run_id, "PAUSE", **inside).expect(200)
    engine.call("POST", f"/runs/{run_id}/signals/{signal_id}:processed", {"status": "success"}, **outside
                ).expect_problem(403, "AUTHZ_DENIED")
    assert not [a for a in engine.call("GET", f"/alerts?runId={run_id}", **outside).expect(200)["items"]]


# ---- repeats

def test_a_repeated_signal_is_answered_as_before_and_does_nothing(engine):
    """[SIG-052] [SIG-053] [SIG-100] [SIG-118] Members in another order are the same; decisions and refusals
    are repeated alike."""
    engine.put_plan("repeat", "a", queue="never")
    run_id = engine.start("repeat")
    body = signal_body("PAUSE", {"reason": "x"}, "y")
    path = f"/runs/{run_id}/signals"
    first = engine.call("POST", path, body)
    again = engine.call("POST", path, dict(reversed(body.items())))
    assert again.expect(200) == first.expect(200)
    assert again.headers["idempotency-replayed"] == "true" and "idempotency-replayed" not in first.headers
    engine.signal(run_id, "RESUME").expect(200)
    before = engine.names(run_id)
    assert engine.call("POST", path, body).expect(200) == first.json
    assert engine.names(run_id) == before and engine.status(run_id) == "RUNNING"
    assert len(engine.decisions(run_id)) == 2
    for kind, payload, actor, status in (("RETRY_STEP", {"stepId": "a"}, {}, 409),
                                         ("UPDATE_PARAMS", {"params": {}}, {"roles": "Operator"}, 403)):
        body = signal_body(kind, payload, "z")
        answers = [engine.call("POST", path, body, **actor) for _ in range(3)]
        problems = [{**a.json, "instance": ""} for a in answers]
        assert {a.status for a in answers} == {status} and problems[1:] == problems[:1] * 2
    assert len(engine.decisions(run_id)) == 4 and len(engine.alerts(run_id)) == 1


def test_a_signal_id_means_one_signal(engine):
    """[SIG-123] Another type or payload under it is SIGNAL_DUPLICATE; nothing changes."""
    run_id, signal_id = new_run(engine), str(uuid.uuid4())
    engine.signal(run_id, "PAUSE", {"reason": "x"}, signal_id=signal_id).expect(200)
    for kind, payload in (("PAUSE", {"reason": "y"}), ("PAUSE", {}), ("CANCEL", {"reason": "x"})):
        problem = engine.signal(run_id, kind, payload,
                                signal_id=signal_id).expect_problem(409, "SIGNAL_DUPLICATE")
        assert problem["policyDecisionId"] == engine.decision(run_id, signal_id)["policyDecisionId"]
    assert len(engine.decisions(run_id)) == 1


def test_the_same_signal_id_on_another_run_is_another_signal(engine):
    """[SIG-054]"""
    runs, signal_id = [new_run(engine), new_run(engine)], str(uuid.uuid4())
    answers = [engine.signal(run_id, "PAUSE", signal_id=signal_id).expect(200) for run_id in runs]
    assert len({a["signalDecisionId"] for a in answers}) == 2 == len({a["policyDecisionId"] for a in answers})


def test_a_hundred_deliveries_at_once_have_one_effect(engine):
    """[SIG-051] [SIG-116] [SIG-117] One record, one event, one alert; all hear the same."""
    engine.put_plan("hundred", "a", queue="never")
    run_id = engine.start("hundred")
    engine.signal(run_id, "PAUSE").expect(200)
    body = signal_body("UPDATE_PARAMS", {"params": {"n": 1}}, "r")
    resume = signal_body("RESUME")
    answers = at_once(100,
                      lambda i: engine.call("POST", f"/runs/{run_id}/signals", resume if i % 2 else body))
    for half in (answers[0::2], answers[1::2]):
        assert {a.status for a in half} == {200} and len({a.body for a in half}) == 1
        assert sum("idempotency-replayed" not in a.headers for a in half) == 1
    assert len(engine.decisions(run_id)) == 3 and engine.names(run_id).count("RunResumed") == 1
    assert len(engine.alerts(run_id)) == 1


def test_a_signal_survives_a_kill_with_its_effect(fresh_weir):
    """[SIG-060] [SIG-079] [SIG-102] [SIG-118] Record and effect together; the repeat after a
    restart is a no-op."""
    weir = fresh_weir()
    engine = Engine(weir)
    engine.put_plan("kill", "a", queue="never")
    run_id = engine.start("kill")
    body = signal_body("PAUSE", {"reason": "x"})
    first = engine.call("POST", f"/runs/{run_id}/signals", body).expect(200)
    weir.kill9()
    weir.start()
    assert engine.status(run_id) == "PAUSED" and len(engine.decisions(run_id)) == 1
    engine.signal(run_id, "RESUME").expect(200)
    weir.restart()
    again = engine.call("POST", f"/runs/{run_id}/signals", body)
    assert again.expect(200) == first and engine.status(run_id) == "RUNNING"
    weir.stop()
    done = weir.cli("verify")
    assert done.returncode == 0, done.stdout


# ---- logs, counters, storage

def test_every_signal_is_logged_and_counted(engine, server):
    """[SIG-113] [SIG-114] [SIG-115] Accepted, rejected, and the alerts they raise."""
    run_id = new_run(engine)
    before = {kind: server.metric("weir_signals_total", decision=kind) for kind in ("ACCEPTED", "REJECTED")}
    alerts = {kind: server.metric("weir_alerts_total", category=kind)
              for kind in ("security", "destructive_signal")}
    good = engine.signal(run_id, "UPDATE_PARAMS", {"params": {}}, "why", sub="ada").expect(200)
    bad = engine.signal(run_id, "UPDATE_PARAMS", {"params": {}}, "why", roles="Operator").expect_problem(
        403, "AUTHZ_DENIED")
    for policy, decision in ((good["policyDecisionId"], "ACCEPTED"), (bad["policyDecisionId"], "REJECTED")):
        line = server.wait_log(event="signal", policy_decision_id=policy)
        assert line["decision"] == decision and line["signal_type"] == "UPDATE_PARAMS"
        assert line["reason"] == "why"
    p1 = server.wait_log(event="alert", about=good["signalDecisionId"])
    assert p1["severity"] == "P1" and p1["level"] == "error"
    assert server.metric("weir_signals_total", decision="ACCEPTED") == before["ACCEPTED"] + 1
    assert server.metric("weir_signals_total", decision="REJECTED") == before["REJECTED"] + 1
    assert server.metric("weir_alerts_total", category="security") == alerts["security"] + 1
    assert server.metric("weir_alerts_total",
                         category="destructive_signal") == alerts["destructive_signal"] + 1


def test_no_call_removes_a_record(engine):
    """[SIG-105] There is no way to delete or change one over the API."""
    run_id, signal_id = new_run(engine), str(uuid.uuid4())
    policy = engine.signal(run_id, "PAUSE", signal_id=signal_id).expect(200)["policyDecisionId"]
    record = engine.decision(run_id, signal_id)
    for path in (f"/runs/{run_id}", f"/runs/{run_id}/signals", f"/runs/{run_id}/signals/{signal_id}",
                 f"/signal-decisions/{policy}"):
        for method in ("DELETE", "PUT", "PATCH"):
            assert engine.call(method, path, {}).status == 405
    assert engine.decision(run_id, signal_id) == record


# ---- switches

def test_pseudonyms_hide_who_it_was_and_stay_the_same(module_weir):
    """[SIG-106] The id and the address of the actor are nowhere in the record; approval still tells actors
    apart."""
    weir = module_weir(settings={**UNLIMITED, "engine.pseudonymize": "on",
                                 "engine.approval_required": "RETRY_RUN",
                                 "operator.token": "salt-salt-salt-salt"})
    engine = Engine(weir)
    run = Outside(engine)
    run.tell("RunStarted")
    ids = [str(uuid.uuid4()) for _ in range(3)]
    for signal_id, sub in zip(ids, ("ada@example.com", "ada@example.com", "bob@example.com")):
        engine.signal(run.run_id, "PAUSE", signal_id=signal_id, sub=sub).expect(200)
    audits = [engine.decision(run.run_id, signal_id)["audit"] for signal_id in ids]
    assert audits[0]["actorId"] == audits[1]["actorId"] != audits[2]["actorId"]
    assert "example.com" not in json.dumps(audits) and "sourceIp" not in audits[0]
    assert audits[0]["actorId"] != "actor-" + hashlib.sha256(b"ada@example.com").hexdigest()[:32]
    run.tell("RunFailed")
    held = engine.signal(run.run_id, "RETRY_RUN", sub="ada@example.com").expect(202)["policyDecisionId"]
    path = f"/signal-decisions/{held}:approve"
    engine.call("POST", path, {}, sub="ada@example.com").expect_problem(403, "AUTHZ_DENIED")
    engine.call("POST", path, {}, sub="bob@example.com").expect(200)
    assert engine.alerts() == [] or "example.com" not in json.dumps(engine.alerts())


def test_addresses_are_not_kept_unless_asked_for(weir):
    """[SIG-071] [SIG-106] engine.source_ip is off by default."""
    engine = Engine(weir, "acme-defaults")
    run_id, signal_id = new_run(engine), str(uuid.uuid4())
    engine.signal(run_id, "PAUSE", signal_id=signal_id).expect(200)
    assert set(engine.decision(run_id, signal_id)["audit"]) == {"actorId", "actorRole", "tenantId",
                                                                "timestamp"}


def test_a_signal_that_is_switched_off_is_denied(module_weir):
    """AS-13: AUTHZ_DENIED, not enabled; the others work."""
    weir = module_weir(settings={**UNLIMITED, "engine.disabled_signals": "SKIP_STEP,EMERGENCY_STOP"})
    engine = Engine(weir)
    run_id = new_run(engine)
    for kind in ("SKIP_STEP", "EMERGENCY_STOP"):
        problem = engine.signal(run_id, kind, SIGNALS[kind], "r").expect_problem(403, "AUTHZ_DENIED")
        assert "not enabled" in problem["detail"]
    engine.signal(run_id, "PAUSE").expect(200)


@pytest.mark.parametrize("setting", ["engine.disabled_signals=DANCE", "engine.approval_required=pause",
                                     "engine.decision_retention_days=2556"])
def test_settings_that_cannot_be_are_refused(fresh_weir, setting):
    """[SIG-103] Less than seven years is no retention."""
    weir = fresh_weir(start=False, args=["--set", setting])
    done = weir.cli("config", "show", "--set", setting)
    assert done.returncode == 2 and setting.split("=")[0] in done.stderr, done


# ---- approval

@pytest.fixture(name="held", scope="module")
def approving_server(module_weir):
    """A server that holds three signals for approval."""
    weir = module_weir(settings={**UNLIMITED, "engine.approval_required": "CANCEL,UPDATE_PARAMS,RETRY_RUN"})
    engine = Engine(weir, "acme-held")
    engine.put_plan("held", "a", queue="never")
    engine.put_plan("quick", "a")
    return engine


def test_what_needs_approval_waits_for_another_admin(held):
    """[SIG-063] [SIG-075] [SIG-078] [SIG-081] [SIG-082] [SIG-084] [SIG-015] 202 and no effect; then once, by
    another Admin; an alert for a destructive one when it is held, none more when it is approved."""
    run_id, body = held.start("held", params={"x": 1}), signal_body("UPDATE_PARAMS", {"params": {"x": 2}},
                                                                    "why")
    path = f"/runs/{run_id}/signals"
    answer = held.call("POST", path, body, sub="ada").expect(202)
    assert answer["decision"] == "REVISION_REQUIRED" and answer["engineResult"] is None
    record = held.decision(run_id, body["signalId"])
    assert record["decision"] == "REVISION_REQUIRED" and record["approvalRequired"] is True
    assert "approvedBy" not in record and "engineProcessedAt" not in record
    assert held.run(run_id)["params"] == {"x": 1}
    assert held.call("POST", path, body, sub="ada").expect(202) == answer
    approve = f"/signal-decisions/{answer['policyDecisionId']}:approve"
    held.call("POST", approve, {}, sub="ada").expect_problem(403, "AUTHZ_DENIED")
    held.call("POST", approve, {}, roles="Engineer").expect_problem(403, "AUTHZ_DENIED")
    assert held.run(run_id)["params"] == {"x": 1}
    done = held.call("POST", approve, {}, sub="bob").expect(200)
    assert done["decision"] == "ACCEPTED" and done["engineResult"] == {"status": "success"}
    assert held.run(run_id)["params"] == {"x": 2}
    record = held.decision(run_id, body["signalId"])
    assert record["decision"] == "ACCEPTED" and record["approvedBy"] == "bob" and record["approvalTimestamp"]
    assert record["approvalRequired"] is True and record["audit"]["actorId"] == "ada"
    held.signal(run_id, "PAUSE").expect(200)
    again = held.call("POST", approve, {}, sub="carl")
    assert again.expect(200)["engineResult"] == {"status": "success"}
    late = held.call("POST", approve.replace(":approve", ":reject"), {}, sub="bob")
    assert late.expect_problem(409, "SIGNAL_DUPLICATE")["policyDecisionId"] == answer["policyDecisionId"]
    assert [a["category"] for a in held.alerts(run_id)] == ["destructive_signal"]


@pytest.mark.parametrize("verb, decision", [("approve", "ACCEPTED"), ("reject", "REJECTED")])
def test_who_settled_it_and_why_is_kept_logged_and_counted(held, verb, decision):
    """[SIG-075] [SIG-113] In the record, in a log line of its own, in the counter of decisions; once."""
    def counted():
        return held.weir.metric("weir_signals_total", decision=decision)

    run_id, body = held.start("held"), signal_body("UPDATE_PARAMS", {"params": {}}, "why")
    policy = held.call("POST", f"/runs/{run_id}/signals", body, sub="ada").expect(202)["policyDecisionId"]
    before = counted()
    for _ in range(2):
        held.call("POST", f"/signal-decisions/{policy}:{verb}", {"reason": " asked her "},
                  sub="bob").expect(200)
    record = held.decision(run_id, body["signalId"])
    assert (record["decision"], record["approvedBy"], record["reason"]) == (decision, "bob", "asked her")
    assert record["approvalTimestamp"] and record["audit"]["reason"] == "why"
    line = held.weir.wait_log(event="signal", policy_decision_id=policy, decision=decision)
    assert (line["approved_by"], line["approval_reason"]) == ("bob", "asked her")
    assert (line["actor_id"], line["signal_type"], line["reason"]) == ("ada", "UPDATE_PARAMS", "why")
    assert len(held.weir.logs(event="signal", policy_decision_id=policy)) == 2 and counted() == before + 1


def test_what_is_rejected_never_happens(held):
    """With who and why."""
    run_id, body = held.start("held"), signal_body("CANCEL", {"reason": "x"})
    answer = held.call("POST", f"/runs/{run_id}/signals", body, sub="ada").expect(202)
    reject = f"/signal-decisions/{answer['policyDecisionId']}:reject"
    assert held.call("POST", reject, {"reason": "not today"}, sub="bob").expect(200)["decision"] == "REJECTED"
    record = held.decision(run_id, body["signalId"])
    assert record["decision"] == "REJECTED" and record["reason"] == "not today"
    assert record["approvedBy"] == "bob"
    assert held.status(run_id) == "PENDING"
    held.call("POST", reject.replace(":reject", ":approve"), {}, sub="bob").expect_problem(
        409, "SIGNAL_DUPLICATE")
    problem = held.call("POST", f"/runs/{run_id}/signals", body, sub="ada").expect_problem(
        403, "AUTHZ_DENIED")
    assert problem["policyDecisionId"] == answer["policyDecisionId"] and problem["detail"] == "not today"


def test_what_was_never_held_cannot_be_settled(held):
    """Neither approved nor rejected."""
    run_id = held.start("held")
    policy = held.signal(run_id, "PAUSE", sub="ada").expect(200)["policyDecisionId"]
    for verb in ("approve", "reject"):
        held.call("POST", f"/signal-decisions/{policy}:{verb}", {},
                  sub="bob").expect_problem(409, "SIGNAL_DUPLICATE")
        held.call("POST", f"/signal-decisions/{uuid.uuid4()}:{verb}", {}).expect_problem(
            404, "SIGNAL_NOT_FOUND")


def test_the_state_is_looked_at_again_when_it_is_approved(held):
    """AS-04: the run has ended meanwhile; the same answer to whoever approves again."""
    run_id = held.start("quick")
    answer = held.signal(run_id, "CANCEL", sub="ada").expect(202)
    with held.worker() as worker:
        worker.drain(wait_ms=500)
    held.wait_status(run_id, "COMPLETED")
    approve = f"/signal-decisions/{answer['policyDecisionId']}:approve"
    for _ in range(2):
        again = held.call("POST", approve, {"reason": "fine"}, sub="bob")
        problem = again.expect_problem(409, "RUN_TERMINAL")
        assert problem["policyDecisionId"] == answer["policyDecisionId"]
    record = held.call("GET", f"/signal-decisions/{answer['policyDecisionId']}").expect(200)
    assert record["decision"] == "ACCEPTED" and record["engineResult"]["errorCode"] == "RUN_TERMINAL"
    assert record["reason"] == "the run is COMPLETED (approved: fine)"
    assert held.names(run_id)[-1] == "RunCompleted"


def test_twenty_approvals_at_once_have_one_effect(held):
    """[SIG-082] One new run."""
    run = Outside(held)
    run_id = held.start("quick")
    with held.worker() as worker:
        worker.drain(wait_ms=500)
    held.wait_status(run_id, "COMPLETED")
    policy = held.signal(run_id, "RETRY_RUN", {"force": True}, sub="ada").expect(202)["policyDecisionId"]
    held.token(sub="bob")
    answers = at_once(20, lambda _: held.call("POST", f"/signal-decisions/{policy}:approve", {},
                                              sub="bob").expect(200))
    assert len({a["engineResult"]["newRunId"] for a in answers}) == 1
    copies = [r for r in held.pages("/runs?limit=200&planId=quick") if r["runId"] not in (run_id, run.run_id)]
    new, = [r for r in copies if held.run(r["runId"])["metadata"]["originalRunId"] == run_id]
    assert new["runId"] == answers[0]["engineResult"]["newRunId"]


def test_denied_wins_over_held(held):
    """AS-04: who may not send it is told so, and nobody has to approve it."""
    run_id = held.start("held")
    held.signal(run_id, "UPDATE_PARAMS", {"params": {}}, "r", roles="Operator").expect_problem(
        403, "AUTHZ_DENIED")
    held.signal(run_id, "UPDATE_PARAMS", {"params": {}}).expect_problem(403, "AUTHZ_REASON_REQUIRED")


# ---- limits

@pytest.fixture(name="limited", scope="module")
def limited_server(module_weir):
    """Five signals a run, twelve a tenant and four refusals an actor and minute."""
    return module_weir(settings={"engine.signals_per_run_minute": 5, "engine.signals_per_tenant_minute": 12,
                                 "engine.refused_signals_per_actor_minute": 4})


def limited_problem(answer):
    """429 with how long to wait; no record."""
    problem = answer.expect_problem(429, "RFA_REQUEST_RATE_LIMITED")
    assert 1 <= int(answer.headers["retry-after"]) <= 60 and "policyDecisionId" not in problem


def test_a_run_takes_so_many_signals_a_minute(limited):
    """[SIG-130] [SIG-131] Another run is not affected; what is refused leaves no record; a foreign tenant's
    storm takes nothing from the owner."""
    engine = Engine(limited, "acme-run-limit")
    one, two = new_run(engine), new_run(engine)
    foreign = Engine(limited, "acme-storm")
    for _ in range(4):
        foreign.signal(one, "PAUSE").expect_problem(403, "AUTHZ_TENANT_FORBIDDEN")
    limited_problem(foreign.signal(one, "PAUSE"))
    for _ in range(5):
        engine.signal(one, "PAUSE").expect(200)
    limited_problem(engine.signal(one, "PAUSE"))
    engine.signal(two, "PAUSE").expect(200)
    assert len(engine.decisions(one)) == 9


@pytest.mark.parametrize("kind, refused", [("PAUSE", {"roles": "Viewer"}),
                                           ("EMERGENCY_STOP", {"roles": "Viewer"}),
                                           ("EMERGENCY_STOP", {"roles": "Admin", "project": "other"}),
                                           ("EMERGENCY_STOP", {"roles": "Admin", "tenant": "acme-envy"})])
def test_refused_signals_take_nothing_from_those_who_may(limited, kind, refused):
    """They count by actor: so many a minute are recorded, the rest is 429, counted and leaves no record; the
    run can be paused and stopped as if there had been none."""
    engine = Engine(limited, "acme-refused-" + uuid.uuid4().hex)
    run_id, sub = new_run(engine), uuid.uuid4().hex
    before = limited.metric("weir_signals_rate_limited_total")
    for n in range(20):
        answer = engine.signal(run_id, kind, SIGNALS[kind], "why", sub=sub, **refused)
        assert answer.status == 403 if n < 4 else not limited_problem(answer)
    assert limited.metric("weir_signals_rate_limited_total") == before + 16
    assert len(engine.decisions(run_id)) == len(engine.alerts(run_id)) == 4
    for _ in range(5):
        engine.signal(run_id, "PAUSE", sub="ada").expect(200)
    engine.signal(run_id, "EMERGENCY_STOP", SIGNALS["EMERGENCY_STOP"], "now", sub="ada").expect(200)


def test_a_run_that_got_too_many_signals_can_still_be_stopped(limited):
    """CANCEL and EMERGENCY_STOP have room of their own, each; also where the tenant's is used up."""
    engine = Engine(limited, "acme-room-to-stop")
    runs = [new_run(engine) for _ in range(3)]
    for n in range(12):
        engine.signal(runs[n % 3], "PAUSE").expect(200)
    limited_problem(engine.signal(runs[0], "RESUME"))
    for _ in range(5):
        engine.signal(runs[0], "CANCEL", roles="Operator").expect(200)
    limited_problem(engine.signal(runs[0], "CANCEL", roles="Operator"))
    engine.signal(runs[0], "EMERGENCY_STOP", SIGNALS["EMERGENCY_STOP"]).expect(200)


def test_an_actor_that_was_refused_too_often_may_send_what_it_may(limited):
    """Only further refusals are 429."""
    engine = Engine(limited, "acme-clumsy")
    run_id = new_run(engine)
    for _ in range(4):
        engine.signal(run_id, "RETRY_RUN", roles="Operator").expect_problem(403, "AUTHZ_DENIED")
    limited_problem(engine.signal(run_id, "RETRY_RUN", roles="Operator"))
    engine.signal(run_id, "CANCEL", roles="Operator").expect(200)


def test_a_tenant_sends_so_many_signals_a_minute(limited):
    """[SIG-129] [SIG-131] Over several runs; another tenant is not affected."""
    engine = Engine(limited, "acme-tenant-limit")
    runs = [new_run(engine) for _ in range(4)]
    for n in range(12):
        engine.signal(runs[n % 4], "PAUSE").expect(200)
    for run_id in runs:
        limited_problem(engine.signal(run_id, "PAUSE"))
    other = Engine(limited, "acme-tenant-other")
    other.signal(new_run(other), "PAUSE").expect(200)


def test_a_signal_is_heard_by_a_stream_at_once(engine):
    """[SIG-028] What it does is an event like any other."""
    engine.put_plan("heard", "a", queue="never")
    run_id = engine.start("heard")
    for kind in ("PAUSE", "RESUME", "PAUSE", "CANCEL"):
        engine.signal(run_id, kind).expect(200)
    wait_for(lambda: engine.status(run_id) == "CANCELLED", 20, "the end")
    assert [m["event"] for m in engine.follow(run_id)] == ["RunQueued", "RunStarted", "RunPaused",
                                                           "RunResumed", "RunPaused", "RunCancelled"]
