"""Keys with less power: scopes, queues, names, expiry; several of a client at a time."""
import re
import uuid
from datetime import datetime, timedelta, timezone

import pytest
import yaml

from harness.contract_statuses import NAMES
from harness.weir_server import wait_for

METHODS = ("get", "put", "post", "delete", "patch")
SCOPES = ("submit", "work", "read", "admin")
# Bodies that would be taken, for operations whose body is checked before the handler sees it.
TASKS = {"tasks": [{"task_id": str(uuid.uuid4()), "token": "1"}]}
BODIES = {
    "submitJob": {"type": "EXECUTE", "queue": "mail"},
    "submitJobBatch": {"jobs": [{"type": "EXECUTE", "queue": "mail"}]},
    "cancelJobs": {"filter": {"queue": "mail"}}, "retryJobs": {"filter": {"queue": "mail"}},
    "revokeKey": {"key_id": str(uuid.uuid4())},
    "createWebhook": {"url": "http://127.0.0.1:1/x", "events": ["job.failed"]},
    "claimTasks": {"worker_id": "w", "queues": ["mail"], "max": 1},
    "startTasks": TASKS, "heartbeatTasks": TASKS, "releaseTasks": TASKS,
    "finishTasks": {"tasks": [dict(TASKS["tasks"][0], outcome="success")]},
}


def keys_path(client_id, verb=""):
    """/v1/clients/{client_id}/keys[/verb]"""
    return f"/v1/clients/{client_id}/keys" + (f"/{verb}" if verb else "")


def make_key(weir, client, key=None, **wish):
    """The secret of a new key of the client, made by another of its keys."""
    made = weir.api("POST", keys_path(client.client_id), wish, key or client.api_key).expect(201)
    assert made["api_key"]
    return made["api_key"]


def key_id_of(weir, client, name):
    """The id of the client's newest key of this name."""
    items = weir.api("GET", keys_path(client.client_id), key=client.api_key).expect(200)["items"]
    return next(item["key_id"] for item in items if item["name"] == name)


@pytest.fixture(scope="module", name="operations")
def operations_fixture(weir):
    """Every operation of every contract: (METHOD, path, operation)."""
    found = []
    for name in NAMES:
        contract = yaml.safe_load(weir.api("GET", f"/openapi/{name}.yaml").text)
        for path, item in contract["paths"].items():
            found += [(m.upper(), path, item[m]) for m in METHODS if m in item]
    return found


@pytest.fixture(scope="module", name="owner")
def owner_fixture(weir):
    """A client, and a key of it for each scope alone and for all but that one."""
    client = weir.new_client()
    alone = {scope: make_key(weir, client, scopes=[scope], name=f"only {scope}") for scope in SCOPES}
    rest = {scope: make_key(weir, client, scopes=[s for s in SCOPES if s != scope]) for scope in SCOPES}
    return client, alone, rest


def call(weir, owner, method, path, operation, key):
    """Calls an operation on things of the client, none of which exist."""
    path = path.replace("{client_id}", owner.client_id)
    path = re.sub(r"{\w+}", str(uuid.uuid4()), path)
    body = BODIES.get(operation["operationId"], {} if method == "POST" else None)
    return weir.api(method, path, body, key)


@pytest.mark.any_store
def test_every_operation_that_takes_a_key_names_its_scope_and_is_refused_without_it(weir, operations, owner):
    """All operations of all contracts x the key that has all scopes but the one, and only the one."""
    client, alone, rest = owner
    tried = 0
    for method, path, operation in operations:
        scope = operation.get("x-weir-scope")
        takes_key = any("apiKey" in choice for choice in operation.get("security", [{"apiKey": []}]))
        if path.startswith(("/v1/", "/worker/")) and operation["operationId"] != "createClient":
            assert takes_key and scope in SCOPES, operation["operationId"]
        if not scope:
            continue
        refused = call(weir, client, method, path, operation, rest[scope])
        refused.expect_problem(403, "RFA_AUTH_FORBIDDEN")
        assert f"the scope {scope}" in refused.json["detail"], operation["operationId"]
        if operation["operationId"] in ("revokeKey", "renewKey", "createKey", "createWebhook"):
            continue  # they would change what the others are tried with
        taken = call(weir, client, method, path, operation, alone[scope])
        assert taken.status not in (401, 403), (operation["operationId"], taken)
        tried += 1
    assert tried > 20


