"""Limits: requests per minute and day, their headers, overrides, active jobs, queue size, priorities,
runtime."""
import re
import time

import pytest

from harness import store_sql, wire

LIMITED = "RFA_REQUEST_RATE_LIMITED"
FULL = "RFA_EXEC_QUEUE_FULL"


def early_in_the_minute(seconds):
    """Waits until at least `seconds` are left of the wall clock's minute, which windows follow."""
    left = 60 - time.time() % 60
    if left < seconds:
        time.sleep(left + 0.05)


def members(text):
    """A structured list of texts with whole numbers as parameters, as {text: {name: number}}; strict."""
    member = r'"([a-z]+)"((?:;[a-z]+=[0-9]{1,15})+)'
    assert re.fullmatch(f"{member}(?:, {member})*", text), text
    return {name: {key: int(value) for key, value in re.findall(r";([a-z]+)=([0-9]+)", parameters)}
            for name, parameters in re.findall(member, text)}


def standing(answer):
    """(policies, where the client stands) as an answer tells; ({}, {}) when it tells nothing."""
    told = [answer.headers.get(name) for name in ("ratelimit-policy", "ratelimit")]
    assert (told[0] is None) == (told[1] is None)
    return tuple(members(text) if text else {} for text in told)


@pytest.fixture(scope="module")
def five(module_weir):
    """A server that takes five requests a minute."""
    return module_weir(settings={"limits.requests_per_minute": 5, "runner.processes": 0})


@pytest.mark.limit(150)
def test_the_sixth_request_of_a_minute_is_refused(five):
    """[JOB-191 JOB-205 JOB-286 JOB-092] 429 with Retry-After; nothing stored; others unaffected."""
    early_in_the_minute(5)
    weir = five
    key, other = weir.new_client().api_key, weir.new_client().api_key
    for _ in range(5):
        weir.submit(key, queue="o")
    for _ in range(3):
        answer = weir.try_submit(key, queue="o")
        answer.expect_problem(429, LIMITED)
        assert 1 <= int(answer.headers["retry-after"]) <= 60
    for method, path in (("GET", "/v1/jobs"), ("GET", "/v1/reports"), ("GET", "/v1/webhooks")):
        weir.api(method, path, key=key).expect_problem(429, LIMITED)
    assert weir.total(other) == 0  # another client has a window of its own
    assert weir.metric("jobs_submitted_total") == 5


def not_over_midnight(seconds=60):
    """Waits until the day has at least so many seconds left, which quotas follow."""
    left = 86400 - time.time() % 86400
    if left < seconds:
        time.sleep(left + 0.05)


@pytest.mark.limit(150)
def test_every_answer_that_a_limit_governs_says_where_the_client_stands(fresh_weir):
    """[JOB-286] [JOB-191] RateLimit-Policy and RateLimit on 2xx, 4xx and streams alike; at 429 nothing is
    left and Retry-After is the reset. Nothing where no limit holds."""
    weir = fresh_weir(settings={"limits.requests_per_minute": 1000, "limits.requests_per_day": 8,
                                "runner.processes": 0})
    key = weir.new_client().api_key
    not_over_midnight()
    job_id = None
    calls = [("POST", "/v1/jobs", {"type": "EXECUTE", "queue": "o"}, 202), ("GET", "/v1/jobs", None, 200),
             ("POST", "/v1/jobs", "{", 400), ("GET", "/v1/jobs/nope", None, 404),
             ("DELETE", "/v1/webhooks/nope", None, 404), ("HEAD", "/v1/jobs", None, 200),
             ("POST", "/v1/jobs/{}/cancel", None, 200)]
    for used, (method, path, body, status) in enumerate(calls, 1):
        answer = weir.api(method, path.format(job_id), body, key)
        assert answer.status == status
        job_id = job_id or answer.json["job_id"]
        policy, left = standing(answer)
        assert policy == {"minute": {"q": 1000, "w": 60}, "day": {"q": 8, "w": 86400}}
        assert left["day"]["r"] == 8 - used and 1000 - used <= left["minute"]["r"] < 1000
        assert 1 <= left["minute"]["t"] <= 60 and 1 <= left["day"]["t"] <= 86400
    assert list(wire.follow(weir.address, f"/v1/jobs/{job_id}/events", key, timeout=5))  # the eighth
    answer = weir.api("GET", "/v1/jobs", key=key)
    answer.expect_problem(429, LIMITED)
    left = standing(answer)[1]
    assert left["day"] == {"r": 0, "t": int(answer.headers["retry-after"])} and left["minute"]["r"] >= 992
    for free in (weir.api("GET", "/healthz", key=key), weir.api("GET", "/v1/jobs"),
                 weir.api("POST", "/v1/clients"), weir.api("GET", "/nowhere", key=key),
                 weir.api("POST", "/worker/v1/claim", {"worker_id": "w", "queues": ["o"], "max": 1}, key)):
        assert standing(free) == ({}, {})


