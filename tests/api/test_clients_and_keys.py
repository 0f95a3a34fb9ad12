"""Clients and their API keys: create, repeat, rotate, renew, revoke."""
import re
import uuid
from datetime import datetime

import pytest

from harness.store_sql import value
from harness.weir_server import wait_for

UTC = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
OPERATOR = "an-operator-token-of-forty-characters-xx"


def keys_path(client_id, verb=""):
    """/v1/clients/{client_id}/keys[/verb]"""
    return f"/v1/clients/{client_id}/keys" + (f"/{verb}" if verb else "")


def works(weir, key):
    """The status of a harmless call with this key."""
    return weir.api("GET", "/v1/jobs", key=key).status


def listed(weir, client_id, key):
    """The keys of a client, newest first."""
    return weir.api("GET", keys_path(client_id), key=key).expect(200)["items"]


def test_a_client_is_created_by_anyone_without_a_body(weir):
    """[JOB-068 JOB-079 JOB-080] An empty POST without Authorization gives 201 and a client_id."""
    created = weir.api("POST", "/v1/clients").expect(201)
    assert uuid.UUID(created["client_id"]).version == 4
    assert created["webhook_secret"].startswith("whsec_")
    assert UTC.match(created["created_at"])
    again = weir.api("POST", "/v1/clients", {}).expect(201)
    assert again["client_id"] != created["client_id"]
    weir.api("POST", keys_path(created["client_id"])).expect(201)


def test_creating_a_client_takes_no_fields(weir):
    weir.api("POST", "/v1/clients", {"name": "x"}).expect_problem(400, "RFA_REQUEST_MALFORMED")


def test_a_key_has_its_four_fields_and_opens_the_api(weir):
    """[JOB-081] 201 with api_key, key_id, created_at, expires_at in UTC, expiry after creation."""
    client_id = weir.api("POST", "/v1/clients").expect(201)["client_id"]
    key = weir.api("POST", keys_path(client_id), {}).expect(201)
    assert set(key) == {"api_key", "key_id", "created_at", "expires_at"}
    assert UTC.match(key["created_at"]) and UTC.match(key["expires_at"])
    life = datetime.fromisoformat(key["expires_at"]) - datetime.fromisoformat(key["created_at"])
    assert life.days == 90
    assert works(weir, key["api_key"]) == 200


def test_a_repeated_create_gives_the_metadata_without_the_secret(weir, client):
    """[JOB-074] Same key_id, api_key null; rotate=true makes a new key; the former ends after the overlap."""
    path = keys_path(client.client_id)
    first = weir.api("POST", path, {}, client.api_key).expect(201)
    second = weir.api("POST", path, {"rotate": False}, client.api_key).expect(201)
    assert first == second and first["api_key"] is None
    rotated = weir.api("POST", path, {"rotate": True}, client.api_key).expect(201)
    assert rotated["key_id"] != first["key_id"] and rotated["api_key"]
    assert works(weir, rotated["api_key"]) == works(weir, client.api_key) == 200
    states = {key["key_id"]: key["state"] for key in listed(weir, client.client_id, rotated["api_key"])}
    assert states == {first["key_id"]: "replaced", rotated["key_id"]: "active"}


def test_create_key_refuses_what_it_must(weir, client):
    """[JOB-082] 400 wrong type, 401 no auth, 403 other client's key, 404 unknown client."""
    path = keys_path(client.client_id)
    weir.api("POST", path, {"rotate": "x"}, client.api_key).expect_problem(
        400, "RFA_REQUEST_MALFORMED")
    weir.api("POST", path, "{", client.api_key).expect_problem(400, "RFA_REQUEST_MALFORMED")
    weir.api("POST", path, {"rotate": True}).expect_problem(401, "RFA_AUTH_INVALID_CREDENTIALS")
    other = weir.new_client()
    weir.api("POST", path, {}, other.api_key).expect_problem(403, "RFA_AUTH_FORBIDDEN")
    for unknown in (uuid.uuid4(), "nonsense", client.client_id[:-1]):
        weir.api("POST", keys_path(unknown), {}, client.api_key).expect_problem(
            404, "RFA_CLIENT_NOT_FOUND")


def test_renew_replaces_the_presented_key(weir, client):
    """[JOB-083] 200, new secret, new key_id, later expiry; the old secret is refused after the overlap."""
    old = weir.api("POST", keys_path(client.client_id), {}, client.api_key).expect(201)
    new = weir.api("POST", keys_path(client.client_id, "renew"), {}, client.api_key).expect(200)
    assert set(new) == {"api_key", "key_id", "created_at", "expires_at"}
    assert new["key_id"] != old["key_id"] and new["expires_at"] >= old["expires_at"]
    assert works(weir, new["api_key"]) == works(weir, client.api_key) == 200


