"""Restarts, asked for and not: what was stored is there, what was due runs, drains
are clean."""
import os
import signal
import socket
import sqlite3
import threading
import time
from datetime import datetime, timedelta, timezone

import pytest

from harness import processes
from harness.history import check_chain, list_jobs
from harness.pace import Stopwatch
from harness.weir_server import wait_for

NOBODY = {"runner.processes": 0}


def moment_of(text):
    """The moment a time on the wire means."""
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def deferred(weir, key, seconds, **fields):
    """A DEFERRED job due in so many seconds: (job id, due)."""
    due = datetime.now(timezone.utc) + timedelta(seconds=seconds)
    text = due.strftime("%Y-%m-%dT%H:%M:%S.") + f"{due.microsecond // 1000:03}Z"
    job = weir.submit(key, type="DEFERRED", execution_at=text, **fields)
    return job["job_id"], moment_of(text)


def first_queued(weir, key, job_id):
    """When it became QUEUED."""
    return next(moment_of(e["timestamp"]) for e in weir.events(key, job_id) if e["next_state"] == "QUEUED")


def test_a_schedule_survives_a_kill_and_is_kept(fresh_weir):
    """[JOB-131] Killed and started again before the due time: QUEUED at its time, not before."""
    weir = fresh_weir()
    _, key = weir.new_client()
    for seconds in (2.0, 10.0, 60.0):  # until a restart fits between the submit and the due time
        job_id, due = deferred(weir, key, seconds, work_kind="SUCCESS_FAST")
        watch = Stopwatch()
        weir.kill9()
        weir.start()
        state = weir.job(key, job_id)["state"]
        if datetime.now(timezone.utc) < due:
            break
    assert state == "CREATED" and datetime.now(timezone.utc) < due
    assert weir.wait_final(key, job_id)["state"] == "SUCCEEDED"
    assert 0 <= (first_queued(weir, key, job_id) - due).total_seconds() <= 1 + watch.stalled()
    check_chain(weir, key, job_id)


def test_a_schedule_missed_while_down_is_queued_at_once(fresh_weir):
    """[JOB-132] [JOB-047] SCHEDULED_LATE_RECOVERY: down across the due time; QUEUED within a second
    of the start, then SUCCEEDED."""
    weir = fresh_weir()
    _, key = weir.new_client()
    job_id, due = deferred(weir, key, 0.6, work_kind="SCHEDULED_LATE_RECOVERY")
    weir.stop()
    time.sleep(max(0, (due - datetime.now(timezone.utc)).total_seconds()) + 0.3)
    started = datetime.now(timezone.utc)
    weir.start()
    ready = datetime.now(timezone.utc)
    assert weir.wait_final(key, job_id)["state"] == "SUCCEEDED"
    assert started <= first_queued(weir, key, job_id) <= ready + timedelta(seconds=1)


def test_finished_jobs_and_their_reports_are_the_same_after_kill_9(fresh_weir):
    """[JOB-303] Job, events and report of every kind of end are byte for byte the same."""
    weir = fresh_weir()
    _, key = weir.new_client()
    ids = [weir.submit(key, work_kind=kind)["job_id"]
           for kind in ("SUCCESS_FAST", "FAIL_IMMEDIATE", "LARGE_OUTPUT")]
    ids.append(weir.submit(key, queue="nobody")["job_id"])
    weir.cancel(key, ids[-1]).expect(200)
    for job_id in ids:
        weir.wait_final(key, job_id)
    paths = [f"/v1/jobs/{job_id}{part}" for job_id in ids for part in ("", "/events", "/report")]
    before = [weir.api("GET", path, key=key).body for path in paths]
    weir.kill9()
    weir.start()
    assert [weir.api("GET", path, key=key).body for path in paths] == before


def listed(weir, path, key):
    """A client's keys, but for their last use, which the list itself is."""
    return [{**item, "last_used_at": None} for item in weir.api("GET", path, key=key).expect(200)["items"]]