def test_without_a_limit_no_header_is_sent(weir):
    """The control of the test above."""
    assert standing(weir.try_submit(weir.new_client().api_key, queue="o")) == ({}, {})


@pytest.mark.limit(150)
def test_a_refused_request_leaves_nothing_behind(five):
    """[JOB-191] No job, no event, no delivery, no webhook, and its idempotency key is still free."""
    early_in_the_minute(10)
    weir = five
    client = weir.new_client()
    for _ in range(5):
        weir.api("GET", "/v1/jobs", key=client.api_key).expect(200)
    before = weir.metrics()
    weir.try_submit(client.api_key, queue="o", idempotency_key="k").expect_problem(429, LIMITED)
    weir.api("POST", "/v1/jobs:batch", {"jobs": [{"type": "EXECUTE"}] * 3},
             client.api_key).expect_problem(429, LIMITED)
    weir.api("POST", "/v1/webhooks", {"url": "http://127.0.0.1:1/", "events": ["*"]},
             client.api_key).expect_problem(429, LIMITED)
    weir.api("POST", f"/v1/clients/{client.client_id}/keys/renew", {},
             client.api_key).expect_problem(429, LIMITED)
    after = weir.metrics()
    for name in ("jobs_submitted_total", "jobs_queued_total", "job_queue_depth"):
        assert after[name] == before[name]
    weir.restart()  # a new minute
    assert weir.total(client.api_key) == 0
    assert weir.api("GET", "/v1/webhooks", key=client.api_key).expect(200)["items"] == []
    weir.submit(client.api_key, queue="o", priority=7, idempotency_key="k")  # another body


@pytest.mark.limit(150)
def test_the_limit_is_checked_after_the_key_and_before_the_rest(five):
    """A bad key costs nothing; a malformed request counts, and is 429 once the window is used."""
    early_in_the_minute(5)
    key = five.new_client().api_key
    for _ in range(10):
        five.api("GET", "/v1/jobs", key=key[:-1]).expect_problem(
            401, "RFA_AUTH_INVALID_CREDENTIALS")
    for _ in range(5):
        five.api("POST", "/v1/jobs", "{", key).expect_problem(400, "RFA_REQUEST_MALFORMED")
    five.api("POST", "/v1/jobs", "{", key, {"Accept": "text/html"}).expect_problem(429, LIMITED)


@pytest.mark.limit(150)
def test_worker_calls_and_probes_do_not_count(five):
    key = five.new_client().api_key
    for _ in range(8):
        assert five.claim(key) == []
        five.api("GET", "/healthz", key=key).expect(200)
    five.submit(key, queue="o")


@pytest.mark.limit(150)
def test_an_override_beats_the_default_for_its_client_only(fresh_weir):
    """[JOB-292] Change values and restart: the new limits hold, per client and for all."""
    weir = fresh_weir(settings={"runner.processes": 0})
    special, usual = weir.new_client(), weir.new_client()
    early_in_the_minute(10)
    weir.restart({"limits.requests_per_minute": 2,
                  "limits.overrides": f"{special.client_id}=4"})
    for client, allowed in ((special, 4), (usual, 2)):
        statuses = [weir.api("GET", "/v1/jobs", key=client.api_key).status for _ in range(6)]
        assert statuses == [200] * allowed + [429] * (6 - allowed)
    early_in_the_minute(10)
    weir.restart({"limits.requests_per_minute": 3, "limits.overrides": f"{special.client_id}=0"})
    for client, allowed in ((special, 6), (usual, 3)):
        statuses = [weir.api("GET", "/v1/jobs", key=client.api_key).status for _ in range(6)]
        assert statuses == [200] * allowed + [429] * (6 - allowed)


def test_a_used_up_daily_quota_is_429(fresh_weir):
    """[JOB-192] Quota 10: the eleventh request is refused, no job is made; others go on."""
    weir = fresh_weir(settings={"limits.requests_per_day": 10, "runner.processes": 0})
    key = weir.new_client().api_key
    for _ in range(10):
        weir.submit(key, queue="o")
    answer = weir.try_submit(key, queue="o")
    problem = answer.expect_problem(429, LIMITED)
    assert "day" in problem["detail"] and 1 <= int(answer.headers["retry-after"]) <= 86400
    assert weir.total(weir.new_client().api_key) == 0
    assert weir.metric("jobs_submitted_total") == 10


