"""Plans as large as they may be, over HTTP with the bounds as they are delivered: one step, then all at once,
then one that waits for all of those; and a chain."""
import os

import pytest

from harness.engine_calls import Engine
from harness.run_records import record_faults

LONG = os.environ.get("WEIR_TEST_LONG") == "1"
STEPS = 10000 if LONG else 600
CHAIN = 2000 if LONG else 100


def work(engine, queue, run_id):
    """A worker that takes what there is; how many tasks there were."""
    count = 0
    with engine.worker(queue) as worker:
        while engine.status(run_id) not in ("COMPLETED", "FAILED"):
            tasks = worker.claim(200, wait_ms=200)
            if tasks:
                assert all(result["ok"] for result in worker.start(tasks))
                assert all(result["ok"] for result in worker.finish(tasks))
            count += len(tasks)
    return count


@pytest.mark.parametrize("shape", ["wide", "chain"])
def test_a_plan_of_many_steps_is_executed_to_its_end(weir, shape):
    """Every step once, in an order its plan allows; the events say the same as what is shown."""
    engine, count = Engine(weir, "acme"), STEPS if shape == "wide" else CHAIN
    middle = [f"s{n}" for n in range(1, count - 1)]
    steps = [{"stepId": "first"}]
    steps += [{"stepId": name, "dependsOn": [before] if shape == "chain" else ["first"]}
              for before, name in zip(["first"] + middle, middle)]
    steps.append({"stepId": "last", "dependsOn": middle[-1:] if shape == "chain" else middle})
    engine.put_plan(shape, *steps, queue=f"big.{shape}")
    run_id = engine.start(shape)
    assert work(engine, f"big.{shape}", run_id) == count
    records, run = engine.events(run_id), engine.run(run_id)
    assert run["status"] == "COMPLETED" and len(records) == 2 * count + 3
    assert not record_faults(run_id, records, run)
    place = {(r["eventType"], r["stepId"]): r["runSeq"] for r in records if "stepId" in r}
    for step in steps:
        for before in step.get("dependsOn", []):
            assert place["StepCompleted", before] < place["StepStarted", step["stepId"]]