@pytest.mark.any_store
def test_keys_of_no_scope_at_all_open_no_route_of_tokens(weir, operations, owner):
    """Engine and operator routes take no API key, whatever its scopes."""
    client = owner[0]
    for method, path, operation in operations:
        if path.startswith("/engine/"):
            call(weir, client, method, path, operation, client.api_key).expect_problem(
                401, "RFA_AUTH_INVALID_CREDENTIALS")


def test_a_key_is_listed_with_what_it_may_do_and_without_its_secret(weir, client):
    made = make_key(weir, client, scopes=["work", "read"], queues=["news", "mail", "news"],
                    name="mailer", expires_in_seconds=3600)
    answer = weir.api("GET", keys_path(client.client_id), key=client.api_key)
    first, second = answer.expect(200)["items"]
    assert first["name"] == "mailer" and first["state"] == "active" and first["revoked_at"] is None
    assert first["scopes"] == ["work", "read"] and first["queues"] == ["mail", "news"]
    life = datetime.fromisoformat(first["expires_at"]) - datetime.fromisoformat(first["created_at"])
    assert life == timedelta(hours=1)
    assert second["scopes"] == list(SCOPES) and second["queues"] is None and second["name"] is None
    for secret in (made, client.api_key):
        assert secret.split("_", 2)[2] not in answer.text
    weir.api("GET", keys_path(uuid.uuid4()), key=client.api_key).expect_problem(404, "RFA_CLIENT_NOT_FOUND")
    weir.api("GET", keys_path(client.client_id)).expect_problem(401, "RFA_AUTH_INVALID_CREDENTIALS")


def test_a_key_tells_when_it_was_last_used(weir, client):
    """To a minute. One that nobody has used says so."""
    made = make_key(weir, client, name="used", scopes=["read"])
    make_key(weir, client, name="unused")

    def last_use(name):
        items = weir.api("GET", keys_path(client.client_id), key=client.api_key).expect(200)["items"]
        return next(k["last_used_at"] for k in items if k["name"] == name)

    before = datetime.now(timezone.utc) - timedelta(seconds=1)
    weir.api("GET", "/v1/jobs", key=made).expect(200)
    used = wait_for(lambda: last_use("used"), 30, "its use to be stored", weir)
    assert before <= datetime.fromisoformat(used) <= datetime.now(timezone.utc)
    assert last_use("unused") is None
    weir.api("GET", "/v1/jobs", key=made).expect(200)
    assert last_use("used") == used, "once a minute"
    shown = weir.cli("client", "key", "list", client.client_id, key=client.api_key).stdout
    assert "LAST_USED_AT" in shown and used in shown


@pytest.mark.any_store
def test_what_is_asked_of_a_key_is_checked(weir, client):
    path = keys_path(client.client_id)
    for wish in ({"scopes": []}, {"scopes": ["root"]}, {"scopes": "read"}, {"queues": []},
                 {"queues": ["Mail"]}, {"queues": ["~deliver"]}, {"queues": ["a,b"]}, {"queues": ["q"] * 33},
                 {"name": ""}, {"name": "x" * 65}, {"name": "a\nb"}, {"name": 7},
                 {"expires_in_seconds": 0}, {"expires_in_seconds": 7776001},
                 {"expires_in_seconds": 10 ** 30}, {"expires_in_seconds": 1.5}, {"power": "all"}):
        weir.api("POST", path, wish, client.api_key).expect_problem(400, "RFA_REQUEST_MALFORMED")
    assert len(weir.api("GET", path, key=client.api_key).expect(200)["items"]) == 1


