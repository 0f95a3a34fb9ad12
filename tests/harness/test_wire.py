"""The HTTP client of the harness, against a scripted server of one connection."""
import re
import socket
import threading

import pytest

from harness import wire


def whole_request(connection):
    """Reads head and body, in however many pieces they come."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(65536)
    length = re.search(rb"content-length: (\d+)", data.lower())
    while length and len(data.partition(b"\r\n\r\n")[2]) < int(length[1]):
        data += connection.recv(65536)
    return data


@pytest.fixture
def scripted():
    """scripted(answer) gives (address, list that receives the request's bytes)."""
    threads = []

    def serve(answer):
        listener = socket.create_server(("127.0.0.1", 0))
        received = []

        def one_connection():
            with listener, listener.accept()[0] as connection:
                received.append(whole_request(connection))
                connection.sendall(answer)

        threads.append(threading.Thread(target=one_connection))
        threads[-1].start()
        return listener.getsockname(), received

    yield serve
    for thread in threads:
        thread.join()


def answer_of(body, extra=""):
    """A problem answer with this body."""
    return (f"HTTP/1.1 409 Conflict\r\nContent-Type: application/problem+json\r\n{extra}"
            f"Content-Length: {len(body)}\r\n\r\n{body}").encode()


SOUND = ('{"type":"urn:x","title":"T","status":409,"detail":"D","instance":"urn:uuid:r1",'
         '"code":"RFA_JOB_CONFLICT"}')


def test_a_complete_problem_passes(scripted):
    address, _ = scripted(answer_of(SOUND, "X-Request-Id: r1\r\n"))
    response = wire.call(address, "POST", "/x", {})
    assert response.expect_problem(409, "RFA_JOB_CONFLICT")["title"] == "T"


@pytest.mark.parametrize("answer", [
    answer_of(SOUND),  # no request id
    answer_of(SOUND, "X-Request-Id: r2\r\n"),
    answer_of(SOUND.replace('"D"', '""'), "X-Request-Id: r1\r\n"),
    answer_of(SOUND.replace("409", "400"), "X-Request-Id: r1\r\n"),
    answer_of(SOUND.replace("JOB_CONFLICT", "INTERNAL"), "X-Request-Id: r1\r\n"),
    answer_of(SOUND, "X-Request-Id: r1\r\n").replace(b"problem+json", b"json"),
    answer_of("not json", "X-Request-Id: r1\r\n"),
])
def test_an_incomplete_problem_fails(scripted, answer):
    address, _ = scripted(answer)
    response = wire.call(address, "GET", "/x")
    with pytest.raises(AssertionError):
        response.expect_problem(409, "RFA_JOB_CONFLICT")


@pytest.mark.parametrize("wait, sound", [("Retry-After: 1\r\n", True), ("", False),
                                         ("Retry-After: 0\r\n", False), ("Retry-After: soon\r\n", False)])
def test_a_problem_that_asks_to_wait_says_how_long(scripted, wait, sound):
    answer = answer_of(SOUND.replace("409", "503"), "X-Request-Id: r1\r\n" + wait)
    address, _ = scripted(answer.replace(b"409 Conflict", b"503 Full"))
    response = wire.call(address, "GET", "/x")
    if sound:
        response.expect_problem(503, "RFA_JOB_CONFLICT")
        return
    with pytest.raises(AssertionError):
        response.expect_problem(503, "RFA_JOB_CONFLICT")


def test_key_body_and_headers_are_sent_as_asked(scripted):
    address, received = scripted(answer_of(SOUND))
    wire.call(address, "POST", "/x", {"a": 1}, "secret", {"content-type": "text/plain"})
    request = received[0].decode()
    assert "Authorization: Bearer secret" in request and request.endswith('\r\n\r\n{"a": 1}')
    assert "content-type: text/plain" in request and "application/json" not in request
    assert request.count("Content-Length: 8") == 1


def test_an_event_stream_is_cut_into_messages(scripted):
    address, _ = scripted(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
                          b": ping\n\nid: 1\nevent: job.created\ndata: {\"seq\": 1}\n\n"
                          b"id: 2\n: ping\ndata: {\"seq\": 2}\n\n")
    messages = list(wire.follow(address, "/x"))
    assert [m["data"]["seq"] for m in messages] == [1, 2]
    assert messages[0]["event"] == "job.created" and messages[1]["id"] == "2"
