"""HTTP itself: HEAD, connections, versions, Expect, odd targets, framing, no 1xx and no 3xx."""
import json
import re
import socket

from harness import wire


def raw(weir, text, timeout=3):
    """Sends bytes and gives everything that came back."""
    return wire.send_raw(weir.address, text if isinstance(text, bytes) else text.encode(), timeout)


def statuses(received):
    """The statuses of the answers in a byte stream."""
    return [int(s) for s in re.findall(rb"HTTP/1\.1 (\d{3}) ", received)]


def head_of(method, path, key=None, extra="", close=True):
    """A request head without the empty line."""
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost"]
    if key:
        lines.append(f"Authorization: Bearer {key}")
    if close:
        lines.append("Connection: close")
    return "\r\n".join(lines) + "\r\n" + extra


def test_head_answers_as_get_without_a_body(weir, client):
    job_id = weir.submit(client.api_key, queue="o")["job_id"]
    for path in ("/v1/jobs", f"/v1/jobs/{job_id}", "/healthz", "/openapi/jobs.yaml", "/v1/reports"):
        get = weir.api("GET", path, key=client.api_key)
        head = weir.api("HEAD", path, key=client.api_key)
        assert (head.status, head.body) == (200, b"")
        assert head.headers["content-type"] == get.headers["content-type"]
        if path not in ("/healthz",):  # that one tells the time
            assert head.headers["content-length"] == get.headers["content-length"]
    missing = weir.api("HEAD", "/v1/jobs/x", key=client.api_key)
    assert (missing.status, missing.body) == (404, b"")
    assert weir.api("HEAD", "/v1/clients").status == 405


def test_a_connection_is_kept_for_many_requests(weir, client):
    with socket.create_connection(weir.address, timeout=5) as connection:
        stream = connection.makefile("rb")
        for n in range(20):
            body = json.dumps({"type": "EXECUTE", "queue": "o", "priority": n % 10})
            connection.sendall((head_of("POST", "/v1/jobs", client.api_key,
                                        f"Content-Type: application/json\r\n"
                                        f"Content-Length: {len(body)}\r\n\r\n{body}",
                                        close=False)).encode())
            status, headers = read_head(stream)
            assert status == 202
            assert json.loads(stream.read(int(headers["content-length"])))["state"] == "QUEUED"
    assert weir.total(client.api_key) == 20


def read_head(stream):
    """(status, headers) of the next answer."""
    status = int(stream.readline().split()[1])
    headers = {}
    for line in iter(stream.readline, b"\r\n"):
        name, _, value = line.decode().partition(":")
        headers[name.lower()] = value.strip()
    return status, headers


def test_an_error_answer_keeps_the_connection_usable(weir, client):
    body = "{"
    bad = head_of("POST", "/v1/jobs", client.api_key, f"Content-Type: application/json\r\n"
                  f"Content-Length: {len(body)}\r\n\r\n{body}", close=False)
    assert statuses(raw(weir, bad + bad + head_of("GET", "/healthz", extra="\r\n"))) == [400, 400, 200]


def test_a_chunked_body_over_the_limit_is_413(weir, client):
    """[JOB-204] Without a Content-Length to look at."""
    head = head_of("POST", "/v1/jobs", client.api_key, "Content-Type: application/json\r\n"
                   "Transfer-Encoding: chunked\r\n\r\n").encode()
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    received = raw(weir, head + chunk * 17 + b"0\r\n\r\n")
    assert statuses(received) == [413] and b"RFA_REQUEST_PAYLOAD_TOO_LARGE" in received


def test_no_interim_answer_unless_the_client_asked(weir, client):
    """[JOB-222] Upgrade is ignored, 100 Continue comes only for Expect and only when useful."""
    body = '{"type":"EXECUTE","queue":"o"}'
    submit = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    upgrade = head_of("POST", "/v1/jobs", client.api_key,
                      submit + "Upgrade: websocket\r\n\r\n" + body)
    assert statuses(raw(weir, upgrade)) == [202]
    for extra in ("Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n", "\r\n"):
        assert statuses(raw(weir, head_of("GET", "/healthz", extra=extra))) == [200]
    expecting = head_of("POST", "/v1/jobs", client.api_key, submit + "Expect: 100-continue\r\n\r\n")
    assert statuses(raw(weir, expecting + body)) == [202]
    with socket.create_connection(weir.address, timeout=5) as connection:
        connection.sendall(expecting.encode())
        stream = connection.makefile("rb")
        assert stream.readline() == b"HTTP/1.1 100 Continue\r\n"
        assert stream.readline() == b"\r\n"
        connection.sendall(body.encode())
        assert stream.readline().startswith(b"HTTP/1.1 202 ")
    too_large = head_of("POST", "/v1/jobs", client.api_key, "Content-Type: application/json\r\n"
                        "Content-Length: 99999999\r\nExpect: 100-continue\r\n\r\n")
    assert statuses(raw(weir, too_large)) == [413]


