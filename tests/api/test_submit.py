"""Submitting a job: what comes back, what is stored, what follows."""
import re
import time
import uuid
from datetime import datetime, timedelta, timezone


UTC_MS = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
FIELDS = {"job_id", "type", "state", "outcome", "created_at", "execution_at", "updated_at",
          "attempt", "callback"}


def test_submit_answers_202_with_three_texts(weir, client):
    """[JOB-087] job_id, state and created_at, all strings; created_at is UTC."""
    before = datetime.now(timezone.utc) - timedelta(seconds=1)
    answer = weir.try_submit(client.api_key, queue="outside")
    job = answer.expect(202)
    assert set(job) == {"job_id", "state", "created_at"}
    assert all(isinstance(value, str) for value in job.values())
    assert str(uuid.UUID(job["job_id"])) == job["job_id"]
    assert UTC_MS.match(job["created_at"])
    made = datetime.fromisoformat(job["created_at"].replace("Z", "+00:00"))
    assert before <= made <= datetime.now(timezone.utc)
    assert answer.headers["location"] == "/v1/jobs/" + job["job_id"]


def test_an_instant_job_is_queued_and_a_deferred_one_waits(weir, client):
    """[JOB-006 JOB-127] Without execution_at: QUEUED at once; with it: CREATED until it is due."""
    instant = weir.submit(client.api_key, queue="outside")
    deferred = weir.submit(client.api_key, type="DEFERRED", execution_at=weir.soon(3600))
    assert instant["job_id"] != deferred["job_id"]
    assert (instant["state"], deferred["state"]) == ("QUEUED", "CREATED")
    first = weir.job(client.api_key, instant["job_id"])
    assert first["execution_at"] is None and first["type"] == "EXECUTE"
    second = weir.job(client.api_key, deferred["job_id"])
    assert second["type"] == "DEFERRED" and UTC_MS.match(second["execution_at"])


def test_every_state_shows_the_nine_fields(weir, client):
    """[JOB-097 JOB-238 JOB-107] Present and typed in CREATED, QUEUED, ASSIGNED, RUNNING, final."""
    key = client.api_key
    created = weir.submit(key, type="DEFERRED", execution_at=weir.soon(3600))["job_id"]
    seen = {"CREATED": weir.job(key, created)}
    worked = weir.submit(key, queue="outside", callback="http://127.0.0.1:9/hook")["job_id"]
    seen["QUEUED"] = weir.job(key, worked)
    task = weir.claim(key)[0]
    seen["ASSIGNED"] = weir.job(key, worked)
    weir.tell("start", key, task)
    seen["RUNNING"] = weir.job(key, worked)
    weir.tell("finish", key, task, outcome="failure",
              error={"code": "broken", "message": "it broke", "retryable": False})
    seen["FAILED"] = weir.job(key, worked)
    weir.cancel(key, created).expect(200)
    seen["CANCELED"] = weir.job(key, created)
    for state, job in seen.items():
        assert FIELDS <= set(job), state
        assert job["state"] == state
        assert isinstance(job["attempt"], int) and job["attempt"] == 1
        assert job["outcome"] == (state if state in ("FAILED", "CANCELED") else None)
    assert seen["QUEUED"]["callback"] == "http://127.0.0.1:9/hook"
    assert seen["CREATED"]["callback"] is None and seen["QUEUED"]["execution_at"] is None


def test_outcome_is_null_until_final_and_then_one_of_three(weir, client):
    """[JOB-098 JOB-109] SUCCEEDED shows SUCCESS; FAILED and CANCELED their own name."""
    key = client.api_key
    good = weir.submit(key, queue="good")["job_id"]
    assert weir.job(key, good)["outcome"] is None
    weir.end_outside(key, good, "success", queue="good")
    bad = weir.failed_job(key)
    gone = weir.submit(key, queue="other")["job_id"]
    weir.cancel(key, gone).expect(200)
    for job_id, outcome in ((good, "SUCCESS"), (bad, "FAILED"), (gone, "CANCELED")):
        assert weir.job(key, job_id)["outcome"] == outcome
        assert weir.report(key, job_id)["outcome"] == outcome


def test_only_the_type_is_needed_and_the_rest_is_generated(weir, client):
    """[JOB-011 JOB-054 JOB-066] The definition is filled in from the catalog, on queue `default`."""
    job = weir.submit(client.api_key)
    definition = weir.job(client.api_key, job["job_id"])["definition"]
    assert isinstance(definition["work_kind"], str)
    assert definition["duration_ms"] > 0 and definition["payload_size"] > 0
    assert isinstance(definition["should_fail"], bool)
    assert definition["seed"] > 1_600_000_000_000