@pytest.mark.parametrize("overlap", (0, 1))
def test_a_replaced_key_is_refused_when_the_overlap_is_over(module_weir, overlap):
    """[JOB-083 JOB-074] By renew and by rotate; without an overlap from the answer on."""
    weir = module_weir(settings={"keys.overlap_seconds": overlap})
    for verb, body in (("renew", {}), ("", {"rotate": True})):
        client_id, old = weir.new_client()
        new = weir.api("POST", keys_path(client_id, verb), body, old).json["api_key"]
        if overlap:
            wait_for(lambda key=old: works(weir, key) == 403, 30, "the overlap to be over", weir)
        weir.api("GET", "/v1/jobs", key=old).expect_problem(403, "RFA_AUTH_API_KEY_DISABLED")
        assert works(weir, new) == 200
        assert [key["state"] for key in listed(weir, client_id, new)] == ["active", "revoked"]


def test_renew_refuses_what_it_must(weir, client):
    """[JOB-084] Bad JSON 400, no key 401, foreign client 403, unknown client 404."""
    path = keys_path(client.client_id, "renew")
    weir.api("POST", path, "[1", client.api_key).expect_problem(400, "RFA_REQUEST_MALFORMED")
    weir.api("POST", path).expect_problem(401, "RFA_AUTH_INVALID_CREDENTIALS")
    other = weir.new_client()
    weir.api("POST", path, {}, other.api_key).expect_problem(403, "RFA_AUTH_FORBIDDEN")
    weir.api("POST", keys_path(uuid.uuid4(), "renew"), {}, client.api_key).expect_problem(
        404, "RFA_CLIENT_NOT_FOUND")
    assert works(weir, client.api_key) == 200


def test_revoke_confirms_and_shuts_the_key_at_once(weir, client):
    """[JOB-085 JOB-234 JOB-157] 200 {"revoked": true}; from the answer on 403; repeats are 200."""
    path = keys_path(client.client_id, "revoke")
    second = weir.api("POST", keys_path(client.client_id), {"rotate": True},
                      client.api_key).expect(201)
    body = {"key_id": second["key_id"]}
    assert weir.api("POST", path, body, second["api_key"]).expect(200) == {"revoked": True}
    for _ in range(20):  # every HTTP thread's cache must have heard of it
        weir.api("GET", "/v1/jobs", key=second["api_key"]).expect_problem(
            403, "RFA_AUTH_API_KEY_DISABLED")


def test_revoke_refuses_what_it_must(weir, client):
    """[JOB-086] Missing key_id 400, no auth 401, foreign client 403, unknown or foreign key 404."""
    path = keys_path(client.client_id, "revoke")
    own = weir.api("POST", keys_path(client.client_id), {}, client.api_key).expect(201)
    for body in ({}, {"key_id": 7}, {"key_id": own["key_id"], "why": "x"}):
        weir.api("POST", path, body, client.api_key).expect_problem(400, "RFA_REQUEST_MALFORMED")
    weir.api("POST", path, {"key_id": own["key_id"]}).expect_problem(
        401, "RFA_AUTH_INVALID_CREDENTIALS")
    other = weir.new_client()
    foreign = weir.api("POST", keys_path(other.client_id), {}, other.api_key).expect(201)
    weir.api("POST", path, {"key_id": own["key_id"]}, other.api_key).expect_problem(
        403, "RFA_AUTH_FORBIDDEN")
    for unknown in (str(uuid.uuid4()), "nonsense", "", foreign["key_id"]):
        weir.api("POST", path, {"key_id": unknown}, client.api_key).expect_problem(
            404, "RFA_AUTH_KEY_NOT_FOUND")
    assert works(weir, client.api_key) == works(weir, other.api_key) == 200


def test_operations_on_one_client_leave_the_others_alone(weir, client):
    """[JOB-069] Create, renew and revoke alter only that client's keys."""
    other = weir.new_client()
    before = weir.api("POST", keys_path(other.client_id), {}, other.api_key).expect(201)
    renewed = weir.api("POST", keys_path(client.client_id, "renew"), {}, client.api_key).expect(200)
    rotated = weir.api("POST", keys_path(client.client_id), {"rotate": True},
                       renewed["api_key"]).expect(201)
    weir.api("POST", keys_path(client.client_id, "revoke"), {"key_id": rotated["key_id"]},
             rotated["api_key"]).expect(200)
    assert weir.api("POST", keys_path(other.client_id), {}, other.api_key).expect(201) == before


