"""The engine API against its contract, by another validator than ours: status, media type, body and code of
each answer have to be as contracts/openapi/engine.yaml (worker.yaml for steps) says."""
import copy
import hashlib
import re
import uuid

import jsonschema
import pytest
import yaml

METHODS = ("get", "put", "post", "delete", "patch")
PLAN = {"planId": "nightly", "planVersion": "7", "onFailure": "wait",
        "steps": [{"stepId": "a", "queue": "etl", "config": {"table": "orders"}},
                  {"stepId": "b", "queue": "etl", "dependsOn": ["a"]},
                  {"stepId": "c", "queue": "etl", "dependsOn": ["b"]}]}
RUN = {"planId": "nightly", "planVersion": "7", "projectId": "shop", "environmentId": "prod",
       "params": {"day": 1}, "runId": "r-1"}
CLAIM = {"worker_id": "w", "queues": ["etl"], "max": 1, "wait_ms": 20000, "start": True}


class Contract:
    """Calls by operationId; every answer is judged. `done` are the operations that have succeeded."""

    def __init__(self, weir, names):
        self.weir, self.operations, self.tokens, self.done = weir, {}, {}, set()
        for name in names:
            document = yaml.safe_load(weir.api("GET", f"/openapi/{name}.yaml").text)
            for path, item in document["paths"].items():
                for method in METHODS:
                    if method in item:
                        found = (method.upper(), path, item[method], document)
                        self.operations[item[method]["operationId"]] = found

    def token(self, role, tenant="acme"):
        """A token of this role, minted once."""
        if (role, tenant) not in self.tokens:
            done = self.weir.cli("token", "mint", "--sub", f"{role}-of-{tenant}", "--role", role, "--tenant",
                                 tenant, "--quiet")
            assert done.returncode == 0, done.stderr
            self.tokens[role, tenant] = done.stdout.strip()
        return self.tokens[role, tenant]

    def judge(self, operation, status, media, body):
        """Fails unless the contract has this answer."""
        _, _, described, document = self.operations[operation]
        assert str(status) in described["responses"], f"{operation} gives {status}: {body}"
        response = described["responses"][str(status)]
        if "$ref" in response:
            response = document["components"]["responses"][response["$ref"].rsplit("/", 1)[1]]
        schema = dict(response["content"][media]["schema"], components=document["components"])
        jsonschema.Draft202012Validator(schema).validate(body)
        if status >= 400:
            assert body["code"] in response["x-weir-codes"], f"{operation} {status}: {body}"

    def call(self, operation, role, status, body=None, query="", code=None, tenant="acme", **ids):
        """One call; gives the body. `code` is that of the problem it has to be."""
        method, path, _, _ = self.operations[operation]
        path = re.sub(r"{(\w+)}", lambda name: ids[name[1]], path)
        answer = self.weir.api(method, path + query, body, self.token(role, tenant))
        assert answer.status == status, f"{operation}: {answer!r}"
        self.judge(operation, status, answer.headers["content-type"].split(";")[0], answer.json)
        if code:
            assert answer.json["code"] == code
        if status < 300:
            self.done.add(operation)
        return answer.json

    def signal(self, role, status, kind, payload, reason=None, code=None, run="r-1", **more):
        """Sends a signal with an id of its own unless given."""
        body = {"signalId": str(uuid.uuid4()), "signalType": kind, "payload": payload, **more}
        if reason:
            body["audit"] = {"reason": reason}
        return self.call("sendSignal", role, status, body, code=code, run_id=run)


@pytest.fixture(name="contract", scope="module")
def contract_of_server(module_weir):
    """A server where INJECT_OVERRIDE needs approval."""
    weir = module_weir(settings={"engine.approval_required": "INJECT_OVERRIDE"})
    return Contract(weir, ("engine", "worker"))


def event(kind, run="x-1", step=None, **more):
    """A RunEventWrite with its key."""
    text = "|".join((run, step or "RUN", "1", kind, "p", "1"))
    made = {"eventId": str(uuid.uuid4()), "eventType": kind, "runId": run, "tenantId": "acme",
            "projectId": "shop", "environmentId": "prod", "planId": "p", "planVersion": "1",
            "engineAttemptId": 1, "logicalAttemptId": 1, "emittedAt": "2026-11-15T23:10:00Z",
            "idempotencyKey": hashlib.sha256(text.encode()).hexdigest(), **more}
    return {**made, "stepId": step} if step else made


def start(contract, **more):
    """The plan, and a run of it."""
    contract.call("putPlan", "Engineer", 201 if "putPlan" not in contract.done else 200, PLAN)
    return contract.call("startRun", "Engineer", 201, {**RUN, **more})


def work(contract, outcome, **more):
    """Claims a step and finishes it."""
    task = contract.call("claimTasks", "Worker", 200, CLAIM)["tasks"][0]
    assert task["kind"] == "step"
    item = {"task_id": task["task_id"], "token": task["token"], "outcome": outcome, **more}
    results = contract.call("finishTasks", "Worker", 200, {"tasks": [item]})["results"]
    assert results[0]["ok"] is True
    return task


