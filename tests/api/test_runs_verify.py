"""weir verify and runs: what is stored beside the events, and every way a record is found, is compared. Each
kind of damage is made to a copy of one stopped store; the store itself is sound."""
import os
import shutil
import sqlite3
import subprocess

import pytest

from harness.engine_calls import Engine, Outside
from harness.weir_server import binary, server_environment

pytestmark = pytest.mark.sqlite_only("rows are damaged in a file; the passes are the same for both stores")
QUIET = {"runner.processes": 0, "gateway.processes": 0}
FIRST = "(SELECT min(num) FROM runs)"

DAMAGES = {
    "a status": (f"UPDATE runs SET state = 3 WHERE num = {FIRST}", "status is not what its events say"),
    "a step": ("UPDATE run_steps SET state = 2 WHERE step = 'c'", "its step c is stored as SUCCESS"),
    "an attempt": ("UPDATE run_steps SET attempt = 2 WHERE step = 'a'", "its events say"),
    "an event": ("DELETE FROM run_events WHERE seq = 2", "not 1 to its last runSeq"),
    "last events": ("DELETE FROM run_events WHERE (run, seq) IN (SELECT num, last_seq FROM runs)", "runSeq"),
    "a type": ("UPDATE run_events SET type = 2 WHERE type = 3", "its events say"),
    "a key": ("UPDATE run_events SET step = 'RUN', type = 11, attempt = 1, name = 'Odd' WHERE seq IN (4, 7)",
              "its events 4 and 7 have one key"),
    "a key of the run": ("UPDATE run_events SET step = CASE seq WHEN 4 THEN 'RUN' END, type = 11,"
                         " name = 'Odd' WHERE seq IN (4, 7)", "its events 4 and 7 have one key"),
    "the flag": ("UPDATE runs SET inconsistent = 0", "flag inconsistent"),
    "events that wait": (
        "DELETE FROM deferred_run_events WHERE n IN (SELECT max(n) FROM deferred_run_events)", "runSeq"),
    "a block of events": ("UPDATE deferred_run_events SET block = CAST(substr(block, 1, 12) || x'2121' ||"
                         " substr(block, 15) AS BLOB)", "events of runs, is damaged"),
    "index entries of events": ("DELETE FROM deferred_run_index WHERE n IN (SELECT max(n) FROM"
                                " deferred_run_index)", "index entries, its ev"),
    "index entries of a plan": ("DELETE FROM deferred_run_index WHERE n IN (SELECT min(n) FROM"
                                " deferred_run_index)", "index entries of st"),
    "an index entry too many": (f"INSERT INTO run_index VALUES({FIRST}, 7, 1)", "index entries, its events"),
    "a block of index entries": (
        "UPDATE deferred_run_index SET block = CAST(substr(block, 1, 12) || x'2121' ||"
        " substr(block, 15) AS BLOB)", "index entries of runs, is damaged"),
    "a step of a plan": ("DELETE FROM plan_steps WHERE idx = 1", "steps of plans"),
    "an alert": ("DELETE FROM alerts WHERE category = 0", "alerts of transitions"),
    "an alert of a signal": ("DELETE FROM alerts WHERE category = 1", "lists of alerts of tenants"),
    "a counter": ("UPDATE runs SET left_count = 7 WHERE plan_num <> 0", "counts its steps wrongly"),
    "a task": ("DELETE FROM tasks", "its steps name"),
    "a name": ("DELETE FROM run_ids WHERE id = 'outside-1'", "is not found by its name"),
    "a name too many": ("INSERT INTO run_ids VALUES('missing', 1)", "names of runs"),
    "a decision": ("DELETE FROM signal_decisions WHERE state = 1", "lists of decisions of runs"),
    "a decision's run": ("UPDATE signal_decisions SET run = 1 WHERE state = 1", "a run that is not there"),
    "a decision's id": ("UPDATE signal_decisions SET uuid = x'00'", "is damaged"),
    "a signal's key": ("DELETE FROM signal_keys", "not found by its signalId"),
    "a policy's key": ("DELETE FROM policy_keys", "not found by its policyDecisionId"),
    "what is open": ("UPDATE signal_decisions SET processed_ms = 7 WHERE processed_ms = 0 AND state = 0",
                     "lists of decisions to be processed"),
}


@pytest.fixture(name="store", scope="module")
def store_of_module(module_weir):
    """A stopped store with runs of ours and of an engine outside, signals of all outcomes, alerts."""
    weir = module_weir(settings=QUIET)
    engine = Engine(weir, "acme")
    engine.put_plan("p", "a", "b<a", "c<b")
    run_id = engine.start("p")
    engine.signal(run_id, "UPDATE_PARAMS", {"params": {"x": 1}}, "why").expect(200)
    engine.signal(run_id, "CANCEL", roles="Painter").expect_problem(403, "AUTHZ_DENIED")
    with engine.worker() as worker:
        tasks = worker.claim()
        worker.start(tasks)
        worker.finish(tasks)
    Outside(engine, "outside-1").tell("RunStarted", "StepCompleted y 1", "Strange", "RunQueued")
    engine.signal("outside-1", "PAUSE").expect(200)
    steps = [f"{kind} s{n} 1" for n in range(8) for kind in ("StepStarted", "StepCompleted")]
    Outside(engine, "outside-2").tell("RunStarted", *steps)  # enough to be written to its place at once
    weir.stop()
    return os.path.join(weir.data, "weir.db")


def verify(path):
    """(exit code, what it said)"""
    done = subprocess.run([binary(), "verify", "--store", f"sqlite:{path}"], env=server_environment(),
                          check=False, capture_output=True, text=True, timeout=110)
    return done.returncode, done.stderr


def test_a_store_with_runs_is_sound(store):
    """The control of all that follows."""
    code, said = verify(store)
    assert code == 0 and "difference" not in said, said


@pytest.mark.parametrize("what", DAMAGES)
def test_damage_to_runs_is_found(store, tmp_path, what):
    """Exit code 1, and the difference is named."""
    statement, told = DAMAGES[what]
    copy = tmp_path / "weir.db"
    shutil.copy(store, copy)
    with sqlite3.connect(copy) as database:
        assert database.execute(statement).rowcount >= 1
    database.close()
    code, said = verify(copy)
    assert code == 1 and told in said, said
