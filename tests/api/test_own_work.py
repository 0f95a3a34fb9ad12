"""Work of the caller's own: a free kind instead of the catalog, failures that are tried again by themselves,
the built-in runner on and off."""
import csv
import io
import json

import pytest

from harness.history import check_chain
from harness.weir_server import wait_for
from harness.worker_calls import Worker


@pytest.fixture(scope="module")
def eager(module_weir):
    """Short backoff, nobody but the test's workers."""
    return module_weir(settings={"jobs.retry_base_ms": 20, "jobs.retry_cap_ms": 50, "runner.processes": 0})


# --- kinds -------------------------------------------------------------------------------------------

def test_own_work_has_a_kind_of_its_own_everywhere(weir, client):
    """[JOB-020] On another queue nothing is drawn: GET, list, reports, events and the claim show `kind`."""
    key = client.api_key
    job_id = weir.submit(key, queue="outside", kind="mail.send", payload={"to": "a"})["job_id"]
    job = weir.job(key, job_id)
    assert (job["kind"], job["work_kind"], job["definition"]) == ("mail.send", None, {"kind": "mail.send"})
    assert (job["retry"], job["max_runtime_ms"]) == ("auto", 3600000)
    task, = weir.claim(key)
    assert task["definition"] == {"kind": "mail.send"} and task["payload"] == {"to": "a"}
    unnamed = weir.submit(key, queue="outside")["job_id"]
    assert weir.job(key, unnamed)["definition"] == {"kind": None}
    listed = weir.api("GET", "/v1/jobs?kind=mail.send", key=key).expect(200)["items"]
    assert [j["job_id"] for j in listed] == [job_id]
    payload = weir.events(key, job_id)[-1]["payload"]
    assert (payload["kind"], payload["scenario"]) == ("mail.send", None)
    assert "kind" not in weir.events(key, unnamed)[0]["payload"]
    rows = weir.api("GET", "/v1/reports", key=key, headers={"Accept": "text/csv"}).text
    assert [(r["work_kind"], r["kind"]) for r in csv.DictReader(io.StringIO(rows))] == [
        ("", ""), ("", "mail.send")]
    summary = weir.api("GET", "/v1/reports/summary", key=key).expect(200)
    assert (summary["total"], summary["by_work_kind"]) == (2, {})


def test_a_work_kind_that_is_named_is_the_catalogs_on_any_queue(weir, client):
    key = client.api_key
    job = weir.job(key, weir.submit(key, queue="o", work_kind="CPU_BURST", kind="mine")["job_id"])
    assert (job["work_kind"], job["kind"], job["definition"]["duration_ms"]) == ("CPU_BURST", "mine", 8000)
    assert job["definition"]["kind"] == "mine" and job["max_runtime_ms"] == 125000


@pytest.mark.any_store
@pytest.mark.parametrize("fields", [{"kind": ""}, {"kind": "a b"}, {"kind": "x" * 129}, {"kind": "\u00e4"},
                                    {"retry": "always"}, {"retry": ""}])
def test_a_bad_kind_or_retry_is_named(weir, client, fields):
    problem = weir.try_submit(client.api_key, queue="o", **fields).expect_problem(
        400, "RFA_JOB_VALIDATION_FAILED")
    assert next(iter(fields)) in problem["detail"]


def test_without_the_built_in_runner_default_is_a_queue_like_any_other(eager):
    """A submit without `queue` is an ordinary job, for any worker; its retries are its client's."""
    key = eager.new_client().api_key
    job_id = eager.submit(key, kind="mail.send")["job_id"]
    job = eager.job(key, job_id)
    assert (job["queue"], job["work_kind"], job["definition"], job["retry"]) == (
        "default", None, {"kind": "mail.send"}, "manual")
    eager.end_outside(key, job_id, "success", queue="default", result={"sent": 1})
    assert eager.report(key, job_id)["result"] == {"sent": 1}


@pytest.mark.parametrize("environment, runners", [("dev", 1), ("prod", 0)])
def test_the_built_in_runner_is_on_in_dev_alone(fresh_weir, environment, runners):
    weir = fresh_weir(settings={"environment": environment, "runner.processes": None,
                                "limits.requests_per_minute": None, "operator.token": "secret"})
    shown = json.loads(weir.cli("config", "show", "-o", "json", "--set",
                                f"environment={environment}").stdout)
    assert (shown["runner.processes"] > 0) == bool(runners)
    assert shown["limits.requests_per_minute"] == (0 if runners else 600)
    assert bool(weir.pids("runner")) == bool(runners)
    greeting = weir.greeting(weir.url)  # a first job is shown where it would run
    assert ("--work-kind SUCCESS_FAST" in greeting) == bool(runners)


