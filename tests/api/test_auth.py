"""Who may call: missing, malformed, unknown, expired and revoked keys, on every route that needs one."""
import base64
import uuid

import pytest

from harness.weir_server import wait_for

INVALID = "RFA_AUTH_INVALID_CREDENTIALS"


def guarded_calls(client_id, job_id):
    """(method, path, body) of every call that needs a client's key."""
    return [("POST", "/v1/jobs", {"type": "EXECUTE"}),
            ("POST", "/v1/jobs:batch", {"jobs": [{"type": "EXECUTE"}]}),
            ("GET", "/v1/jobs", None),
            ("GET", f"/v1/jobs/{job_id}", None),
            ("GET", f"/v1/jobs/{job_id}/report", None),
            ("GET", f"/v1/jobs/{job_id}/events", None),
            ("GET", f"/v1/jobs/{job_id}/explain", None),
            ("POST", f"/v1/jobs/{job_id}/cancel", None),
            ("POST", f"/v1/jobs/{job_id}/retry", None),
            ("GET", "/v1/reports", None),
            ("GET", "/v1/reports/summary", None),
            ("POST", "/v1/webhooks", {"url": "http://example.com/", "events": ["*"]}),
            ("GET", "/v1/webhooks", None),
            ("DELETE", f"/v1/webhooks/{uuid.uuid4()}", None),
            ("POST", f"/v1/clients/{client_id}/keys", {"rotate": True}),
            ("POST", f"/v1/clients/{client_id}/keys/renew", None),
            ("POST", f"/v1/clients/{client_id}/keys/revoke", {"key_id": "x"}),
            ("POST", f"/v1/clients/{client_id}/webhook-secret:rotate", None),
            ("POST", "/worker/v1/claim", {"worker_id": "w", "queues": ["q"], "max": 1})]


def malformed_headers(key):
    """Authorization values that carry no valid key, though some hold the right one."""
    _, number, secret = key.split("_", 2)
    last = "A" if secret[-1] != "A" else "E"
    return ["", "Bearer", "Bearer ", "Bearer  ", key, "Basic " + key, "Token " + key,
            "Basic " + base64.b64encode(f"{key}:".encode()).decode(),
            "Bearer " + key[:-1], "Bearer " + key + "A", "Bearer " + key[:-1] + last,
            "Bearer weir_" + "0" * 16 + "_" + secret, "Bearer weir_" + "f" * 16 + "_" + secret,
            f"Bearer weir_{number.upper()}_{secret}x", f"Bearer {key},{key}", "Bearer " + "x" * 4000]


def test_every_guarded_call_refuses_a_missing_or_wrong_key(weir, client):
    """[JOB-154 JOB-155 JOB-206 JOB-099 JOB-102] 401 with WWW-Authenticate, nothing done or shown."""
    job_id = weir.submit(client.api_key, queue="outside")["job_id"]
    before = weir.job(client.api_key, job_id)
    wrong = client.api_key[:-4] + ("AAAA" if client.api_key[-4:] != "AAAA" else "EEEE")
    for method, path, body in guarded_calls(client.client_id, job_id):
        for headers in ({}, {"Authorization": "Bearer " + wrong}):
            answer = weir.api(method, path, body, headers=headers)
            answer.expect_problem(401, INVALID)
            assert answer.headers["www-authenticate"].startswith("Bearer")
            assert before["created_at"] not in answer.text
    assert weir.job(client.api_key, job_id) == before
    assert weir.total(client.api_key) == 1
    assert weir.api("GET", "/v1/webhooks", key=client.api_key).expect(200)["items"] == []


def test_only_a_bearer_header_counts(weir, client):
    """[JOB-077 JOB-154] Other schemes, empty or damaged keys and query parameters are 401."""
    for value in malformed_headers(client.api_key):
        answer = weir.api("POST", "/v1/jobs", {"type": "EXECUTE"},
                          headers={"Authorization": value})
        answer.expect_problem(401, INVALID)
    for query in ("api_key", "key", "access_token", "token"):
        weir.api("GET", f"/v1/jobs?{query}={client.api_key}").expect_problem(401, INVALID)
    weir.api("GET", "/v1/jobs", headers={"X-Api-Key": client.api_key}).expect_problem(401, INVALID)
    assert weir.total(client.api_key) == 0