def test_nothing_redirects_and_nothing_is_304(weir, client):
    """[JOB-224] Trailing slashes, doubled slashes, conditional and range requests."""
    job_id = weir.submit(client.api_key, queue="o")["job_id"]
    for path in ("/v1/jobs/", "//v1/jobs", "/v1/jobs//", "/", "/ui", "/v1", "/metrics/"):
        weir.api("GET", path, key=client.api_key).expect_problem(
            404, "RFA_REQUEST_ROUTE_NOT_FOUND")
    for headers in ({"If-None-Match": "*"}, {"If-Modified-Since": "Fri, 01 Jan 2100 00:00:00 GMT"},
                    {"If-Match": '"x"'}, {"Range": "bytes=0-3"}):
        answer = weir.api("GET", f"/v1/jobs/{job_id}", key=client.api_key, headers=headers)
        assert answer.expect(200)["job_id"] == job_id


def test_answers_are_never_cached(weir, client):
    assert "no-store" in weir.api("GET", "/v1/jobs", key=client.api_key).headers["cache-control"]


def test_unknown_query_parameters_and_a_body_on_get_are_ignored(weir, client):
    """Of what is no list; lists refuse them (test_lists_and_nulls.py)."""
    job_id = weir.submit(client.api_key, queue="o")["job_id"]
    weir.api("GET", f"/v1/jobs/{job_id}?colour=red&x&=&a=b=c", key=client.api_key).expect(200)
    for body in (b"{", b"x" * 1000, {"a": 1}):
        weir.api("GET", "/v1/jobs", body, client.api_key).expect(200)
    weir.api("GET", "/v1/jobs", b"hello", client.api_key, {"Content-Type": "text/plain"}).expect(200)
    weir.api("POST", "/v1/jobs?type=FOO", {"type": "EXECUTE", "queue": "o"},
             client.api_key).expect(202)


def test_an_encoded_path_is_the_same_path(weir, client):
    job_id = weir.submit(client.api_key, queue="o")["job_id"]
    encoded = "".join(f"%{ord(c):02x}" for c in job_id)
    assert weir.api("GET", f"/v1/jobs/{encoded}", key=client.api_key).expect(200)["job_id"] == job_id
    weir.api("GET", f"/v1/jobs%2f{job_id}", key=client.api_key).expect_problem(
        400, "RFA_REQUEST_MALFORMED")
    for bad in ("/v1/jobs/%", "/v1/jobs/%zz", "/v1/jobs/%00", "/v1/jobs/%ff"):
        assert statuses(raw(weir, head_of("GET", bad, client.api_key, "\r\n"))) == [400]
    upper = weir.api("GET", f"/v1/jobs/{job_id.upper()}", key=client.api_key)
    assert upper.status in (200, 404)


def test_ambiguous_framing_is_refused_and_the_connection_closed(weir, client):
    """Two lengths, both framings, padded or signed numbers: one 400 and nothing behind it."""
    victim = head_of("GET", "/v1/jobs", client.api_key, "\r\n")
    for extra in ("Content-Length: 5\r\nContent-Length: 6\r\n", "Content-Length: +5\r\n",
                  "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "Content-Length: 0x5\r\n",
                  "Transfer-Encoding: chunked, identity\r\n", "Transfer-Encoding:  chunked\r\n",
                  "Content-Length: 5, 5\r\n", "Content-Length : 5\r\n", " folded: x\r\n"):
        sent = head_of("POST", "/v1/jobs", client.api_key, extra, close=False) + "\r\n12345" + victim
        assert statuses(raw(weir, sent)) == [400], extra
    assert statuses(raw(weir, "GET /healthz HTTP/1.1\r\n\r\n")) == [400]  # no Host
    assert weir.total(client.api_key) == 0


def test_a_head_that_is_too_large_is_431(weir):
    huge = head_of("GET", "/healthz", extra="X: " + "a" * 40000 + "\r\n\r\n")
    assert statuses(raw(weir, huge)) == [431]
    many = head_of("GET", "/healthz", extra="".join(f"X-{n}: 1\r\n" for n in range(150)) + "\r\n")
    assert statuses(raw(weir, many)) == [431]
