"""Bodies are read only after the head has passed: route, credentials, rate, types, size."""
import json
import socket

import pytest

from harness import wire
from harness.weir_server import wait_for

MIB = 1 << 20
FULL = "RFA_EXEC_QUEUE_FULL"
TOO_LARGE = "RFA_REQUEST_PAYLOAD_TOO_LARGE"
UNSUPPORTED = "RFA_REQUEST_UNSUPPORTED_MEDIA_TYPE"


def head(path, length, key=None, *more):
    """The head of a POST whose body has `length` bytes."""
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json",
             f"Content-Length: {length}", *more]
    if key:
        lines.append(f"Authorization: Bearer {key}")
    return "\r\n".join(lines + ["", ""]).encode()


def read_answer(connection):
    """(status, body) of one answer."""
    received = b""
    while b"\r\n\r\n" not in received:
        piece = connection.recv(65536)
        assert piece, f"the connection ended: {received!r}"
        received += piece
    top, _, rest = received.partition(b"\r\n\r\n")
    status = int(top.split()[1])
    length = next((int(line.split(b":")[1]) for line in top.split(b"\r\n")
                   if line.lower().startswith(b"content-length:")), 0)
    while len(rest) < length:
        rest += connection.recv(65536)
    return status, rest


def ask(weir, *pieces):
    """Sends the first piece, and each next one after an answer; gives the answers."""
    with socket.create_connection(weir.address, timeout=30) as connection:
        answers = []
        for piece in pieces:
            connection.sendall(piece)
            answers.append(read_answer(connection))
        return answers


def code(answer):
    """Status and problem code."""
    return answer[0], json.loads(answer[1])["code"]


@pytest.mark.parametrize("what,sent,expected", [
    ("no credentials", lambda key: head("/v1/jobs", MIB), (401, "RFA_AUTH_INVALID_CREDENTIALS")),
    ("another key", lambda key: head("/v1/jobs", MIB, "weir_0000000000000001_" + "A" * 43),
     (401, "RFA_AUTH_INVALID_CREDENTIALS")),
    ("no such path", lambda key: head("/v1/nothing", MIB), (404, "RFA_REQUEST_ROUTE_NOT_FOUND")),
    ("too large", lambda key: head("/v1/jobs", 2 * MIB, key), (413, TOO_LARGE)),
    ("another type", lambda key: head("/v1/jobs", 10, key).replace(b"application/json", b"text/plain"),
     (415, UNSUPPORTED)),
    ("no Accept", lambda key: head("/v1/jobs", 10, key, "Accept: image/png"),
     (406, "RFA_REQUEST_NOT_ACCEPTABLE")),
    ("compressed", lambda key: head("/v1/jobs", 10, key, "Content-Encoding: gzip"), (415, UNSUPPORTED)),
    ("large and nobody's", lambda key: head("/v1/clients", 20000), (413, TOO_LARGE)),
])
def test_a_head_that_does_not_pass_is_answered_without_its_body(weir, client, what, sent, expected):
    """Not one byte of the body is sent, with Expect or without; no 100 comes."""
    request = sent(client.api_key)
    assert code(ask(weir, request)[0]) == expected, what
    expecting = request.replace(b"\r\n\r\n", b"\r\nExpect: 100-continue\r\n\r\n")
    assert code(ask(weir, expecting)[0]) == expected, what


def test_a_head_that_passes_is_told_to_continue(weir, client):
    """100, then the body, then the answer."""
    body = json.dumps({"type": "EXECUTE", "queue": "outside"}).encode()
    answers = ask(weir, head("/v1/jobs", len(body), client.api_key, "Expect: 100-continue"), body)
    assert [status for status, _ in answers] == [100, 202]


