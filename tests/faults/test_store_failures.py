"""The disk under a running server refuses: syncs, writes and reads fail, stall, or another program
holds the lock.

The shim (fail_io.c) with nothing armed is the negative control of this file."""
import errno
import http.client
import os
import signal
import sqlite3
import time

import pytest

from fail_io import FailIo
from harness.history import check_chain, check_client, list_jobs
from harness.pace import Stopwatch
from harness.weir_server import wait_for
from harness.worker_calls import Worker

pytestmark = pytest.mark.sqlite_only("about the disk under the file")
STORE_PROBLEMS = ("RFA_STORAGE_DB_ERROR", "RFA_STORAGE_UNAVAILABLE", "RFA_STORAGE_FSYNC")


@pytest.fixture
def io():
    """The faults of one test."""
    return FailIo()


@pytest.fixture
def weir(fresh_weir, io):
    """A server whose disk obeys `io`; it may restart core often."""
    return fresh_weir(env=io.environment(), settings={
        "runtime.root.max_restarts": 100, "runtime.root.max_seconds": 1,
        "server.request_timeout_ms": 600, "store.timeout_ms": 300})


def verified(weir):
    """Ends the server and has the whole store checked."""
    weir.stop()
    done = weir.cli("verify")
    assert done.returncode == 0, done.stdout + done.stderr


def assert_store_problem(answer):
    """503, one of the storage codes, and nothing of the job."""
    assert answer.status == 503, answer
    answer.expect_problem(503, answer.json["code"])
    assert answer.json["code"] in STORE_PROBLEMS
    assert "job_id" not in answer.text


def test_with_nothing_armed_the_shim_is_in_the_way_and_changes_nothing(weir, io, client):
    """The negative control: 202, and every one of ten submits was synced through the shim."""
    before = io.syncs_seen
    for _ in range(10):
        weir.submit(client.api_key, queue="outside")
    assert io.syncs_seen >= before + 10
    assert io.failures == 0
    assert len(list_jobs(weir, client.api_key)) == 10
    verified(weir)


def test_a_failed_fsync_is_never_acknowledged_and_core_starts_anew(weir, io, client):
    """[JOB-167] No 2xx from the failure on, core leaves with 75 and is started again by root,
    everything acknowledged before is there, and it goes on by itself."""
    key = client.api_key
    kept = [weir.submit(key, queue="outside", payload={"n": n})["job_id"] for n in range(20)]
    core, = weir.pids("core")
    io.sync_errno = errno.EIO
    assert_store_problem(weir.try_submit(key, queue="outside", payload={"n": "lost"}))
    for _ in range(50):  # until it is gone: whatever it answers, it is no success
        try:
            assert weir.try_submit(key, queue="outside", payload={"n": "lost"}).status >= 500
        except (OSError, http.client.HTTPException):
            break
    assert io.failures >= 1
    io.heal()
    weir.wait_pids("core", 1, other_than=[core], timeout=10)
    weir.wait_ready()
    ended = [e for e in weir.logs(event="process_ended") if e["pid"] == core]
    assert ended and "75" in ended[0]["reason"]
    jobs = check_client(weir, key, all_final=False)
    assert set(kept) <= set(jobs)
    assert len(jobs) <= len(kept) + 1  # the one whose fate was unknown
    after = weir.submit(key, work_kind="SUCCESS_FAST")["job_id"]
    assert weir.wait_final(key, after)["state"] == "SUCCEEDED"
    verified(weir)


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC], ids=["EIO", "ENOSPC"])
def test_a_failed_write_leaves_nothing_and_is_over_when_the_disk_is_well(weir, io, client, number):
    """[JOB-167] [JOB-169] [JOB-175] [JOB-215] [JOB-225] [JOB-276] 503 without a job id; no job, event or
    queue entry afterwards; the same core goes on; the error is counted."""
    key = client.api_key
    kept = weir.submit(key, queue="outside")["job_id"]
    core = weir.pids("core")
    errors = weir.metric("weir_store_errors_total")
    io.write_errno = number
    for n in range(5):
        assert_store_problem(weir.try_submit(key, queue="outside", idempotency_key=f"k{n}"))
    assert_store_problem(weir.cancel(key, kept))
    assert weir.job(key, kept)["state"] == "QUEUED"  # reads go on
    assert_store_problem(weir.api("POST", "/v1/clients"))
    assert weir.api("GET", "/readyz").status == 503
    io.heal()
    wait_for(lambda: weir.api("GET", "/readyz").status == 200, 5, "ready again", weir)
    assert weir.pids("core") == core
    assert weir.metric("weir_store_errors_total") > errors
    assert [job["job_id"] for job in list_jobs(weir, key)] == [kept]
    with Worker(weir, key) as worker:
        assert [task["job_id"] for task in worker.claim(most=10)] == [kept]
    again = weir.submit(key, queue="outside", idempotency_key="k0")["job_id"]
    check_chain(weir, key, again)
    verified(weir)


