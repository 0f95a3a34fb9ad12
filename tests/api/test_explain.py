"""Why a job waits: one word, one sentence, since when, and its place in the caller's own queue."""
import uuid

import pytest

from harness.weir_server import wait_for

REASONS = {"schedule", "backoff", "worker", "lease", "queue_full", "nothing"}


def explain(weir, key, job_id):
    """The explanation, its common fields checked."""
    told = weir.api("GET", f"/v1/jobs/{job_id}/explain", key=key).expect(200)
    assert {"job_id", "state", "waiting_on", "detail", "since", "position"} <= set(told)
    assert told["job_id"] == job_id and told["waiting_on"] in REASONS and told["detail"]
    job = weir.job(key, job_id)
    assert (told["state"], told["since"]) == (job["state"], job["updated_at"])
    return told


def test_a_deferred_job_waits_for_its_schedule(weir, client):
    job_id = weir.submit(client.api_key, type="DEFERRED",
                         execution_at="2099-01-01T00:00:00Z")["job_id"]
    told = explain(weir, client.api_key, job_id)
    assert told["waiting_on"] == "schedule" and told["position"] is None
    assert told["until"] == "2099-01-01T00:00:00.000Z"


def test_the_states_of_a_life_are_explained(weir, client):
    key = client.api_key
    job_id = weir.submit(key, queue="outside", retry="manual")["job_id"]
    told = explain(weir, key, job_id)
    assert (told["waiting_on"], told["position"]) == ("worker", 1)
    task = weir.claim(key, worker_id="worker-7")[0]
    told = explain(weir, key, job_id)
    assert (told["waiting_on"], told["worker_id"]) == ("lease", "worker-7")
    assert told["position"] is None
    weir.tell("start", key, task)
    assert explain(weir, key, job_id)["waiting_on"] == "lease"
    weir.tell("finish", key, task, outcome="failure")
    assert explain(weir, key, job_id)["waiting_on"] == "nothing"
    weir.retry(key, job_id).expect(200)
    told = explain(weir, key, job_id)
    assert told["waiting_on"] == "backoff" and told["until"] > told["since"][:19]
    weir.cancel(key, job_id).expect(200)
    assert explain(weir, key, job_id)["waiting_on"] == "nothing"


def test_the_position_follows_priority_then_age_within_a_queue(weir, client):
    key = client.api_key

    def put(priority, queue="line"):
        return weir.submit(key, queue=queue, priority=priority)["job_id"]

    first, low, high, other, last = put(4), put(3), put(9), put(4, "another"), put(4)
    place = {j: explain(weir, key, j)["position"] for j in (first, low, high, other, last)}
    assert place == {high: 1, first: 2, last: 3, low: 4, other: 1}
    assert [t["job_id"] for t in weir.claim(key, "line", most=4)] == [high, first, last, low]


def test_other_clients_do_not_show_in_the_position(weir, client):
    other_client = weir.new_client()
    for _ in range(3):
        weir.submit(other_client.api_key, queue="shared", priority=9)
    mine = weir.submit(client.api_key, queue="shared")["job_id"]
    assert explain(weir, client.api_key, mine)["position"] == 1


@pytest.mark.limit(30)
def test_a_due_job_that_meets_a_full_queue_says_so(fresh_weir):
    """Stays CREATED, waits on queue_full; goes on when there is room."""
    weir = fresh_weir(settings={"runner.processes": 0, "jobs.queue_size": 1})
    key = weir.new_client().api_key
    at = weir.soon(0.8)
    late = weir.submit(key, type="DEFERRED", execution_at=at, queue="outside")["job_id"]
    filler = weir.submit(key, queue="outside")["job_id"]
    wait_for(lambda: explain(weir, key, late)["waiting_on"] == "queue_full", 5, "queue_full", weir)
    assert weir.job(key, late)["state"] == "CREATED"
    weir.cancel(key, filler).expect(200)
    weir.wait_state(key, late, "QUEUED")


def test_explain_refuses_what_it_must(weir, client):
    job_id = weir.submit(client.api_key, queue="o")["job_id"]
    path = f"/v1/jobs/{job_id}/explain"
    weir.api("GET", path).expect_problem(401, "RFA_AUTH_INVALID_CREDENTIALS")
    weir.api("GET", path, key=weir.new_client().api_key).expect_problem(403, "RFA_AUTH_FORBIDDEN")
    weir.api("GET", f"/v1/jobs/{uuid.uuid4()}/explain", key=client.api_key).expect_problem(
        404, "RFA_JOB_NOT_FOUND")
