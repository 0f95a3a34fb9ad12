"""Judges what a server did from the outside; shares no code with it.

check_chain() walks the events of one job: each step legal, seq without a gap, timestamps rising,
the last event equal to the stored state, one report. check_client() does it for every job of a
client.

History is the log of a fault run: each operation is invoked, then ok, refused (the server answered
that it did nothing) or unknown (cut off: it happened or not, for ever one of the two). judge()
compares it with what the healed server holds: nothing acknowledged is lost, nothing is there that
nobody asked for, one idempotency key is one job, and a final state that was once read stays.
"""
import threading
import time
from collections import Counter, namedtuple

from harness.kept import Kept

# (from, to): names of the event that may record it. Seed 001 section 9 and its recovery edge.
MOVES = {
    (None, "CREATED"): {"job.created"},
    ("CREATED", "QUEUED"): {"job.queued"},
    ("CREATED", "CANCELED"): {"job.canceled"},
    ("QUEUED", "ASSIGNED"): {"job.assigned"},
    ("QUEUED", "CANCELED"): {"job.canceled"},
    ("ASSIGNED", "RUNNING"): {"job.running"},
    ("ASSIGNED", "CANCELED"): {"job.canceled"},
    ("ASSIGNED", "QUEUED"): {"job.lease_expired"},
    ("RUNNING", "SUCCEEDED"): {"job.succeeded"},
    ("RUNNING", "FAILED"): {"job.failed", "job.timed_out"},
    ("RUNNING", "CANCELED"): {"job.canceled"},
    ("FAILED", "QUEUED"): {"job.queued"},
}
NOTE = "job.retries_exhausted"  # recorded beside a move: prev = next = FAILED
OUTCOMES = {"SUCCEEDED": "SUCCESS", "FAILED": "FAILED", "CANCELED": "CANCELED"}
MESSAGES_MAX = 20

Operation = namedtuple("Operation", "at kind name result value")


# ---- one job

def chain_faults(events):
    """What is wrong with the events of one job; an empty list when nothing is."""
    faults, state, attempt, last, released = [], None, 1, "", False
    if not events:
        return ["no events"]
    if len({event["event_id"] for event in events}) != len(events):
        faults.append("an event_id occurs twice")
    for i, event in enumerate(events):
        step = (event["prev_state"], event["next_state"])
        where = f"event {i + 1} {event['event_name']} {step}"
        if event["seq"] != i + 1:
            faults.append(f"{where}: seq {event['seq']}")
        if event["timestamp"] <= last:
            faults.append(f"{where}: {event['timestamp']} is not after {last}")
        if event["prev_state"] != state:
            faults.append(f"{where}: the job was {state}")
        if event["event_name"] == NOTE:
            if step != ("FAILED", "FAILED") or i + 1 != len(events):
                faults.append(f"{where}: not the end of a failed job")
        elif event["event_name"] not in MOVES.get(step, ()):
            faults.append(f"{where}: not a legal move")
        retried = step == ("FAILED", "QUEUED")
        if retried and not (released and event["payload"].get("attempt") == attempt):
            attempt += 1  # a started task that was given back spends no attempt
        released = event["event_name"] == "job.failed" and event["payload"].get("reason") == "released"
        if event["payload"].get("attempt") != attempt:
            faults.append(f"{where}: attempt {event['payload'].get('attempt')}, not {attempt}")
        state, last = event["next_state"], event["timestamp"]
    return faults


def job_faults(job, events, report):
    """What is wrong with a job, its events and its report (None when there is none) together."""
    faults = chain_faults(events)
    state = job["state"]
    if events and events[-1]["next_state"] != state:
        faults.append(f"stored {state}, but the events end in {events[-1]['next_state']}")
    if job["outcome"] != OUTCOMES.get(state):
        faults.append(f"{state} with outcome {job['outcome']}")
    if (report is not None) != (state in OUTCOMES):
        faults.append(f"{state} and report {'there' if report else 'missing'}")
    if report and (report["outcome"] != job["outcome"] or report["events"] != events):
        faults.append("the report tells another story than job and events")
    return [f"{job['job_id']}: {fault}" for fault in faults]


def check_chain(weir, key, job_id):
    """Reads one job and asserts that its history holds; gives its events."""
    with Kept(weir.address, key) as kept:
        faults, _, events = read_and_judge(kept, job_id)
    assert not faults, faults
    return events