def test_a_key_renews_another_of_its_client(weir, client):
    """Name, scopes and queues stay; a key of another client is not found."""
    old = make_key(weir, client, scopes=["work"], queues=["mail"], name="mailer")
    path = keys_path(client.client_id, "renew")
    new = weir.api("POST", path, {"key_id": key_id_of(weir, client, "mailer")}, client.api_key).expect(200)
    first, second = weir.api("GET", keys_path(client.client_id), key=client.api_key).expect(200)["items"][:2]
    assert (first["state"], second["state"]) == ("active", "replaced")
    assert first["key_id"] == new["key_id"]
    assert all(first[field] == second[field] for field in ("name", "scopes", "queues"))
    for key in (old, new["api_key"]):
        weir.api("GET", "/v1/jobs", key=key).expect_problem(403, "RFA_AUTH_FORBIDDEN")  # no scope read
    other = weir.new_client()
    foreign = weir.api("GET", keys_path(other.client_id), key=other.api_key).expect(200)["items"][0]
    for unknown in (foreign["key_id"], str(uuid.uuid4()), "nonsense"):
        weir.api("POST", path, {"key_id": unknown}, client.api_key).expect_problem(
            404, "RFA_AUTH_KEY_NOT_FOUND")


# --- queues -----------------------------------------------------------------------------------------


@pytest.fixture(name="mail")
def mail_fixture(weir, client):
    """A key of the client for the queue `mail`, one job there and one in `news`."""
    key = make_key(weir, client, queues=["mail"])
    return key, [weir.submit(client.api_key, queue=queue)["job_id"] for queue in ("mail", "news")]


def test_a_key_of_a_queue_submits_there_only(weir, mail):
    """Also not to `default`, which is what a job without a queue means."""
    key, _ = mail
    weir.submit(key, queue="mail")
    for job in ({"queue": "news"}, {}):
        refused = weir.try_submit(key, **job)
        refused.expect_problem(403, "RFA_AUTH_FORBIDDEN")
        assert job.get("queue", "default") in refused.json["detail"]
    batch = {"jobs": [{"type": "EXECUTE", "queue": queue} for queue in ("mail", "news", "mail")]}
    results = weir.api("POST", "/v1/jobs:batch", batch, key).expect(202)["results"]
    assert [result.get("error", {}).get("code") for result in results] == [None, "RFA_AUTH_FORBIDDEN", None]


def test_a_key_of_a_queue_sees_and_changes_jobs_of_it_only(weir, client, mail):
    key, (own, other) = mail
    for what in ("", "/events", "/explain", "/deliveries"):
        weir.api("GET", f"/v1/jobs/{own}{what}", key=key).expect(200)
        weir.api("GET", f"/v1/jobs/{other}{what}", key=key).expect_problem(403, "RFA_AUTH_FORBIDDEN")
    weir.api("GET", f"/v1/jobs/{other}/report", key=key).expect_problem(403, "RFA_AUTH_FORBIDDEN")
    for verb in ("cancel", "retry"):
        weir.api("POST", f"/v1/jobs/{other}/{verb}", {}, key).expect_problem(403, "RFA_AUTH_FORBIDDEN")
    for path in ("/v1/jobs", "/v1/reports", "/v1/jobs?queue=news", "/v1/jobs?state=QUEUED"):
        ids = [item["job_id"] for item in weir.api("GET", path, key=key).expect(200)["items"]]
        assert ids == ([] if "news" in path else [own])
    assert len(weir.api("GET", "/v1/jobs", key=client.api_key).expect(200)["items"]) == 2
    assert weir.job(client.api_key, other)["state"] == "QUEUED"
    weir.api("POST", f"/v1/jobs/{own}/cancel", {}, key).expect(200)


def test_what_is_about_every_queue_is_refused_to_a_key_of_some(weir, client, mail, operations):
    key, _ = mail
    tried = 0
    for method, path, operation in operations:
        if operation.get("x-weir-every-queue"):
            refused = call(weir, client, method, path, operation, key)
            refused.expect_problem(403, "RFA_AUTH_FORBIDDEN")
            assert "every queue" in refused.json["detail"]
            tried += 1
    assert tried == 10


