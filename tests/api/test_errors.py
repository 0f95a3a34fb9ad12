"""Every error a client can reach: code, status, problem document, headers, and the order of checks."""
import itertools
import re
import uuid

import pytest

CATALOG = {
    "RFA_REQUEST_MALFORMED": 400, "RFA_REQUEST_UNSUPPORTED_MEDIA_TYPE": 415,
    "RFA_REQUEST_METHOD_NOT_ALLOWED": 405, "RFA_REQUEST_NOT_ACCEPTABLE": 406,
    "RFA_REQUEST_PAYLOAD_TOO_LARGE": 413, "RFA_REQUEST_RATE_LIMITED": 429,
    "RFA_AUTH_INVALID_CREDENTIALS": 401, "RFA_AUTH_TOKEN_EXPIRED": 401, "RFA_AUTH_FORBIDDEN": 403,
    "RFA_AUTH_API_KEY_DISABLED": 403, "RFA_JOB_VALIDATION_FAILED": 400, "RFA_JOB_NOT_FOUND": 404,
    "RFA_JOB_CONFLICT": 409, "RFA_EXEC_IDEMPOTENCY_CONFLICT": 409, "RFA_INTERNAL": 500,
    "RFA_STORAGE_DB_ERROR": 503, "RFA_STORAGE_UNAVAILABLE": 503, "RFA_EXEC_QUEUE_FULL": 503,
    "RFA_EXEC_WORKER_UNAVAILABLE": 503, "RFA_EXEC_TIMEOUT": 504, "RFA_DEPENDENCY_TIMEOUT": 504,
    "RFA_CONFIG_INVALID": 503,
    "RFA_CLIENT_NOT_FOUND": 404, "RFA_AUTH_KEY_NOT_FOUND": 404, "RFA_WEBHOOK_NOT_FOUND": 404,
    "RFA_QUEUE_NOT_FOUND": 404,
    "RFA_JOB_REPORT_NOT_FOUND": 404, "RFA_REQUEST_ROUTE_NOT_FOUND": 404,
    "RFA_WEBHOOK_CONFLICT": 409, "RFA_AUTH_KEY_CONFLICT": 409,
}
EXECUTE = {"type": "EXECUTE", "queue": "o"}
TEXT = {"Content-Type": "text/plain"}
HTML = {"Accept": "text/html"}


@pytest.fixture(scope="module")
def tight(module_weir):
    """A server with small limits: every load error can be reached."""
    return module_weir(settings={"limits.requests_per_minute": 0, "jobs.queue_size": 2,
                                 "runner.processes": 0, "jobs.retry_max": 0})


def test_every_error_a_client_can_cause_is_a_full_problem(weir, client, tight):
    """[JOB-199 JOB-226 JOB-227 JOB-228 JOB-229 JOB-230 JOB-231 JOB-232 JOB-225] One after the
    other, each with its status; type and title are the same for the same code."""
    key, missing = client.api_key, uuid.uuid4()
    first = weir.submit(key, idempotency_key="e1", queue="o")["job_id"]
    foreign = weir.new_client().api_key
    hook = {"url": "http://example.com/", "events": ["*"]}
    weir.api("POST", "/v1/webhooks", hook, key).expect(201)
    full = tight.new_client().api_key
    failed = tight.failed_job(full)
    for _ in range(2):
        tight.submit(full, queue="o")
    found = [
        weir.api("POST", "/v1/jobs", "{", key), weir.api("POST", "/v1/jobs", {}, key),
        weir.api("POST", "/v1/jobs", EXECUTE, key, TEXT), weir.api("PUT", "/v1/jobs", {}, key),
        weir.api("GET", "/v1/jobs", key=key, headers=HTML),
        weir.api("POST", "/v1/jobs", b"x" * 1048577, key),
        weir.api("GET", "/v1/jobs"), weir.api("GET", "/v1/jobs", key="junk"),
        weir.api("GET", f"/v1/jobs/{first}", key=foreign),
        weir.try_submit(key, work_kind="NOPE"), weir.api("GET", f"/v1/jobs/{missing}", key=key),
        weir.api("GET", f"/v1/jobs/{first}/report", key=key),
        weir.try_submit(key, idempotency_key="e1", queue="p"),
        weir.api("POST", f"/v1/clients/{missing}/keys"),
        weir.api("POST", f"/v1/clients/{client.client_id}/keys/revoke", {"key_id": "x"}, key),
        weir.api("DELETE", f"/v1/webhooks/{missing}", key=key),
        weir.api("POST", "/v1/webhooks", hook, key), weir.api("GET", "/nowhere"),
        tight.try_submit(full, queue="o"), tight.retry(full, failed),
    ]
    by_code = {}
    for answer in found:
        problem = answer.json
        code = problem["code"]
        assert re.match(r"^RFA_[A-Z]+_?[A-Z_]*$", code)
        answer.expect_problem(CATALOG[code], code)
        by_code.setdefault(code, []).append((problem["type"], problem["title"]))
    assert len(by_code) == 18
    for seen in by_code.values():
        assert len(set(seen)) == 1
    assert len({seen[0][0] for seen in by_code.values()}) == len(by_code)


