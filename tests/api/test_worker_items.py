"""Items of the worker API: one that is wrong disturbs no other, a finish may be sent again, a task may be
given back at any time, progress is told and shown."""
import contextlib
import json

import pytest

from harness import postgres, wire
from harness.history import check_chain
from harness.nodes import Nodes
from harness.worker_calls import Worker, names


@pytest.fixture(name="worker")
def worker_fixture(weir, client):
    """A worker of the queue `outside`; each test has a client of its own."""
    with Worker(weir, client.api_key) as one:
        yield one


def started(weir, client, worker, **fields):
    """A job that the worker runs: its task."""
    weir.submit(client.api_key, queue="outside", **fields)
    return worker.claim(start=True)[0]


# ---- items that are not well-formed

BAD = {
    "no task_id": {"token": "1"},
    "no token": {"task_id": "x"},
    "a number as token": {"task_id": "x", "token": 1},
    "an unknown member": {"task_id": "x", "token": "1", "colour": "red"},
    "a number as task_id": {"task_id": 7, "token": "1"},
    "no object": "x",
    "null": None,
    "an array": [],
}
BAD_OF_ONE = [
    ("finish", {"outcome": "maybe"}), ("finish", {}), ("finish", {"outcome": "success", "result": 7}),
    ("finish", {"outcome": "failure", "error": {"code": "x"}}), ("start", {"outcome": "success"}),
    ("heartbeat", {"progress": {}}), ("heartbeat", {"progress": {"percent": 101}}),
    ("heartbeat", {"progress": {"percent": -0.1}}), ("heartbeat", {"progress": {"percent": "10"}}),
    ("heartbeat", {"progress": {"percent": 1, "note": "ä" * 129}}), ("heartbeat", {"delay_ms": 1}),
    ("release", {"delay_ms": -1}), ("release", {"delay_ms": 86400001}), ("release", {"delay_ms": 1.5}),
    ("release", {"reason": 7}), ("release", {"progress": {"percent": 1}}),
]


@pytest.mark.any_store
@pytest.mark.parametrize("verb", ["start", "heartbeat", "finish", "release"])
def test_a_bad_item_is_told_in_its_place_and_disturbs_no_other(weir, client, worker, verb):
    """Whatever is wrong with it: ok false, `malformed`, what is wrong; its task_id when it has one."""
    weir.submit(client.api_key, queue="outside")
    task, = worker.claim(start=verb != "start")
    more = {"outcome": "success"} if verb == "finish" else {}
    items = [{**item, **more} if isinstance(item, dict) else item for item in BAD.values()]
    half = len(items) // 2
    body = {"tasks": items[:half] + [names(task, **more)] + items[half:]}
    results = weir.api("POST", f"/worker/v1/{verb}", body, client.api_key).expect(200)["results"]
    assert len(results) == len(body["tasks"])
    for item, result in zip(body["tasks"], results):
        if item is body["tasks"][half]:
            assert result["ok"] is True and result["task_id"] == task["task_id"]
            continue
        readable = isinstance(item, dict) and isinstance(item.get("task_id"), str)
        assert result.pop("detail")
        assert result == {"task_id": item["task_id"] if readable else None, "ok": False,
                          "code": "malformed"}, item


@pytest.mark.any_store
@pytest.mark.parametrize("verb, more", BAD_OF_ONE, ids=lambda value: json.dumps(value)[:40])
def test_what_one_call_allows_is_malformed_in_another(weir, client, worker, verb, more):
    task = started(weir, client, worker)
    result, = worker.tell(verb, [names(task, **more)])
    assert (result["ok"], result["code"]) == (False, "malformed") and result["detail"]
    assert weir.job(client.api_key, task["job_id"])["state"] == "RUNNING"
    worker.finish([task])


@pytest.mark.any_store
def test_what_is_wrong_with_the_body_is_wrong_with_all_of_it(weir, client):
    item = {"task_id": "x", "token": "1", "outcome": "success"}
    for body in ({}, {"tasks": []}, {"tasks": {}}, {"tasks": [item] * 1001}, {"tasks": [item], "more": 1}):
        for verb in ("start", "heartbeat", "finish", "release"):
            weir.api("POST", f"/worker/v1/{verb}", body, client.api_key).expect_problem(
                400, "RFA_REQUEST_MALFORMED")


# ---- the same finish again