def test_a_worker_of_a_queue_claims_and_reports_tasks_of_it_only(weir, client, mail):
    key, (own, other) = mail
    claim = {"worker_id": "w", "queues": ["mail", "news"], "max": 10}
    weir.api("POST", "/worker/v1/claim", claim, key).expect_problem(403, "RFA_AUTH_FORBIDDEN")
    claimed = weir.api("POST", "/worker/v1/claim", dict(claim, queues=["mail"]), key).expect(200)["tasks"]
    assert [task["job_id"] for task in claimed] == [own]
    foreign = weir.api("POST", "/worker/v1/claim", claim, client.api_key).expect(200)["tasks"][0]
    assert foreign["job_id"] == other
    for verb, more in (("start", {}), ("heartbeat", {}), ("finish", {"outcome": "success"}), ("release", {})):
        item = dict({"task_id": foreign["task_id"], "token": foreign["token"]}, **more)
        results = weir.api("POST", f"/worker/v1/{verb}", {"tasks": [item]}, key).expect(200)["results"]
        assert not results[0]["ok"] and results[0]["code"] == "lease_lost", verb
    assert weir.job(client.api_key, other)["state"] == "ASSIGNED"
    for verb, more in (("start", {}), ("heartbeat", {}), ("finish", {"outcome": "success"})):
        item = dict({"task_id": claimed[0]["task_id"], "token": claimed[0]["token"]}, **more)
        assert weir.api("POST", f"/worker/v1/{verb}", {"tasks": [item]}, key).expect(200)["results"][0]["ok"]
    assert weir.job(client.api_key, own)["state"] == "SUCCEEDED"


# --- the warning ------------------------------------------------------------------------------------


def test_a_key_that_ends_within_fourteen_days_is_warned_about(weir, client):
    """In every answer, a refusal too; a replaced key with the end of its overlap; others are not."""
    day = 86400
    soon = make_key(weir, client, name="soon", scopes=["read"], expires_in_seconds=14 * day - 60)
    later = make_key(weir, client, name="later", expires_in_seconds=14 * day + 60)
    expiry = weir.api("GET", keys_path(client.client_id), key=later).expect(200)["items"][1]["expires_at"]
    for answer in (weir.api("GET", "/v1/jobs", key=soon), weir.try_submit(soon, queue="mail")):
        assert answer.headers["weir-key-expires-at"] == expiry
    assert "weir-key-expires-at" not in weir.api("GET", "/v1/jobs", key=later).headers
    weir.api("POST", keys_path(client.client_id, "renew"), {}, later).expect(200)
    told = weir.api("GET", "/v1/jobs", key=later).headers["weir-key-expires-at"]
    left = datetime.fromisoformat(told) - datetime.now(timezone.utc)
    assert timedelta(0) < left <= timedelta(hours=1)


def test_keys_that_expire_soon_are_counted(fresh_weir):
    """Active ones within 14 days, no revoked or replaced ones. A look each second here, else each hour."""
    weir = fresh_weir(settings={"keys.revoked_retention_seconds": 2})

    def counted():
        lines = weir.api("GET", "/metrics").text.splitlines()
        return [line for line in lines if line.startswith("weir_keys_expiring")]

    client = weir.new_client()
    wait_for(lambda: counted() == ["weir_keys_expiring 0"], 30, "a first look", weir)
    for i, days in enumerate((1, 13, 15)):
        make_key(weir, client, name=f"n{i}", expires_in_seconds=days * 86400)
    wait_for(lambda: counted() == ["weir_keys_expiring 2"], 30, "two keys", weir)
    weir.api("POST", keys_path(client.client_id, "revoke"), {"key_id": key_id_of(weir, client, "n0")},
             client.api_key).expect(200)
    wait_for(lambda: counted() == ["weir_keys_expiring 1"], 30, "the other one", weir)