def test_sigterm_lets_running_jobs_end_and_answers_what_is_under_way(fresh_weir):
    """Exit 0; the running job is finished by its runner, the queued one is still there; a request
    that has been sent is answered; a waiting claim ends; nothing accepts a connection
    afterwards."""
    weir = fresh_weir(settings={"runner.processes": 1, "runner.workers": 1, "runner.time_scale": 0.6})
    _, key = weir.new_client()
    running = weir.submit(key, work_kind="SUCCESS_FAST")["job_id"]  # 0.6 s
    queued = weir.submit(key, work_kind="SUCCESS_FAST")["job_id"]
    weir.wait_state(key, running, "RUNNING")
    answers = {}
    poll = threading.Thread(target=lambda: answers.update(
        claim=weir.api("POST", "/worker/v1/claim", {"worker_id": "w", "queues": ["empty"], "max": 1,
                                                    "wait_ms": 20000}, key)))
    poll.start()
    wait_for(lambda: weir.metric("weir_http_connections") >= 2, 5, "the claim to wait", weir)
    watch = Stopwatch()
    weir.process.send_signal(signal.SIGTERM)
    submitted = []
    while weir.process.poll() is None and not watch.is_over(10):
        try:
            answer = weir.try_submit(key, queue="outside")
            assert answer.status in (202, 503), answer
            submitted += [answer.json["job_id"]] if answer.status == 202 else []
        except OSError:
            pass  # refused or closed before it was read: not accepted
        time.sleep(0.01)
    assert weir.process.wait(timeout=60) == 0
    weir.process = None
    poll.join(timeout=60)
    assert answers["claim"].expect(200)["tasks"] == []
    assert watch.quiet() < 4
    weir.assert_no_sanitizer_report()
    weir.start()
    assert weir.job(key, running)["state"] == "SUCCEEDED"
    assert weir.job(key, queued)["state"] in ("QUEUED", "ASSIGNED", "RUNNING", "SUCCEEDED")
    listed = {job["job_id"] for job in list_jobs(weir, key)}
    assert set(submitted) <= listed and submitted, "an acknowledged job is lost, or none was accepted"


def test_a_drain_that_takes_too_long_reports_the_job_as_shut_down(fresh_weir):
    """A job longer than runtime.drain_ms is FAILED, reason shutdown, retryable; exit 0 in time."""
    weir = fresh_weir(settings={"runner.time_scale": 1.0, "runtime.drain_ms": 300})
    _, key = weir.new_client()
    job_id = weir.submit(key, work_kind="RUNS_LONG")["job_id"]
    weir.wait_state(key, job_id, "RUNNING")
    watch = Stopwatch()
    weir.stop()
    assert watch.quiet() < 3
    weir.start()
    job = weir.job(key, job_id)
    assert job["state"] == "FAILED"
    assert (job["error"]["code"], job["error"]["retryable"]) == ("shutdown", True)
    check_chain(weir, key, job_id)


def test_a_second_sigterm_ends_at_once_and_loses_nothing(fresh_weir):
    """A long drain is cut short; the job is found lost or shut down after the next start, never
    RUNNING for ever."""
    weir = fresh_weir(settings={"runner.time_scale": 1.0, "queue.lease_ms": 1000, "queue.heartbeat_ms": 200})
    _, key = weir.new_client()
    job_id = weir.submit(key, work_kind="RUNS_LONG")["job_id"]
    weir.wait_state(key, job_id, "RUNNING")
    family = weir.pids()
    weir.process.send_signal(signal.SIGTERM)
    wait_for(lambda: weir.logs(event="draining"), 5, "the drain", weir)
    watch = Stopwatch()
    weir.process.send_signal(signal.SIGTERM)
    assert weir.process.wait(timeout=60) == 0
    assert watch.quiet() < 2
    weir.process = None
    assert not processes.wait_gone(family, 2)
    weir.start()
    assert weir.wait_final(key, job_id, timeout=5)["state"] == "FAILED"


def test_a_half_sent_request_does_not_hold_up_the_stop(fresh_weir):
    """A client that stalls in the middle of its body: the server still ends in time with 0."""
    weir = fresh_weir(settings=NOBODY)
    with socket.create_connection(weir.address) as stalled:
        stalled.sendall(b"POST /v1/clients HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{")
        wait_for(lambda: weir.metric("weir_http_connections") >= 2, 5, "the connection", weir)
        watch = Stopwatch()
        weir.stop()
        assert watch.quiet() < 6


@pytest.mark.sqlite_only("asks SQLite to check its file")
def test_the_database_is_whole_after_a_clean_stop(fresh_weir):
    """[JOB-303] SQLite itself finds nothing wrong, and `weir verify` neither."""
    weir = fresh_weir()
    _, key = weir.new_client()
    for _ in range(20):
        weir.submit(key, work_kind="SUCCESS_FAST")
    weir.stop()
    with sqlite3.connect(os.path.join(weir.data, "weir.db")) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert weir.cli("verify").returncode == 0
    with socket.socket() as probe:
        assert probe.connect_ex(weir.address) != 0


def cpu_seconds(pid):
    """What a process has used so far."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_runners_and_gateways_wait_for_a_core_that_was_killed(fresh_weir):
    """While it is away and, once it is back, in long polls: not by asking for the time over and over."""
    weir = fresh_weir(settings={"runner.processes": 1})
    pids = weir.wait_pids("runner", 1) + weir.wait_pids("gateway", 1)
    time.sleep(0.5)  # their long polls are under way
    before = {pid: cpu_seconds(pid) for pid in pids}
    old = weir.kill9_kind("core")
    weir.wait_pids("core", 1, other_than=old)
    weir.wait_ready()
    time.sleep(2)
    for pid in pids:
        assert cpu_seconds(pid) - before[pid] < 0.5, processes.title(pid)
