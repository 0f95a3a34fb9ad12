"""Operators: who they are, what they see of all clients, and what suspend, resume, purge-jobs and delete do.
Everything here holds on both stores and over a restart."""
import json

import pytest
from harness import wire
from harness.weir_server import wait_for

TOKEN = "operator-secret"
SETTINGS = {"operator.token": TOKEN, "runner.processes": "0", "limits.requests_per_minute": "0"}
ROUTES = [*(("GET", "/ops/v1/" + what) for what in ("clients", "jobs", "queues", "audit")),
          *(("POST", "/ops/v1/clients/{client_id}:" + verb)
            for verb in ("suspend", "resume", "purge-jobs", "delete"))]


@pytest.fixture(scope="module")
def server(module_weir):
    """Outside workers only, and an operator."""
    return module_weir(settings=SETTINGS)


def operate(weir, client, verb, key=TOKEN):
    """One action of an operator."""
    return weir.api("POST", f"/ops/v1/clients/{client.client_id}:{verb}", key=key)


def pages(weir, path, **query):
    """All items of a list, two on a page."""
    items, cursor = [], None
    while True:
        words = {**query, "limit": 2, **({"cursor": cursor} if cursor else {})}
        page = weir.api("GET", path + "?" + "&".join(f"{k}={v}" for k, v in words.items()),
                        key=TOKEN).expect(200)
        assert len(page["items"]) <= 2
        items += page["items"]
        cursor = page["next_cursor"]
        if not cursor:
            return items


def known(weir, client):
    """The client as the list of clients shows it."""
    found = [c for c in pages(weir, "/ops/v1/clients") if c["client_id"] == client.client_id]
    assert len(found) == 1
    return found[0]


def token(weir, *args):
    """A token minted beside the server."""
    done = weir.cli("token", "mint", "--sub", "ada", "-q", *args)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_suspended_client_is_refused_with_every_key_until_it_is_resumed(server):
    client = server.new_client()
    job = server.submit(client.api_key, queue="outside")["job_id"]
    assert operate(server, client, "suspend").expect(200)["state"] == "suspended"
    for method, path, body in (("GET", "/v1/jobs", None), ("GET", f"/v1/jobs/{job}", None),
                               ("POST", "/v1/jobs", {"type": "EXECUTE"}),
                               ("POST", f"/v1/clients/{client.client_id}/keys", {}),
                               ("POST", "/worker/v1/claim",
                                {"worker_id": "w", "queues": ["outside"], "max": 1})):
        server.api(method, path, body, client.api_key).expect_problem(403, "RFA_AUTH_CLIENT_SUSPENDED")
    assert known(server, client)["state"] == "suspended"
    assert operate(server, client, "resume").expect(200)["state"] == "active"
    assert server.job(client.api_key, job)["state"] == "QUEUED"
    assert [t["job_id"] for t in server.claim(client.api_key)] == [job]


def test_a_stream_ends_when_its_client_is_suspended(server):
    """The other's goes on."""
    client, other = server.new_client(), server.new_client()
    streams = []
    for one in (client, other):
        job = server.submit(one.api_key, queue="outside")["job_id"]
        messages = wire.follow(server.address, f"/v1/jobs/{job}/events", one.api_key, timeout=60)
        assert [next(messages)["event"] for _ in range(2)] == ["job.created", "job.queued"]
        streams.append((job, messages))
    operate(server, client, "suspend").expect(200)
    last = list(streams[0][1])
    assert [m["event"] for m in last] == ["end"]
    assert last[0]["data"]["code"] == "RFA_AUTH_CLIENT_SUSPENDED"
    server.cancel(other.api_key, streams[1][0])
    assert [m["event"] for m in streams[1][1]] == ["job.canceled"]


def test_purge_jobs_cancels_all_unfinished_jobs_of_the_client_alone(server):
    client, other = server.new_client(), server.new_client()
    ids = [server.submit(client.api_key, queue="purged")["job_id"] for _ in range(5)]
    ids.append(server.submit(client.api_key, queue="purged", type="DEFERRED",
                             execution_at="2100-01-01T00:00:00Z")["job_id"])
    task = server.claim(client.api_key, "purged")[0]
    server.tell("start", client.api_key, task)
    kept = server.submit(other.api_key, queue="purged")["job_id"]
    answer = operate(server, client, "purge-jobs").expect(200)
    assert (answer["canceled"], answer["more"], answer["state"]) == (6, False, "active")
    for job in ids:
        assert server.job(client.api_key, job)["state"] == "CANCELED"
        last = server.events(client.api_key, job)[-1]
        assert (last["event_name"], last["payload"]["reason"]) == ("job.canceled", "purged")
    assert server.tell("heartbeat", client.api_key, task)["cancel"] is True
    assert server.job(other.api_key, kept)["state"] == "QUEUED"
    assert operate(server, client, "purge-jobs").expect(200)["canceled"] == 0