def test_clients_and_keys_outlive_a_restart_and_only_a_hash_is_stored(fresh_weir):
    """[JOB-233 JOB-010] The key works after a restart; its secret is nowhere in the data. Who the client is
    and since when stays as it was, whatever happens to its keys."""
    weir = fresh_weir()
    client_id, key = weir.new_client()
    made = [value(weir, f"SELECT {column} FROM clients") for column in ("num", "created_ms")]
    job = weir.submit(key, work_kind="SUCCESS_FAST")
    weir.wait_final(key, job["job_id"])
    weir.restart()
    assert works(weir, key) == 200
    weir.api("POST", keys_path(client_id), {"rotate": False}, key).expect(201)
    new = weir.api("POST", keys_path(client_id, "renew"), {}, key).expect(200)
    weir.api("POST", keys_path(client_id, "revoke"), {"key_id": new["key_id"]}, new["api_key"]).expect(200)
    assert [value(weir, f"SELECT {column} FROM clients") for column in ("num", "created_ms")] == made
    weir.stop()
    secret = key.split("_", 2)[2].encode()
    for path in weir.data_files():
        with open(path, "rb") as file:
            assert secret not in file.read(), f"the secret stands in {path}"


@pytest.fixture(scope="module")
def guarded(module_weir):
    """A server with an operator token."""
    return module_weir(settings={"operator.token": OPERATOR, "keys.ttl_seconds": 3600})


def test_the_operator_renews_and_creates_keys_of_any_client(guarded):
    client = guarded.new_client()
    renewed = guarded.api("POST", keys_path(client.client_id, "renew"), {}, OPERATOR).expect(200)
    assert works(guarded, renewed["api_key"]) == 200
    created = guarded.api("POST", keys_path(client.client_id), {"rotate": True},
                          OPERATOR).expect(201)
    assert works(guarded, renewed["api_key"]) == works(guarded, created["api_key"]) == 200
    states = [key["state"] for key in listed(guarded, client.client_id, OPERATOR)]
    assert states == ["active", "replaced", "replaced"]
    guarded.api("POST", keys_path(client.client_id, "revoke"), {"key_id": created["key_id"]},
                OPERATOR).expect(200)
    guarded.api("POST", keys_path(uuid.uuid4(), "renew"), {}, OPERATOR).expect_problem(
        404, "RFA_CLIENT_NOT_FOUND")


def test_a_client_without_an_active_key_cannot_be_renewed(guarded):
    """[JOB-084 JOB-158] 409, and nothing changed."""
    client_id = guarded.api("POST", "/v1/clients").expect(201)["client_id"]
    guarded.api("POST", keys_path(client_id, "renew"), {}, OPERATOR).expect_problem(
        409, "RFA_AUTH_KEY_CONFLICT")
    guarded.api("POST", keys_path(client_id), {}).expect(201)  # still its first key


def test_the_operator_token_is_for_keys_only(guarded):
    guarded.api("GET", "/v1/jobs", key=OPERATOR).expect_problem(403, "RFA_AUTH_FORBIDDEN")
    guarded.api("POST", "/v1/jobs", {"type": "EXECUTE"}, OPERATOR).expect_problem(
        403, "RFA_AUTH_FORBIDDEN")
    guarded.api("POST", "/v1/clients", key=OPERATOR).expect(201)
    for wrong in (OPERATOR[:-1], OPERATOR + "x", OPERATOR.upper()):
        guarded.api("GET", "/v1/jobs", key=wrong).expect_problem(
            401, "RFA_AUTH_INVALID_CREDENTIALS")


def test_the_callback_secret_rotates(weir, client):
    path = f"/v1/clients/{client.client_id}/webhook-secret:rotate"
    first = weir.api("POST", path, key=client.api_key).expect(200)["webhook_secret"]
    second = weir.api("POST", path, {}, client.api_key).expect(200)["webhook_secret"]
    assert first != second and first.startswith("whsec_") and second.startswith("whsec_")
    weir.api("POST", path).expect_problem(401, "RFA_AUTH_INVALID_CREDENTIALS")
    weir.api("POST", path, key=weir.new_client().api_key).expect_problem(403, "RFA_AUTH_FORBIDDEN")
    unknown = f"/v1/clients/{uuid.uuid4()}/webhook-secret:rotate"
    weir.api("POST", unknown, key=client.api_key).expect_problem(404, "RFA_CLIENT_NOT_FOUND")
