"""kill -9 of core and of everything while runs are executed by runners and outside workers, engines elsewhere
append with retries and operators send signals: no acknowledged event is lost or doubled, every accepted
signal had its effect once, every run ends, `weir verify` finds nothing."""
import os
import random
import time

import pytest

from harness.engine_calls import Engine, Outside, path_of
from harness.nodes import Nodes
from harness.postgres import session
from harness.run_records import record_faults, written_faults
from harness.store_sql import edit
from kill_load import kill_core
from run_load import RUN_SETTINGS, RunLoad, judge_runs, read_all, the_judge_sees_planted_faults

LONG = os.environ.get("WEIR_TEST_LONG") == "1"
CORE_KILLS = int(os.environ.get("WEIR_TEST_KILLS", "600" if LONG else "6"))  # can be given by hand
FAMILY_KILLS, NODE_KILLS = CORE_KILLS // 3, CORE_KILLS * 2 // 3
LIMIT_SECONDS = 120 + 5 * CORE_KILLS


def verify(weir):
    """`weir verify` finds nothing."""
    done = weir.cli("verify", timeout=600)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


def judged(load, kills):
    """All that is to be seen, without a fault in it."""
    seen = read_all(load)
    faults = judge_runs(load, seen)
    assert not faults, f"{len(faults)} faults, the first: {faults[:20]}"
    history = load.history
    print(f"{len(history.written)} acknowledgements of events in {len(history.sent)} runs, "
          f"{len(history.started)} runs of ours, {len(history.book.answers)} answers to signals, "
          f"{history.cuts} cut off")
    assert history.cuts >= kills // 3, "the kills hit nothing"
    assert len(history.written) >= 10 * kills and len(history.started) >= kills // 2, "hardly any load"
    return seen


@pytest.mark.limit(LIMIT_SECONDS)
def test_kills_of_core_and_of_all_lose_no_event_and_no_signal(fresh_weir):
    """[RUN-076] [RUN-077] [RUN-078] [SIG-051] [SIG-052] [SIG-100] [SIG-102] With the negative control of the
    judge on what was really seen."""
    weir, rng = fresh_weir(settings=RUN_SETTINGS), random.Random(5)
    with RunLoad(weir) as load:
        for n in range(CORE_KILLS):
            time.sleep(0.1 + rng.random() * 0.3)
            kill_core(weir)
            if n % (CORE_KILLS // FAMILY_KILLS) == 0:
                time.sleep(0.1)
                weir.kill9()
                weir.start()
    the_judge_sees_planted_faults(load, judged(load, CORE_KILLS))
    weir.stop()
    verify(weir)


@pytest.mark.postgres_only
@pytest.mark.limit(LIMIT_SECONDS)
def test_two_nodes_lose_no_event_and_no_signal_when_one_is_killed():
    """[RUN-078] [SIG-051] Producers, workers and operators go to either; both are killed in turn."""
    rng = random.Random(6)
    with Nodes(session(), 2, settings=RUN_SETTINGS) as nodes:
        with RunLoad(list(nodes)) as load:
            for n in range(NODE_KILLS):
                time.sleep(0.2 + rng.random() * 0.3)
                kill_core(nodes[n % 2])
        judged(load, NODE_KILLS)
        nodes.stop()
        verify(nodes[0])


def test_the_judge_and_verify_see_an_event_that_is_missing(fresh_weir):
    """The negative control on the store itself: an acknowledged event is taken out behind its back."""
    weir = fresh_weir(settings=RUN_SETTINGS)
    run = Outside(Engine(weir, "acme"))
    much = {"note": "x" * 3000}  # the batch goes to its place at once, where it can be edited
    events = [run.event("RunStarted", payload=much), run.event("StepStarted", "a"),
              run.event("StepCompleted", "a"), run.event("RunCompleted")]
    results = run.send({"events": events}).expect(200)["results"]
    written = [(run.run_id, event["idempotencyKey"],
                (result["eventId"], result["runSeq"], result["persistedAt"]))
               for event, result in zip(events, results)]
    sent = {run.run_id: {event["idempotencyKey"] for event in events}}

    def faults():
        records = run.engine.events(run.run_id)
        return written_faults(sent, written, {run.run_id: records}), \
            record_faults(run.run_id, records, run.engine.run(run.run_id))

    assert faults() == ([], [])
    weir.stop()
    verify(weir)
    assert edit(weir, "DELETE FROM run_events WHERE seq = 4") == 1
    done = weir.cli("verify")
    assert done.returncode == 1 and run.run_id in done.stderr, done
    weir.start()
    page = run.engine.call("GET", path_of(run.run_id) + "/events?after=3").expect(200)
    assert page == {"items": [], "nextCursor": None}, "who reads it would ask for ever"
    lost, wrong = faults()
    assert lost and wrong
