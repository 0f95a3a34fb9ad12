"""Signals over HTTP: who is refused, what is recorded, alerted, logged, limited and approved. The whole table
of roles, approvals and limits: tests/unit/engine/test_decisions.c, test_policy.c, test_approval.c and
tests/unit/api/test_signal_limits.c."""
import hashlib
import json
import re
import uuid
from datetime import datetime, timedelta, timezone

import pytest

from harness.engine_calls import DESTRUCTIVE, SIGNALS, UNLIMITED, Engine, Outside, signal_body

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

@pytest.mark.parametrize("role, kind, may", [
    ("Operator", "PAUSE", True), ("Operator", "RETRY_STEP", False), ("Engineer", "RETRY_STEP", True),
    ("Admin", "UPDATE_PARAMS", True), ("Admin", "ESCALATE_ALERT", False), ("Engine", "PAUSE", False)])
def test_the_role_of_a_token_decides(engine, role, kind, may):
    """[SIG-001] [SIG-015] [SIG-063] [SIG-078] [SIG-115] [SIG-120] Allowed or AUTHZ_DENIED; a record of each;
    a P1 alert for a destructive one, a security alert for each denial, none else."""
    run_id, signal_id = new_run(engine), str(uuid.uuid4())
    answer = engine.signal(run_id, kind, SIGNALS[kind], "because", signal_id, roles=role)
    record = engine.decision(run_id, signal_id)
    alerts = engine.alerts(run_id)
    if may:
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


def test_actor_and_effective_role_come_from_the_token(engine):
    """[SIG-067] [SIG-085] [SIG-086] All its roles are seen: the least permissive that will do is recorded."""
    run_id, signal_id = new_run(engine), str(uuid.uuid4())
    engine.signal(run_id, "RETRY_RUN", {}, "why", signal_id, roles="Painter,Admin,Engineer", sub="ada@acme")
    audit = engine.decision(run_id, signal_id)["audit"]
    assert audit["actorRole"] == "Engineer" and audit["actorId"] == "ada@acme"


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


BAD = [("PAUSE", {"surprise": 1}), ("RETRY_STEP", {}), ("ESCALATE_ALERT", {"level": "LOW"}),
       ("CANCEL", {"forceKill": True})]


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


# ---- reasons

@pytest.mark.parametrize("said, payload, reason", [(" \t", " ", None), (" drill ", "fire", "drill"),
                                                   (None, " fire ", "fire"), (" ", "fire", "fire")])
def test_a_destructive_signal_needs_a_reason(engine, said, payload, reason):
    """[SIG-014] [SIG-064] [SIG-096] [SIG-097] [SIG-121] Of audit or, where that is missing or blank, of the
    payload (AS-01); without one: the contract's words, REJECTED, no P1 alert but a security one."""
    run_id, signal_id = new_run(engine), str(uuid.uuid4())
    answer = engine.signal(run_id, "EMERGENCY_STOP", {"reason": payload}, said, signal_id)
    record = engine.decision(run_id, signal_id)
    if reason:
        assert answer.expect(200) and record["audit"]["reason"] == reason
        return
    problem = answer.expect_problem(403, "AUTHZ_REASON_REQUIRED")
    assert problem["detail"] == record["reason"] == "Destructive signal requires justification"
    assert record["decision"] == "REJECTED" and engine.status(run_id) == "RUNNING"
    assert [a["category"] for a in engine.alerts(run_id)] == ["security"]


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

def test_another_tenants_signal_is_rejected_recorded_and_alerted(engine, server):
    """[SIG-055] [SIG-068] [SIG-110] [SIG-111] [SIG-112] [SIG-115] [SIG-122] Under the run's tenant, which
    sees who it was; the caller sees the code and the policyDecisionId alone."""
    run_id, signal_id = new_run(engine), str(uuid.uuid4())
    thief = Engine(server, "acme-thief")
    problem = thief.signal(run_id, "CANCEL", {}, "mine now", signal_id,
                           sub="mallory").expect_problem(403, "AUTHZ_TENANT_FORBIDDEN")
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


# ---- limits

@pytest.fixture(name="limited", scope="module")
def limited_server(module_weir):
    """Five signals a run and four refusals an actor and minute."""
    return module_weir(settings={"engine.signals_per_run_minute": 5,
                                 "engine.refused_signals_per_actor_minute": 4})


def limited_problem(answer):
    """429 with how long to wait; no record."""
    problem = answer.expect_problem(429, "RFA_REQUEST_RATE_LIMITED")
    assert 1 <= int(answer.headers["retry-after"]) <= 60 and "policyDecisionId" not in problem


def test_a_run_takes_so_many_signals_a_minute(limited):
    """[SIG-131] Another run is not affected; what is refused leaves no record; a foreign tenant's
    storm takes nothing from the owner."""
    engine = Engine(limited, "acme-run-limit")
    one, two = new_run(engine), new_run(engine)
    foreign, before = Engine(limited, "acme-storm"), limited.metric("weir_signals_rate_limited_total")
    for _ in range(4):
        foreign.signal(one, "PAUSE").expect_problem(403, "AUTHZ_TENANT_FORBIDDEN")
    limited_problem(foreign.signal(one, "PAUSE"))
    for _ in range(5):
        engine.signal(one, "PAUSE").expect(200)
    limited_problem(engine.signal(one, "PAUSE"))
    engine.signal(two, "PAUSE").expect(200)
    assert len(engine.decisions(one)) == 9
    assert limited.metric("weir_signals_rate_limited_total") == before + 2