def test_a_client_is_deleted_only_without_unfinished_jobs_and_loses_all_it_has(server):
    client = server.new_client()
    hook = {"url": "http://gone.example/hook", "events": ["*"]}
    server.api("POST", "/v1/webhooks", hook, client.api_key).expect(201)
    job = server.submit(client.api_key, queue="outside")["job_id"]
    operate(server, client, "delete").expect_problem(409, "RFA_CLIENT_CONFLICT")
    assert server.job(client.api_key, job)["state"] == "QUEUED"
    operate(server, client, "purge-jobs").expect(200)
    assert operate(server, client, "delete").expect(200)["state"] == "deleted"
    server.api("GET", "/v1/jobs", key=client.api_key).expect_problem(401, "RFA_AUTH_INVALID_CREDENTIALS")
    for key in (None, TOKEN):
        server.api("POST", f"/v1/clients/{client.client_id}/keys", {}, key).expect_problem(
            404, "RFA_CLIENT_NOT_FOUND")
    for verb in ("suspend", "resume"):
        operate(server, client, verb).expect_problem(404, "RFA_CLIENT_NOT_FOUND")
    assert operate(server, client, "delete").expect(200)["state"] == "deleted"
    shown = known(server, client)
    assert (shown["state"], shown["keys"], shown["active_jobs"]) == ("deleted", 0, 0)
    jobs = pages(server, "/ops/v1/jobs", client_id=client.client_id)
    assert [j["job_id"] for j in jobs] == [job], "what it did is kept until its retention is over"


def test_the_list_of_clients_counts_keys_and_jobs(server):
    client = server.new_client()
    for _ in range(3):
        server.submit(client.api_key, queue="counted")
    server.claim(client.api_key, "counted")
    shown = known(server, client)
    assert (shown["state"], shown["keys"], shown["active_jobs"], shown["queued_jobs"]) == ("active", 1, 3, 2)
    keyless = server.api("POST", "/v1/clients").expect(201)["client_id"]
    shown = pages(server, "/ops/v1/clients")
    assert shown[-1]["client_id"] == keyless and shown[-1]["keys"] == 0 and shown[-1]["last_seen_at"] is None
    assert len({c["client_id"] for c in shown}) == len(shown)


def test_the_list_of_clients_says_who_was_seen_last(server):
    """The last use of any of its keys."""
    client = server.new_client()
    path = f"/v1/clients/{client.client_id}/keys"
    other = server.api("POST", path, {"name": "other"}, client.api_key).expect(201)["api_key"]
    first = wait_for(lambda: known(server, client)["last_seen_at"], 30, "the first use to be stored", server)
    server.submit(other, queue="seen")
    later = wait_for(lambda: known(server, client)["last_seen_at"] != first and known(server, client), 30,
                     "the use of the other key to be stored", server)["last_seen_at"]
    assert first < later
    listed = server.cli("client", "list", "--all", "--operator-token", TOKEN).stdout
    assert "LAST SEEN" in listed and later in listed


def test_jobs_of_all_clients_are_listed_with_their_client(server):
    one, two = server.new_client(), server.new_client()
    jobs = {server.submit(c.api_key, queue="everybody")["job_id"]: c.client_id for c in (one, two, one)}
    found = pages(server, "/ops/v1/jobs", queue="everybody")
    assert {j["job_id"]: j["client_id"] for j in found} == jobs
    assert [j["job_id"] for j in found] == sorted(jobs, reverse=True)
    assert len(pages(server, "/ops/v1/jobs", queue="everybody", state="QUEUED")) == 3
    assert not pages(server, "/ops/v1/jobs", queue="everybody", state="RUNNING")
    assert len(pages(server, "/ops/v1/jobs", queue="everybody", client_id=one.client_id)) == 2
    server.api("GET", "/ops/v1/jobs?client_id=nobody", key=TOKEN).expect_problem(400, "RFA_REQUEST_MALFORMED")


def test_queues_of_all_clients_are_counted(server):
    one, two = server.new_client(), server.new_client()
    for client in (one, two, two):
        server.submit(client.api_key, queue="busy")
    server.submit(two.api_key, queue="busy", type="DEFERRED", execution_at="2100-01-01T00:00:00Z")
    server.claim(one.api_key, "busy")
    queues = {q["queue"]: q for q in
              server.api("GET", "/ops/v1/queues", key=TOKEN).expect(200)["items"]}
    busy = queues["busy"]
    assert (busy["depth"], busy["running"], busy["scheduled"]) == (2, 1, 1)
    assert busy["oldest_age_seconds"] >= 0


