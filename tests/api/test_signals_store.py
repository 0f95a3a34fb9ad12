"""Signals: how records are kept and found in the store, how long, and the codes that failures have."""
import contextlib
import json
import sqlite3
import time
import uuid

import pytest

from harness.engine_calls import UNLIMITED, Engine, Outside, signal_body
from harness.store_sql import edit, file_of, value
from harness.weir_server import wait_for

SEVEN_YEARS_MS = 2557 * 86400 * 1000
LISTED = {"AUTHZ_DENIED", "AUTHZ_REASON_REQUIRED", "AUTHZ_TENANT_FORBIDDEN", "SIGNAL_DUPLICATE",
          "SIGNAL_NOT_FOUND", "SIGNAL_INVALID_PAYLOAD", "RUN_TERMINAL", "STEP_NOT_TERMINAL",
          "STEP_TERMINAL"}  # seed 003, section 6.4

of_sqlite = pytest.mark.sqlite_only("looks into the file; the keys are the same in both stores")


def signalled(weir, count=3):
    """An engine, its run of an engine outside, and the records of so many signals."""
    engine = Engine(weir)
    run = Outside(engine)
    run.tell("RunStarted")
    for _ in range(count):
        engine.signal(run.run_id, "PAUSE").expect(200)
    return engine, run.run_id, engine.decisions(run.run_id)


# ---- one database, found by an index

@pytest.fixture(name="stopped", scope="module")
def stopped_server(module_weir):
    """A stopped server, with a run and three records in its store."""
    weir = module_weir(settings={**UNLIMITED, "runner.processes": 0})
    signalled(weir)
    weir.stop()
    return weir


def test_records_and_runs_are_in_one_database(stopped):
    """[SIG-101] And verify counts them together."""
    wanted = {"runs": 1, "signal_decisions": 3, "signal_keys": 3, "policy_keys": 3}
    assert {table: value(stopped, f"SELECT count(*) FROM {table}") for table in wanted} == wanted
    assert json.loads(stopped.cli("verify", "-o", "json").stdout)["run_events"] == 1


# What the store asks for a record: a run has one tenant and a number, a record's id rises with its time.
LOOKUPS = {
    "by run and time": "SELECT first,ids FROM list WHERE client=1 AND bucket=1 AND first<9"
                       " ORDER BY first DESC",
    "by signalId": "SELECT decision FROM signal_keys WHERE run=1 AND signal=x'00'",
    "by policyDecisionId": "SELECT decision FROM policy_keys WHERE policy=x'00'",
    "by number": "SELECT * FROM signal_decisions WHERE id=1",
}


def plan_of(database, statement):
    """The steps of SQLite's plan."""
    return [row[3] for row in database.execute("EXPLAIN QUERY PLAN " + statement)]


@of_sqlite
def test_each_lookup_of_a_record_goes_by_an_index(stopped):
    """[SIG-107] [SIG-108] [SIG-109] SQLite's own word on each: one search by a key, no scan, nothing sorted.
    The control: the same question to the records themselves is a scan."""
    with contextlib.closing(sqlite3.connect(file_of(stopped))) as database:
        for what, statement in LOOKUPS.items():
            step, = plan_of(database, statement)
            assert step.startswith("SEARCH") and "PRIMARY KEY" in step, (what, step)
        for column in ("policy", "signal"):
            step, = plan_of(database, f"SELECT id FROM signal_decisions WHERE {column}=x'00'")
            assert step.startswith("SCAN"), step


@of_sqlite
@pytest.mark.parametrize("table", ["policy_keys", "signal_keys"])
def test_the_store_takes_no_second_record_under_one_id(stopped, table):
    """[SIG-099] [SIG-117] A policyDecisionId, and a signalId of a run, is there once: by a constraint."""
    with pytest.raises(sqlite3.IntegrityError, match="UNIQUE"):
        edit(stopped, f"INSERT INTO {table} SELECT * FROM {table}")


@pytest.fixture(name="server", scope="module")
def server_of_module(module_weir):
    """No limits."""
    return module_weir(settings=UNLIMITED)


def test_ids_of_decisions_never_repeat(server):
    """[SIG-061] [SIG-099] Of version 4, each found by its own."""
    engine, run_id, records = signalled(server, 200)
    for name in ("policyDecisionId", "signalDecisionId"):
        ids = {record[name] for record in records}
        assert len(ids) == 200 and {uuid.UUID(one).version for one in ids} == {4}
    for record in records[::20]:
        found = engine.call("GET", f"/signal-decisions/{record['policyDecisionId']}").expect(200)
        assert found == record == engine.decision(run_id, record["signalId"])


# ---- retention

