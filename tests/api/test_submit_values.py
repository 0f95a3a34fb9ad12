"""Fields of a submit over HTTP: how each kind of bad value is refused, and that a refusal leaves nothing.
Which values are good: tests/unit/jobs/test_submit.c, tests/unit/base/test_time_text.c, tests/unit/egress."""
import json
from datetime import datetime, timedelta, timezone

import pytest

MALFORMED = "RFA_REQUEST_MALFORMED"
INVALID = "RFA_JOB_VALIDATION_FAILED"
FUTURE = "2099-01-31T08:00:00Z"


def refused(weir, client, body, code, field):
    """Asserts 400, the code, the field's name in the detail, and that nothing was stored."""
    before = weir.metrics()
    problem = weir.api("POST", "/v1/jobs", body, client.api_key).expect_problem(400, code)
    assert field in problem["detail"], problem
    assert weir.total(client.api_key) == 0
    after = weir.metrics()
    for name in ("jobs_submitted_total", "jobs_queued_total", "job_queue_depth"):
        assert after[name] == before[name], f"{name} changed although {body} was refused"


def execute(**fields):
    """An EXECUTE body for a queue nobody serves."""
    return {"type": "EXECUTE", "queue": "outside", **fields}


def deferred(at):
    """A DEFERRED body."""
    return {"type": "DEFERRED", "queue": "outside", "execution_at": at}


@pytest.mark.parametrize("body, code, field", [
    ({}, MALFORMED, "type"),
    ({"type": 1}, MALFORMED, "type"),
    ({"type": "FOO"}, INVALID, "type"),
    ({"type": "EXECUTE\u0000"}, INVALID, "type"),
])
def test_the_type_must_be_one_of_three(weir, client, body, code, field):
    """[JOB-088 JOB-161 JOB-162 JOB-200] Missing or mistyped is malformed, unknown is invalid."""
    refused(weir, client, body, code, field)


@pytest.mark.parametrize("body", [
    {"type": "DEFERRED"},
    deferred((datetime.now(timezone.utc) - timedelta(seconds=1)).strftime("%Y-%m-%dT%H:%M:%SZ")),
    execute(execution_at=FUTURE),
])
def test_a_schedule_must_fit_the_type_and_lie_ahead(weir, client, body):
    """[JOB-061 JOB-130 JOB-161 JOB-163 JOB-210] Missing, past, or given for an instant job: 400."""
    refused(weir, client, body, INVALID, "execution_at")


@pytest.mark.parametrize("text", [
    "", "2024-13-40T99:00Z", "2099-01-31T08:00:00+01:00", "2099-01-31T08:00:00.0000000001Z",
])
def test_a_time_that_is_not_rfc_3339_utc_is_invalid(weir, client, text):
    """[JOB-089 JOB-164 JOB-210] The detail names execution_at."""
    refused(weir, client, deferred(text), INVALID, "execution_at")


@pytest.mark.parametrize("text, shown", [
    ("2099-01-31T08:00:00+00:00", "2099-01-31T08:00:00.000Z"),
    ("2096-02-29T23:59:59.5Z", "2096-02-29T23:59:59.500Z"),
])
def test_a_future_time_in_utc_is_taken(weir, client, text, shown):
    """[JOB-089 JOB-127] Z or +00:00, with or without a fraction."""
    job = weir.api("POST", "/v1/jobs", deferred(text), client.api_key).expect(202)
    assert job["state"] == "CREATED"
    assert weir.job(client.api_key, job["job_id"])["execution_at"] == shown


@pytest.mark.parametrize("url", ["ftp://example.com/x", "", "http:///path", "http://user:secret@example.com/",
                                 "http://" + "a" * 3000])
def test_a_callback_must_be_an_http_url_with_a_host(weir, client, url):
    """[JOB-090 JOB-165]"""
    refused(weir, client, execute(callback=url), INVALID, "callback")


@pytest.mark.parametrize("fields, field", [
    ({"queue": "a b"}, "queue"), ({"priority": 10 ** 30}, "priority"), ({"max_retries": 4}, "max_retries"),
    ({"max_runtime_ms": 125001, "work_kind": "SUCCESS_FAST"}, "max_runtime_ms"),
    ({"work_kind": "NOPE"}, "work_kind"), ({"work_kind": "PAYLOAD_INVALID"}, "work_kind"),
])
def test_a_value_out_of_range_is_invalid(weir, client, fields, field):
    """[JOB-020 JOB-052] PAYLOAD_INVALID is in the catalog and always refused."""
    refused(weir, client, {"type": "EXECUTE", "queue": "outside", **fields}, INVALID, field)


@pytest.mark.parametrize("fields, field", [
    ({"queue": 1}, "queue"), ({"payload": []}, "payload"), ({"priority": 4.5}, "priority"),
    ({"execution_at": 4073155200}, "execution_at"), ({"idempotency_key": ""}, "idempotency_key"),
    ({"idempotency_key": "k" * 256}, "idempotency_key"), ({"colour": "red"}, "colour"), ({"": 1}, ""),
])
def test_a_wrong_json_type_or_an_unknown_field_is_malformed(weir, client, fields, field):
    """[JOB-200]"""
    refused(weir, client, {"type": "EXECUTE", "queue": "outside", **fields}, MALFORMED, field)


@pytest.mark.parametrize("fields", [
    {"queue": "a" * 64}, {"priority": 9}, {"priority": 4.0}, {"max_runtime_ms": 86400000}, {"payload": {}},
    {"callback": None}, {"execution_at": None}, {"callback": "HTTPS://Example.COM:8443/A"},
    {"idempotency_key": "schlüssel \U0001F511"},
])
def test_values_at_the_edge_are_taken(weir, client, fields):
    weir.api("POST", "/v1/jobs", {"type": "EXECUTE", "queue": "outside", **fields},
             client.api_key).expect(202)


@pytest.mark.parametrize("body", ["", "null", "[{}]", '{"type":"EXECUTE","t\\u0079pe":"DEFERRED"}'])
def test_a_body_that_is_no_object_is_malformed(weir, client, body):
    """[JOB-200 JOB-161]"""
    weir.api("POST", "/v1/jobs", body, client.api_key).expect_problem(400, MALFORMED)
    assert weir.total(client.api_key) == 0


def test_a_payload_over_its_limit_is_invalid_and_one_at_it_is_taken(weir, client):
    """[JOB-289 JOB-166] 262144 bytes pass, one more is 400 though the body limit is higher."""
    room = 262144 - len('{"x":""}')
    fits = json.dumps({"x": "a" * room}, separators=(",", ":"))
    job = weir.api("POST", "/v1/jobs", '{"type":"EXECUTE","queue":"big","payload":%s}' % fits,
                   client.api_key).expect(202)
    assert len(weir.job(client.api_key, job["job_id"])["payload"]["x"]) == room
    over = json.dumps({"x": "a" * (room + 1)}, separators=(",", ":"))
    problem = weir.api("POST", "/v1/jobs", '{"type":"EXECUTE","queue":"big","payload":%s}' % over,
                       client.api_key).expect_problem(400, INVALID)
    assert "payload" in problem["detail"]
    assert weir.total(client.api_key) == 1