def test_details_are_of_this_case(weir, client):
    """[JOB-230] Two faults of one code have two texts, each naming its field."""
    one = weir.try_submit(client.api_key, priority=10).json["detail"]
    two = weir.try_submit(client.api_key, queue="BAD").json["detail"]
    assert "priority" in one and "queue" in two


@pytest.mark.parametrize("method, path, allow", [
    ("PUT", "/v1/jobs", {"GET", "HEAD", "POST"}), ("DELETE", "/v1/jobs", {"GET", "HEAD", "POST"}),
    ("GET", "/v1/clients", {"POST"}), ("GET", "/v1/jobs:batch", {"POST"}),
    ("POST", "/v1/reports", {"GET", "HEAD"}), ("PATCH", "/v1/jobs/x", {"GET", "HEAD"}),
    ("GET", "/v1/jobs/x/cancel", {"POST"}), ("GET", "/v1/webhooks/x", {"DELETE"}),
    ("POST", "/healthz", {"GET", "HEAD"}), ("OPTIONS", "/v1/jobs", {"GET", "HEAD", "POST"}),
    ("BREW", "/v1/jobs", {"GET", "HEAD", "POST"}), ("TRACE", "/v1/jobs", {"GET", "HEAD", "POST"}),
])
def test_another_method_is_405_with_allow(weir, method, path, allow):
    """[JOB-202] Before any look at the key."""
    answer = weir.api(method, path, headers={"Content-Length": "0"})
    answer.expect_problem(405, "RFA_REQUEST_METHOD_NOT_ALLOWED")
    got = {name.strip() for name in answer.headers["allow"].split(",")}
    assert got - {"HEAD"} == allow - {"HEAD"}


@pytest.mark.parametrize("path", [
    "/", "/v1", "/v1/", "/clients", "/jobs", "/v2/jobs", "/v1/job", "/v1/jobs/", "/v1//jobs",
    "/V1/jobs", "/v1/jobs/x/", "/v1/jobs/x/y", "/v1/jobs/x/report/", "/v1/../v1/jobs", "/v1/./jobs",
    "/v1/jobs;x", "/v1/jobs.json", "/v1/jobs/x/cancel/now", "/healthz/", "/worker/v1", "/openapi",
])
def test_an_unknown_path_is_404(weir, client, path):
    """[JOB-075] Only the exact paths exist; no redirect to a neighbour."""
    for method in ("GET", "POST"):
        weir.api(method, path, key=client.api_key).expect_problem(
            404, "RFA_REQUEST_ROUTE_NOT_FOUND")


def test_the_base_path_is_needed(weir):
    """[JOB-075]"""
    weir.api("POST", "/v1/clients").expect(201)
    weir.api("POST", "/clients").expect_problem(404, "RFA_REQUEST_ROUTE_NOT_FOUND")


@pytest.mark.parametrize("kind", ["text/plain", "application/xml", "application/jsonx", "json", "",
                                  "application/x-www-form-urlencoded", "application/json; charset=latin1",
                                  "application/problem+json", "multipart/form-data"])
def test_another_content_type_is_415(weir, client, kind):
    """[JOB-076 JOB-201]"""
    weir.api("POST", "/v1/jobs", EXECUTE, client.api_key, {"Content-Type": kind}).expect_problem(
        415, "RFA_REQUEST_UNSUPPORTED_MEDIA_TYPE")
    assert weir.total(client.api_key) == 0


@pytest.mark.parametrize("kind", ["application/json", "Application/JSON", "application/json;charset=utf-8",
                                  "application/json; charset=UTF-8", 'application/json; charset="utf-8"'])