def test_the_client_over_its_rate_is_told_before_its_body_is_read(fresh_weir):
    """429 for the head alone."""
    weir = fresh_weir(settings={"limits.requests_per_minute": 1, "runner.processes": 0})
    key = weir.new_client().api_key
    weir.api("GET", "/v1/jobs", key=key).expect(200)
    assert code(ask(weir, head("/v1/jobs", MIB, key))[0]) == (429, "RFA_REQUEST_RATE_LIMITED")


def test_identity_is_no_content_encoding(weir, client):
    """It says that there is none."""
    weir.api("POST", "/v1/jobs", {"type": "EXECUTE", "queue": "outside"}, client.api_key,
             headers={"Content-Encoding": "identity"}).expect(202)


def test_a_chunked_body_without_a_byte_needs_no_type(weir, client):
    """One with bytes does."""
    job_id = weir.submit(client.api_key, queue="outside")["job_id"]
    start = (f"POST /v1/jobs/{job_id}/cancel HTTP/1.1\r\nHost: localhost\r\n"
             f"Authorization: Bearer {client.api_key}\r\nTransfer-Encoding: chunked\r\n\r\n").encode()
    assert code(ask(weir, start + b"2\r\n{}\r\n0\r\n\r\n")[0]) == (415, UNSUPPORTED)
    assert ask(weir, start + b"0\r\n\r\n")[0][0] == 200


def test_a_key_revoked_while_the_body_is_on_its_way_is_refused(weir):
    """The head passed before; the request did not."""
    client_id = weir.api("POST", "/v1/clients").expect(201)["client_id"]
    made = weir.api("POST", f"/v1/clients/{client_id}/keys", {}).expect(201)
    body = json.dumps({"type": "EXECUTE", "queue": "outside"}).encode()
    with socket.create_connection(weir.address, timeout=30) as connection:
        connection.sendall(head("/v1/jobs", len(body), made["api_key"], "Expect: 100-continue"))
        assert read_answer(connection)[0] == 100
        weir.api("POST", f"/v1/clients/{client_id}/keys/revoke", {"key_id": made["key_id"]},
                 made["api_key"]).expect(200)
        connection.sendall(body)
        assert code(read_answer(connection)) == (403, "RFA_AUTH_API_KEY_DISABLED")


def test_all_bodies_together_have_a_limit_that_counts_as_pressure(fresh_weir):
    """Large bodies that arrive slowly fill it: pressure is told, a large body is 503, small calls go on."""
    weir = fresh_weir(settings={"server.bodies_max_bytes": 4 * MIB, "runner.processes": 0})
    key = weir.new_client().api_key
    job_id = weir.submit(key, queue="outside")["job_id"]
    series = 'weir_pressure_ratio{component="request_bodies",partition="0"}'
    assert weir.metrics()[series] < 0.1
    slow = [socket.create_connection(weir.address, timeout=30) for _ in range(3)]
    for connection in slow:
        connection.sendall(head("/v1/jobs", MIB, key) + b" " * (MIB - 1))
    wait_for(lambda: weir.metrics()[series] >= 0.7, 20, "pressure by bodies", weir)
    rows = weir.api("GET", "/ops/v1/topology").expect(200)["pressure"]
    shown = {row["component"]: row["level"] for row in rows}
    assert shown["request_bodies"] == "warn"
    weir.api("POST", "/v1/jobs", b" " * MIB, key).expect_problem(503, FULL)
    task = weir.claim(key)[0]
    assert weir.tell("start", key, task)["ok"]
    assert weir.tell("heartbeat", key, task)["ok"]
    weir.cancel(key, job_id).expect(200)
    for connection in slow:
        connection.close()
    wait_for(lambda: weir.metrics()[series] < 0.1, 20, "no pressure", weir)
    assert weir.api("POST", "/v1/jobs", b" " * (MIB - 1), key).status == 400


def test_an_unknown_method_and_path_keep_their_answers(weir):
    """405 and 404 come from the head as well."""
    answer = wire.send_raw(
        weir.address, b"PUT /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n", timeout=5)
    assert answer.startswith(b"HTTP/1.1 405 ")
