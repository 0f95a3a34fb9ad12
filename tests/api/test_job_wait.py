"""GET /v1/jobs/{job_id}?wait_ms=: the answer comes with the end of the job, or when the time is over."""
import json
import socket

import pytest

from harness import wire
from harness.weir_server import wait_for


def get(weir, key, job_id, wait_ms):
    """The job, once it is final or the time is over."""
    return weir.api("GET", f"/v1/jobs/{job_id}?wait_ms={wait_ms}", key=key).expect(200)


def waiting(weir, key, job_id, wait_ms=30000):
    """A GET that waits: a background call."""
    return wire.Background(weir.address, f"/v1/jobs/{job_id}?wait_ms={wait_ms}", key)


def raw_get(key, job_id, more=""):
    """The bytes of a GET that waits."""
    return (f"GET /v1/jobs/{job_id}?wait_ms=30000 HTTP/1.1\r\nHost: localhost\r\n"
            f"Authorization: Bearer {key}\r\n{more}\r\n").encode()


@pytest.mark.parametrize("outcome", ["success", "failure", "cancel"])
def test_a_wait_ends_with_the_job(weir, client, outcome):
    key = client.api_key
    job_id = weir.submit(key, queue="outside", max_retries=0)["job_id"]
    with waiting(weir, key, job_id) as first, waiting(weir, key, job_id) as second:
        task = weir.claim(key)[0]
        weir.tell("start", key, task)
        assert not first.is_done()  # what happens on the way ends no wait
        if outcome == "cancel":
            weir.cancel(key, job_id).expect(200)
        else:
            weir.tell("finish", key, task, outcome=outcome)
        job = weir.job(key, job_id)
        assert first.result() == second.result() == job
    assert job["state"] == {"success": "SUCCEEDED", "failure": "FAILED", "cancel": "CANCELED"}[outcome]
    assert get(weir, key, job_id, 30000) == job  # at once


def test_a_wait_whose_time_is_over_tells_the_state_it_has_then(weir, client):
    job_id = weir.submit(client.api_key, queue="outside")["job_id"]
    assert get(weir, client.api_key, job_id, 0)["state"] == "QUEUED"
    assert get(weir, client.api_key, job_id, 150)["state"] == "QUEUED"
    with waiting(weir, client.api_key, job_id, 1500) as wait:
        task = weir.claim(client.api_key)[0]
        assert wait.result()["state"] == "ASSIGNED"
    weir.tell("release", client.api_key, task)


@pytest.mark.any_store
def test_who_may_not_see_a_job_may_not_wait_for_it(weir, client):
    job_id = weir.submit(client.api_key, queue="outside")["job_id"]
    path = f"/v1/jobs/{job_id}?wait_ms=30000"
    weir.api("GET", path, key=weir.new_client().api_key).expect_problem(403, "RFA_AUTH_FORBIDDEN")
    unknown = "/v1/jobs/019a8a3e-7c11-7a52-9c35-1f2e3d4c5b6a?wait_ms=30000"
    weir.api("GET", unknown, key=client.api_key).expect_problem(404, "RFA_JOB_NOT_FOUND")
    for bad in ("-1", "30001", "x", "1.5", ""):
        weir.api("GET", f"/v1/jobs/{job_id}?wait_ms={bad}", key=client.api_key).expect_problem(
            400, "RFA_REQUEST_MALFORMED")


def test_a_wait_ends_with_its_key_and_others_go_on(weir, client):
    """Revoked, or at its end: with the problem that the next call with this key would get."""
    keys = f"/v1/clients/{client.client_id}/keys"
    made = weir.api("POST", keys, {"name": "x"}, client.api_key).expect(201)
    short = weir.api("POST", keys, {"name": "y", "expires_in_seconds": 1}, client.api_key).expect(201)
    job_id = weir.submit(client.api_key, queue="outside")["job_id"]
    with waiting(weir, made["api_key"], job_id) as revoked, \
            waiting(weir, short["api_key"], job_id) as expired, \
            waiting(weir, client.api_key, job_id) as other:
        weir.api("POST", keys + "/revoke", {"key_id": made["key_id"]}, client.api_key).expect(200)
        revoked.response().expect_problem(403, "RFA_AUTH_API_KEY_DISABLED")
        expired.response().expect_problem(401, "RFA_AUTH_TOKEN_EXPIRED")
        assert not other.is_done()
        weir.cancel(client.api_key, job_id).expect(200)
        assert other.result()["state"] == "CANCELED"


@pytest.mark.any_store
def test_a_connection_serves_on_after_a_wait_and_the_head_is_not_waited_for(weir, client):
    """HEAD asks for no body, so it is answered at once; then two GETs over the same connection."""
    key = client.api_key
    job_id = weir.submit(key, queue="outside")["job_id"]
    connection = wire.connect(weir.address, 60)
    try:
        for method, state in (("HEAD", None), ("GET", "CANCELED"), ("GET", "CANCELED")):
            connection.request(method, f"/v1/jobs/{job_id}?wait_ms=30000",
                               headers={"Authorization": "Bearer " + key})
            if state:
                weir.cancel(key, job_id).expect(200)
            answer = connection.getresponse()
            assert answer.status == 200 and int(answer.headers["Content-Length"]) > 100
            body = answer.read()
            assert body == b"" if state is None else json.loads(body)["state"] == state
    finally:
        connection.close()


@pytest.mark.any_store
def test_a_client_that_sends_no_more_is_answered_at_once_and_one_that_left_is_forgotten(weir, client):
    """Half-closed it hears what there is; the server holds nothing of those that are gone."""
    job_id = weir.submit(client.api_key, queue="outside")["job_id"]
    received = wire.send_raw(weir.address, raw_get(client.api_key, job_id), timeout=60, half_close=True)
    assert received.startswith(b"HTTP/1.1 200 ") and b'"state":"QUEUED"' in received
    for _ in range(3):
        with socket.create_connection(weir.address, timeout=60) as connection:
            connection.sendall(raw_get(client.api_key, job_id))
    weir.cancel(client.api_key, job_id).expect(200)
    assert get(weir, client.api_key, job_id, 30000)["state"] == "CANCELED"


def test_a_wait_ends_when_the_server_stops(fresh_weir):
    """With the state as it is: it does not hold up the stop."""
    weir = fresh_weir(settings={"runner.processes": 0})
    key = weir.new_client().api_key
    job_id = weir.submit(key)["job_id"]
    with waiting(weir, key, job_id) as wait:
        wait_for(lambda: weir.metric("weir_http_connections") > 1, 20, "the call to wait", weir)
        weir.stop()
        assert wait.result()["state"] == "QUEUED"
