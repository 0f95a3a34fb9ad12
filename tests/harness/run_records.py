"""What is wrong with the records of a run, from the outside: numbers, keys, times, what was acknowledged.
What the events add up to is not told again here: `weir verify` does that, by a reduction which
tests/unit/engine/test_event_streams.c holds against a model of the contract."""
from datetime import datetime

from harness.engine_calls import event_key


def went_back(records, skew_seconds):
    """Whether a record says it is older than the one before it."""
    times = [datetime.fromisoformat(record["persistedAt"].replace("Z", "+00:00")) for record in records]
    return any((one - two).total_seconds() > skew_seconds for one, two in zip(times, times[1:]))


def record_faults(run_id, records, run, skew_seconds=0):
    """What is wrong with the records of a run. `skew_seconds`: several nodes do not agree about the time to
    the millisecond."""
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
    if run["lastRunSeq"] != len(records):
        faults.append(f"{run_id}: is at {run['lastRunSeq']} and has {len(records)} records")
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