# --- retries -----------------------------------------------------------------------------------------

def test_a_failure_is_tried_again_by_itself_until_it_succeeds(eager):
    """[JOB-136] FAILED and QUEUED with both events; no report before the end; one callback stream."""
    key = eager.new_client().api_key
    job_id = eager.submit(key, queue="outside")["job_id"]
    with Worker(eager, key) as worker:
        for attempt in (1, 2):
            tasks = worker.claim(wait_ms=10000)
            assert tasks[0]["attempt"] == attempt
            worker.start(tasks)
            worker.fail(tasks)
            job = eager.job(key, job_id)
            assert (job["state"], job["attempt"], job["outcome"]) == ("QUEUED", attempt + 1, None)
            assert job["error"]["code"] == "broken"
            eager.api("GET", f"/v1/jobs/{job_id}/report", key=key).expect_problem(
                404, "RFA_JOB_REPORT_NOT_FOUND")
        tasks = worker.claim(wait_ms=10000)
        worker.start(tasks)
        worker.finish(tasks, result={"n": 3})
    assert eager.job(key, job_id)["error"] is None
    report = eager.report(key, job_id)
    assert (report["outcome"], report["attempt"], report["result"]) == ("SUCCESS", 3, {"n": 3})
    names = [e["event_name"] for e in report["events"]]
    again = ["job.failed", "job.queued", "job.assigned", "job.running"]
    assert names == ["job.created"] + again[1:] + again * 2 + ["job.succeeded"]
    check_chain(eager, key, job_id)


def test_the_catalog_on_default_fails_as_the_seed_says_and_retries_when_asked(weir, client):
    """[JOB-137] Manual is the default there; the runner's work may be retried by itself, too."""
    key = client.api_key
    assert weir.job(key, weir.submit(key, work_kind="RETRY_ON_FAIL")["job_id"])["retry"] == "manual"
    job_id = weir.submit(key, work_kind="RETRY_ON_FAIL", retry="auto")["job_id"]
    job = weir.wait_final(key, job_id)
    assert (job["state"], job["attempt"]) == ("SUCCEEDED", 2)


def test_webhooks_and_streams_go_on_through_the_attempts(eager, receiver):
    """The callback hears both events of each retry, in order; a live stream ends with the job."""
    key = eager.new_client().api_key
    job_id = eager.submit(key, queue="outside", kind="mail.send", callback=receiver.url)["job_id"]
    with Worker(eager, key) as worker:
        tasks = worker.claim()
        worker.start(tasks)
        worker.fail(tasks)
        tasks = worker.claim(wait_ms=10000)
        worker.start(tasks)
        worker.finish(tasks)
    names = eager.event_names(key, job_id)
    calls = receiver.wait(len(names), 30)
    told = [json.loads(call.body) for call in calls]
    assert [t["type"] for t in told] == names
    assert {t["data"]["payload"]["kind"] for t in told} == {"mail.send"}


# --- limits ------------------------------------------------------------------------------------------


def wait_for_full(weir, check):
    """What /readyz checks, once it says that this is full: the answer is out before its batch has ended."""
    def full():
        checks = weir.api("GET", "/readyz").expect(200)["checks"]
        return checks if checks.get(check) == "full" else None
    return wait_for(full, 30, f"{check} to be full", weir)


def test_full_limits_are_told_by_the_probe_and_the_doctor(fresh_weir):
    weir = fresh_weir(settings={"runner.processes": 0, "jobs.max_active": 3,
                                "jobs.max_active_per_client": 2})
    keys = [weir.new_client().api_key for _ in range(2)]
    assert "jobs" not in weir.api("GET", "/readyz").expect(200)["checks"]
    for _ in range(2):
        weir.submit(keys[0], queue="o")
    weir.try_submit(keys[0], queue="o").expect_problem(429, "RFA_EXEC_CLIENT_LIMIT")
    assert "jobs" not in wait_for_full(weir, "client_share")
    assert "jobs.max_active_per_client" in weir.cli("doctor", "--data", weir.data).stdout
    weir.submit(keys[1], queue="o")
    weir.try_submit(keys[1], queue="o").expect_problem(429, "RFA_REQUEST_RATE_LIMITED")
    wait_for_full(weir, "jobs")
    assert "jobs.max_active is reached" in weir.cli("doctor", "--data", weir.data).stdout
