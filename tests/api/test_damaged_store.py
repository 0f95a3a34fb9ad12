"""Rows that went missing behind the server's back: what remains is served, nothing is made up."""
import os

import pytest

from harness import wire
from harness.store_sql import edit, value
from harness.weir_server import wait_for


def alive(weir):
    """The process answers; the store was not asked."""
    try:
        return weir.api("GET", "/healthz").status == 200
    except OSError:
        return False


def test_a_key_whose_record_is_gone_is_unknown(fresh_weir):
    """[JOB-235] 401, not 403 (AJ-11)."""
    weir = fresh_weir(settings={"runner.processes": 0})
    key, other = weir.new_client().api_key, weir.new_client().api_key
    weir.stop()
    number = int(key.split("_")[1], 16)
    assert edit(weir, f"DELETE FROM api_keys WHERE id = {number}") == 1
    weir.start()
    weir.api("GET", "/v1/jobs", key=key).expect_problem(401, "RFA_AUTH_INVALID_CREDENTIALS")
    weir.api("GET", "/v1/jobs", key=other).expect(200)


def test_lost_events_leave_the_job_usable(fresh_weir):
    """[JOB-240] Job, report and events answer with what is left; the stream ends; a retry works."""
    weir = fresh_weir(settings={"runner.processes": 0})
    key = weir.new_client().api_key
    lost = weir.submit(key, queue="outside", retry="manual")["job_id"]
    weir.end_outside(key, lost)
    weir.api("POST", "/v1/jobs:batch", {"jobs": [{"type": "EXECUTE", "queue": "o"}] * 200},
             key).expect(202)  # fills further pages of the log
    chunk = value(weir, "SELECT min(g) FROM log")
    whole = weir.failed_job(key)
    before = weir.job(key, lost), weir.report(key, lost), weir.report(key, whole)
    weir.stop()
    assert edit(weir, f"DELETE FROM log WHERE g = {chunk}") == 1
    weir.start()
    assert weir.job(key, lost) == before[0]
    report = weir.report(key, lost)
    assert len(report["events"]) < len(before[1]["events"])
    assert {**report, "events": None} == {**before[1], "events": None}
    assert weir.events(key, lost) == report["events"]
    left = list(wire.follow(weir.address, f"/v1/jobs/{lost}/events", key, timeout=5))
    assert [m["data"] for m in left] == report["events"]
    assert weir.report(key, whole) == before[2]
    assert weir.retry(key, lost).expect(200)["attempt"] == 2
    assert weir.events(key, lost)[-1]["event_name"] == "job.queued"


def test_a_job_without_its_definition_fails_and_is_not_run(fresh_weir):
    """[JOB-177] ASSIGNED, RUNNING, FAILED with a reason; nothing is executed; a sound one beside it runs."""
    weir = fresh_weir(settings={"runner.processes": 0})
    key = weir.new_client().api_key
    lost = weir.submit(key, type="EXECUTE", work_kind="SUCCESS_FAST")["job_id"]
    sound = weir.submit(key, type="EXECUTE", work_kind="SUCCESS_FAST")["job_id"]
    weir.stop()
    assert edit(weir, "UPDATE jobs SET duration_ms = -1 WHERE id = (SELECT min(id) FROM jobs)") == 1
    weir.restart(settings={"runner.processes": 1})
    job = weir.wait_final(key, lost)
    assert (job["state"], job["definition"]) == ("FAILED", None)
    assert job["error"]["code"] == "definition_missing"
    assert weir.event_names(key, lost)[-3:] == ["job.assigned", "job.running", "job.failed"]
    assert weir.wait_final(key, sound)["state"] == "SUCCEEDED"
    started = [line["job_id"] for line in weir.logs(at_least=1, event="job_started")]
    assert sound in started and lost not in started


def test_damage_that_cannot_be_is_an_internal_error_without_internals(fresh_weir):
    """[JOB-214] A job that is neither live nor final: 500 RFA_INTERNAL; only the log says why. What another
    node might have done is looked at again, and is damage when it stays."""
    weir = fresh_weir(settings={"runner.processes": 0})
    key = weir.new_client().api_key
    lost = weir.submit(key, type="EXECUTE")["job_id"]
    other = weir.submit(key, type="EXECUTE")["job_id"]
    weir.stop()
    assert edit(weir, "DELETE FROM tasks WHERE id = (SELECT min(id) FROM jobs)") == 1
    weir.start()
    for method, path in (("GET", ""), ("GET", "/report"), ("POST", "/cancel"), ("POST", "/retry")):
        problem = weir.api(method, f"/v1/jobs/{lost}{path}", key=key).expect_problem(500, "RFA_INTERNAL")
        assert not any(word in problem["detail"].lower() for word in ("sql", "row", "table", "tasks"))
    assert weir.logs(at_least=1, error_code="RFA_STORAGE_CORRUPT")
    assert weir.job(key, other)["state"] == "QUEUED"


@pytest.mark.sqlite_only("moves the file away; of a database: test_postgres_faults.py")
def test_a_store_that_is_not_there_is_unavailable(fresh_weir):
    """[JOB-216] The file cannot be opened: 503 RFA_STORAGE_UNAVAILABLE with Retry-After; it heals."""
    weir = fresh_weir(settings={"runner.processes": 0, "server.threads": 1})
    key = weir.new_client().api_key
    weir.stop()
    weir.spawn()
    wait_for(lambda: alive(weir), 10, "the server lives")  # /healthz opens no reader, /readyz would
    (weir_db,) = [f for f in weir.data_files() if f.endswith("weir.db")]
    os.rename(weir_db, weir_db + ".away")
    answer = weir.api("GET", "/v1/jobs", key=key)
    answer.expect_problem(503, "RFA_STORAGE_UNAVAILABLE")
    assert int(answer.headers["retry-after"]) >= 1
    os.rename(weir_db + ".away", weir_db)
    weir.api("GET", "/v1/jobs", key=key).expect(200)
