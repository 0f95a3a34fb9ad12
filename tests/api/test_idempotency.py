"""The same request twice: one job, one answer; another body under a used key: refused."""
import json
import uuid

import pytest

CONFLICT = "RFA_EXEC_IDEMPOTENCY_CONFLICT"
OPERATOR = "operator-secret"


def new_key():
    """An idempotency key nobody used."""
    return "k-" + uuid.uuid4().hex


def replayed(answer):
    """True when the answer says that it repeats an earlier one."""
    return answer.headers.get("idempotency-replayed") == "true"


def test_a_repeated_submit_gives_the_first_job_again(weir, client):
    """[JOB-070 JOB-071] Same job_id and created_at, current state, one job; marked as a replay."""
    key = new_key()
    first = weir.try_submit(client.api_key, idempotency_key=key, queue="outside")
    second = weir.try_submit(client.api_key, idempotency_key=key, queue="outside")
    assert first.expect(202) == second.expect(202)
    assert not replayed(first) and replayed(second)
    assert weir.total(client.api_key) == 1
    assert len(weir.events(client.api_key, first.json["job_id"])) == 2


def test_another_body_under_a_used_key_is_a_conflict(weir, client):
    """[JOB-213 JOB-092] 409, the first job untouched, no second job."""
    key = new_key()
    first = weir.submit(client.api_key, idempotency_key=key, queue="outside", priority=4)
    before = weir.job(client.api_key, first["job_id"])
    for fields in ({"priority": 5}, {"queue": "other"}, {"work_kind": "SUCCESS_FAST"},
                   {"payload": {}}, {"type": "EMIT_EVENT"}, {"callback": "http://127.0.0.1:9/"}):
        body = {"queue": "outside", "priority": 4, **fields, "idempotency_key": key}
        weir.try_submit(client.api_key, **body).expect_problem(409, CONFLICT)
    assert weir.job(client.api_key, first["job_id"]) == before
    assert weir.total(client.api_key) == 1


@pytest.mark.parametrize("first, second", [
    ('{"type":"EXECUTE","queue":"o","priority":4}', '{ "priority" : 4,"queue":"o",\n"type":"EXECUTE"}'),
    ('{"type":"EXECUTE","queue":"o","priority":4}', '{"type":"EXECUTE","queue":"o","priority":4.0}'),
    ('{"type":"EXECUTE","queue":"o","payload":{"a":100,"b":"x"}}',
     '{"type":"EXECUTE","queue":"o","payload":{"b":"\\u0078","a":1e2}}'),
])
def test_bodies_are_compared_by_value(weir, client, first, second):
    """[JOB-070] Order of keys, white space and spelling do not matter."""
    headers = {"Idempotency-Key": new_key()}
    one = weir.api("POST", "/v1/jobs", first, client.api_key, headers)
    two = weir.api("POST", "/v1/jobs", second, client.api_key, headers)
    assert one.expect(202) == two.expect(202) and replayed(two)


def test_the_body_key_beats_the_header(weir, client):
    """[JOB-091] Body K1 with header K2, then K1 alone: same job; header K2 alone: a new job."""
    k1, k2 = new_key(), new_key()
    both = weir.submit(client.api_key, {"Idempotency-Key": k2}, idempotency_key=k1, queue="o")
    body_only = weir.submit(client.api_key, idempotency_key=k1, queue="o")
    header_as_k1 = weir.submit(client.api_key, {"Idempotency-Key": k1}, queue="o")
    header_only = weir.submit(client.api_key, {"Idempotency-Key": k2}, queue="o")
    assert both == body_only == header_as_k1
    assert header_only["job_id"] != both["job_id"]


def test_a_bad_header_key_is_malformed(weir, client):
    for value in ("", "k" * 256, "caf\u00e9", "tab\there"):
        weir.try_submit(client.api_key, {"Idempotency-Key": value}, queue="o").expect_problem(
            400, "RFA_REQUEST_MALFORMED")
    assert weir.total(client.api_key) == 0


def test_keys_of_two_clients_do_not_meet(weir, client):
    """Scope is the client: B's key of the same text makes B's own job, and shows nothing of A."""
    key, other = new_key(), weir.new_client()
    mine = weir.submit(client.api_key, idempotency_key=key, queue="o")
    theirs = weir.try_submit(other.api_key, idempotency_key=key, queue="o")
    assert theirs.expect(202)["job_id"] != mine["job_id"] and not replayed(theirs)
    other_body = weir.try_submit(weir.new_client().api_key, idempotency_key=key, queue="p")
    other_body.expect(202)


