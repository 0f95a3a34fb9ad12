"""weir store copy: a stopped server's store into another; nothing is lost, and a copy that broke off goes on.

Run with --store postgres the source is a PostgreSQL database, and the copy goes to SQLite, back, and from
one database to another."""
import itertools
import json
import os
import sqlite3
import subprocess

import pytest

from harness import postgres
from harness.engine_calls import Engine, Outside
from harness.weir_server import binary, server_environment

ON_POSTGRES = os.environ.get("WEIR_TEST_STORE") == "postgres"
QUIET = {"runner.processes": 0, "gateway.processes": 0}
MANY_JOBS = 8000
ROOM = {"jobs.max_active": 100000, "jobs.queue_size": 100000}


def store_of(weir):
    """The URL of a server's store."""
    return weir.settings.get("store.url") or f"sqlite:{weir.data}/weir.db"


def copy(source, target, code=0):
    """Runs the command; gives its JSON."""
    done = subprocess.run([binary(), "store", "copy", "--from", source, "--to", target, "-o", "json"],
                          env=server_environment(), check=False, capture_output=True, text=True, timeout=110)
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return json.loads(done.stdout) if done.stdout else done.stderr


def everything(weir, key):
    """All that a client can read, by job."""
    seen, cursor = {}, None
    while True:
        query = "?limit=200" + (f"&cursor={cursor}" if cursor else "")
        page = weir.api("GET", "/v1/jobs" + query, key=key).expect(200)
        for job in page["items"]:
            job_id = job["job_id"]
            events = weir.api("GET", f"/v1/jobs/{job_id}/events", key=key).expect(200)
            report = weir.api("GET", f"/v1/jobs/{job_id}/report", key=key)
            seen[job_id] = (weir.job(key, job_id), events, report.json if report.status == 200 else None)
        cursor = page.get("next_cursor")
        if not cursor:
            return seen, weir.api("GET", "/v1/reports/summary", key=key).expect(200)


@pytest.fixture(name="filled")
def make_filled(fresh_weir):
    """A server, stopped, with jobs in every state, a webhook and its deliveries; and what it knew."""
    weir = fresh_weir(settings={"webhooks.base_ms": 60000, "webhooks.cap_ms": 60000})
    _, key = weir.new_client()
    hook = {"url": "http://127.0.0.1:9/hook", "events": ["job.failed"]}
    weir.api("POST", "/v1/webhooks", hook, key).expect(201)
    done = [weir.submit(key, work_kind="SUCCESS_FAST", idempotency_key=f"order-{n}") for n in range(5)]
    failed = [weir.submit(key, work_kind="FAIL_IMMEDIATE", callback="http://127.0.0.1:9/") for _ in range(3)]
    for job in done:
        weir.wait_state(key, job["job_id"], "SUCCEEDED")
    for job in failed:
        weir.wait_state(key, job["job_id"], "FAILED")
    weir.submit(key, type="DEFERRED", execution_at=weir.soon(86400))
    canceled = weir.submit(key, queue="outside", payload={"n": [1, "\u00e4\ud83d\ude00"]})
    weir.api("POST", f"/v1/jobs/{canceled['job_id']}/cancel", {}, key).expect(200)
    for n in range(4):
        weir.submit(key, queue="outside", priority=n, payload={"n": n})
    weir.api("POST", "/worker/v1/claim",
             {"worker_id": "w", "queues": ["outside"], "max": 2, "wait_ms": 0}, key).expect(200)
    weir.restart(settings=QUIET)
    weir.key, weir.known, weir.first_job = key, everything(weir, key), done[0]["job_id"]
    weir.stop()
    return weir


def other_stores(tmp_path):
    """Where a store is carried, one after the other."""
    yield f"sqlite:{tmp_path}/one/weir.db"
    if ON_POSTGRES:
        yield new_database()
        yield new_database()
        yield f"sqlite:{tmp_path}/two/weir.db"


def test_a_server_knows_the_same_after_its_store_was_copied(filled, fresh_weir, tmp_path):
    """Jobs, events, reports, counters; idempotency keys still count, and new work is done."""
    source = store_of(filled)
    for target in other_stores(tmp_path):
        told = copy(source, target)
        assert told["ok"] and told["resumed"] == 0 and all(part["same"] for part in told["parts"])
        assert told["from"]["problems"] == told["to"]["problems"] == 0
        rows = {part["part"]: part["target"] for part in told["parts"]}
        assert rows["jobs"] == 14 and rows["deliveries"] >= 6 and rows["log"] > 0
        other = fresh_weir(settings={**QUIET, "store.url": target})
        assert everything(other, filled.key) == filled.known
        again = other.submit(filled.key, work_kind="SUCCESS_FAST", idempotency_key="order-0")
        assert again["job_id"] == filled.first_job
        other.stop()
        source = target
    other = fresh_weir(settings={"store.url": source})
    job = other.submit(filled.key, work_kind="SUCCESS_FAST")
    other.wait_state(filled.key, job["job_id"], "SUCCEEDED")
    other.stop()
    assert json.loads(other.cli("verify", "--store", source, "-o", "json").stdout)["problems"] == 0


