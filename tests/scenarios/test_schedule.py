"""Deferred jobs: CREATED until due, then QUEUED, never early. Times are real, so they are short
here; restarts across a due time are in ../faults/test_restart.py."""
import time
from datetime import datetime, timedelta, timezone

from harness.history import check_chain, list_jobs
from harness.kept import Kept
from harness.pace import Stopwatch
from harness.weir_server import wait_for

LATE_SECONDS_MAX = 1.0


def text_of(moment):
    """RFC 3339 with milliseconds and Z."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03}Z"


def moment_of(text):
    """The moment a time on the wire means."""
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def in_seconds(seconds):
    """A moment from now, cut to milliseconds."""
    moment = datetime.now(timezone.utc) + timedelta(seconds=seconds)
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def deferred(weir, key, moment, **fields):
    """Submits a DEFERRED job."""
    return weir.submit(key, type="DEFERRED", execution_at=text_of(moment), **fields)


def queued_at(events):
    """When the job first became QUEUED."""
    return next(moment_of(e["timestamp"]) for e in events if e["next_state"] == "QUEUED")


def test_without_execution_at_a_job_is_instant(weir, client):
    """[JOB-127] [JOB-110] QUEUED in the answer, execution_at null."""
    answer = weir.submit(client.api_key, work_kind="SUCCESS_FAST", queue="nobody")
    assert answer["state"] == "QUEUED"
    assert weir.job(client.api_key, answer["job_id"])["execution_at"] is None


def test_a_deferred_job_stays_created_until_due_and_then_runs(weir, client):
    """[JOB-128] [JOB-059] [JOB-046] [JOB-060] [JOB-110] SCHEDULED_ON_TIME: CREATED until due,
    QUEUED within a second of it, then SUCCEEDED."""
    watch, due = Stopwatch(), in_seconds(1.2)
    answer = deferred(weir, client.api_key, due, work_kind="SCHEDULED_ON_TIME")
    assert answer["state"] == "CREATED"
    while (seen := weir.job(client.api_key, answer["job_id"]))["state"] == "CREATED":
        assert moment_of(seen["execution_at"]) == due
        assert datetime.now(timezone.utc) < due + timedelta(seconds=LATE_SECONDS_MAX + watch.stalled())
        time.sleep(0.02)
    assert datetime.now(timezone.utc) >= due
    job = weir.wait_final(client.api_key, answer["job_id"])
    assert job["state"] == "SUCCEEDED"
    assert {"work_kind", "execution_at", "duration_ms", "should_fail"} <= job["definition"].keys()
    events = check_chain(weir, client.api_key, answer["job_id"])
    late = (queued_at(events) - due).total_seconds()
    assert 0 <= late <= LATE_SECONDS_MAX + watch.stalled()
    assert moment_of(weir.report(client.api_key, answer["job_id"])["started_at"]) >= due


def test_a_hundred_deferred_jobs_none_early_none_late(weir, client):
    """[JOB-129] [JOB-133] Due times spread over a second, submitted in mixed order: each is QUEUED
    0 to 1 s after its own, and starts after it."""
    watch = Stopwatch()
    dues, with_ids = [in_seconds(1.0 + (i * 37 % 100) / 100) for i in range(100)], {}
    with Kept(weir.address, client.api_key) as kept:
        for due in dues:
            body = {"type": "DEFERRED", "execution_at": text_of(due), "work_kind": "SUCCESS_FAST"}
            with_ids[kept.call("POST", "/v1/jobs", body).expect(202)["job_id"]] = due
    wait_for(lambda: all(job["state"] == "SUCCEEDED" for job in list_jobs(weir, client.api_key)),
             30, "all to end", weir)
    for job_id, due in with_ids.items():
        report = weir.report(client.api_key, job_id)
        late = (queued_at(report["events"]) - due).total_seconds()
        assert 0 <= late <= LATE_SECONDS_MAX + watch.stalled(), (job_id, late)
        assert moment_of(report["started_at"]) >= due


def test_a_past_execution_at_is_refused(weir, client):
    """[JOB-130] [JOB-163] A minute and a millisecond ago: 400, and no job."""
    for moment in (in_seconds(-60), in_seconds(-0.001)):
        weir.try_submit(client.api_key, type="DEFERRED", execution_at=text_of(moment)) \
            .expect_problem(400, "RFA_JOB_VALIDATION_FAILED")
    assert list_jobs(weir, client.api_key) == []


def test_the_far_future_is_accepted_and_waits(weir, client):
    """SCHEDULED_FAR_FUTURE a year ahead stays CREATED and can be cancelled; that it runs
    when its time comes is proved with a moved clock in ../faults/test_clock.py."""
    answer = deferred(weir, client.api_key, in_seconds(365 * 86400),
                      work_kind="SCHEDULED_FAR_FUTURE")
    explained = weir.api("GET", f"/v1/jobs/{answer['job_id']}/explain",
                         key=client.api_key).expect(200)
    assert explained["state"] == "CREATED" and explained["waiting_on"] == "schedule"
    assert weir.cancel(client.api_key, answer["job_id"]).expect(200)["state"] == "CANCELED"


def test_a_due_job_that_meets_a_full_queue_waits_and_is_not_lost(fresh_weir):
    """It stays CREATED, is tried again, and runs when there is room."""
    weir = fresh_weir(settings={"jobs.queue_size": 2, "runner.processes": 0})
    client = weir.new_client()
    waiting = deferred(weir, client.api_key, in_seconds(0.3), queue="outside")["job_id"]
    for _ in range(2):
        weir.submit(client.api_key, queue="outside")
    time.sleep(0.6)  # its due time passes
    assert weir.job(client.api_key, waiting)["state"] == "CREATED"
    assert len(weir.claim(client.api_key, most=10)) == 2
    weir.wait_state(client.api_key, waiting, "QUEUED", timeout=5)