def test_plans_and_runs(contract):
    """Put, start, work, read; and what is refused of it."""
    start(contract)
    contract.call("putPlan", "Engineer", 200, PLAN)
    contract.call("putPlan", "Engineer", 409, {**PLAN, "onFailure": "fail"}, code="PLAN_CONFLICT")
    contract.call("putPlan", "Engineer", 400, {**PLAN, "x": 1}, code="RFA_REQUEST_MALFORMED")
    circle = {**PLAN, "steps": [{"stepId": "a", "dependsOn": ["b"]}, {"stepId": "b", "dependsOn": ["a"]}]}
    contract.call("putPlan", "Engineer", 400, circle, code="PLAN_INVALID")
    contract.call("putPlan", "Operator", 403, PLAN, code="AUTHZ_DENIED")
    contract.call("getPlan", "Operator", 200, plan_id="nightly", plan_version="7")
    contract.call("listPlans", "Operator", 200, query="?planId=nightly&limit=1")
    contract.call("listPlans", "Operator", 400, query="?plan=nightly", code="RFA_REQUEST_MALFORMED")
    contract.call("getPlan", "Operator", 404, plan_id="nightly", plan_version="8")
    contract.call("startRun", "Engineer", 200, RUN)
    contract.call("startRun", "Engineer", 409, {**RUN, "params": {}}, code="RUN_CONFLICT")
    contract.call("startRun", "Engineer", 400, {**RUN, "runId": "a|b"}, code="RUN_INVALID")
    contract.call("startRun", "Engineer", 404, {**RUN, "planId": "x", "runId": "y"}, code="PLAN_NOT_FOUND")
    task = work(contract, "success", result={"rows": 3})
    assert task["definition"]["config"] == {"table": "orders"} and task["payload"] == {"inputs": {}}
    task = work(contract, "failure", error={"code": "x", "message": "y"})
    assert task["payload"] == {"inputs": {"a": {"rows": 3}}}
    steps = contract.call("getRun", "Operator", 200, run_id="r-1")["steps"]
    assert [step["status"] for step in steps] == ["SUCCESS", "FAILED", "PENDING"]
    for at in (0, 2, 100):
        contract.call("getRun", "Operator", 200, query=f"?at={at}", run_id="r-1")
    contract.call("getRun", "Operator", 400, query="?at=x", run_id="r-1")
    contract.call("getRun", "Admin", 404, tenant="other", code="RUN_NOT_FOUND", run_id="r-1")
    assert len(contract.call("listRuns", "Operator", 200, query="?status=RUNNING&limit=1")["items"]) == 1
    contract.call("listRuns", "Operator", 400, query="?status=NOPE")
    contract.call("getRunEvents", "Operator", 200, query="?after=1&limit=2", run_id="r-1")
    contract.call("getRunEvents", "Operator", 400, query="?after=-1", run_id="r-1")


def test_events_of_engines_elsewhere(contract):
    """Append one by one and in a batch; the ids; and what is refused of it."""
    ids, first = {"run_id": "x-1"}, event("RunStarted")
    key = {"idempotencyKey": first["idempotencyKey"]}
    first["eventId"] = contract.call("registerEventId", "Engine", 200, key, **ids)["eventId"]
    contract.call("registerEventId", "Engine", 400, {"idempotencyKey": "Z" * 64}, code="EVENT_INVALID", **ids)
    contract.call("appendRunEvents", "Engine", 201, first, **ids)
    assert contract.call("appendRunEvents", "Engine", 200, first, **ids)["duplicate"] is True
    for status, code, more in ((409, "EVENT_ID_CONFLICT", {"eventId": first["eventId"]}),
                               (422, "IDEMPOTENCY_KEY_MISMATCH", {"idempotencyKey": "0" * 64}),
                               (409, "ENVELOPE_MISMATCH", {"projectId": "z"}),
                               (409, "ENVELOPE_MISMATCH", {"tenantId": "z"}),
                               (400, "EVENT_INVALID", {"unknown": 1})):
        contract.call("appendRunEvents", "Engine", status, event("RunQueued", **more), code=code, **ids)
    batch = {"events": [event("StepStarted", step="s"), {"a": 1}, event("StepCompleted", step="t")]}
    results = contract.call("appendRunEvents", "Engine", 200, batch, **ids)["results"]
    assert [result.get("runSeq") for result in results] == [2, None, 3]
    contract.call("appendRunEvents", "Operator", 403, first, code="AUTHZ_DENIED", **ids)
    assert len(contract.call("getRunEvents", "Operator", 200, **ids)["items"]) == 3
    assert contract.call("getRun", "Operator", 200, **ids)["metadata"]["inconsistent"] is True
    assert len(contract.call("listAlerts", "Operator", 200, query="?runId=x-1")["items"]) == 1
    signal = {"run_id": "x-1", "signal_id": str(uuid.uuid4())}
    contract.signal("Operator", 200, "PAUSE", {}, run="x-1", signalId=signal["signal_id"])
    assert len(contract.call("listSignals", "Engine", 200, query="?pending=true", **ids)["items"]) == 1
    contract.call("signalProcessed", "Engine", 200, {"status": "failure", "errorCode": "X"}, **signal)
    contract.call("signalProcessed", "Engine", 409, {"status": "success"}, code="SIGNAL_DUPLICATE", **signal)
    contract.call("signalProcessed", "Engine", 400, {"status": "maybe"}, **signal)
    contract.call("signalProcessed", "Engine", 400, {"status": "success", "newRunId": "x-2"}, **signal)
    assert contract.call("getSignal", "Operator", 200, **signal)["engineResult"]["errorCode"] == "X"