def runs_known(engine):
    """All that a tenant can read: runs with steps, events, decisions; alerts."""
    runs = {run["runId"]: run for run in engine.pages("/runs?limit=200")}
    return runs, {run_id: (engine.run(run_id), engine.events(run_id), engine.decisions(run_id),
                           engine.decisions(run_id, "?pending=true&limit=200"), engine.alerts(run_id))
                  for run_id in runs}


def fill_runs(weir):
    """Runs in several states, of ours and of an engine outside, with signals, alerts and an id that waits."""
    engine = Engine(weir, "acme")
    engine.put_plan("p", "a", "b<a", "c<a,b", onFailure="wait")
    done, held, paused = engine.start("p"), engine.start("p", runId="held"), engine.start("p")
    engine.signal(paused, "PAUSE", {"reason": "\u00e4\ud83d\ude00"}).expect(200)
    engine.signal(held, "UPDATE_PARAMS", {"params": {"x": [1, None]}}, "why").expect(200)
    engine.signal(held, "CANCEL", roles="Painter").expect_problem(403, "AUTHZ_DENIED")
    with engine.worker() as worker:
        tasks = [task for task in worker.claim(10) if task["run_id"] == done]
        worker.start(tasks)
        worker.finish(tasks, result={"rows": 1})
    outside = Outside(engine, "outside-1")
    outside.tell("RunStarted", "StepStarted x 1", "StepCompleted y 1", "Strange", "StepFailed x 1")
    engine.signal("outside-1", "PAUSE").expect(200)
    return engine, outside.event_id("ab" * 32).expect(200)["eventId"]


def test_runs_go_over_with_all_that_belongs_to_them(fresh_weir, tmp_path):
    """Events, steps, tasks, decisions, alerts, registered ids; and a run goes on where it was."""
    weir = fresh_weir(settings=QUIET)
    engine, waiting_id = fill_runs(weir)
    known = runs_known(engine)
    assert len(known[0]) == 4 and known[1]["outside-1"][0]["metadata"]["inconsistent"]
    weir.stop()
    source = store_of(weir)
    for target in other_stores(tmp_path):
        told = copy(source, target)
        assert told["ok"] and told["from"]["run_events"] == told["to"]["run_events"] > 10
        rows = {part["part"]: part["target"] for part in told["parts"]}
        counts = [rows[part] for part in ("runs", "signal_decisions", "alerts", "event_ids")]
        assert counts == [4, 4, 3, 1]
        source = target
    other = fresh_weir(settings={**QUIET, "store.url": source})
    engine = Engine(other, "acme")
    assert runs_known(engine) == known
    assert Outside(engine, "outside-1").event_id("ab" * 32).expect(200)["eventId"] == waiting_id
    run_id, = [run for run, parts in known[1].items() if parts[1][-1]["eventType"] == "StepCompleted"]
    with engine.worker() as worker:
        worker.drain()
    assert engine.wait_status(run_id, "COMPLETED")["steps"][2]["status"] == "SUCCESS"
    other.stop()
    assert json.loads(other.cli("verify", "--store", source, "-o", "json").stdout)["problems"] == 0


@pytest.mark.sqlite_only("weir backup is SQLite's; PostgreSQL has pg_dump")
def test_a_backup_holds_the_runs(fresh_weir, tmp_path):
    """Taken beside the running server; `verify` counts them, and who restores it knows the same."""
    weir = fresh_weir(settings=QUIET)
    engine, _ = fill_runs(weir)
    done = weir.cli("backup", str(tmp_path / "copy.db"))
    assert done.returncode == 0, done.stderr
    other = fresh_weir(start=False, settings=QUIET)
    assert other.cli("restore", str(tmp_path / "copy.db")).returncode == 0
    other.start()
    assert runs_known(Engine(other, "acme")) == runs_known(engine)
    told = json.loads(other.cli("verify", "-o", "json").stdout)
    assert (told["runs"], told["problems"]) == (4, 0) and told["run_events"] > 10


def test_a_store_in_use_is_neither_copied_nor_copied_into(filled, tmp_path):
    """By the lock of the data directory, or the lanes of the database."""
    copy(store_of(filled), f"sqlite:{tmp_path}/one/weir.db")
    filled.start()
    refused = copy(store_of(filled), f"sqlite:{tmp_path}/two/weir.db", code=5)
    assert "--from: " in refused and "stop" in refused and not os.path.exists(f"{tmp_path}/two/weir.db")
    refused = copy(f"sqlite:{tmp_path}/one/weir.db", store_of(filled), code=5)
    assert "--to: " in refused and "stop" in refused


