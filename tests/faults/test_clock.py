"""The wall clock of a running server jumps; the shim of fail_io.c shifts what it reads.

Retention, expiry and far schedules are proved so, and leases are shown not to care. A jump ahead counts only
when an operator says so, or an hour later (kernel/wall_guard.h)."""
import time
from datetime import datetime, timedelta, timezone

import pytest

from fail_io import FailIo
from harness.history import check_chain
from harness.pace import Stopwatch
from harness.weir_server import wait_for
from harness.worker_calls import Worker

LEASE_SECONDS = 2  # a worker on a busy machine beats in time
HOUR_MS, DAY_MS = 3600 * 1000, 86400 * 1000


@pytest.fixture
def io():
    """The clock of one test."""
    return FailIo()


@pytest.fixture
def weir(fresh_weir, io):
    """A server with that clock; a short lease."""
    return fresh_weir(env=io.environment(), settings={
        "queue.lease_ms": LEASE_SECONDS * 1000, "queue.heartbeat_ms": 500, "keys.ttl_seconds": 400 * 86400,
        "keys.revoked_retention_seconds": 90 * 86400})


def shift(weir, io, shift_ms):
    """The clock is set, and an operator says that it is right."""
    io.clock_shift_ms = shift_ms
    weir.api("POST", "/ops/v1/clock:accept").expect(200)


def ahead(**delta):
    """A moment from now on the wire."""
    return (datetime.now(timezone.utc) + timedelta(**delta)).strftime("%Y-%m-%dT%H:%M:%SZ")


def test_a_job_a_year_ahead_runs_when_its_time_comes(weir, io, client):
    """[JOB-048] SCHEDULED_FAR_FUTURE stays CREATED, also a day before; past its time it
    SUCCEEDS."""
    job_id = weir.submit(client.api_key, type="DEFERRED", work_kind="SCHEDULED_FAR_FUTURE",
                         execution_at=ahead(days=365))["job_id"]
    shift(weir, io, 364 * DAY_MS)
    time.sleep(1.5)  # the server looks at the clock once a second
    assert weir.job(client.api_key, job_id)["state"] == "CREATED"
    shift(weir, io, 365 * DAY_MS + 2000)
    assert weir.wait_final(client.api_key, job_id)["state"] == "SUCCEEDED"
    check_chain(weir, client.api_key, job_id)


def test_a_clock_set_back_delays_a_schedule_and_never_hastens_it(weir, io, client):
    """[JOB-129] [JOB-151] Set back an hour, a job due in half a second waits; its events still rise
    in time when the clock is right again."""
    job_id = weir.submit(client.api_key, type="DEFERRED", execution_at=ahead(seconds=2))["job_id"]
    io.clock_shift_ms = -HOUR_MS
    time.sleep(2.5)
    assert weir.job(client.api_key, job_id)["state"] == "CREATED"
    running = weir.submit(client.api_key, work_kind="SUCCESS_FAST")["job_id"]
    weir.wait_final(client.api_key, running)
    check_chain(weir, client.api_key, running)
    io.clock_shift_ms = 0
    weir.wait_final(client.api_key, job_id)
    check_chain(weir, client.api_key, job_id)


@pytest.mark.parametrize("shift_ms", [HOUR_MS, -HOUR_MS], ids=["forward", "back"])
def test_a_jump_of_the_clock_neither_ends_nor_lengthens_a_lease(weir, io, client, shift_ms):
    """[JOB-143] [JOB-176] A running job keeps its lease over the jump as long as it beats, and
    loses it one lease after the last beat."""
    job_id = weir.submit(client.api_key, queue="outside", max_runtime_ms=100000,
                         retry="manual")["job_id"]
    with Worker(weir, client.api_key) as worker:
        tasks = worker.claim()
        worker.start(tasks)
        io.clock_shift_ms = shift_ms
        until = time.monotonic() + 1.5 * LEASE_SECONDS
        while time.monotonic() < until:
            silent = Stopwatch()
            assert worker.heartbeat(tasks)[0]["ok"] is True
            time.sleep(0.1)
        job = weir.wait_final(client.api_key, job_id)
        assert silent.seconds() >= LEASE_SECONDS and silent.quiet() <= LEASE_SECONDS + 1
        assert job["error"]["code"] == "worker_lost"
    check_chain(weir, client.api_key, job_id)