def test_json_in_utf_8_is_taken(weir, client, kind):
    """[JOB-076]"""
    answer = weir.api("POST", "/v1/jobs", EXECUTE, client.api_key, {"Content-Type": kind})
    answer.expect(202)
    assert answer.headers["content-type"].split(";")[0] == "application/json"


def test_an_empty_body_needs_no_content_type(weir, client):
    weir.api("POST", "/v1/clients", headers={"Content-Type": None}).expect(201)
    job_id = weir.submit(client.api_key, queue="o")["job_id"]
    weir.api("POST", f"/v1/jobs/{job_id}/cancel", key=client.api_key).expect(200)
    weir.api("POST", f"/v1/jobs/{job_id}/cancel", b"{}", client.api_key, TEXT).expect_problem(
        415, "RFA_REQUEST_UNSUPPORTED_MEDIA_TYPE")
    weir.api("POST", "/v1/jobs", EXECUTE, client.api_key, {"Content-Type": None}).expect_problem(
        415, "RFA_REQUEST_UNSUPPORTED_MEDIA_TYPE")


@pytest.mark.parametrize("accept", ["text/html", "application/xml", "image/*", "text/*",
                                    "application/json;q=0", "*/*;q=0", "text/html, image/png"])
def test_an_accept_that_cannot_be_met_is_406(weir, client, accept):
    """[JOB-203]"""
    weir.api("GET", "/v1/jobs", key=client.api_key, headers={"Accept": accept}).expect_problem(
        406, "RFA_REQUEST_NOT_ACCEPTABLE")
    weir.api("POST", "/v1/jobs", EXECUTE, client.api_key, {"Accept": accept}).expect_problem(
        406, "RFA_REQUEST_NOT_ACCEPTABLE")
    assert weir.total(client.api_key) == 0


@pytest.mark.parametrize("accept", ["*/*", "application/json", "application/*", "APPLICATION/JSON", "",
                                    "text/html, */*;q=0.1", "application/json;q=0.5, text/html",
                                    "application/problem+json", "application/json; charset=utf-8"])
def test_an_accept_that_covers_json_passes(weir, client, accept):
    """[JOB-203]"""
    weir.api("GET", "/v1/jobs", key=client.api_key, headers={"Accept": accept}).expect(200)


def test_problems_are_served_whatever_json_the_client_accepts(weir, client):
    """[JOB-226] application/problem+json, also for Accept: application/json and */*."""
    for accept in ("application/json", "*/*", "application/problem+json"):
        weir.api("GET", f"/v1/jobs/{uuid.uuid4()}", key=client.api_key,
                 headers={"Accept": accept}).expect_problem(404, "RFA_JOB_NOT_FOUND")


def test_a_body_at_the_limit_passes_and_one_more_byte_does_not(weir, client):
    """[JOB-204 JOB-166] 1048576 bytes against 1048577."""
    start = b'{"type":"EXECUTE","queue":"o"'
    fits = start + b" " * (1048576 - len(start) - 1) + b"}"
    weir.api("POST", "/v1/jobs", fits, client.api_key).expect(202)
    over = start + b" " * (1048577 - len(start) - 1) + b"}"
    weir.api("POST", "/v1/jobs", over, client.api_key).expect_problem(
        413, "RFA_REQUEST_PAYLOAD_TOO_LARGE")
    assert weir.total(client.api_key) == 1


# ---- the order of checks (AJ-12): route, method, auth, rate limit, Accept, Content-Type, size, JSON,
# fields, ownership or values, state. Each fault is a change to one good call; of two faults the
# earlier one is told.

FAULTS = ["auth", "accept", "type", "size", "json", "field", "value"]
TOLD = {"auth": (401, "RFA_AUTH_INVALID_CREDENTIALS"), "accept": (406, "RFA_REQUEST_NOT_ACCEPTABLE"),
        "type": (415, "RFA_REQUEST_UNSUPPORTED_MEDIA_TYPE"),
        "size": (413, "RFA_REQUEST_PAYLOAD_TOO_LARGE"), "json": (400, "RFA_REQUEST_MALFORMED"),
        "field": (400, "RFA_REQUEST_MALFORMED"), "value": (400, "RFA_JOB_VALIDATION_FAILED")}


def faulty_submit(weir, key, faults):
    """A submit with these faults."""
    body = '{"type":"EXECUTE","queue":"%s"%s%s' % (
        "BAD" if "value" in faults else "o", ',"colour":1' if "field" in faults else "",
        "" if "json" in faults else "}")
    if "size" in faults:
        body += " " * 1048576
    headers = {}
    if "accept" in faults:
        headers["Accept"] = "text/html"
    if "type" in faults:
        headers["Content-Type"] = "text/plain"
    return weir.api("POST", "/v1/jobs", body, None if "auth" in faults else key, headers)


