"""Streams and long polls do not outlive the key or token they were opened with; others go on."""
import contextlib
import json
import socket
import threading

import pytest

from harness import postgres, wire
from harness.engine_calls import Engine, Outside, path_of
from harness.nodes import Nodes
from harness.weir_server import wait_for

DISABLED, EXPIRED, INVALID, SUSPENDED = ("RFA_AUTH_API_KEY_DISABLED", "RFA_AUTH_TOKEN_EXPIRED",
                                         "RFA_AUTH_INVALID_CREDENTIALS", "RFA_AUTH_CLIENT_SUSPENDED")


@pytest.fixture(scope="module", name="brisk")
def brisk_fixture(module_weir):
    """A server on which a replaced key works on for a second."""
    return module_weir(settings={"keys.overlap_seconds": 1})


def make_key(weir, client, **wish):
    """A key beside the client's first: (key_id, secret)."""
    made = weir.api("POST", f"/v1/clients/{client.client_id}/keys", wish, client.api_key).expect(201)
    return made["key_id"], made["api_key"]


def keys_call(weir, client, verb, key=None, **body):
    """renew or revoke, by the client's first key unless given."""
    path = f"/v1/clients/{client.client_id}/keys/{verb}"
    return weir.api("POST", path, body, key or client.api_key).expect(200)


def stream(weir, key, job_id):
    """Messages of a job's live stream, behind the first two."""
    messages = wire.follow(weir.address, f"/v1/jobs/{job_id}/events", key, timeout=60)
    assert [next(messages)["event"] for _ in range(2)] == ["job.created", "job.queued"]
    return messages