def test_a_finish_that_cannot_be_stored_does_not_finish_the_job(weir, io, client):
    """[JOB-179] [JOB-153] While writes fail the job stays RUNNING without outcome or report; the
    worker asks again when the disk is well, and then all three are there."""
    key = client.api_key
    job_id = weir.submit(key, queue="outside")["job_id"]
    with Worker(weir, key) as worker:
        tasks = worker.claim()
        worker.start(tasks)
        io.write_errno = errno.EIO
        body = {"tasks": [{"task_id": job_id, "token": tasks[0]["token"], "outcome": "success"}]}
        assert_store_problem(weir.api("POST", "/worker/v1/finish", body, key))
        job = weir.job(key, job_id)
        assert (job["state"], job["outcome"]) == ("RUNNING", None)
        weir.api("GET", f"/v1/jobs/{job_id}/report", key=key).expect_problem(
            404, "RFA_JOB_REPORT_NOT_FOUND")
        io.heal()
        assert worker.finish(tasks)[0]["ok"] is True
    assert weir.report(key, job_id)["outcome"] == "SUCCESS"
    check_chain(weir, key, job_id)


@pytest.mark.parametrize("number", [errno.ESTALE, errno.EIO], ids=["ESTALE", "EIO"])
def test_a_failed_read_is_told_and_nothing_half_is_shown(weir, io, client, number):
    """[JOB-168] [JOB-214] GET job, report and events answer with a problem and nothing else;
    afterwards they are whole. 503; or 500 where SQLite takes the EIO for a damaged file."""
    codes = {503: "RFA_STORAGE_DB_ERROR"}
    if number == errno.EIO:
        codes[500] = "RFA_INTERNAL"
    key = client.api_key
    ids = [weir.submit(key, work_kind="SUCCESS_FAST")["job_id"] for _ in range(3)]
    for job_id in ids:
        weir.wait_final(key, job_id)
    whole = {job_id: (weir.job(key, job_id), weir.report(key, job_id)) for job_id in ids}
    weir.restart()  # nothing of it is in a cache now
    io.read_errno = number
    failed = 0
    for job_id in ids:
        for path in ("", "/report", "/events"):
            answer = weir.api("GET", f"/v1/jobs/{job_id}{path}", key=key)
            if answer.status != 200:  # 200: it was read before and has not changed
                failed += 1
                assert answer.status in codes, answer
                problem = answer.expect_problem(answer.status, codes[answer.status])
                assert not {"job_id", "outcome", "events", "items"} & problem.keys()
                assert "sqlite" not in answer.text.lower() and weir.data not in answer.text
    assert failed and io.failures
    io.heal()
    for job_id in ids:
        assert (weir.job(key, job_id), weir.report(key, job_id)) == whole[job_id]


def test_a_stalled_sync_ends_the_request_with_504_in_time(weir, io, client):
    """[JOB-198] [JOB-219] [JOB-197] A sync of 1.5 s against a request limit of 0.6 s: 504
    RFA_EXEC_TIMEOUT at the limit; the same key then tells what became of it, once; reads go on."""
    key = client.api_key
    kept = weir.submit(key, queue="outside")["job_id"]
    io.sync_delay_ms = 1500
    watch = Stopwatch()
    weir.try_submit(key, queue="outside", idempotency_key="slow").expect_problem(
        504, "RFA_EXEC_TIMEOUT")
    assert watch.seconds() >= 0.55 and watch.quiet() <= 1.2
    watch = Stopwatch()
    assert weir.job(key, kept)["state"] == "QUEUED"
    assert watch.quiet() < 0.5
    io.heal()
    first = wait_for(lambda: told(weir, key), 10, "an answer for the key", weir)
    assert weir.submit(key, queue="outside", idempotency_key="slow")["job_id"] == first
    assert len(list_jobs(weir, key)) == 2
    verified(weir)


