"""Random events over HTTP against a model written from the contract: at every runSeq, also asked later."""
import os
import random

import pytest

from harness.engine_calls import Engine, Outside
from harness.run_model import FLAWS, RunModel, record_faults
from harness.together import at_once

LONG = os.environ.get("WEIR_TEST_LONG") == "1"
PRODUCERS, CALLS = 4, 200 if LONG else 12
KINDS = ("StepStarted", "StepStarted", "StepStarted", "StepCompleted", "StepFailed", "StepFailed",
         "StepSkipped", "RunPaused", "RunResumed", "RunQueued", "FooHappened", "RunStarted", "RunCompleted")


def random_event(run, rng):
    """Legal, illegal or unknown; of one of several versions of the plan."""
    kind = rng.choice(KINDS)
    step = rng.choice(("a", "b", "c")) if kind.startswith("Step") else None
    return run.event(kind, step, rng.choice((1, 1, 1, 2, 2, 3)), planVersion=rng.choice(("1", "1", "1", "2")))


def stream(run, seed):
    """One producer: batches of new events and of what it sent before; every event that was sent."""
    rng, sent = random.Random(seed), []
    run.engine.token("Engine")
    for _ in range(CALLS):
        batch = [rng.choice(sent) if sent and rng.random() < 0.2 else random_event(run, rng)
                 for _ in range(rng.randint(1, 5))]
        results = run.send({"events": batch}).expect(200)["results"]
        assert len(results) == len(batch)
        sent += [event for event, result in zip(batch, results) if "runSeq" in result]
    return sent


def at_differs(run, records, flaw=None):
    """The first runSeq as of which the server and the model do not say the same; None: nowhere."""
    model = RunModel(flaw)
    for record in [None] + records:
        if record is not None:
            model.apply(record)
        seen = run.engine.run(run.run_id, at=model.last_seq)
        steps = {s["stepId"]: (s["status"], s["logicalAttemptId"]) for s in seen["steps"]}
        if (seen["status"], steps, seen["lastRunSeq"]) != (model.status, model.steps(), model.last_seq) \
                or seen["metadata"]["inconsistent"] != bool(model.invalid):
            return model.last_seq
    return None


@pytest.mark.parametrize("validation", ["off", "on"])
def test_random_events_add_up_as_the_contract_says_at_every_run_seq(fresh_weir, validation):
    """[RUN-021] [RUN-076] [RUN-077] [RUN-078] [RUN-117] [RUN-119] [RUN-120] [RUN-127] Several producers at
    once, layer 2 off and on; each invalid event has one alert, also after a restart and when all is said
    again."""
    weir = fresh_weir(settings={"engine.append_validation": validation})
    run = Outside(Engine(weir, "acme"))
    run.append("RunStarted")
    sent = sum(at_once(PRODUCERS, lambda n: stream(run, n)), [])
    records = run.engine.events(run.run_id)
    assert not record_faults(run.run_id, records, run.engine.run(run.run_id))
    assert at_differs(run, records) is None
    model = RunModel()
    for record in records:
        model.apply(record)
    assert bool(model.invalid) == (validation == "off")
    weir.restart()
    for start in range(0, len(sent), 500):
        results = run.send({"events": sent[start:start + 500]}).expect(200)["results"]
        assert all(result["duplicate"] for result in results)
    assert run.engine.events(run.run_id) == records
    alerts = run.engine.alerts(run.run_id)
    assert sorted(alert["eventId"] for alert in alerts) == sorted(model.invalid)


@pytest.mark.parametrize("flaw", FLAWS)
def test_a_model_with_a_wrong_rule_is_found_out(weir, flaw):
    """The control: the same comparison sees it."""
    run = Outside(Engine(weir, "acme"))
    run.tell("RunStarted", "StepStarted a", "StepFailed a", "RunPaused", "StepStarted a 2", "RunCompleted",
             "RunResumed", "StepStarted a 3", "StepStarted b 2")
    records = run.engine.events(run.run_id)
    assert at_differs(run, records) is None
    assert at_differs(run, records, flaw) is not None