@pytest.mark.parametrize("pair", itertools.combinations(FAULTS, 2), ids="-".join)
def test_of_two_faults_the_earlier_check_answers(weir, client, pair):
    """[JOB-160 JOB-225]"""
    faulty_submit(weir, client.api_key, pair).expect_problem(*TOLD[pair[0]])
    assert weir.total(client.api_key) == 0


def test_route_and_method_come_before_everything(weir, client):
    bad = {"Accept": "text/html", "Content-Type": "text/plain"}
    weir.api("POST", "/v1/nothing", b"{", None, bad).expect_problem(
        404, "RFA_REQUEST_ROUTE_NOT_FOUND")
    weir.api("PUT", "/v1/jobs", b"{", None, bad).expect_problem(
        405, "RFA_REQUEST_METHOD_NOT_ALLOWED")
    weir.api("PUT", "/v1/jobs", b"x" * 1048577, client.api_key, bad).expect_problem(
        405, "RFA_REQUEST_METHOD_NOT_ALLOWED")


def test_fields_come_before_ownership_and_ownership_before_state(weir, client):
    job_id = weir.submit(client.api_key, queue="o")["job_id"]
    other = weir.new_client().api_key
    weir.api("POST", f"/v1/jobs/{job_id}/cancel", {"x": 1}, other).expect_problem(
        400, "RFA_REQUEST_MALFORMED")
    weir.api("POST", f"/v1/jobs/{job_id}/retry", key=other).expect_problem(
        403, "RFA_AUTH_FORBIDDEN")
    weir.api("GET", f"/v1/jobs/{job_id}/report", key=other).expect_problem(
        403, "RFA_AUTH_FORBIDDEN")
    weir.api("GET", f"/v1/jobs/{job_id}/events?limit=0", key=other).expect_problem(
        400, "RFA_REQUEST_MALFORMED")


def test_success_statuses_are_the_documented_ones(weir, client):
    """[JOB-223] 200 reads and actions, 201 creates, 202 acceptance."""
    key, calls = client.api_key, []
    job_id = weir.submit(key, queue="o")["job_id"]
    for method, path, body, status in (
            ("POST", "/v1/clients", None, 201),
            ("POST", f"/v1/clients/{client.client_id}/keys", {}, 201),
            ("POST", "/v1/jobs", EXECUTE, 202), ("POST", "/v1/jobs:batch", {"jobs": [EXECUTE]}, 202),
            ("GET", "/v1/jobs", None, 200), ("GET", f"/v1/jobs/{job_id}", None, 200),
            ("POST", f"/v1/jobs/{job_id}/retry", None, 200),
            ("POST", f"/v1/jobs/{job_id}/cancel", None, 200),
            ("GET", f"/v1/jobs/{job_id}/report", None, 200),
            ("GET", f"/v1/jobs/{job_id}/events", None, 200),
            ("GET", f"/v1/jobs/{job_id}/explain", None, 200), ("GET", "/v1/reports", None, 200),
            ("GET", "/v1/reports/summary", None, 200),
            ("POST", "/v1/webhooks", {"url": "http://example.com/", "events": ["*"]}, 201),
            ("GET", "/v1/webhooks", None, 200),
            ("POST", f"/v1/clients/{client.client_id}/webhook-secret:rotate", None, 200),
            ("POST", f"/v1/clients/{client.client_id}/keys/renew", {}, 200)):
        answer = weir.api(method, path, body, key)
        answer.expect(status)
        calls.append(answer)
        assert answer.headers["content-type"].startswith("application/json")
        assert uuid.UUID(answer.headers["x-request-id"])
    assert len({a.headers["x-request-id"] for a in calls}) == len(calls)


def test_internals_never_show_in_a_problem(weir, client):
    """[JOB-225] No SQL, no file names, no addresses in what a client is told."""
    for answer in (weir.api("POST", "/v1/jobs", "{'", client.api_key),
                   weir.try_submit(client.api_key, queue="'; drop table jobs; --"),
                   weir.api("GET", "/v1/jobs?cursor='%22", key=client.api_key)):
        text = answer.text.lower()
        assert answer.status == 400
        for word in ("sqlite", "select", ".c:", "0x", "weir.db", "/tmp"):
            assert word not in text