def test_signals_and_decisions(contract):
    """Accepted, refused, held, approved, rejected; and what is refused of it."""
    start(contract, runId="r-2")
    signal = str(uuid.uuid4())
    for _ in range(2):
        paused = contract.signal("Operator", 200, "PAUSE", {"reason": "x"}, run="r-2", signalId=signal)
    for status, code, role, kind, payload in (
            (409, "SIGNAL_DUPLICATE", "Operator", "PAUSE", {}),
            (400, "SIGNAL_INVALID_PAYLOAD", "Operator", "RESUME", {"x": 1}),
            (400, "SIGNAL_INVALID_PAYLOAD", "Engineer", "RETRY_STEP", {"stepId": "z"}),
            (409, "STEP_NOT_TERMINAL", "Engineer", "RETRY_STEP", {"stepId": "a"}),
            (403, "AUTHZ_DENIED", "Operator", "SKIP_STEP", {"stepId": "c"}),
            (403, "AUTHZ_REASON_REQUIRED", "Admin", "UPDATE_PARAMS", {"params": {}}),
            (403, "AUTHZ_DENIED", "Admin", "ESCALATE_ALERT", {"level": "P1"})):
        more = {"signalId": signal} if code == "SIGNAL_DUPLICATE" else {}
        contract.signal(role, status, kind, payload, code=code, run="r-2", **more)
    contract.signal("Operator", 404, "PAUSE", {}, code="AUTHZ_DENIED", run="none")
    contract.signal("Admin", 200, "UPDATE_PARAMS", {"params": {"day": 2}}, "late", run="r-2")
    override = {"stepId": "c", "override": {"dry": True}}
    for operation in ("approveSignal", "rejectSignal"):
        held = contract.signal("Admin", 202, "INJECT_OVERRIDE", override, "try", run="r-2")
        ids = {"policy_decision_id": held["policyDecisionId"]}
        contract.call(operation, "Admin", 403, code="AUTHZ_DENIED", **ids)
        contract.call(operation, "Admin,Engineer", 200, {"reason": "seen"}, **ids)
        contract.call("getDecision", "Operator", 200, **ids)
    contract.call("approveSignal", "Admin,Engineer", 409, code="SIGNAL_DUPLICATE", **ids)
    contract.call("rejectSignal", "Admin", 404, {}, policy_decision_id=str(uuid.uuid4()))
    contract.call("getDecision", "Admin", 404, tenant="other", policy_decision_id=paused["policyDecisionId"])
    contract.call("getSignal", "Operator", 200, run_id="r-2", signal_id=signal)
    unknown = {"run_id": "r-2", "signal_id": str(uuid.uuid4())}
    contract.call("getSignal", "Operator", 404, code="SIGNAL_NOT_FOUND", **unknown)
    contract.call("listSignals", "Operator", 200, run_id="r-2")
    categories = {alert["category"] for alert in contract.call("listAlerts", "Operator", 200)["items"]}
    assert categories >= {"destructive_signal", "security"}
    contract.signal("Operator", 200, "CANCEL", {}, run="r-2")
    again = contract.signal("Engineer", 200, "RETRY_RUN", {}, run="r-2")["engineResult"]["newRunId"]
    metadata = contract.call("getRun", "Operator", 200, run_id=again)["metadata"]
    assert metadata["originalRunId"] == "r-2"


def test_every_operation_was_seen_to_succeed(contract):
    """Of engine.yaml, by the tests above together; a new one has to be tried there."""
    engine = {name for name, (_, path, _, _) in contract.operations.items() if path.startswith("/engine/")}
    assert engine <= contract.done and len(engine) == 17


def test_the_judge_sees_what_the_contract_does_not_have(contract):
    """The control: an answer with a fault is refused, each kind of fault."""
    start(contract, runId="r-3")
    good = contract.call("getRun", "Operator", 200, run_id="r-3")
    contract.judge("getRun", 200, "application/json", good)
    wrong, short = copy.deepcopy(good), copy.deepcopy(good)
    wrong["steps"][0]["status"] = "DONE"
    del short["metadata"]
    for body in (wrong, short):
        with pytest.raises(jsonschema.ValidationError):
            contract.judge("getRun", 200, "application/json", body)
    with pytest.raises(AssertionError):
        contract.judge("getRun", 418, "application/json", good)
    problem = contract.call("getRun", "Operator", 404, run_id="none")
    with pytest.raises(AssertionError):
        contract.judge("getRun", 404, "application/problem+json", {**problem, "code": "PLAN_NOT_FOUND"})