def test_the_purge_passes_by_records_of_any_age(fresh_weir):
    """[SIG-103] [SIG-105] Of fourteen years, which is more than they have to be kept; the run and its events
    too. The control: a job that has ended is purged meanwhile."""
    weir = fresh_weir(settings={**UNLIMITED, "jobs.retention_seconds": 1, "runner.processes": 0})
    age_ms = 2 * SEVEN_YEARS_MS
    engine, run_id, records = signalled(weir)
    weir.stop()
    assert edit(weir, f"UPDATE signal_decisions SET created_ms = created_ms - {age_ms}",
                f"UPDATE runs SET created_ms = created_ms - {age_ms}") == 4
    weir.start()
    key = weir.new_client().api_key
    job = weir.submit(key, queue="o")["job_id"]
    weir.cancel(key, job).expect(200)
    wait_for(lambda: weir.api("GET", f"/v1/jobs/{job}", key=key).status == 404, 20, "purge", weir)
    aged = engine.decisions(run_id)
    assert [r["signalId"] for r in aged] == [r["signalId"] for r in records]
    year = time.gmtime(time.time() - age_ms / 1000).tm_year
    assert {abs(int(r["audit"]["timestamp"][:4]) - year) for r in aged} <= {0, 1}
    assert engine.names(run_id) == ["RunStarted"]


# ---- codes

def failures(engine, other):
    """(status, code) of every way a signal can fail, without limits of rate."""
    engine.put_plan("codes", "a", "b<a", queue="codes", onFailure="wait")
    run_id, ended = engine.start("codes"), engine.start("codes")
    engine.signal(run_id, "SKIP_STEP", {"stepId": "a"}).expect(200)
    engine.signal(ended, "CANCEL").expect(200)
    used = str(uuid.uuid4())
    engine.signal(run_id, "PAUSE", signal_id=used).expect(200)
    path = f"/runs/{run_id}/signals"
    yield other.signal(run_id, "PAUSE")
    yield engine.signal(run_id, "RETRY_RUN", roles="Operator")
    yield engine.signal(run_id, "ESCALATE_ALERT", {"level": "P1"})
    yield engine.signal("no-such-run", "PAUSE")
    yield engine.signal(run_id, "UPDATE_PARAMS", {"params": {}})
    yield engine.signal(run_id, "CANCEL", signal_id=used)
    yield engine.signal(ended, "PAUSE")
    yield engine.signal(run_id, "RETRY_STEP", {"stepId": "b"})
    yield engine.signal(run_id, "RETRY_STEP", {"stepId": "a"})
    yield engine.signal(run_id, "RETRY_RUN")
    yield engine.signal(run_id, "SKIP_STEP", {"stepId": "missing"})
    for wrong in ({"signalType": "DANCE"}, {"signalId": "x"}, {"payload": {"x": 1}}, {"payload": []}):
        yield engine.call("POST", path, {**signal_body("PAUSE"), **wrong})
    yield engine.call("GET", f"{path}/{uuid.uuid4()}")
    yield engine.call("GET", f"/signal-decisions/{uuid.uuid4()}")
    yield engine.call("POST", f"/signal-decisions/{uuid.uuid4()}:approve", {})


def test_failures_have_the_codes_of_the_list_and_no_others(server):
    """[SIG-119] Each of the nine comes up, none beside them, in the statuses that AS-26 gives."""
    seen = {(a.status, a.json["code"]) for a in failures(Engine(server), Engine(server, "other"))}
    assert {code for _, code in seen} == LISTED
    assert seen == {(403, "AUTHZ_DENIED"), (404, "AUTHZ_DENIED"), (403, "AUTHZ_REASON_REQUIRED"),
                    (403, "AUTHZ_TENANT_FORBIDDEN"), (409, "SIGNAL_DUPLICATE"), (404, "SIGNAL_NOT_FOUND"),
                    (400, "SIGNAL_INVALID_PAYLOAD"), (409, "RUN_TERMINAL"), (409, "STEP_NOT_TERMINAL"),
                    (409, "STEP_TERMINAL")}


@pytest.mark.any_store
def test_a_signal_that_is_invalid_is_logged_too(server):
    """[SIG-113] AS-09: it leaves no record."""
    engine, run_id, records = signalled(server, 1)
    wrong = engine.signal(run_id, "PAUSE", {"x": 1}, sub="ada")
    problem = wrong.expect_problem(400, "SIGNAL_INVALID_PAYLOAD")
    line = server.wait_log(error_code="SIGNAL_INVALID_PAYLOAD", request_id=problem["instance"])
    assert line["action"] == "signal" and run_id in line["path"]
    assert len(engine.decisions(run_id)) == len(records)
