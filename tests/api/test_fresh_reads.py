"""What was answered is seen at once, by whoever asks next and on whatever connection.

An HTTP thread answers many reads from one snapshot, and a claim may be answered from memory. Neither may
show: after an answer nobody sees an older state, and a worker gets the job as it was submitted.
"""
import contextlib
import json
import re
import socket
import threading

import pytest

from harness.kept import Kept
from harness.worker_calls import Worker

SECONDS = 2
READERS = 4      # connections; more than there are HTTP threads, so that each has some
LOOKERS = 3
PIPELINED = 32


class Pipe:
    """One connection that sends requests in one piece and takes their answers in order."""

    def __init__(self, weir, key):
        self.connection = socket.create_connection(weir.address, timeout=30)
        self.key, self.received = key, b""

    def request(self, method, path, body=None):
        """The bytes of a request."""
        content = b"" if body is None else json.dumps(body).encode()
        kind = f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n" if content else ""
        return (f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n"
                f"Authorization: Bearer {self.key}\r\n{kind}\r\n").encode() + content

    def answer(self):
        """The next answer, as (status, JSON)."""
        while not (head := re.match(rb"HTTP/1.1 (\d+) .*?Content-Length: (\d+).*?\r\n\r\n",
                                    self.received, re.DOTALL | re.IGNORECASE)) \
                or len(self.received) < head.end() + int(head[2]):
            piece = self.connection.recv(1 << 18)
            assert piece, "the server closed the connection"
            self.received += piece
        end = head.end() + int(head[2])
        content, self.received = self.received[head.end():end], self.received[end:]
        return int(head[1]), json.loads(content)

    def call_all(self, requests):
        """Sends all of them at once and gives all answers."""
        self.connection.sendall(b"".join(requests))
        return [self.answer() for _ in requests]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()


def read_on(weir, key, job_id, stop):
    """Keeps an HTTP thread in long rounds of reads: many requests in one piece, again and again."""
    with Pipe(weir, key) as pipe:
        requests = [pipe.request("GET", f"/v1/jobs/{job_id}")] * PIPELINED
        while not stop.is_set():
            assert {status for status, _ in pipe.call_all(requests)} == {200}


def submit_and_count(weir, stop):
    """A read behind a submit on one connection: it is served in the round that answers the submit."""
    with Pipe(weir, weir.new_client().api_key) as pipe:
        requests = [pipe.request("POST", "/v1/jobs", {"type": "EXECUTE", "queue": "nobody"}),
                    pipe.request("GET", "/v1/reports/summary")]
        submitted = 0
        while not stop.is_set():
            (status, _), (_, summary) = pipe.call_all(requests)
            submitted += 1
            assert (status, summary["total"]) == (202, submitted)


def change_and_look(weir, key, stop):
    """Submits and cancels over one connection and looks over the others after each answer."""
    with contextlib.ExitStack() as opened:
        writer, *others = [opened.enter_context(Kept(weir.address, key)) for _ in range(READERS + 1)]
        while not stop.is_set():
            job = writer.call("POST", "/v1/jobs", {"type": "EXECUTE", "queue": "nobody"}).expect(202)
            path = f"/v1/jobs/{job['job_id']}"
            assert {other.call("GET", path).status for other in others} == {200}
            writer.call("POST", path + "/cancel").expect(200)
            assert {other.call("GET", path).json["state"] for other in others} == {"CANCELED"}


def submit_and_claim(weir, key, stop):
    """A waiting claim is answered in a round that began before its commit; jobs too large for memory."""
    claim = {"worker_id": "w", "queues": ["large"], "max": 4, "wait_ms": 20000}
    body = {"type": "EXECUTE", "queue": "large", "payload": {"x": "y" * 100000}}
    with Kept(weir.address, key) as submitter, Pipe(weir, key) as worker:
        while not stop.is_set():
            worker.connection.sendall(worker.request("POST", "/worker/v1/claim", claim))
            job = submitter.call("POST", "/v1/jobs", body).expect(202)
            _, claimed = worker.answer()
            assert [task["job_id"] for task in claimed["tasks"]] == [job["job_id"]]


@pytest.mark.tsan
@pytest.mark.parametrize("action", ["count", "look", "claim"])
def test_an_answered_change_is_seen_by_the_next_read(weir, client, action):
    key = client.api_key
    job_id = weir.submit(key, queue="nobody")["job_id"]
    stop, faults = threading.Event(), []

    def guarded(function, *arguments):
        try:
            function(*arguments, stop)
        except BaseException as fault:  # shown by the test, not by the thread
            faults.append(fault)
            stop.set()

    work = {"count": [(submit_and_count, weir)] * LOOKERS,
            "look": [(change_and_look, weir, key)] * LOOKERS,
            "claim": [(submit_and_claim, weir, key)]}[action]
    work += [(read_on, weir, key, job_id)] * READERS
    threads = [threading.Thread(target=guarded, args=one) for one in work]
    for thread in threads:
        thread.start()
    stop.wait(SECONDS)
    stop.set()
    for thread in threads:
        thread.join()
    if faults:
        raise faults[0]


def test_a_waiting_worker_gets_every_job_as_it_was_submitted(weir, client):
    """Small ones come from memory, large ones from the store; the answer does not tell which."""
    key = client.api_key
    payloads = [{}, {"n": 1, "text": "ü\n\"quoted\""}, {"x": "y" * 3000}, {"x": "z" * 200000}]
    with Worker(weir, key, queue="fresh") as worker:
        for payload in payloads:
            got = []
            waiting = threading.Thread(target=lambda: got.extend(worker.claim(4, wait_ms=20000)))
            waiting.start()
            job = weir.submit(key, queue="fresh", payload=payload, max_runtime_ms=77000)
            waiting.join()
            assert [task["job_id"] for task in got] == [job["job_id"]]
            assert got[0]["payload"] == payload
            assert got[0]["queue"] == "fresh" and got[0]["max_runtime_ms"] == 77000
            assert all(item["ok"] for item in worker.start(got) + worker.finish(got))
