"""Rows that went missing behind the server's back: what remains is served, nothing is made up."""
import contextlib
import sqlite3

from harness import wire


def edit(weir, *statements):
    """Changes the store of a stopped server; gives the number of rows touched."""
    touched = 0
    with contextlib.closing(sqlite3.connect(f"{weir.data}/weir.db")) as database:
        for statement in statements:
            touched += database.execute(statement).rowcount
        database.commit()
    return touched


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
    lost = weir.failed_job(key)
    weir.api("POST", "/v1/jobs:batch", {"jobs": [{"type": "EXECUTE", "queue": "o"}] * 200},
             key).expect(202)  # fills further pages of the log
    whole = weir.failed_job(key)
    before = weir.job(key, lost), weir.report(key, lost), weir.report(key, whole)
    weir.stop()
    assert edit(weir, "DELETE FROM log WHERE g = (SELECT min(g) FROM log)") == 1
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