def test_a_deferred_definition_holds_its_four_fields(weir, client):
    """[JOB-060] work_kind, execution_at, duration_ms, should_fail."""
    at = weir.soon(3600)
    job = weir.submit(client.api_key, type="DEFERRED", execution_at=at)
    definition = weir.job(client.api_key, job["job_id"])["definition"]
    assert definition["execution_at"] == at
    assert {"work_kind", "duration_ms", "should_fail"} <= set(definition)


def test_a_named_kind_gives_the_catalog_row(weir, client):
    """[JOB-013] CPU_BURST: 8000 ms, no failure, 4 KB, whatever the time of the request."""
    for _ in range(2):
        job = weir.submit(client.api_key, work_kind="CPU_BURST", queue="outside")
        definition = weir.job(client.api_key, job["job_id"])["definition"]
        assert {k: definition[k] for k in definition if k != "seed"} == {
            "work_kind": "CPU_BURST", "execution_at": None, "duration_ms": 8000,
            "should_fail": False, "payload_size": 4096}


def test_without_a_kind_one_is_drawn_from_the_seed(weir, client):
    """[JOB-020] Several kinds appear, and none that needs help from outside. That equal seeds give equal
    definitions is proved with a clock that stands still (tests/unit/jobs/test_submit.c)."""
    key = client.api_key
    jobs = []
    for _ in range(4):  # each batch spreads its items over seeds of its own
        body = {"jobs": [{"type": "DEFERRED", "execution_at": weir.soon(86400)}] * 50}
        jobs += weir.api("POST", "/v1/jobs:batch", body, key).expect(202)["results"]
    kinds = {weir.job(key, job["job_id"])["definition"]["work_kind"] for job in jobs}
    assert len(jobs) == 200 and len(kinds) >= 5
    assert not any(k.startswith(("CANCEL_", "DUPLICATE_", "WEBHOOK_", "SCHEDULED_")) or
                   k == "PAYLOAD_INVALID" for k in kinds)


def test_the_first_event_of_every_job_creates_it(weir, client):
    """[JOB-108] next_state CREATED, no previous state; then the scenario is in each payload."""
    for fields in ({}, {"type": "DEFERRED", "execution_at": weir.soon(3600)}):
        job = weir.submit(client.api_key, queue="outside", **fields)
        events = weir.events(client.api_key, job["job_id"])
        assert events[0]["event_name"] == "job.created"
        assert (events[0]["prev_state"], events[0]["next_state"]) == (None, "CREATED")


def test_every_event_names_the_scenario(weir, client):
    """[JOB-019] payload.scenario is the work kind, from the first event to the last."""
    job = weir.submit(client.api_key, work_kind="FAIL_IMMEDIATE")
    weir.wait_final(client.api_key, job["job_id"])
    events = weir.events(client.api_key, job["job_id"])
    assert len(events) == 5
    assert {e["payload"]["scenario"] for e in events} == {"FAIL_IMMEDIATE"}


def test_submitted_values_come_back_as_sent(weir, client):
    payload = {"text": "grüße \u0001 \U0001F600", "n": 1.50, "list": [1, {"deep": None}]}
    job = weir.submit(client.api_key, queue="a-queue.of_mine", payload=payload, priority=9,
                      max_runtime_ms=1, max_retries=0, callback=None, execution_at=None)
    seen = weir.job(client.api_key, job["job_id"])
    assert seen["payload"] == payload
    assert (seen["queue"], seen["priority"]) == ("a-queue.of_mine", 9)
    assert (seen["max_runtime_ms"], seen["max_retries"]) == (1, 0)
    assert weir.claim(client.api_key, "a-queue.of_mine")[0]["payload"] == payload


def test_a_job_that_is_submitted_after_an_answer_has_the_greater_id(weir, client):
    """[JOB-139] Ids are the order of claims. Whichever thread commits a submit, also within a millisecond."""
    ids = [weir.submit(client.api_key, queue="in-order")["job_id"] for _ in range(300)]
    assert ids == sorted(ids)


def test_execution_at_in_the_next_moment_is_taken_and_never_early(weir, client):
    at = datetime.now(timezone.utc) + timedelta(milliseconds=600)
    text = at.strftime("%Y-%m-%dT%H:%M:%S.%f") + "Z"
    job = weir.submit(client.api_key, type="DEFERRED", execution_at=text, work_kind="SUCCESS_FAST")
    assert job["state"] == "CREATED"
    weir.wait_state(client.api_key, job["job_id"], "SUCCEEDED")
    queued = weir.events(client.api_key, job["job_id"])[1]
    assert queued["event_name"] == "job.queued" and queued["timestamp"] >= text
    assert time.time() >= at.timestamp()