def test_final_jobs_live_thirty_days_and_unfinished_ones_for_ever(weir, io, client):
    """[JOB-244] [JOB-245] [JOB-246] [JOB-236] [JOB-237] At 29 days job, events and report are
    there; after 30 all three are gone and the job is unknown; one that waits since then is still
    there."""
    key = client.api_key
    final = weir.submit(key, work_kind="SUCCESS_FAST")["job_id"]
    waiting = weir.submit(key, queue="outside")["job_id"]
    report = weir.wait_final(key, final) and weir.report(key, final)
    shift(weir, io, 29 * DAY_MS)
    time.sleep(1.5)  # the purge looks once a second
    assert weir.report(key, final) == report
    shift(weir, io, 30 * DAY_MS + HOUR_MS)
    wait_for(lambda: weir.api("GET", f"/v1/jobs/{final}", key=key).status == 404, 10, "purge", weir)
    for path in ("", "/report", "/events"):
        weir.api("GET", f"/v1/jobs/{final}{path}", key=key).expect_problem(404, "RFA_JOB_NOT_FOUND")
    assert weir.job(key, waiting)["state"] == "QUEUED"
    assert weir.job(key, weir.submit(key, queue="outside")["job_id"])
    weir.stop()
    done = weir.cli("verify")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_new_minute_and_a_new_day_open_what_was_used_up(fresh_weir, io):
    """[JOB-191] [JOB-192] [JOB-286] After Retry-After seconds of the server's clock requests pass again; of
    two limits the longer one tells how long. A clock set back locks nobody out."""
    weir = fresh_weir(env=io.environment(), settings={
        "limits.requests_per_minute": 3, "limits.requests_per_day": 5, "runner.processes": 0})
    key = weir.new_client().api_key

    def used_up():
        answers = [weir.api("GET", "/v1/jobs", key=key) for _ in range(4)]
        return [a.status for a in answers], answers[-1]

    io.clock_shift_ms = (1 - int(time.time()) % 86400) * 1000  # today's first second
    statuses, refused = used_up()
    assert statuses == [200] * 3 + [429] and int(refused.headers["retry-after"]) <= 60
    io.clock_shift_ms += int(refused.headers["retry-after"]) * 1000
    statuses, refused = used_up()
    assert statuses == [200] * 2 + [429] * 2  # the day's five
    assert 86000 <= int(refused.headers["retry-after"]) <= 86400
    io.clock_shift_ms += 60 * 1000
    assert used_up()[0] == [429] * 4
    io.clock_shift_ms += (int(refused.headers["retry-after"]) - 60) * 1000
    assert used_up()[0] == [200] * 3 + [429]
    io.clock_shift_ms -= 3 * DAY_MS
    assert used_up()[0] == [200] * 3 + [429]


def test_a_key_expires_when_its_time_is_over(weir, io, client):
    """[JOB-156] [JOB-207] A day before it works, a day after it is 401 RFA_AUTH_TOKEN_EXPIRED."""
    io.clock_shift_ms = 399 * DAY_MS
    weir.submit(client.api_key, queue="outside")
    io.clock_shift_ms = 401 * DAY_MS
    weir.try_submit(client.api_key).expect_problem(401, "RFA_AUTH_TOKEN_EXPIRED")


def test_a_revoked_key_is_remembered_ninety_days(weir, io):
    """[JOB-247] At 89 days the revoked key is known as revoked (403); after 90 it is unknown
    (401)."""
    client_id, key = weir.new_client()
    path = f"/v1/clients/{client_id}/keys"
    rotated = weir.api("POST", path, {"rotate": True}, key).expect(201)
    replaced = weir.api("GET", path, key=key).expect(200)["items"][1]["key_id"]
    weir.api("POST", f"{path}/revoke", {"key_id": replaced}, key).expect(200)
    weir.try_submit(key).expect_problem(403, "RFA_AUTH_API_KEY_DISABLED")
    shift(weir, io, 89 * DAY_MS)
    time.sleep(1.5)
    weir.try_submit(key).expect_problem(403, "RFA_AUTH_API_KEY_DISABLED")
    shift(weir, io, 90 * DAY_MS + HOUR_MS)
    wait_for(lambda: weir.try_submit(key).status == 401, 10, "the key to be forgotten", weir)
    weir.submit(rotated["api_key"], queue="outside")


def clock_states(weir):
    """What the log says about the clock."""
    return [line["state"] for line in weir.logs(event="clock")]