def test_a_batch_shares_the_scope_of_single_submits(weir, client):
    """A key used in a batch replays singly and the other way round; twice in one batch is once."""
    single, batched = new_key(), new_key()
    job = {"type": "EXECUTE", "queue": "o"}
    first = weir.submit(client.api_key, idempotency_key=single, queue="o")
    body = {"jobs": [{**job, "idempotency_key": k} for k in (single, batched, batched)]
            + [{**job, "idempotency_key": batched, "priority": 9}]}
    results = weir.api("POST", "/v1/jobs:batch", body, client.api_key).expect(202)["results"]
    assert results[0] == first
    assert results[1] == results[2] and results[1]["job_id"] != first["job_id"]
    assert results[3]["error"]["code"] == CONFLICT and results[3]["error"]["status"] == 409
    again = weir.try_submit(client.api_key, idempotency_key=batched, queue="o")
    assert again.expect(202) == results[1] and replayed(again)
    assert weir.total(client.api_key) == 2


def test_every_creating_call_takes_the_header(fresh_weir):
    """[JOB-078] Client (of the operator, AJ-07), key, job and webhook: the same resource id, secrets not
    shown twice."""
    weir = fresh_weir(settings={"operator.token": OPERATOR})
    headers = {"Idempotency-Key": new_key()}
    one = weir.api("POST", "/v1/clients", key=OPERATOR, headers=headers)
    two = weir.api("POST", "/v1/clients", {}, OPERATOR, headers)
    assert one.expect(201)["client_id"] == two.expect(201)["client_id"] and replayed(two)
    assert one.json["webhook_secret"] and two.json["webhook_secret"] is None
    path = f"/v1/clients/{one.json['client_id']}/keys"
    first = weir.api("POST", path, {}, headers=headers).expect(201)
    key = first["api_key"]
    again = weir.api("POST", path, {}, key, headers)
    assert replayed(again) and again.expect(201) == {**first, "api_key": None}
    rotate = {"Idempotency-Key": new_key()}
    rotated = weir.api("POST", path, {"rotate": True}, key, rotate).expect(201)
    key = rotated["api_key"]
    assert weir.api("POST", path, {"rotate": True}, key, rotate).expect(201) == {
        **rotated, "api_key": None}
    weir.api("POST", path, {"rotate": False}, key, rotate).expect_problem(409, CONFLICT)
    hook = {"url": "http://example.com/", "events": ["job.failed"]}
    made = weir.api("POST", "/v1/webhooks", hook, key, headers)
    repeated = weir.api("POST", "/v1/webhooks", hook, key, headers)
    assert made.expect(201)["webhook_id"] == repeated.expect(201)["webhook_id"]
    assert replayed(repeated) and repeated.json["secret"] is None
    weir.api("POST", "/v1/webhooks", {**hook, "events": ["*"]}, key, headers).expect_problem(
        409, CONFLICT)


def test_replays_are_counted_apart_from_new_jobs(weir, client):
    """[JOB-274] One new and one replay: 1 and 1."""
    new, old = weir.metric("jobs_submitted_total"), weir.metric("weir_idempotent_replays_total")
    key = new_key()
    for _ in range(2):
        weir.submit(client.api_key, idempotency_key=key, queue="o")
    assert weir.metric("jobs_submitted_total") == new + 1
    assert weir.metric("weir_idempotent_replays_total") == old + 1


def test_the_key_is_not_part_of_the_body(weir, client):
    """Header K with a body, then the same body with K inside: the same request."""
    key = new_key()
    body = {"type": "EXECUTE", "queue": "o", "payload": {"idempotency_key": "inner"}}
    one = weir.api("POST", "/v1/jobs", json.dumps(body), client.api_key, {"Idempotency-Key": key})
    two = weir.api("POST", "/v1/jobs", {**body, "idempotency_key": key}, client.api_key)
    assert one.expect(202) == two.expect(202) and replayed(two)
    other = {**body, "payload": {"idempotency_key": "another"}, "idempotency_key": key}
    weir.api("POST", "/v1/jobs", other, client.api_key).expect_problem(409, CONFLICT)