def read_and_judge(kept, job_id):
    """(faults, job, events) of one job. The report is read before the job and again when it
    moved."""
    while True:
        job = kept.call("GET", f"/v1/jobs/{job_id}").expect(200)
        answer = kept.call("GET", f"/v1/jobs/{job_id}/report")
        report = answer.json if answer.status == 200 else None
        events = report["events"] if report else all_events(kept, job_id)
        if kept.call("GET", f"/v1/jobs/{job_id}").expect(200) == job:
            return job_faults(job, events, report), job, events


def all_events(kept, job_id):
    """Every event of a job over a kept connection."""
    items, query = [], ""
    while True:
        page = kept.call("GET", f"/v1/jobs/{job_id}/events{query}").expect(200)
        items += page["items"]
        if not page.get("next_cursor"):
            return items
        query = "?cursor=" + page["next_cursor"]


# ---- all jobs of a client

def list_jobs(weir, key, query=""):
    """Every job of a client as the listing shows them, newest first."""
    items, cursor = [], ""
    with Kept(weir.address, key) as kept:
        while True:
            page = kept.call("GET", f"/v1/jobs?limit=200{query}{cursor}").expect(200)
            items += page["items"]
            if not page.get("next_cursor"):
                return items
            cursor = "&cursor=" + page["next_cursor"]


def check_client(weir, key, all_final=True):
    """Walks every job of a client; asserts the whole; gives {job_id: (job, events)}."""
    listed = [job["job_id"] for job in list_jobs(weir, key)]
    faults = [f"{job_id}: listed {n} times" for job_id, n in Counter(listed).items() if n > 1]
    seen = {}
    with Kept(weir.address, key) as kept:
        for job_id in listed:
            wrong, job, events = read_and_judge(kept, job_id)
            faults += wrong
            seen[job_id] = (job, events)
            if all_final and job["state"] not in OUTCOMES:
                faults.append(f"{job_id}: stuck in {job['state']}")
    assert not faults, f"{len(faults)} faults, the first: {faults[:MESSAGES_MAX]}"
    return seen


# ---- a run with faults

class History:
    """Append-only; many threads write. Values: submit ok = job id, read ok = (job id, state)."""

    def __init__(self):
        self.operations = []
        self.counts = Counter()
        self.lock = threading.Lock()

    def add(self, kind, name, result, value=None):
        """result: ok, refused or unknown. `name` is the caller's own name of the job."""
        with self.lock:
            self.operations.append(Operation(time.monotonic(), kind, name, result, value))
            self.counts[kind, result] += 1

    def count(self, kind, result):
        """How many operations of a kind ended so."""
        return self.counts[kind, result]

    def of(self, kind, result=None):
        """The operations of a kind."""
        return [op for op in self.operations
                if op.kind == kind and (result is None or op.result == result)]


def judge(operations, jobs):
    """Faults of a run. `jobs`: {job_id: (name, state)} that the healed server holds, all final."""
    faults, ids, asked = [], {}, set()
    for op in operations:
        if op.kind == "submit" and op.result != "refused":
            asked.add(op.name)
        if op.kind == "submit" and op.result == "ok":
            ids.setdefault(op.name, set()).add(op.value)
    for name, found in ids.items():
        if len(found) > 1:
            faults.append(f"{name}: one key, {len(found)} jobs {sorted(found)}")
        faults += [f"{name}: lost, {job_id} was acknowledged" for job_id in found
                   if job_id not in jobs]
        faults += [f"{name}: {job_id} holds the work of {jobs[job_id][0]}" for job_id in found
                   if job_id in jobs and jobs[job_id][0] != name]
    faults += [f"{job_id}: a phantom, nobody submitted {name}" for job_id, (name, _) in jobs.items()
               if name not in asked]
    for name, n in Counter(name for name, _ in jobs.values()).items():
        if n > 1:
            faults.append(f"{name}: stored {n} times")
    faults += final_state_faults(operations, jobs)
    return faults


def final_state_faults(operations, jobs):
    """A final state that was read or granted is for ever; at the end every job has one."""
    faults = [f"{job_id}: stuck in {state}" for job_id, (_, state) in jobs.items()
              if state not in OUTCOMES]
    for op in operations:
        if op.kind in ("read", "cancel") and op.result == "ok":
            job_id, state = op.value
            if state in OUTCOMES and job_id in jobs and jobs[job_id][1] != state:
                faults.append(f"{job_id}: was {state}, is {jobs[job_id][1]}")
    return faults