def test_a_clock_eighty_days_ahead_for_a_moment_deletes_nothing_and_is_told(weir, io, client):
    """The log, a metric, /readyz and doctor tell it while it lasts; a job due in a month is not early."""
    key = client.api_key
    final = weir.submit(key, work_kind="SUCCESS_FAST")["job_id"]
    weir.wait_final(key, final)
    month = weir.submit(key, type="DEFERRED", execution_at=ahead(days=30))["job_id"]
    io.clock_shift_ms = 80 * DAY_MS
    wait_for(lambda: clock_states(weir) == ["ahead"], 30, "the jump to be seen", weir)
    time.sleep(2.5)  # the purge would have looked twice
    ready = weir.api("GET", "/readyz").expect(200)
    assert ready["checks"]["clock"] == "warn"
    assert weir.metrics()["weir_clock_in_doubt"] == 1
    told = weir.cli("doctor", "--url", weir.url)
    assert "weir clock accept" in told.stdout + told.stderr
    assert "weir clock accept" in weir.logs(event="clock")[0]["advice"]
    io.clock_shift_ms = 0
    wait_for(lambda: clock_states(weir) == ["ahead", "right"], 30, "its return to be seen", weir)
    assert "clock" not in weir.api("GET", "/readyz").expect(200)["checks"]
    assert weir.job(key, final)["state"] == "SUCCEEDED"
    assert weir.job(key, month)["state"] == "CREATED"
    check_chain(weir, key, final)


def test_an_operator_says_by_a_command_that_the_clock_is_right(fresh_weir, io):
    """weir clock accept: with the operator's token, and what is said without it."""
    weir = fresh_weir(env=io.environment(), settings={
        "environment": "stage", "operator.token": "operator-secret", "runner.processes": 0})
    io.clock_shift_ms = 80 * DAY_MS
    wait_for(lambda: clock_states(weir) == ["ahead"], 30, "the jump to be seen", weir)
    refused = weir.cli("clock", "accept", key="no-operator")
    assert refused.returncode == 4 and "--operator-token" in refused.stderr
    done = weir.cli("clock", "accept", "--operator-token", "operator-secret")
    assert done.returncode == 0, done.stderr
    wait_for(lambda: clock_states(weir) == ["ahead", "right"], 30, "the clock to count", weir)


def test_a_clock_before_1970_fires_nothing(weir, io, client):
    """Neither while the server runs nor when it starts with it; what comes meanwhile has sound times. Claims
    wait for work as ever, those of the runners, too, and are not sent away to ask again at once."""
    key = client.api_key
    far = weir.submit(key, type="DEFERRED", execution_at="2030-01-01T00:00:00Z")["job_id"]
    io.clock_shift_ms = -int(time.time() * 1000) - DAY_MS
    wait_for(lambda: clock_states(weir) == ["too_early"], 30, "the clock to be seen", weir)
    new = weir.submit(key, work_kind="SUCCESS_FAST")["job_id"]
    assert weir.wait_final(key, new)["state"] == "SUCCEEDED"
    assert weir.job(key, new)["created_at"] > "2026"
    with Worker(weir, key) as worker:
        watch = Stopwatch()
        assert worker.claim(wait_ms=300) == [] and watch.seconds() >= 0.3
    assert weir.job(key, far)["state"] == "CREATED"
    weir.restart()
    time.sleep(1.5)
    assert weir.job(key, far)["state"] == "CREATED"
    assert weir.metric("weir_http_requests_total", operation="claimTasks") < 50  # each waits for 20 s
    weir.stop()
    assert weir.cli("verify").returncode == 0


@pytest.mark.parametrize("shift_ms, state", [(2 * DAY_MS, "ahead_of_store"),
                                             (-100 * 365 * DAY_MS, "too_early")])
def test_a_doubtful_clock_of_a_start_is_told_and_deletes_nothing(weir, io, client, shift_ms, state):
    """Down for days or wrong: who starts it learns of it from the log too, before anything is deleted."""
    weir.submit(client.api_key, queue="outside")
    weir.stop()
    io.clock_shift_ms = shift_ms
    weir.start()
    (line,) = weir.logs(at_least=1, event="clock")
    assert (line["state"], line["level"], line["deletes"]) == (state, "error", 0)
    wait_for(lambda: weir.api("GET", "/readyz").expect(200)["checks"].get("clock") == "warn", 30,
             "the end of the batch that saw it", weir)