def test_the_scheme_is_matched_without_case(weir, client):
    for scheme in ("bearer", "BEARER", "Bearer"):
        weir.api("GET", "/v1/jobs", headers={"Authorization": f"{scheme} {client.api_key}"}).expect(
            200)


def test_a_key_of_nobody_is_unknown(weir, client):
    """[JOB-155 JOB-235] A well-formed key without a record is 401, not 403 (AJ-11)."""
    _, _, secret = client.api_key.split("_", 2)
    for number in ("0000000000000001", "7fffffffffffffff", "8000000000000000"):
        weir.api("GET", "/v1/jobs", key=f"weir_{number}_{secret}").expect_problem(401, INVALID)


def test_a_revoked_key_is_disabled_everywhere(weir, client):
    """[JOB-157 JOB-209 JOB-092] 403 RFA_AUTH_API_KEY_DISABLED on every guarded call."""
    job_id = weir.submit(client.api_key, queue="outside")["job_id"]
    keys = f"/v1/clients/{client.client_id}/keys"
    renewed = weir.api("POST", f"{keys}/renew", {}, client.api_key).expect(200)
    replaced = weir.api("GET", keys, key=client.api_key).expect(200)["items"][1]["key_id"]
    weir.api("POST", f"{keys}/revoke", {"key_id": replaced}, client.api_key).expect(200)
    for method, path, body in guarded_calls(client.client_id, job_id):
        weir.api(method, path, body, client.api_key).expect_problem(
            403, "RFA_AUTH_API_KEY_DISABLED")
    assert weir.job(renewed["api_key"], job_id)["state"] == "QUEUED"
    assert weir.total(renewed["api_key"]) == 1


@pytest.fixture(scope="module")
def short_lived(module_weir):
    """A server whose keys live one second."""
    return module_weir(settings={"keys.ttl_seconds": 1})


def test_an_expired_key_is_refused_everywhere(short_lived):
    """[JOB-156 JOB-207] 401 RFA_AUTH_TOKEN_EXPIRED; it cannot renew itself either."""
    weir = short_lived
    client = weir.new_client()
    job_id = weir.submit(client.api_key, queue="outside")["job_id"]
    wait_for(lambda: weir.api("GET", "/v1/jobs", key=client.api_key).status == 401, 5, "expiry")
    for method, path, body in guarded_calls(client.client_id, job_id):
        answer = weir.api(method, path, body, client.api_key)
        answer.expect_problem(401, "RFA_AUTH_TOKEN_EXPIRED")
        assert answer.headers["www-authenticate"].startswith("Bearer")
    assert weir.metric("jobs_submitted_total") == 1


def test_an_auth_failure_is_logged_with_its_reason_and_without_the_secret(fresh_weir):
    """[JOB-280] Known client: its id is in the line; junk key: no id, the same reason code. On a server of
    its own: such lines are limited by address."""
    weir = fresh_weir(settings={"runner.processes": 0})
    client = weir.new_client()
    keys = f"/v1/clients/{client.client_id}/keys"
    key_id = weir.api("GET", keys, key=client.api_key).expect(200)["items"][0]["key_id"]
    weir.api("POST", f"{keys}/revoke", {"key_id": key_id}, client.api_key).expect(200)
    refused = weir.api("GET", "/v1/jobs", key=client.api_key)
    line = weir.wait_log(request_id=refused.headers["x-request-id"])
    assert line["error_code"] == "RFA_AUTH_API_KEY_DISABLED" and line["error_message"]
    assert line["client_id"] == client.client_id
    junk = weir.api("GET", "/v1/jobs", key="junk-key-7731")
    line = weir.wait_log(request_id=junk.headers["x-request-id"])
    assert line["error_code"] == INVALID and "client_id" not in line
    assert client.api_key not in weir.log_text() and "junk-key-7731" not in weir.log_text()