@pytest.mark.postgres_only
def test_another_node_knows_the_finish_and_the_end_of_a_job_that_is_waited_for():
    """What the rows tell, any node tells; a wait ends when another node ends the job. A node that has just
    joined is told, too: nothing is left to the stream's next ping."""
    pings = []
    with Nodes(postgres.session(), 2, {"runner.processes": 0}) as (first, second):
        client = first.new_client()
        job_id = first.submit(client.api_key, queue="outside")["job_id"]
        with Worker(first, client.api_key) as here, Worker(second, client.api_key) as there:
            task, = here.claim(start=True)
            with wire.Background(second.address, f"/v1/jobs/{job_id}?wait_ms=30000", client.api_key) as wait:
                here.heartbeat([task], progress={"percent": 5})
                with contextlib.closing(wire.follow(second.address, f"/v1/jobs/{job_id}/events",
                                                    client.api_key, comments=pings)) as messages:
                    assert [next(messages)["event"] for _ in range(5)][-1] == "progress"
                    here.heartbeat([task], progress={"percent": 50})
                    assert next(messages)["data"]["percent"] == 50
                    assert not pings
                assert here.finish([task], result={"n": 1})[0]["ok"] is True
                assert wait.result()["result"] == {"n": 1}
            assert there.finish([task], result={"n": 1})[0]["ok"] is True
            assert there.fail([task])[0]["code"] == "lease_lost"


# ---- giving back

def test_a_started_task_is_given_back_and_spends_no_attempt(weir, client, worker):
    """[JOB-123] FAILED and QUEUED in one write, with the reason; there is no report of it, and the job has
    all its retries. It is claimed again, not before the delay is over."""
    task = started(weir, client, worker, max_retries=0)
    worker.heartbeat([task], progress={"percent": 30})
    assert worker.release([task], delay_ms=700, reason="too busy") == [
        {"task_id": task["task_id"], "ok": True}]
    job = weir.job(client.api_key, task["job_id"])
    assert (job["state"], job["attempt"], job["progress"], job["error"]) == ("QUEUED", 1, None, None)
    explained = weir.api("GET", f"/v1/jobs/{task['job_id']}/explain", key=client.api_key).expect(200)
    assert explained["waiting_on"] == "backoff"
    weir.api("GET", f"/v1/jobs/{task['job_id']}/report", key=client.api_key).expect_problem(
        404, "RFA_JOB_REPORT_NOT_FOUND")
    failed, queued = weir.events(client.api_key, task["job_id"])[-2:]
    assert (failed["event_name"], failed["payload"]["reason"], failed["payload"]["message"]) == (
        "job.failed", "released", "too busy")
    assert (queued["event_name"], queued["prev_state"], queued["payload"]["attempt"]) == (
        "job.queued", "FAILED", 1)
    assert not worker.claim()
    assert worker.finish([task])[0]["code"] == "lease_lost"
    again, = worker.claim(wait_ms=20000, start=True)
    assert again["attempt"] == 1 and again["token"] != task["token"]
    assert again["lease_expires_at"] >= explained["until"]
    worker.fail([again])
    assert weir.job(client.api_key, task["job_id"])["state"] == "FAILED"
    assert weir.event_names(client.api_key, task["job_id"])[-2:] == ["job.failed", "job.retries_exhausted"]
    check_chain(weir, client.api_key, task["job_id"])


# ---- progress

def test_progress_is_shown_until_the_job_leaves_running(weir, client, worker):
    """By GET, in the order it was told, with two decimals; not in listings; gone with the end."""
    key, task = client.api_key, started(weir, client, worker)
    assert weir.job(key, task["job_id"])["progress"] is None
    beat = names(task, progress={"percent": 12.3456, "note": "läuft"})
    first, second = worker.tell("heartbeat", [beat, beat])
    assert first["ok"] and second["ok"] and not first["cancel"]
    progress = weir.job(key, task["job_id"])["progress"]
    assert progress.pop("at").endswith("Z")
    assert progress == {"percent": 12.35, "note": "läuft"}
    worker.heartbeat([task])
    assert weir.job(key, task["job_id"])["progress"]["percent"] == 12.35
    worker.heartbeat([task], progress={"percent": 100})
    assert weir.job(key, task["job_id"])["progress"]["note"] is None
    listed, = weir.api("GET", "/v1/jobs", key=key).expect(200)["items"]
    assert "progress" not in listed and "result" not in listed
    worker.finish([task], result={"n": [1, 2]})
    job = weir.job(key, task["job_id"])
    assert (job["progress"], job["result"], job["error"]) == (None, {"n": [1, 2]}, None)


def test_a_stream_tells_progress_without_an_id_and_resumes_as_before(weir, client, worker):
    key, task = client.api_key, started(weir, client, worker)
    path = f"/v1/jobs/{task['job_id']}/events"
    with contextlib.closing(wire.follow(weir.address, path, key)) as messages:
        assert next(messages)["event"] == "job.created"
        last = [next(messages) for _ in range(3)][-1]
        worker.heartbeat([task], progress={"percent": 10, "note": "a"})
        told = next(messages)
        assert told["event"] == "progress" and told.get("id", last["id"]) == last["id"]
        assert told["data"] == weir.job(key, task["job_id"])["progress"]
        worker.heartbeat([task])
        worker.heartbeat([task], progress={"percent": 20})
        assert next(messages)["data"]["percent"] == 20
    with contextlib.closing(wire.follow(weir.address, path, key,
                                        {"Last-Event-ID": last["id"]})) as messages:
        assert next(messages)["data"]["percent"] == 20  # one that joins late gets the last one
        worker.finish([task])
        assert [message["event"] for message in messages] == ["job.succeeded"]