def told(weir, key):
    """The job id of the slow submit, once the server has time for it."""
    answer = weir.try_submit(key, queue="outside", idempotency_key="slow")
    return answer.json["job_id"] if answer.status == 202 else None


def test_a_store_locked_by_another_program_is_503_and_nothing_is_written_later(weir, client):
    """[JOB-197] [JOB-171] Locked beyond store.timeout_ms: 503, not a success; after the lock is
    gone there is no trace of the refused job."""
    key = client.api_key
    weir.submit(key, queue="outside")
    other = sqlite3.connect(os.path.join(weir.data, "weir.db"), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    watch = Stopwatch()
    assert_store_problem(weir.try_submit(key, queue="outside"))
    assert watch.quiet() < 2
    assert len(list_jobs(weir, key)) == 1
    other.execute("ROLLBACK")
    other.close()
    wait_for(lambda: weir.api("GET", "/readyz").status == 200, 5, "ready again", weir)
    weir.submit(key, queue="outside")
    assert len(list_jobs(weir, key)) == 2
    verified(weir)


def test_a_key_that_cannot_be_renewed_or_revoked_stays_as_it_was(weir, io):
    """[JOB-158] [JOB-159] 503, no new secret, never revoked:true; the old
    key still works, also after the disk is well."""
    client_id = weir.api("POST", "/v1/clients").expect(201)["client_id"]
    made = weir.api("POST", f"/v1/clients/{client_id}/keys", {}).expect(201)
    key, path = made["api_key"], f"/v1/clients/{client_id}/keys"
    io.write_errno = errno.EIO
    for call, body in (("renew", {}), ("revoke", {"key_id": made["key_id"]})):
        answer = weir.api("POST", f"{path}/{call}", body, key)
        assert_store_problem(answer)
        assert "api_key" not in answer.text and "revoked" not in answer.json
        assert list_jobs(weir, key) == []
    assert_store_problem(weir.api("POST", path, {"rotate": True}, key))
    io.heal()
    weir.submit(key, queue="outside")
    renewed = weir.api("POST", f"{path}/renew", {}, key).expect(200)
    weir.api("POST", f"{path}/revoke", {"key_id": made["key_id"]}, key).expect(200)
    weir.try_submit(key).expect_problem(403, "RFA_AUTH_API_KEY_DISABLED")
    weir.submit(renewed["api_key"], queue="outside")


@pytest.mark.parametrize("reason", [errno.ENOSPC, errno.EDQUOT], ids=["full", "quota"])
def test_a_core_that_dies_without_room_waits_for_it_and_goes_on(fresh_weir, io, reason):
    """[JOB-175] One restart, no more: probes answer, all else is 503, and with room it serves again."""
    weir = fresh_weir(env=io.environment(), settings={"runner.processes": 0})
    key = weir.new_client().api_key
    kept = [weir.submit(key, queue="outside", payload={"n": n})["job_id"] for n in range(5)]
    core, = weir.pids("core")
    root = weir.process.pid
    io.write_errno = reason
    os.kill(core, signal.SIGKILL)
    wait_for(lambda: weir.logs(event="store_awaited"), 60, "the next core to wait for room", weir)
    for _ in range(10):
        assert weir.process.poll() is None, weir.log_tail()
        assert weir.api("GET", "/healthz").status == 200
        assert weir.api("GET", "/readyz").status == 503
        assert weir.try_submit(key, queue="outside").status == 503
        time.sleep(0.2)
    starts = [line for line in weir.logs(event="process_started") if line["name"] == "core"]
    assert len(starts) == 2, starts  # the first one, and one after the kill: none is used up by waiting
    io.heal()
    weir.wait_ready(timeout=60)
    assert weir.process.pid == root and weir.logs(at_least=1, event="store_found")
    assert {job["job_id"] for job in list_jobs(weir, key)} == set(kept)
    weir.submit(key, queue="outside")
    verified(weir)


def test_control_another_failure_of_writes_uses_up_the_restarts(fresh_weir, io):
    """The negative control: a disk that is broken, not full, does not get better by waiting."""
    weir = fresh_weir(env=io.environment(), settings={"runner.processes": 0})
    weir.submit(weir.new_client().api_key, queue="outside")
    core, = weir.pids("core")
    io.write_errno = errno.EIO
    os.kill(core, signal.SIGKILL)
    assert weir.process.wait(timeout=120) == 1
    weir.process = None
    assert not weir.logs(event="store_awaited")