WAYS = {
    "revoked": ({"name": "x"}, lambda weir, client, key_id, key: keys_call(
        weir, client, "revoke", key_id=key_id), DISABLED),
    "renewed": ({"name": "x"}, lambda weir, client, key_id, key: keys_call(
        weir, client, "renew", key_id=key_id), DISABLED),
    "rotated": ({"name": "x"}, lambda weir, client, key_id, key: weir.api(
        "POST", f"/v1/clients/{client.client_id}/keys", {"rotate": True}, key).expect(201), DISABLED),
    "expired": ({"name": "x", "expires_in_seconds": 2}, lambda *_: None, EXPIRED),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_stream_ends_with_its_key_and_says_why_while_others_go_on(brisk, way):
    """Revoked at once, rotated and renewed when the overlap is over, expired at its time."""
    wish, end, code = WAYS[way]
    client = brisk.new_client()
    job_id = brisk.submit(client.api_key, queue="outside")["job_id"]
    key_id, key = make_key(brisk, client, **wish)
    with contextlib.closing(stream(brisk, key, job_id)) as ending, \
            contextlib.closing(stream(brisk, client.api_key, job_id)) as other:
        end(brisk, client, key_id, key)
        last = list(ending)
        assert [message["event"] for message in last] == ["end"]
        assert last[0]["data"]["code"] == code and "id" not in last[0]
        brisk.cancel(client.api_key, job_id).expect(200)
        assert [message["event"] for message in other] == ["job.canceled"]
    assert brisk.api("GET", "/v1/jobs", key=key).json["code"] == code


@pytest.mark.any_store
def test_the_connection_of_a_stream_that_was_ended_is_closed(weir, client):
    """A client that keeps it open could not use it for anything else without a credential."""
    job_id = weir.submit(client.api_key, queue="outside")["job_id"]
    key_id, key = make_key(weir, client, name="x")
    with socket.create_connection(weir.address, timeout=60) as connection:
        connection.sendall(f"GET /v1/jobs/{job_id}/events HTTP/1.1\r\nHost: localhost\r\n"
                           f"Authorization: Bearer {key}\r\nAccept: text/event-stream\r\n\r\n".encode())
        received = b""
        while b"job.queued" not in received:
            chunk = connection.recv(65536)
            assert chunk, received
            received += chunk
        keys_call(weir, client, "revoke", key_id=key_id)
        while chunk := connection.recv(65536):
            received += chunk
    assert b"event: end\n" in received and received.endswith(b"0\r\n\r\n")


def test_no_event_is_told_behind_the_end_of_a_key(weir, client):
    """What happens with the revocation, or after it, is not sent."""
    job_id = weir.submit(client.api_key, queue="outside")["job_id"]
    key_id, key = make_key(weir, client, name="x")
    with contextlib.closing(stream(weir, key, job_id)) as ending:
        keys_call(weir, client, "revoke", key_id=key_id)
        weir.cancel(client.api_key, job_id).expect(200)
        assert [message["event"] for message in ending] == ["end"]


def test_a_stream_goes_on_when_other_keys_change(weir, client):
    """A renewed key streams on during its overlap, too."""
    job_id = weir.submit(client.api_key, queue="outside")["job_id"]
    with contextlib.closing(stream(weir, client.api_key, job_id)) as messages:
        for i in range(5):
            key_id, _ = make_key(weir, client, name=f"n{i}")
            keys_call(weir, client, "revoke", key_id=key_id)
        keys_call(weir, weir.new_client(), "renew")
        new = keys_call(weir, client, "renew")["api_key"]
        weir.cancel(new, job_id).expect(200)
        assert [message["event"] for message in messages] == ["job.canceled"]


# --- tokens -----------------------------------------------------------------------------------------


def follow_run(weir, token, run):
    """Messages of a run's live stream, behind the first."""
    messages = wire.follow(weir.address, f"/engine/v1{path_of(run.run_id)}/events", token, timeout=60)
    assert next(messages)["event"] == "RunStarted"
    return messages


def mint(weir, tenant, ttl, role="Admin"):
    """A token that lives so long."""
    done = weir.cli("token", "mint", "--sub", "brief", "--role", role, "--tenant", tenant, "--ttl", ttl)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.any_store
def test_a_stream_ends_when_its_token_expires_while_others_go_on(weir):
    engine = Engine(weir, "acme-expiry")
    run = Outside(engine)
    run.tell("RunStarted")
    with contextlib.closing(follow_run(weir, mint(weir, engine.tenant, "3s"), run)) as ending, \
            contextlib.closing(follow_run(weir, engine.token(), run)) as other:
        last = list(ending)
        assert [(m["event"], m["data"]["code"]) for m in last] == [("end", EXPIRED)]
        run.tell("RunCompleted")
        assert [message["event"] for message in other] == ["RunCompleted"]


def revoke_token_key(weir, token):
    """The one key there is, that signed the token; until the server has heard of it."""
    keys = json.loads(weir.cli("token", "keys", "-o", "json").stdout)["keys"]
    assert len(keys) == 1 and weir.cli("token", "rotate").returncode == 0
    assert weir.cli("token", "revoke-key", keys[0]["kid"]).returncode == 0
    wait_for(lambda: weir.api("GET", "/engine/v1/runs", key=token).status == 401, 30, "the refusal", weir)


@pytest.mark.any_store
def test_a_stream_ends_when_the_key_of_its_token_is_revoked(fresh_weir):
    """Found without a ping, which comes after 15 s. A stream with an API key goes on."""
    weir = fresh_weir()
    engine = Engine(weir, "acme")
    run = Outside(engine)
    run.tell("RunStarted")
    client = weir.new_client()
    job_id = weir.submit(client.api_key, queue="outside")["job_id"]
    with contextlib.closing(follow_run(weir, engine.token(), run)) as ending, \
            contextlib.closing(stream(weir, client.api_key, job_id)) as other:
        revoke_token_key(weir, engine.token())
        last = list(ending)
        assert [(m["event"], m["data"]["code"]) for m in last] == [("end", INVALID)]
        weir.cancel(client.api_key, job_id).expect(200)
        assert [message["event"] for message in other] == ["job.canceled"]


# --- long polls -------------------------------------------------------------------------------------


class Poll(threading.Thread):
    """A claim that waits for 30 s, beside the test."""

    def __init__(self, weir, key, queue="outside"):
        super().__init__()
        self.answer = None
        body = {"worker_id": f"poll-{id(self)}", "queues": [queue], "max": 1, "wait_ms": 30000}
        self.ask = lambda: weir.api("POST", "/worker/v1/claim", body, key)
        workers = live_workers(weir)
        self.start()
        wait_for(lambda: live_workers(weir) > workers, 30, "the claim to wait", weir)

    def run(self):
        self.answer = self.ask()

    def end(self):
        """The answer."""
        self.join(60)
        assert not self.is_alive()
        return self.answer


def live_workers(weir):
    """Workers that have claimed something or wait for it."""
    lines = weir.api("GET", "/metrics").text.splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("weir_workers "))


@pytest.mark.parametrize("replaces", (False, True))
def test_a_parked_claim_gets_no_task_after_its_key_ended(fresh_weir, replaces):
    """Revoked, or replaced without an overlap. The job is there for a claim with a key that holds."""
    weir = fresh_weir(settings={"keys.overlap_seconds": 0, "runner.processes": 0})
    client = weir.new_client()
    key_id, key = make_key(weir, client, name="x")
    poll = Poll(weir, key)
    keys_call(weir, client, "renew" if replaces else "revoke", key_id=key_id)
    job_id = weir.submit(client.api_key, queue="outside")["job_id"]
    poll.end().expect_problem(403, DISABLED)
    assert weir.job(client.api_key, job_id)["state"] == "QUEUED"
    assert weir.claim(client.api_key)[0]["job_id"] == job_id


