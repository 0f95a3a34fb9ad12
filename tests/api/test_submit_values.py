"""Every field of a submit: which values are taken, which are refused and how; refusals leave nothing."""
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
    ({"work_kind": "SUCCESS_FAST"}, MALFORMED, "type"),
    ({"type": None}, MALFORMED, "type"),
    ({"type": 1}, MALFORMED, "type"),
    ({"type": ["EXECUTE"]}, MALFORMED, "type"),
    ({"type": "FOO"}, INVALID, "type"),
    ({"type": "execute"}, INVALID, "type"),
    ({"type": "EXECUTE "}, INVALID, "type"),
    ({"type": ""}, INVALID, "type"),
    ({"type": "EXECUTE\u0000"}, INVALID, "type"),
    ({"type": "X" * 5000}, INVALID, "type"),
])
def test_the_type_must_be_one_of_three(weir, client, body, code, field):
    """[JOB-088 JOB-161 JOB-162 JOB-200] Missing or mistyped is malformed, unknown is invalid."""
    refused(weir, client, body, code, field)


@pytest.mark.parametrize("body", [
    {"type": "DEFERRED"},
    {"type": "DEFERRED", "execution_at": None},
    deferred("2020-01-01T00:00:00Z"),
    deferred("1969-12-31T23:59:59Z"),
    deferred("0001-01-01T00:00:00Z"),
    deferred((datetime.now(timezone.utc) - timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")),
    deferred((datetime.now(timezone.utc) - timedelta(seconds=60)).strftime("%Y-%m-%dT%H:%M:%SZ")),
    deferred((datetime.now(timezone.utc) - timedelta(seconds=1)).strftime("%Y-%m-%dT%H:%M:%SZ")),
    execute(execution_at=FUTURE),
    {"type": "EMIT_EVENT", "execution_at": FUTURE},
])
def test_a_schedule_must_fit_the_type_and_lie_ahead(weir, client, body):
    """[JOB-061 JOB-130 JOB-161 JOB-163 JOB-210] Missing, past, or given for an instant job: 400."""
    refused(weir, client, body, INVALID, "execution_at")


@pytest.mark.parametrize("text", [
    "tomorrow", "", " ", "2099-01-31", "2099-01-31T08:00:00", "2099-01-31 08:00", "08:00:00Z",
    "2024-13-40T99:00Z", "2099-02-29T00:00:00Z", "2099-13-01T00:00:00Z", "2099-00-10T00:00:00Z",
    "2099-01-32T00:00:00Z", "2099-01-31T24:00:00Z", "2099-01-31T08:60:00Z",
    "2099-01-31T08:00:61Z", "2099-01-31T08:00:00+01:00", "2099-01-31T08:00:00-00:01",
    "2099-01-31T08:00:00ZZ", "2099-01-31T08:00:00.Z", "2099-01-31T08:00:00.0000000001Z",
    " 2099-01-31T08:00:00Z", "2099-01-31T08:00:00Z ", "+2099-01-31T08:00:00Z",
    "20990131T080000Z", "12099-01-31T08:00:00Z", "4073155200", "2099-1-31T08:00:00Z",
])
def test_a_time_that_is_not_rfc_3339_utc_is_invalid(weir, client, text):
    """[JOB-089 JOB-164 JOB-210] The detail names execution_at."""
    refused(weir, client, deferred(text), INVALID, "execution_at")


@pytest.mark.parametrize("value", [4073155200, 1.5, True, {}, []])
def test_a_time_that_is_not_a_text_is_malformed(weir, client, value):
    """[JOB-089]"""
    refused(weir, client, deferred(value), MALFORMED, "execution_at")


@pytest.mark.parametrize("text, shown", [
    ("2099-01-31T08:00:00Z", "2099-01-31T08:00:00.000Z"),
    ("2099-01-31T08:00:00+00:00", "2099-01-31T08:00:00.000Z"),
    ("2099-01-31T08:00:00.5Z", "2099-01-31T08:00:00.500Z"),
    ("2096-02-29T23:59:59.999Z", "2096-02-29T23:59:59.999Z"),
    ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59.000Z"),
])
def test_a_future_time_in_utc_is_taken(weir, client, text, shown):
    """[JOB-089 JOB-127] Z or +00:00, with or without a fraction."""
    job = weir.api("POST", "/v1/jobs", deferred(text), client.api_key).expect(202)
    assert job["state"] == "CREATED"
    assert weir.job(client.api_key, job["job_id"])["execution_at"] == shown


@pytest.mark.parametrize("kind", ["NOPE", "success_fast", "", "SUCCESS_FAST ", "PAYLOAD_INVALID",
                                  "SUCCESS_FAST\u0000", "S" * 3000])
def test_a_kind_outside_the_catalog_is_invalid(weir, client, kind):
    """[JOB-020 JOB-052] PAYLOAD_INVALID is in the catalog and always refused."""
    refused(weir, client, execute(work_kind=kind), INVALID, "work_kind")


@pytest.mark.parametrize("url", [
    "ftp://example.com/x", "file:///etc/passwd", "abc", "", "/hook", "//example.com/", "http://",
    "https://", "http:///path", "http:example.com", "http://?x", "http://#x", "http://:80/",
    "http://example.com:0/", "http://example.com:65536/", "http://example.com:x/",
    "http://exa mple.com/", "http://example.com/a b", "http://example.com/\n", "javascript:1",
    "http://user:secret@example.com/", "http://[::1", "http://[]/", "http://.example.com/",
    "http://example.com\\@evil/", "http://" + "a" * 3000, " http://example.com/", "gopher://x/",
    "https://example.com/a#b", "http://bücher.example/", "http://example.com/ü", "http://example.com./",
    "http://example.com:/", "http://example.com:080/", "http://127.1/", "http://0x7f000001/",
    "http://exa%6dple.com/", "http://a..b/", "http://-a.example/", "http://[fe80::1%25eth0]/",
])
def test_a_callback_must_be_an_http_url_with_a_host(weir, client, url):
    """[JOB-090 JOB-165]"""
    refused(weir, client, execute(callback=url), INVALID, "callback")


@pytest.mark.parametrize("url", [
    "http://example.com", "https://example.com/a/b?c=d", "http://127.0.0.1:9/hook",
    "http://[::1]:8080/x", "http://localhost/", "https://a-b.c_d.example.com:443/",
    "http://example.com?x=1", "HTTPS://Example.COM:8443/A", "https://xn--bcher-kva.example/%C3%BC",
])
def test_http_and_https_callbacks_are_taken(weir, client, url):
    """[JOB-090]"""
    job = weir.api("POST", "/v1/jobs", execute(callback=url), client.api_key).expect(202)
    assert weir.job(client.api_key, job["job_id"])["callback"] == url


@pytest.mark.parametrize("fields, field", [
    ({"queue": ""}, "queue"), ({"queue": "A"}, "queue"), ({"queue": "-a"}, "queue"),
    ({"queue": "a b"}, "queue"), ({"queue": "a/b"}, "queue"), ({"queue": "é"}, "queue"),
    ({"queue": "a" * 65}, "queue"), ({"queue": "a\n"}, "queue"),
    ({"priority": -1}, "priority"), ({"priority": 10}, "priority"),
    ({"priority": 10 ** 30}, "priority"), ({"priority": -10 ** 30}, "priority"),
    ({"max_runtime_ms": 0}, "max_runtime_ms"), ({"max_runtime_ms": 86400001}, "max_runtime_ms"),
    ({"max_runtime_ms": 125001, "work_kind": "SUCCESS_FAST"}, "max_runtime_ms"),
    ({"max_runtime_ms": -1}, "max_runtime_ms"), ({"max_runtime_ms": 2 ** 63}, "max_runtime_ms"),
    ({"max_retries": -1}, "max_retries"), ({"max_retries": 4}, "max_retries"),
])
def test_a_value_out_of_range_is_invalid(weir, client, fields, field):
    refused(weir, client, {"type": "EXECUTE", "queue": "outside", **fields}, INVALID, field)


@pytest.mark.parametrize("fields, field", [
    ({"queue": 1}, "queue"), ({"type": None}, "type"), ({"payload": "x"}, "payload"),
    ({"payload": []}, "payload"), ({"payload": 1}, "payload"), ({"priority": "4"}, "priority"),
    ({"priority": 4.5}, "priority"), ({"priority": True}, "priority"),
    ({"max_runtime_ms": "1"}, "max_runtime_ms"), ({"max_retries": 1.25}, "max_retries"),
    ({"callback": 7}, "callback"), ({"work_kind": 7}, "work_kind"),
    ({"idempotency_key": 7}, "idempotency_key"), ({"idempotency_key": ""}, "idempotency_key"),
    ({"idempotency_key": "k" * 256}, "idempotency_key"), ({"colour": "red"}, "colour"),
    ({"Type": "EXECUTE"}, "Type"), ({"executionAt": FUTURE}, "executionAt"),
    ({"": 1}, ""), ({"payload_size": 4096}, "payload_size"),
])
def test_a_wrong_json_type_or_an_unknown_field_is_malformed(weir, client, fields, field):
    """[JOB-200]"""
    refused(weir, client, {"type": "EXECUTE", "queue": "outside", **fields}, MALFORMED, field)


@pytest.mark.parametrize("fields", [
    {"queue": "a" * 64}, {"queue": "0._-"}, {"priority": 0}, {"priority": 9}, {"priority": 4.0},
    {"max_runtime_ms": 1}, {"max_runtime_ms": 86400000},
    {"max_runtime_ms": 125000, "work_kind": "SUCCESS_FAST"}, {"kind": "k" * 128}, {"retry": "auto"},
    {"max_retries": 0}, {"max_retries": 3},
    {"payload": {}}, {"callback": None}, {"execution_at": None}, {"idempotency_key": "k" * 255},
    {"idempotency_key": "schlüssel \U0001F511"},
])
def test_values_at_the_edge_are_taken(weir, client, fields):
    weir.api("POST", "/v1/jobs", {"type": "EXECUTE", "queue": "outside", **fields},
             client.api_key).expect(202)


@pytest.mark.parametrize("body", ["", "null", "[]", "7", '"EXECUTE"', "true", "[{}]"])
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


def test_duplicate_keys_in_a_body_are_malformed(weir, client):
    for body in ('{"type":"EXECUTE","type":"EXECUTE"}',
                 '{"type":"EXECUTE","payload":{"a":1,"a":2}}',
                 '{"type":"EXECUTE","t\\u0079pe":"DEFERRED"}'):
        weir.api("POST", "/v1/jobs", body, client.api_key).expect_problem(400, MALFORMED)
    assert weir.total(client.api_key) == 0
