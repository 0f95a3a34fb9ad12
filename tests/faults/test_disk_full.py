"""The disk fills under a running server: no success without durability, reads go on, and it heals
by itself."""
import os
import signal

import pytest

from harness import machine
from harness.history import check_client, list_jobs
from harness.kept import Kept
from harness.weir_server import wait_for
from small_disk import small_disk

DISK_BYTES = 8 << 20
pytestmark = [pytest.mark.sqlite_only("about the disk under the file"), machine.needs("mounts")]
NOBODY = {"runner.processes": 0}


def submit_until_refused(weir, key, most):
    """Submits with large payloads: (ids that were acknowledged, the first refusal or None)."""
    ids = []
    with Kept(weir.address, key) as kept:
        for n in range(most):
            body = {"type": "EXECUTE", "queue": "outside", "idempotency_key": f"k{n}",
                    "payload": {"n": n, "filling": "x" * 20000}}
            answer = kept.call("POST", "/v1/jobs", body)
            if answer.status != 202:
                return ids, answer
            ids.append(answer.json["job_id"])
    return ids, None


def test_a_disk_with_room_refuses_nothing(fresh_weir):
    """The negative control: the same load on the same disk without ballast is accepted."""
    with small_disk(DISK_BYTES * 4) as disk:
        weir = fresh_weir(data=str(disk.path), settings=NOBODY)
        _, key = weir.new_client()
        ids, refusal = submit_until_refused(weir, key, 100)
        assert len(ids) == 100 and refusal is None
        weir.stop()


def test_a_full_disk_refuses_keeps_and_recovers(fresh_weir):
    """[JOB-167] [JOB-169] [JOB-175] Full: 503 with Retry-After and never 2xx; what was acknowledged
    is read in full; a cancel happens or is refused, as it was told; core does not crash; with room
    again it goes on by itself; nothing refused is there, nothing is half written."""
    with small_disk(DISK_BYTES) as disk:
        weir = fresh_weir(data=str(disk.path), settings=NOBODY)
        _, key = weir.new_client()
        core = weir.pids("core")
        disk.fill(leave_bytes=600 << 10)
        kept, refusal = submit_until_refused(weir, key, 1000)
        assert kept and refusal is not None, "the disk did not fill"
        problem = refusal.expect_problem(503, "RFA_STORAGE_DB_ERROR")
        assert "full" in problem["detail"] and "job_id" not in refusal.text
        assert int(refusal.headers["retry-after"]) >= 1
        disk.fill()
        for n in range(20):
            answer = weir.try_submit(key, queue="outside", payload={"n": f"refused-{n}", "x": "y" * 20000})
            answer.expect_problem(503, "RFA_STORAGE_DB_ERROR")
        assert weir.api("GET", "/readyz").status == 503
        assert {job["job_id"] for job in list_jobs(weir, key)} == set(kept)  # reads go on
        small = [weir.cancel(key, job_id) for job_id in kept]  # may fit where a refused write had been
        states = {job_id: answer.json["state"] if answer.status == 200 else "QUEUED"
                  for job_id, answer in zip(kept, small)}
        assert {answer.status for answer in small} <= {200, 503}
        assert {job_id: weir.job(key, job_id)["state"] for job_id in kept} == states
        assert weir.api("GET", "/healthz").status == 200
        disk.free()
        wait_for(lambda: weir.try_submit(key, queue="outside", idempotency_key="after").status == 202, 10,
                 "recovery", weir)
        assert weir.pids("core") == core, "core was restarted"
        jobs = check_client(weir, key, all_final=False)
        assert len(jobs) == len(kept) + 1
        assert {job_id: jobs[job_id][0]["state"] for job_id in kept} == states
        assert weir.api("GET", "/readyz").status == 200
        weir.stop()
        done = weir.cli("verify")
        assert done.returncode == 0, done.stdout + done.stderr


def test_a_start_on_a_full_disk_says_so_and_a_later_one_works(fresh_weir):
    """Killed when the disk is full, and started on it: it serves what it holds or tells why it
    cannot; with room it serves everything."""
    with small_disk(DISK_BYTES) as disk:
        weir = fresh_weir(data=str(disk.path), settings={**NOBODY, "runtime.drain_ms": 0})
        _, key = weir.new_client()
        ids, _ = submit_until_refused(weir, key, 20)
        disk.fill()
        weir.kill9()
        weir.spawn()
        try:
            weir.wait_ready(timeout=4)
            assert weir.job(key, ids[0])["state"] == "QUEUED"
        except AssertionError:
            assert "full" in weir.log_text() or "disk" in weir.log_text(), weir.log_tail()
        weir.destroy()
        disk.free()
        weir.start()
        assert {job["job_id"] for job in list_jobs(weir, key)} == set(ids)
        weir.stop()
        assert os.path.exists(os.path.join(disk.path, "weir.db"))


def test_a_core_that_dies_on_a_full_disk_costs_one_restart(fresh_weir):
    """[JOB-175] What can be opened without room serves reads; with room everything is served again. (A store
    that cannot be opened so: test_store_failures.py.)"""
    with small_disk(DISK_BYTES) as disk:
        weir = fresh_weir(data=str(disk.path), settings=NOBODY)
        _, key = weir.new_client()
        kept = [weir.submit(key, queue="outside", payload={"n": n})["job_id"] for n in range(5)]
        core, = weir.pids("core")
        disk.fill()
        os.kill(core, signal.SIGKILL)
        weir.wait_pids("core", 1, other_than=[core], timeout=30)
        wait_for(lambda: weir.logs(event="store_awaited") or len(weir.logs(event="core_started")) == 2, 60,
                 "the next core to serve, or to wait for room", weir)
        disk.free()
        weir.wait_ready(timeout=60)
        starts = [line for line in weir.logs(event="process_started") if line["name"] == "core"]
        assert len(starts) == 2, starts
        assert {job["job_id"] for job in list_jobs(weir, key)} == set(kept)
        weir.submit(key, queue="outside")
        weir.stop()
        assert weir.cli("verify").returncode == 0
