"""What holds for every list and every body: unknown query parameters, letter case of states, null."""
import os

import pytest
import yaml

from harness.contract_statuses import NAMES
from harness.engine_calls import Engine
from harness.weir_server import REPOSITORY
from harness.worker_calls import Worker

OPENAPI = os.path.join(REPOSITORY, "contracts", "openapi")


def resolved(document, parameter):
    """A parameter, its reference followed."""
    name = parameter.get("$ref", "").rsplit("/", 1)[-1]
    return document["components"]["parameters"][name] if name else parameter


def gets():
    """(contract, operationId, path, query parameters) of every GET."""
    for name in NAMES:
        with open(os.path.join(OPENAPI, name + ".yaml"), encoding="utf-8") as file:
            document = yaml.safe_load(file)
        for path, item in document["paths"].items():
            if "get" not in item:
                continue
            declared = item.get("parameters", []) + item["get"].get("parameters", [])
            query = [p["name"] for p in (resolved(document, p) for p in declared) if p["in"] == "query"]
            yield name, item["get"]["operationId"], path, query


LISTS = [(name, operation, path) for name, operation, path, query in gets()
         if operation.startswith("list") or len(query) > 1]


@pytest.fixture(name="callers", scope="module")
def callers_of(weir):
    """A credential for each contract; None: none is needed on this machine."""
    engine = Engine(weir, "acme-lists")
    return {"jobs": weir.new_client().api_key, "engine": engine.token(), "ops": None}


def test_there_are_lists_in_every_contract():
    """Or the test below would test nothing."""
    assert {name for name, _, _ in LISTS} == {"jobs", "engine", "ops"}
    assert {"listJobs", "listReports", "getJobEvents", "listWebhooks", "listKeys", "listRuns", "listPlans",
            "getRunEvents", "listClients", "listOperatorActions"} <= {operation for _, operation, _ in LISTS}


@pytest.mark.parametrize("name, operation, path", LISTS, ids=[operation for _, operation, _ in LISTS])
def test_a_list_refuses_a_query_parameter_it_does_not_know(weir, callers, name, operation, path):
    """400 names it and says what there is; a wrong filter never gives everything."""
    some_id = "01a1e1b6-8d59-7000-83cb-edd1fe63451b"
    real = path.replace("{client_id}", some_id).replace("{job_id}", some_id)
    for part in ("webhook_id", "run_id", "signal_id", "queue"):
        real = real.replace("{" + part + "}", some_id)
    for query in ("stat=FAILED", "limit=1&Limit=2", "%73tatus_=x", "nonsense"):
        answer = weir.api("GET", f"{real}?{query}", key=callers[name])
        problem = answer.expect_problem(400, "RFA_REQUEST_MALFORMED")
        assert "there is no query parameter" in problem["detail"], (operation, problem)


def test_other_calls_ignore_query_parameters_they_do_not_know(weir):
    key = weir.new_client().api_key
    job_id = weir.submit(key, queue="o")["job_id"]
    assert weir.api("GET", f"/v1/jobs/{job_id}?nonsense=1", key=key).expect(200)["job_id"] == job_id
    weir.api("GET", "/readyz?nonsense=1").expect(200)


def test_what_a_list_takes_is_told(weir):
    key = weir.new_client().api_key
    problem = weir.api("GET", "/v1/jobs?stat=FAILED", key=key).expect_problem(400, "RFA_REQUEST_MALFORMED")
    assert "no query parameter stat; this list takes state, type" in problem["detail"]
    assert weir.api("GET", "/v1/jobs?&st%61te=QUEUED&", key=key).expect(200)["items"] == []


def test_states_are_taken_in_any_letter_case(weir):
    """In query filters and on the command line."""
    client = weir.new_client()
    job_id = weir.failed_job(client.api_key)
    for query in ("state=failed", "state=Failed", "outcome=failed", "outcome=FAILED&state=fAILED"):
        listed = weir.api("GET", f"/v1/jobs?{query}", key=client.api_key).expect(200)["items"]
        assert [job["job_id"] for job in listed] == [job_id], query
    assert weir.cli("job", "list", "--state", "failed", "-q", key=client.api_key).stdout.strip() == job_id
    assert weir.api("GET", "/ops/v1/clients?state=ACTIVE&limit=1").expect(200)["items"]
    engine = Engine(weir, "acme-case")
    engine.put_plan("case", "a")
    run_id = engine.start("case")
    assert engine.call("GET", "/runs?status=pending").expect(200)["items"][0]["runId"] == run_id
    weir.api("GET", "/v1/jobs?state=fail", key=client.api_key).expect_problem(400, "RFA_REQUEST_MALFORMED")


NULLS = {"execution_at": None, "callback": None, "queue": None, "work_kind": None, "payload": None,
         "priority": None, "max_runtime_ms": None, "max_retries": None, "queue_ttl_seconds": None}


def test_null_in_a_submit_is_as_if_absent_also_when_repeats_are_compared(weir):
    """One of the two may have been written by a client that sends every member."""
    key = weir.new_client().api_key
    plain = {"type": "EXECUTE", "idempotency_key": "nulls"}
    first = weir.api("POST", "/v1/jobs", {**NULLS, **plain}, key).expect(202)
    again = weir.api("POST", "/v1/jobs", plain, key)
    assert again.expect(202)["job_id"] == first["job_id"] and again.headers["idempotency-replayed"] == "true"
    jobs = [{**NULLS, **plain}, {**NULLS, "type": "EXECUTE"}]
    results = weir.api("POST", "/v1/jobs:batch", {"jobs": jobs}, key).expect(202)["results"]
    assert results[0]["job_id"] == first["job_id"] and "job_id" in results[1]
    other = weir.api("POST", "/v1/jobs", {**plain, "priority": 5}, key)
    other.expect_problem(409, "RFA_EXEC_IDEMPOTENCY_CONFLICT")


def test_null_for_a_needed_or_unknown_member_is_refused(weir):
    key = weir.new_client().api_key
    for body in ({"type": None}, {"type": "EXECUTE", "nonsense": None}):
        weir.api("POST", "/v1/jobs", body, key).expect_problem(400, "RFA_REQUEST_MALFORMED")


def test_null_inside_a_payload_stays(weir):
    """It is the caller's own."""
    key = weir.new_client().api_key
    job_id = weir.submit(key, queue="o", payload={"a": None, "payload": {"b": None}})["job_id"]
    assert weir.job(key, job_id)["payload"] == {"a": None, "payload": {"b": None}}


def test_null_in_worker_calls_is_as_if_absent(weir):
    """Claim, and finish with its error inside."""
    key = weir.new_client().api_key
    job_id = weir.submit(key, queue="nulls", retry="manual")["job_id"]
    claim = {"worker_id": "w", "queues": ["nulls"], "max": 1, "wait_ms": None, "start": None}
    task, = weir.api("POST", "/worker/v1/claim", claim, key).expect(200)["tasks"]
    assert Worker(weir, key, "nulls").start([task])[0]["ok"]
    item = {"task_id": task["task_id"], "token": task["token"], "outcome": "failure", "result": None,
            "error": {"code": "c", "message": "m", "retryable": None}}
    result, = weir.api("POST", "/worker/v1/finish", {"tasks": [item]}, key).expect(200)["results"]
    assert result["ok"] is True, result
    report = weir.api("GET", f"/v1/jobs/{job_id}/report", key=key).expect(200)
    assert report["error"]["code"] == "c"