def test_every_change_of_an_operator_is_recorded_once(fresh_weir):
    weir = fresh_weir(settings=SETTINGS)
    client = weir.new_client()
    weir.submit(client.api_key, queue="outside")
    admin = token(weir, "--role", "Admin")
    for verb in ("suspend", "suspend", "resume", "purge-jobs", "purge-jobs"):
        operate(weir, client, verb).expect(200)
    operate(weir, client, "delete", key=admin).expect(200)
    weir.restart()
    shown = pages(weir, "/ops/v1/audit")
    assert [(a["actor"], a["action"], a["changed"]) for a in shown] == [
        ("ada", "delete", 1), ("operator", "purge-jobs", 1), ("operator", "resume", 0),
        ("operator", "suspend", 0)]
    assert {a["client_id"] for a in shown} == {client.client_id}
    assert [line["action"] for line in weir.logs(event="operator_action")] == [
        "suspend", "resume", "purge-jobs", "delete"]
    weir.stop()
    done = weir.cli("verify")
    assert done.returncode == 0, done.stdout


@pytest.mark.any_store
def test_a_look_of_an_operator_leaves_a_line_in_the_log(fresh_weir):
    """Who looked at what, and from where; refused calls name nobody."""
    weir = fresh_weir(settings=SETTINGS)
    paths = ("/ops/v1/clients", "/ops/v1/jobs", "/ops/v1/queues", "/ops/v1/audit")
    admin = token(weir, "--role", "Admin")
    for path in paths:
        weir.api("GET", path, key=admin).expect(200)
        weir.api("GET", path, key="nonsense").expect(401)
    weir.api("POST", "/ops/v1/clock:accept", key=admin).expect(200)

    def told():
        return [line for line in weir.logs(event="request") if "actor" in line]

    lines = wait_for(lambda: len(told()) == 5 and told(), 30, "five lines", weir)
    assert {(line["path"], line["actor"]) for line in lines} == {
        *((path, "ada") for path in paths), ("/ops/v1/clock:accept", "ada")}
    assert {(line["status"], line["peer"]) for line in lines} == {(200, "127.0.0.1")}


@pytest.mark.any_store
def test_a_token_is_an_operator_only_by_its_role_and_without_a_tenant(server):
    client = server.new_client()
    for args, code in ((("--role", "Admin", "--tenant", client.client_id), "AUTHZ_TENANT_FORBIDDEN"),
                       (("--role", "Engineer"), "AUTHZ_DENIED"),
                       (("--role", "Worker", "--tenant", "acme"), "AUTHZ_DENIED")):
        key = token(server, *args)
        for method, path in ROUTES:
            path = path.replace("{client_id}", client.client_id)
            server.api(method, path, key=key).expect_problem(403, code)
    server.api("GET", "/v1/jobs", key=client.api_key).expect(200)
    for role in ("owner", "Admin"):
        server.api("GET", "/ops/v1/clients", key=token(server, "--role", role)).expect(200)
    server.api("GET", "/engine/v1/runs", key=token(server, "--role", "Admin")).expect_problem(
        401, "RFA_AUTH_INVALID_CREDENTIALS")


@pytest.mark.any_store
def test_outside_dev_and_from_a_browser_an_operator_needs_credentials(server, module_weir):
    server.api("GET", "/ops/v1/clients").expect(200)
    stage = module_weir(settings={**SETTINGS, "environment": "stage"})
    for method, path in ROUTES:
        path = path.replace("{client_id}", "6f1c2a54-9a35-4b3e-8f0e-3d7a9f5f8f10")
        for weir, headers in ((stage, {}), (server, {"Origin": "http://evil.example"})):
            weir.api(method, path, headers=headers).expect_problem(401, "RFA_AUTH_INVALID_CREDENTIALS")


@pytest.mark.any_store
def test_the_command_line_operates_clients(server):
    client = server.new_client()
    for _ in range(3):
        server.submit(client.api_key, queue="outside")
    said = []
    for verb in ("suspend", "resume", "purge-jobs", "delete"):
        done = server.cli("client", verb, client.client_id, "--operator-token", TOKEN)
        assert done.returncode == 0, done.stderr
        said.append(done.stdout.strip())
    assert said == [f"{client.client_id} suspended", f"{client.client_id} active",
                    f"{client.client_id}: 3 jobs canceled", f"{client.client_id} deleted"]
    listed = server.cli("client", "list", "--all", "--state", "deleted", "--operator-token", TOKEN)
    assert client.client_id in listed.stdout and "CLIENT ID" in listed.stdout
    listed = server.cli("client", "list", "--all", "-o", "json", "--operator-token", TOKEN)
    assert client.client_id in {c["client_id"] for c in json.loads(listed.stdout)["items"]}
    refused = server.cli("client", "suspend", client.client_id, "--operator-token", "wrong")
    assert refused.returncode != 0 and "--operator-token" in refused.stderr