def test_a_parked_claim_waits_on_when_other_keys_change(fresh_weir):
    """And gets what it waited for."""
    weir = fresh_weir(settings={"runner.processes": 0})
    client = weir.new_client()
    poll = Poll(weir, client.api_key)
    for i in range(3):
        key_id, _ = make_key(weir, client, name=f"n{i}")
        keys_call(weir, client, "revoke", key_id=key_id)
    job_id = weir.submit(client.api_key, queue="outside")["job_id"]
    assert [task["job_id"] for task in poll.end().expect(200)["tasks"]] == [job_id]


@pytest.mark.any_store
def test_a_parked_claim_does_not_wait_beyond_the_end_of_its_key(fresh_weir):
    """A job that comes later is left to others."""
    weir = fresh_weir(settings={"runner.processes": 0})
    client = weir.new_client()
    _, key = make_key(weir, client, name="x", expires_in_seconds=2)
    assert Poll(weir, key).end().expect(200)["tasks"] == []
    job_id = weir.submit(client.api_key, queue="outside")["job_id"]
    weir.api("POST", "/worker/v1/claim", {"worker_id": "w", "queues": ["outside"], "max": 1},
             key).expect_problem(401, EXPIRED)
    assert weir.job(client.api_key, job_id)["state"] == "QUEUED"


def test_a_parked_claim_does_not_wait_beyond_the_overlap_of_its_key(brisk):
    """The key was replaced while the claim waited, so it ends sooner than it did then."""
    client = brisk.new_client()
    key_id, key = make_key(brisk, client, name="x")
    poll = Poll(brisk, key, "overlap")
    keys_call(brisk, client, "renew", key_id=key_id)
    wait_for(lambda: brisk.api("GET", "/v1/jobs", key=key).status == 403, 30, "the overlap to end", brisk)
    job_id = brisk.submit(client.api_key, queue="overlap")["job_id"]
    answer = poll.end()
    assert answer.status == 403 or answer.expect(200)["tasks"] == []
    assert brisk.job(client.api_key, job_id)["state"] == "QUEUED"


@pytest.mark.any_store
def test_a_parked_claim_ends_when_the_key_of_its_token_is_revoked(fresh_weir):
    """It is refused long before its wait is over, and what comes is there for others."""
    weir = fresh_weir(settings={"runner.processes": 0})
    engine = Engine(weir, "acme")
    engine.put_plan("p", "a")
    poll = Poll(weir, engine.token("Worker"))
    revoke_token_key(weir, engine.token())
    engine.forget_tokens()
    poll.end().expect_problem(401, INVALID)
    engine.start("p")
    assert len(engine.worker().claim(wait_ms=20000)) == 1


def end_by_suspension(first, second):
    """A client's stream and claim on one node, ended by an operator on the other."""
    client = first.new_client()
    job_id = first.submit(client.api_key, queue="other")["job_id"]
    poll = Poll(second, client.api_key)
    with contextlib.closing(stream(second, client.api_key, job_id)) as ending:
        first.api("POST", f"/ops/v1/clients/{client.client_id}:suspend").expect(200)
        assert [(m["event"], m["data"]["code"]) for m in ending] == [("end", SUSPENDED)]
    poll.end().expect_problem(403, SUSPENDED)
    first.api("POST", f"/ops/v1/clients/{client.client_id}:resume").expect(200)


@pytest.mark.postgres_only
def test_a_stream_and_a_claim_end_when_another_node_revokes_their_key_or_suspends_their_client():
    """The nodes tell each other; a stream with another key goes on."""
    with Nodes(postgres.session(), 2, {"runner.processes": 0}) as (first, second):
        client = first.new_client()
        job_id = first.submit(client.api_key, queue="other")["job_id"]
        key_id, key = make_key(first, client, name="x")
        poll = Poll(second, key)
        with contextlib.closing(stream(second, key, job_id)) as ending, \
                contextlib.closing(stream(second, client.api_key, job_id)) as other:
            keys_call(first, client, "revoke", key_id=key_id)
            assert [(m["event"], m["data"]["code"]) for m in ending] == [("end", DISABLED)]
            end_by_suspension(second, first)  # a claim that waits on `second` is being ended
            waiting = first.submit(client.api_key, queue="outside")["job_id"]
            poll.end().expect_problem(403, DISABLED)
            assert first.job(client.api_key, waiting)["state"] == "QUEUED"
            first.cancel(client.api_key, job_id).expect(200)
            assert [message["event"] for message in other] == ["job.canceled"]
