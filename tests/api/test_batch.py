"""Many jobs in one call: each item stands alone, results in request order."""
import json

PATH = "/v1/jobs:batch"


def batch(weir, key, jobs):
    """The results of a batch that must be accepted as such."""
    return weir.api("POST", PATH, {"jobs": jobs}, key).expect(202)["results"]


def test_results_come_in_request_order(weir, client):
    jobs = [{"type": "EXECUTE", "queue": "o", "payload": {"n": n}} for n in range(100)]
    results = batch(weir, client.api_key, jobs)
    assert len(results) == 100
    for n, result in enumerate(results):
        assert set(result) == {"job_id", "state", "created_at"}
        assert weir.job(client.api_key, result["job_id"])["payload"] == {"n": n}


def test_a_bad_item_is_told_in_its_place_and_disturbs_no_other(weir, client):
    """[JOB-161 JOB-162] The good ones are stored, the bad ones are problems with the right code."""
    good = {"type": "EXECUTE", "queue": "o"}
    jobs = [good, {}, good, {"type": "FOO"}, {"type": "DEFERRED"}, {**good, "colour": 1},
            {**good, "work_kind": "PAYLOAD_INVALID"}, {**good, "priority": 10}, good]
    answer = weir.api("POST", PATH, {"jobs": jobs}, client.api_key)
    results = answer.expect(202)["results"]
    codes = [r["error"]["code"] if "error" in r else None for r in results]
    invalid, malformed = "RFA_JOB_VALIDATION_FAILED", "RFA_REQUEST_MALFORMED"
    assert codes == [None, malformed, None, invalid, invalid, malformed, invalid, invalid, None]
    for result in results:
        if "error" in result:
            problem = result["error"]
            assert problem["status"] == 400 and problem["detail"] and problem["title"]
            assert problem["instance"] == answer.headers["x-request-id"]
    assert weir.total(client.api_key) == 3


def test_a_thousand_items_fit_and_one_more_does_not(weir, client):
    item = {"type": "EXECUTE", "queue": "o"}
    assert len(batch(weir, client.api_key, [item] * 1000)) == 1000
    assert weir.total(client.api_key) == 1000
    weir.api("POST", PATH, {"jobs": [item] * 1001}, client.api_key).expect_problem(
        400, "RFA_REQUEST_MALFORMED")
    assert weir.total(client.api_key) == 1000


def test_the_envelope_is_checked_as_a_whole(weir, client):
    for body in ({}, {"jobs": []}, {"jobs": {}}, {"jobs": None}, {"jobs": [1]}, {"jobs": [[]]},
                 {"jobs": [{"type": "EXECUTE"}], "more": 1}, [], [{"type": "EXECUTE"}]):
        weir.api("POST", PATH, body, client.api_key).expect_problem(400, "RFA_REQUEST_MALFORMED")
    weir.api("POST", PATH, '{"jobs":[{"type":"EXECUTE"},]}', client.api_key).expect_problem(
        400, "RFA_REQUEST_MALFORMED")
    assert weir.total(client.api_key) == 0


def test_the_header_key_is_not_used(weir, client):
    headers = {"Idempotency-Key": "one-header-for-all"}
    body = {"jobs": [{"type": "EXECUTE", "queue": "o"}] * 2}
    first = weir.api("POST", PATH, body, client.api_key, headers).expect(202)["results"]
    second = weir.api("POST", PATH, body, client.api_key, headers).expect(202)["results"]
    assert len({r["job_id"] for r in first + second}) == 4


def test_types_and_schedules_mix(weir, client):
    results = batch(weir, client.api_key, [
        {"type": "EXECUTE", "queue": "o"}, {"type": "EMIT_EVENT", "queue": "o"},
        {"type": "DEFERRED", "execution_at": "2099-01-01T00:00:00Z"}])
    assert [r["state"] for r in results] == ["QUEUED", "QUEUED", "CREATED"]


def test_a_batch_over_the_body_limit_is_413_and_stores_nothing(weir, client):
    item = {"type": "EXECUTE", "queue": "o", "payload": {"x": "a" * 10000}}
    body = json.dumps({"jobs": [item] * 200})
    assert len(body) > 1048576
    weir.api("POST", PATH, body, client.api_key).expect_problem(
        413, "RFA_REQUEST_PAYLOAD_TOO_LARGE")
    assert weir.total(client.api_key) == 0


def test_a_full_queue_refuses_the_rest_of_a_batch_item_by_item(fresh_weir):
    """Capacity 5: five items stand, the others say RFA_EXEC_QUEUE_FULL; nothing is lost."""
    weir = fresh_weir(settings={"runner.processes": 0, "jobs.queue_size": 5})
    key = weir.new_client().api_key
    results = batch(weir, key, [{"type": "EXECUTE"}] * 8)
    assert ["error" in r for r in results] == [False] * 5 + [True] * 3
    assert {r["error"]["code"] for r in results[5:]} == {"RFA_EXEC_QUEUE_FULL"}
    assert weir.total(key) == 5