def test_a_store_that_holds_something_is_not_copied_into(filled, tmp_path):
    """Nor is the same store, nor something that is no store."""
    target = f"sqlite:{tmp_path}/copy/weir.db"
    copy(store_of(filled), target)
    assert "not empty" in copy(store_of(filled), target, code=5)
    assert "same store" in copy(store_of(filled), store_of(filled), code=2)
    assert "--to must be sqlite:FILE or postgres://" in copy(store_of(filled), "mysql://x", code=2)
    assert "no database" in copy(f"sqlite:{tmp_path}/nothing.db", f"sqlite:{tmp_path}/x.db", code=3)


@pytest.fixture(name="large", scope="module")
def make_large(module_weir):
    """A stopped server with jobs enough that a copy takes its time."""
    weir = module_weir(settings={**QUIET, **ROOM})
    _, key = weir.new_client()
    for first in range(0, MANY_JOBS, 1000):
        jobs = [{"type": "EXECUTE", "queue": "outside", "idempotency_key": f"k{first + n}",
                 "payload": {"n": n}} for n in range(1000)]
        weir.api("POST", "/v1/jobs:batch", {"jobs": jobs}, key, timeout=60).expect(202)
    weir.stop()
    weir.key = key
    return weir


def try_break_off(source, target):
    """Starts a copy and kills it when it has moved something; False when it was done before that."""
    with subprocess.Popen([binary(), "store", "copy", "--from", source, "--to", target],
                          env=server_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          text=True) as process:
        for line in process.stderr:
            if line.startswith("copying: "):
                break
        process.kill()
        return process.wait() == -9


def break_off(source, new_target):
    """A target with half a copy. A machine that is busy elsewhere may be too late a few times."""
    for _ in range(10):
        target = new_target()
        if try_break_off(source, target):
            return target
    raise AssertionError("every copy was done before it could be killed")


def new_file(tmp_path):
    """URLs of SQLite files that do not exist."""
    numbers = itertools.count()
    return lambda: f"sqlite:{tmp_path}/copy{next(numbers)}/weir.db"


def new_database():
    """The URL of an empty database."""
    return postgres.session().url(postgres.session().fresh_database())


def test_a_copy_that_was_killed_goes_on_and_is_not_served_before(large, fresh_weir, tmp_path):
    """What is there is not written again; a server refuses half a store."""
    for kind in [new_file(tmp_path)] + ([new_database] if ON_POSTGRES else []):
        target = break_off(store_of(large), kind)
        half = fresh_weir(start=False, settings={"store.url": target}).spawn()
        assert half.process.wait(timeout=60) == 78
        half.process = None
        assert "not finished" in half.log_text()
        told = copy(store_of(large), target)
        assert told["ok"] and told["resumed"] > 0 and told["copied"] > 0
        whole = fresh_weir(settings={**QUIET, **ROOM, "store.url": target})
        assert whole.total(large.key) == MANY_JOBS
        whole.stop()


def test_a_difference_made_on_the_way_is_found(large, tmp_path):
    """The negative control of the comparison at the end: one number of one row."""
    target = break_off(store_of(large), new_file(tmp_path))
    with sqlite3.connect(target.partition(":")[2]) as database:
        changed = database.execute("UPDATE clients SET created_ms = created_ms + 1")
        assert changed.rowcount == 1
    database.close()
    told = copy(store_of(large), target, code=1)
    assert not told["ok"]
    assert [part["part"] for part in told["parts"] if not part["same"]] == ["clients"]


def test_progress_is_told_and_a_password_is_not(large, tmp_path):
    """A line a step at least, with rows, percent and rate; a database that is not there is told about."""
    done = subprocess.run([binary(), "store", "copy", "--from", store_of(large), "--to",
                           f"sqlite:{tmp_path}/copy/weir.db"], env=server_environment(), check=True,
                          capture_output=True, text=True, timeout=110)
    assert "counting the source: log, " in done.stderr and " %, " in done.stderr and " rows/s" in done.stderr
    assert done.stdout.splitlines()[0].split() == ["PART", "SOURCE", "TARGET", "CHECKSUM", "RESULT"]
    assert {line.split()[-1] for line in done.stdout.splitlines()[1:]} == {"same"}
    refused = copy("postgres://weir:hunter2@127.0.0.1:1/none", f"sqlite:{tmp_path}/x/weir.db", code=1)
    assert "hunter2" not in refused and "127.0.0.1" in refused
