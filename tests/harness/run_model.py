"""What the events of a run add up to, by the words of the contract alone (seed 002 section 5, AR-01..AR-10),
and what is wrong with the records of a run.

    model = RunModel()
    for record in records:
        model.apply(record)
    assert model.status == run["status"] and model.steps() == engine.steps(run_id)

Each attempt of each step has a state of its own; nothing here knows how the server does it. `flaw` makes one
rule wrong: a comparison with such a model has to find it."""
from datetime import datetime

from harness.engine_calls import RUN_EVENTS, STEP_EVENTS, event_key

FINAL = ("COMPLETED", "FAILED", "CANCELLED")
TARGETS = {"RunStarted": "RUNNING", "RunPaused": "PAUSED", "RunResumed": "RUNNING",
           "RunCompleted": "COMPLETED", "RunFailed": "FAILED", "RunCancelled": "CANCELLED",
           "StepStarted": "RUNNING", "StepCompleted": "SUCCESS", "StepFailed": "FAILED",
           "StepSkipped": "SKIPPED"}
SOURCES = {"RunStarted": ("PENDING",), "RunPaused": ("RUNNING",), "RunResumed": ("PAUSED",),
           "RunCompleted": ("RUNNING",), "RunFailed": ("PENDING", "RUNNING", "PAUSED"),
           "RunCancelled": ("PENDING", "RUNNING", "PAUSED")}
FLAWS = ("completes while paused", "starts steps while paused", "attempts may be skipped")


class RunModel:
    """See the module's text."""

    def __init__(self, flaw=None):
        self.flaw = flaw
        self.status = "PENDING"
        self.attempts = {}  # {stepId: {attempt: state}}
        self.invalid = []  # eventIds
        self.last_seq = 0

    def apply(self, event):
        """The next record; whether it was valid, or said nothing about states."""
        kind = event["eventType"]
        self.last_seq = event.get("runSeq", self.last_seq + 1)
        if kind in STEP_EVENTS:
            self.attempts.setdefault(event["stepId"], {})  # heard of: PENDING
        if self.allows(event):
            self.take(event)
            return True
        self.invalid.append(event["eventId"])
        return False

    def take(self, event):
        """What a valid one does."""
        kind = event["eventType"]
        if kind in STEP_EVENTS:
            self.attempts[event["stepId"]][event["logicalAttemptId"]] = TARGETS[kind]
        elif kind in TARGETS:
            self.status = TARGETS[kind]

    def allows(self, event):
        """Whether it may come now."""
        kind = event["eventType"]
        if kind in STEP_EVENTS:
            return self.allows_step(kind, event["stepId"], event["logicalAttemptId"])
        if kind not in RUN_EVENTS or kind == "RunQueued":
            return True
        if self.flaw == FLAWS[0] and kind == "RunCompleted" and self.status == "PAUSED":
            return True
        return self.status in SOURCES[kind]

    def allows_step(self, kind, step, attempt):
        """The same of a step's."""
        state = self.attempt_state(self.attempts.get(step, {}), attempt)
        if kind in ("StepStarted", "StepSkipped"):
            paused = self.flaw == FLAWS[1] and self.status == "PAUSED"
            return (self.status == "RUNNING" or paused) and state == "PENDING"
        return self.status in ("RUNNING", "PAUSED") and state == "RUNNING"

    def attempt_state(self, attempts, number):
        """None: there is no such attempt now."""
        if number in attempts:
            return attempts[number]
        follows = number == 1 or attempts.get(number - 1) == "FAILED" or self.flaw == FLAWS[2]
        return "PENDING" if follows else None

    def steps(self):
        """{stepId: (status, attempt)} as it is shown: the highest attempt."""
        return {step: (attempts[max(attempts)], max(attempts)) if attempts else ("PENDING", 0)
                for step, attempts in self.attempts.items()}


def reduced(records):
    """The model of all records."""
    model = RunModel()
    for record in records:
        model.apply(record)
    return model


def went_back(records, skew_seconds):
    """Whether a record says it is older than the one before it."""
    times = [datetime.fromisoformat(record["persistedAt"].replace("Z", "+00:00")) for record in records]
    return any((one - two).total_seconds() > skew_seconds for one, two in zip(times, times[1:]))


def record_faults(run_id, records, run, skew_seconds=0):
    """What is wrong with the records of a run, and with what is shown of it. `skew_seconds`: several nodes do
    not agree about the time to the millisecond."""
    keys = [record["idempotencyKey"] for record in records]
    faults = [f"{run_id}: record {n} has runSeq {record['runSeq']}"
              for n, record in enumerate(records, 1) if record["runSeq"] != n]
    if len(set(keys)) != len(keys):
        faults.append(f"{run_id}: an event is there twice")
    if len({record["eventId"] for record in records}) != len(records):
        faults.append(f"{run_id}: two events of one eventId")
    faults += [f"{run_id}: record {record['runSeq']} has a key that is not its own" for record in records
               if record["idempotencyKey"] != event_key(record)]
    if went_back(records, skew_seconds):
        faults.append(f"{run_id}: times do not rise")
    model = reduced(records)
    shown = {s["stepId"]: (s["status"], s["logicalAttemptId"]) for s in run["steps"]}
    if run["status"] != model.status or run["lastRunSeq"] != len(records):
        faults.append(f"{run_id}: is {run['status']} at {run['lastRunSeq']}, its events say {model.status}")
    if run["metadata"]["inconsistent"] != bool(model.invalid):
        faults.append(f"{run_id}: inconsistent is {run['metadata']['inconsistent']}")
    wanted = {**{step: ("PENDING", 0) for step in shown}, **model.steps()}
    if shown != wanted:
        faults.append(f"{run_id}: its steps are {shown}, its events say {wanted}")
    return faults


def written_faults(sent, written, records):
    """`sent`: {run_id: keys ever sent}; `written`: (run_id, key, (eventId, runSeq, persistedAt)) that were
    acknowledged; `records`: {run_id: its records}. What was lost, changed or made up."""
    faults = []
    stored = {(run_id, record["idempotencyKey"]): (record["eventId"], record["runSeq"], record["persistedAt"])
              for run_id, found in records.items() for record in found}
    for run_id, key, meta in written:
        if (run_id, key) not in stored:
            faults.append(f"{run_id}: lost, {key[:12]} was acknowledged as {meta}")
        elif stored[run_id, key] != meta:
            faults.append(f"{run_id}: {key[:12]} was acknowledged as {meta}, is {stored[run_id, key]}")
    faults += [f"{run_id}: a phantom, nobody sent {key[:12]}" for run_id, key in stored
               if run_id in sent and key not in sent[run_id]]
    return faults
