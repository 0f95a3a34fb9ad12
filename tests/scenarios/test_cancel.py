"""Cancel: from every state that allows it, at once, and never against a final state."""
import pytest

from harness.history import check_chain
from harness.together import at_once
from harness.worker_calls import Worker


def cancelled(weir, key, job_id, from_state):
    """Cancels a job that is in `from_state` and checks the answer, the job and the event."""
    assert weir.job(key, job_id)["state"] == from_state
    answer = weir.cancel(key, job_id).expect(200)
    assert (answer["job_id"], answer["state"]) == (job_id, "CANCELED")
    job = weir.job(key, job_id)
    assert (job["state"], job["outcome"]) == ("CANCELED", "CANCELED")
    last = check_chain(weir, key, job_id)[-1]
    assert (last["event_name"], last["prev_state"]) == ("job.canceled", from_state)
    return weir.report(key, job_id)


def test_a_scheduled_job_is_cancelled_before_it_is_due(weir, client):
    """[JOB-111] CREATED to CANCELED; the report says it never started."""
    job_id = weir.submit(client.api_key, type="DEFERRED",
                         execution_at="2099-01-01T00:00:00Z")["job_id"]
    report = cancelled(weir, client.api_key, job_id, "CREATED")
    assert report["started_at"] is None and report["duration_ms"] == 0


def test_a_queued_job_is_cancelled_and_never_runs(weir, client):
    """[JOB-113] [JOB-035] [JOB-064] [JOB-093] CANCEL_BEFORE_START without a worker."""
    job_id = weir.submit(client.api_key, queue="nobody", work_kind="CANCEL_BEFORE_START")["job_id"]
    cancelled(weir, client.api_key, job_id, "QUEUED")
    with Worker(weir, client.api_key, "nobody") as worker:
        assert worker.claim() == []
    assert "job.running" not in weir.event_names(client.api_key, job_id)


def test_an_assigned_job_is_cancelled_and_never_runs(weir, client):
    """[JOB-115] Between claim and start."""
    job_id = weir.submit(client.api_key, queue="outside")["job_id"]
    with Worker(weir, client.api_key) as worker:
        tasks = worker.claim()
        cancelled(weir, client.api_key, job_id, "ASSIGNED")
        assert worker.start(tasks)[0]["code"] == "lease_lost"


def test_a_running_job_is_cancelled_and_its_runner_is_free_again(fresh_weir):
    """[JOB-036] [JOB-118] CANCEL_DURING_RUN on the only worker there is: CANCELED at once, no
    SUCCEEDED event, and the worker takes the next job long before the cancelled one would have
    ended."""
    weir = fresh_weir(settings={"runner.processes": 1, "runner.workers": 1, "runner.time_scale": 6,
                                "queue.heartbeat_ms": 200})
    _, key = weir.new_client()
    job_id = weir.submit(key, work_kind="CANCEL_DURING_RUN")["job_id"]  # 60 s
    weir.wait_state(key, job_id, "RUNNING")
    cancelled(weir, key, job_id, "RUNNING")
    after = weir.submit(key, work_kind="FAIL_IMMEDIATE")["job_id"]  # 3 s
    weir.wait_final(key, after, timeout=10)
    assert weir.event_names(key, job_id)[-1] == "job.canceled"


def test_cancel_on_a_final_job_changes_nothing(weir, client):
    """[JOB-181] [JOB-072] SUCCEEDED, FAILED and CANCELED answer their state; no event, no
    update."""
    key = client.api_key
    queued = weir.submit(key, queue="nobody")["job_id"]
    weir.cancel(key, queued).expect(200)
    for kind, state in (("SUCCESS_FAST", "SUCCEEDED"), ("FAIL_IMMEDIATE", "FAILED"), (None, "CANCELED")):
        job_id = weir.submit(key, work_kind=kind)["job_id"] if kind else queued
        before, events = weir.wait_final(key, job_id), weir.events(key, job_id)
        assert before["state"] == state
        for _ in range(2):
            answer = weir.cancel(key, job_id).expect(200)
            assert (answer["state"], answer["updated_at"]) == (state, before["updated_at"])
        assert weir.job(key, job_id) == before and weir.events(key, job_id) == events


def test_many_cancels_at_once_are_one(weir, client):
    """[JOB-072] [JOB-150] Sixteen at the same instant: all 200 CANCELED, one event."""
    key = client.api_key
    job_id = weir.submit(key, queue="nobody")["job_id"]
    answers = at_once(16, lambda _: weir.cancel(key, job_id).expect(200))
    assert {answer["state"] for answer in answers} == {"CANCELED"}
    assert weir.event_names(key, job_id).count("job.canceled") == 1


@pytest.mark.parametrize("how", ["unknown", "malformed", "foreign"])
def test_what_is_not_the_callers_is_not_cancelled(weir, client, how):
    """Unknown 404, malformed 400, foreign 403; the foreign job is untouched."""
    stranger = weir.new_client()
    job_id = weir.submit(client.api_key, queue="nobody")["job_id"]
    asked, status, code = {
        "unknown": ("01a1e1ac-10c4-7000-8e76-376fe6be1c39", 404, "RFA_JOB_NOT_FOUND"),
        "malformed": ("nonsense", 400, "RFA_REQUEST_MALFORMED"),
        "foreign": (job_id, 403, "RFA_AUTH_FORBIDDEN")}[how]
    weir.cancel(stranger.api_key, asked).expect_problem(status, code)
    assert weir.job(client.api_key, job_id)["state"] == "QUEUED"