def test_active_jobs_are_limited_over_all_clients(fresh_weir):
    """[JOB-193 JOB-287 JOB-293] Three unfinished: 429; accepted again after one finished."""
    weir = fresh_weir(settings={"jobs.max_active": 3, "runner.processes": 0})
    key, other = weir.new_client().api_key, weir.new_client().api_key
    jobs = [weir.submit(key, queue="o")["job_id"], weir.submit(other, queue="o")["job_id"],
            weir.submit(key, type="DEFERRED", execution_at=weir.soon(3600))["job_id"]]
    for fields in ({"queue": "o"}, {"type": "DEFERRED", "execution_at": weir.soon(3600)}):
        answer = weir.try_submit(other, **fields)
        answer.expect_problem(429, LIMITED)
        assert int(answer.headers["retry-after"]) >= 1
    assert weir.total(key) == 2 and weir.total(other) == 1
    weir.cancel(key, jobs[2]).expect(200)
    weir.submit(other, queue="o")
    weir.try_submit(key, queue="o").expect_problem(429, LIMITED)
    weir.restart({"jobs.max_active": 4})
    weir.submit(key, queue="o")
    weir.try_submit(key, queue="o").expect_problem(429, LIMITED)


def test_a_full_queue_refuses_and_drops_nothing(fresh_weir):
    """[JOB-172 JOB-217 JOB-288 JOB-294 JOB-092] Capacity 5: the sixth is 503, no row; claimed
    jobs make room; the setting moves the limit."""
    weir = fresh_weir(settings={"jobs.queue_size": 5, "runner.processes": 0})
    key = weir.new_client().api_key
    jobs = [weir.submit(key, queue="outside")["job_id"] for _ in range(5)]
    for _ in range(2):
        answer = weir.try_submit(key, queue="outside")
        answer.expect_problem(503, FULL)
        assert int(answer.headers["retry-after"]) >= 1
    assert weir.total(key) == 5 and weir.metric("job_queue_depth") == 5
    deferred = weir.submit(key, type="DEFERRED", execution_at=weir.soon(3600))
    assert deferred["state"] == "CREATED"  # it does not stand in the queue
    assert [t["job_id"] for t in weir.claim(key, most=2)] == jobs[:2]
    for _ in range(2):
        weir.submit(key, queue="outside")
    weir.try_submit(key, queue="outside").expect_problem(503, FULL)
    weir.restart({"jobs.queue_size": 6})
    weir.submit(key, queue="outside")
    weir.try_submit(key, queue="outside").expect_problem(503, FULL)
    assert weir.total(key) == 9


def test_the_queue_limit_tells_the_same_from_every_door(fresh_weir):
    """[JOB-194] Submit, batch and retry give one code and one status, as does a low priority; a replay is
    answered all the same."""
    weir = fresh_weir(settings={"jobs.queue_size": 1, "runner.processes": 0})
    key = weir.new_client().api_key
    failed = weir.failed_job(key)
    first = weir.submit(key, idempotency_key="a", queue="o")
    assert weir.submit(key, idempotency_key="a", queue="o") == first
    weir.try_submit(key, idempotency_key="b", queue="o").expect_problem(503, FULL)
    single = weir.try_submit(key, queue="o").expect_problem(503, FULL)
    retry = weir.retry(key, failed).expect_problem(503, FULL)
    low = weir.try_submit(key, queue="o", priority=0).expect_problem(503, FULL)
    batch = weir.api("POST", "/v1/jobs:batch", {"jobs": [{"type": "EXECUTE"}]}, key).expect(202)
    found = [single, retry, low, batch["results"][0]["error"]]
    assert {(p["code"], p["status"], p["title"], p["type"]) for p in found} == {
        (FULL, 503, single["title"], single["type"])}


@pytest.fixture(scope="module")
def tight(module_weir):
    """A server that takes little, for a short time."""
    return module_weir(settings={"jobs.payload_max_bytes": 100, "server.body_max_bytes": 2048,
                                 "jobs.max_runtime_ms": 300, "runner.processes": 0})


def test_payload_and_body_limits_follow_their_settings(tight):
    """[JOB-289] A large payload in a well-sized body is 400, a large body 413."""
    weir = tight
    key = weir.new_client().api_key
    weir.submit(key, queue="o", payload={"x": "a" * 80})
    weir.try_submit(key, queue="o", payload={"x": "a" * 200}).expect_problem(
        400, "RFA_JOB_VALIDATION_FAILED")
    weir.try_submit(key, queue="o", payload={"x": "a" * 3000}).expect_problem(
        413, "RFA_REQUEST_PAYLOAD_TOO_LARGE")
    assert weir.total(key) == 1
