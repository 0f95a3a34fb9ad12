"""The rows of the table: what is done, which figure counts, and what it should be.

A row's function takes (subject, plan, folder) and returns a dict with at least `value`. measured()
adds what the step cost: CPU of the server by thread, of the load, of everybody else, and commits.
A derived row's function takes the round's figures of the other rows, {row key: dict}, and returns
such a dict too, or None when the rows it needs are not there.
"""
import os
import shutil
import time
from dataclasses import dataclass, replace
from typing import Callable, Optional

from measure import processes
from measure.summary import Base

IDLE_AFTER_S = 3  # of a start or of work, and a server that has nothing to do has settled
IDLE_SHOWN = 8    # statements by name
ID_LINE_BYTES = 37  # a UUID and its newline, in the files of ids
SHARE_WORSE_MAX = 0.10  # with many jobs stored or waiting, against the same row on an empty store


@dataclass(frozen=True)
class Plan:
    """How long each row takes."""
    seconds: float
    batch_jobs: int
    peer_jobs: int  # bulk of a peer; its class may take a share of it
    lifecycle_jobs: int
    life_jobs: int  # whole lives for the bytes they write
    alone_jobs: int  # the same, one at a time
    pickups: int
    stored_jobs: int  # for the memory row
    webhooks: int     # that hear of each job of the delivery row ...
    deliveries: int   # ... which makes so many
    idle_seconds: float
    runs: int         # that get the events of append_batch_many and append_single
    whole_runs: int   # of ten steps, one behind the other
    rebuilt_events: int

    def turn(self, turns):
        """One of so many turns of a row that is measured in turns."""
        return replace(self, seconds=self.seconds / turns, pickups=self.pickups // turns,
                       lifecycle_jobs=self.lifecycle_jobs // turns)


FULL = Plan(seconds=4, batch_jobs=200000, peer_jobs=50000, lifecycle_jobs=150000, life_jobs=20000,
            alone_jobs=10000, pickups=1000, stored_jobs=20000, webhooks=20, deliveries=100000,
            idle_seconds=15, runs=10000, whole_runs=200, rebuilt_events=1000000)
QUICK = Plan(seconds=1, batch_jobs=50000, peer_jobs=10000, lifecycle_jobs=40000, life_jobs=5000,
             alone_jobs=5000, pickups=200, stored_jobs=5000, webhooks=20, deliveries=20000,
             idle_seconds=10, runs=10000, whole_runs=50, rebuilt_events=200000)


class Window:
    """Who used how much CPU between open() and close()."""

    def __init__(self, subject):
        self.subject = subject
        self.before = self.after = None

    def look(self):
        """Server by thread, machine, commits: now."""
        return (processes.thread_cpu(self.subject.root_pids), processes.machine_cpu(),
                self.subject.commits())

    def open(self):
        """Begins, or begins anew after a warm-up."""
        self.before, self.after = self.look(), None

    def close(self):
        """Ends it, unless the load did so itself."""
        self.after = self.after or self.look()

    def costs(self, row, per):
        """The members measured() adds to a row."""
        (threads, (busy, passed), commits) = self.before
        (threads_after, (busy_after, passed_after), commits_after) = self.after
        spent = processes.cpu_between(threads, threads_after)
        server_s = sum(t["user_s"] + t["system_s"] for t in spent.values())
        load_s = row["cpu_user_s"] + row["cpu_system_s"]
        count = row[per] or 1
        others_s = max(0.0, busy_after - busy - server_s - load_s)
        found = {"server_threads": spent,
                 "server_cpu_us": round(server_s * 1e6 / count, 2),
                 "load_cpu_us": round(load_s * 1e6 / count, 2),
                 "load_cpu_share": round(load_s / row["seconds"], 3),
                 "others_cpu_share": round(others_s / (passed_after - passed), 3)}
        if commits is not None and per == "jobs":
            found["per_commit"] = round(count / max(1, commits_after - commits), 1)
        return found


def measured(subject, step, per="jobs"):
    """Runs step() and adds who used how much CPU for it."""
    subject.window = Window(subject)
    subject.window.open()
    row = step()
    subject.window.close()
    row |= subject.window.costs(row, per)
    subject.window = None
    return row


def rate(subject, step, per="jobs"):
    """A row whose figure is a rate."""
    row = measured(subject, step, per)
    row["value"] = row[per + "_per_second"]
    return row


def null(subject, plan, _folder):
    return rate(subject, lambda: subject.null(plan.seconds / 2), "requests")


def submit_1(subject, plan, _folder):
    return rate(subject, lambda: subject.submit(1, plan.seconds))


def submit_64(subject, plan, _folder):
    return rate(subject, lambda: subject.submit(64, plan.seconds))


def submit_keyed(subject, plan, _folder):
    return rate(subject, lambda: subject.submit(64, plan.seconds, keyed=True))


def batch(subject, plan, folder):
    ids = os.path.join(folder, "ids")
    keep = os.path.exists(ids)  # of the preload: those shall be read, not these
    jobs = subject.batch_jobs(plan)
    return rate(subject, lambda: subject.batch(jobs, None if keep else ids))


def tls(subject, plan, _folder):
    """Single submits over TLS; beside them, on the same server, connections made for one request each: plain,
    with a full handshake, with a resumed one."""
    row = rate(subject, lambda: subject.submit_tls(64, plan.seconds))
    for key, secure, resume in (("plain", False, False), ("full", True, False), ("resumed", True, True)):
        row[key] = subject.connect(16, plan.seconds / 2, secure, resume)["requests_per_second"]
    return row


def drain(subject, _plan, _folder):
    return rate(subject, subject.drain)


def cycle(subject, plan, _folder):
    """For a subject that cannot submit without running."""
    return rate(subject, lambda: subject.cycle(plan.seconds))


def lifecycle(subject, plan, _folder):
    return rate(subject, lambda: subject.lifecycle(plan.lifecycle_jobs))


def pickup(subject, plan, _folder):
    row = measured(subject, lambda: subject.pickup(plan.pickups))
    row["value"] = row["calls"]["pickup"]["p50_us"] / 1000
    return row


def get(subject, plan, folder):
    """The same number of jobs on every store, as people read: the newest ones of the preload."""
    recent = os.path.join(folder, "ids.recent")
    with open(os.path.join(folder, "ids"), "rb") as ids, open(recent, "wb") as newest:
        ids.seek(max(0, os.path.getsize(ids.name) - plan.batch_jobs * ID_LINE_BYTES))
        shutil.copyfileobj(ids, newest)
    return rate(subject, lambda: subject.get(plan.seconds / 2, recent), "requests")


def deliver(subject, plan, _folder):
    """Jobs of which several webhooks hear: deliveries that reached one receiver a second, from the first
    submit to the last arrival."""
    return rate(subject, lambda: subject.deliver(plan.webhooks, plan.deliveries // plan.webhooks), "requests")


def append_batch_one(subject, plan, _folder):
    """Four producers write to one run, 1000 events a call."""
    return rate(subject, lambda: subject.append(1, 1000, 4, plan.seconds))


def append_batch_many(subject, plan, _folder):
    """Sixteen producers write to thousands of runs in turn, 20 events a call."""
    return rate(subject, lambda: subject.append(plan.runs, 20, 16, plan.seconds))


def append_single_one(subject, plan, _folder):
    """One event a call, to one run."""
    return rate(subject, lambda: subject.append(1, 1, 64, plan.seconds))


def append_single_64(subject, plan, _folder):
    """One event a call, to the same number of runs, with as much in flight as the other single calls have."""
    return rate(subject, lambda: subject.append(plan.runs, 1, 64, plan.seconds))


def append_single(subject, plan, _folder):
    """The same from more producers: thousands of runs are not written by 64."""
    return rate(subject, lambda: subject.append(plan.runs, 1, 256, plan.seconds))


def run_10(subject, plan, _folder):
    """Runs of ten steps that do nothing, one at a time: from the start to the answer that it is COMPLETED."""
    row = measured(subject, lambda: subject.whole_runs(10, plan.whole_runs))
    row["value"] = row["calls"]["run"]["p50_us"] / 1000
    return row


def rebuild(subject, plan, _folder):
    """The states of all runs made anew from their events and compared with what is stored, by a program
    that has the store for itself."""
    subject.append(plan.runs, 100, 16, count=plan.rebuilt_events)
    subject.stop()
    found = subject.verify()
    return {"value": found["run_events"] / (found["duration_ms"] / 1000), "runs": found["runs"],
            "events": found["run_events"], "seconds": found["duration_ms"] / 1000}


def get_any(subject, plan, folder):
    """All jobs of the store alike: on a large one this is the page cache's row, or the disk's."""
    ids = os.path.join(folder, "ids")
    return rate(subject, lambda: subject.get(plan.seconds / 2, ids), "requests")


def resident(subject):
    """Memory of all processes. Peers and PostgreSQL by their proportional share: the processes of PostgreSQL
    share a cache that would count once for each. Ours alone by all they hold, which is never less."""
    found = processes.memory_mb(subject.root_pids)
    return found | {"value": round(found["pss" if subject.peer or subject.database else "rss"], 1)}


def rest(subject, _plan, _folder):
    """After start, before any traffic."""
    return resident(subject)


def memory(subject, plan, _folder):
    """At rest with jobs stored."""
    return subject.with_stored(plan.stored_jobs, lambda: resident(subject))


def written(subject, plan, _folder):
    """Bytes written for a job's whole life from an empty store, and kept of it where jobs stay."""
    before = processes.written_bytes(subject.root_pids)
    jobs = subject.whole_lives(plan.life_jobs)
    subject.settle()
    after = processes.written_bytes(subject.root_pids)
    subject.stop()
    found = {"value": round((after - before) / jobs), "jobs": jobs}
    if subject.keeps_finished:
        found["kept_per_job"] = round(subject.stored_bytes() / jobs)
    return found


def disk_alone(subject, plan, _folder):
    """What stays of jobs that come one at a time, each commit for a single change: a quiet server's disk."""
    jobs = subject.one_by_one(plan.alone_jobs)
    subject.stop()
    return {"value": round(subject.stored_bytes() / jobs), "jobs": jobs}


def statements_of(subject, step):
    """Runs a step; statements and commits that it took for so many jobs, or statements of so many reads."""
    statements, commits = sum(subject.statements().values()), subject.commits()
    found = step()
    return {"count": found["jobs"] or found["requests"],
            "statements": sum(subject.statements().values()) - statements,
            "commits": subject.commits() - commits if found["jobs"] else None}


def idle(subject, plan, folder):
    """Statements a second of a server nobody asks anything, as its database counts them, and the most
    frequent; beside that what each stage of a job takes, since they are counted here alone."""
    ids = os.path.join(folder, "ids")
    time.sleep(IDLE_AFTER_S)
    before, began = subject.statements(), time.monotonic()
    time.sleep(plan.idle_seconds)
    after, seconds = subject.statements(), time.monotonic() - began
    rates = {text: (count - before.get(text, 0)) / seconds for text, count in after.items()}
    often = sorted((text for text in rates if rates[text] > 0), key=rates.get, reverse=True)[:IDLE_SHOWN]
    stages = {"submit_1": lambda: subject.submit(1, 1), "submit_64": lambda: subject.submit(64, 1),
              "batch": lambda: subject.batch(plan.life_jobs, ids), "drain": subject.drain,
              "pickup": lambda: subject.pickup(plan.pickups // 5), "get": lambda: subject.get(1, ids)}
    return {"value": sum(rates.values()), "seconds": seconds,
            "often": [{"text": text, "per_second": round(rates[text], 2)} for text in often],
            "stages": {key: statements_of(subject, step) for key, step in stages.items()}}


# --- derived: from the same round's figures, without running anything ----------------------------

def together(parts):
    """CPU of several rows, each job going through all of them."""
    return {"server_cpu_us": round(sum(part["server_cpu_us"] for part in parts), 2),
            "load_cpu_us": round(sum(part["load_cpu_us"] for part in parts), 2),
            "others_cpu_share": max(part["others_cpu_share"] for part in parts)}


def cycle_of(found):
    """Whole lives: each job once in bulk and once drained. Counts may differ between the two."""
    if "batch" not in found or "drain" not in found:
        return None
    parts = [found["batch"], found["drain"]]
    seconds = sum(1 / part["jobs_per_second"] for part in parts)
    costs = together(parts)
    return costs | {"value": 1 / seconds, "jobs_per_second": 1 / seconds,
                    "load_cpu_share": round(costs["load_cpu_us"] / 1e6 / seconds, 3)}


def cpu_of(found):
    """Microseconds a life are seconds a million lives."""
    if "cycle" not in found:
        return None
    costs = together([found["cycle"]])
    return costs | {"value": costs["server_cpu_us"]}


def pickup_p99_of(found):
    """The same pickups, the slow ones."""
    if "pickup" not in found:
        return None
    return found["pickup"] | {"value": found["pickup"]["calls"]["pickup"]["p99_us"] / 1000}


def connections_of(kind):
    """Connections a second of a kind, out of what the TLS row measured."""
    def of(found):
        return {"value": found["tls"][kind]} if "tls" in found else None
    return of


def disk_of(found):
    """What stays of a finished job, where it stays."""
    if "kept_per_job" not in found.get("written", {}):
        return None
    return {"value": found["written"]["kept_per_job"], "written_per_job": found["written"]["value"]}


@dataclass(frozen=True)
class Row:
    """One line of the table."""
    key: str
    title: str
    unit: str
    run: Optional[Callable] = None
    goal: Optional[Base] = None          # a ratio to another row of ours, or to a fact of the machine
    higher_is_better: bool = True
    peer_goal: Optional[float] = None    # so many times as good as the best durable peer
    latency_call: Optional[str] = None   # the call whose latencies stand in the table
    grows: bool = False                  # may not lose more than SHARE_WORSE_MAX on a full store
    derive: Optional[Callable] = None    # instead of run, or for subjects that cannot run it
    needs: tuple = ()                    # keys of rows that must have run before in the round
    repeatable: bool = False             # can run again at once and means the same
    in_turns: bool = False               # a peer's figure is taken in turns with one of ours


START = Row("start", "start to ready", "ms", higher_is_better=False)
REST = Row("rest", "resident memory after start, runners off", "MB", rest, higher_is_better=False)
CYCLE = Row("cycle", "full lifecycle: bulk submit, then drain", "jobs/s", cycle, peer_goal=2.0,
            grows=True, derive=cycle_of, needs=("batch", "drain"))
# In this order, on one server: drain empties what the rows above it left behind.
TRAFFIC = [
    Row("null", "load generator's ceiling (GET /healthz, 64 connections)", "req/s", null,
        latency_call="healthz", repeatable=True),
    Row("submit_1", "single submit, 1 in flight", "jobs/s", submit_1, latency_call="submit",
        grows=True, repeatable=True),
    Row("submit_64", "single submit, 64 in flight", "jobs/s", submit_64, Base(0.25, "null", "ceiling"),
        peer_goal=2.0,
        latency_call="submit", grows=True, repeatable=True),
    Row("submit_keyed", "the same with idempotency keys", "jobs/s", submit_keyed,
        latency_call="submit", grows=True, repeatable=True),
    Row("batch", "submit in batches of 1000", "jobs/s", batch, Base(0.6, "null", "ceiling"), peer_goal=2.5,
        latency_call="batch", grows=True),
    Row("drain", "claim, start, finish in batches of 256", "jobs/s", drain, Base(0.25, "null", "ceiling"),
        peer_goal=1.2,
        latency_call="claim", grows=True, needs=("batch",)),
    CYCLE,
    Row("lifecycle", "submit, claim, start, finish at once", "jobs/s", lifecycle,
        latency_call="claim", grows=True, repeatable=True),
    Row("pickup", "pickup by an idle worker, p50", "ms", pickup, Base(5, "fdatasync", "fdatasync"),
        False, peer_goal=1.0,
        latency_call="pickup", repeatable=True, in_turns=True),
    Row("get", "GET of random recent jobs, 16 in flight", "req/s", get, latency_call="get",
        grows=True, needs=("batch",), repeatable=True),
    Row("get_any", "GET of random jobs of the whole store, 16 in flight", "req/s", get_any,
        latency_call="get", needs=("batch",), repeatable=True),
    Row("append_batch_one", "events appended to one run, 1000 a call", "events/s", append_batch_one,
        Base(0.3, "batch", "bulk submit"),
        latency_call="append", repeatable=True),
    Row("append_batch_many", f"events appended to {FULL.runs:,} runs, 20 a call", "events/s",
        append_batch_many, Base(0.3, "batch", "bulk submit"), latency_call="append", repeatable=True),
    Row("append_single_one", "single appends to one run, 64 in flight", "events/s", append_single_one,
        Base(0.5, "submit_64", "single submit"),
        latency_call="append", repeatable=True),
    Row("append_single_64", f"single appends to {FULL.runs:,} runs, 64 in flight", "events/s",
        append_single_64, Base(0.5, "submit_64", "single submit"), latency_call="append", repeatable=True),
    Row("append_single", f"single appends to {FULL.runs:,} runs, 256 in flight", "events/s", append_single,
        Base(0.5, "submit_64", "single submit"), latency_call="append", repeatable=True),
    Row("run_10", "a run of 10 steps from start to COMPLETED, p50", "ms", run_10,
        Base(40, "pickup", "pickup"), False,
        latency_call="run", repeatable=True),
]
# Each on a fresh server of its own.
MEMORY = Row("memory", f"memory of all processes, {FULL.stored_jobs:,} jobs stored (short run: "
             f"{QUICK.stored_jobs:,})", "MB", memory, Base(2.5, "rest", "memory after start"), False)
DELIVER = Row("deliver", f"webhook fan-out: deliveries to one receiver, {FULL.webhooks} webhooks",
              "per s", deliver, Base(0.18, "submit_64", "single submit"))
TLS = Row("tls", "single submit over TLS, 64 in flight", "jobs/s", tls,
          Base(0.4, "submit_64", "single submit"), latency_call="submit")
WRITTEN = Row("written", "bytes written per whole life", "bytes", written, higher_is_better=False)
DISK_ALONE = Row("disk_alone", "disk per finished job, jobs one at a time", "bytes", disk_alone,
                 Base(1.25, "disk", "disk at full load"), False)
REBUILD = Row("rebuild", "states of all runs rebuilt from their events and compared", "events/s", rebuild,
              Base(2.5, "append_batch_one", "batches to one run"))
IDLE = Row("idle", "statements of an idle server", "per s", idle, higher_is_better=False)
# Each with what its server is started with besides. Memory and statements are those of all of Weir as people
# start it, its runners too.
ALONE = [(MEMORY, {"runner.processes": 2}), (WRITTEN, {}), (DISK_ALONE, {}), (DELIVER, {}), (REBUILD, {}),
         (TLS, {"tls": True}), (IDLE, {"runner.processes": 2, "statements_counted": True})]
DERIVED = [
    CYCLE,
    Row("pickup_p99", "pickup by an idle worker, p99", "ms", None, None, False, peer_goal=1.0,
        latency_call="pickup", derive=pickup_p99_of, needs=("pickup",), in_turns=True),
    Row("connect", "connections for one GET /healthz each, 16 at a time", "per s", None,
        derive=connections_of("plain"), needs=("tls",)),
    Row("connect_tls", "the same over TLS, full handshakes", "per s", None,
        Base(0.01, "connect", "plain connections"), derive=connections_of("full"), needs=("tls",)),
    Row("connect_resumed", "the same over TLS, resumed handshakes", "per s", None,
        Base(0.01, "connect", "plain connections"), derive=connections_of("resumed"), needs=("tls",)),
    Row("disk", "disk per finished job", "bytes", None, None, False, derive=disk_of,
        needs=("written",)),
    Row("cpu", "server CPU per million whole lives", "s", None, None, False, derive=cpu_of,
        needs=("cycle", "batch", "drain")),
]
ROWS = [START, REST] + TRAFFIC + [DERIVED[1], DELIVER, REBUILD, TLS, IDLE, MEMORY, WRITTEN,
        DISK_ALONE] + DERIVED[2:]

# Subjects of ours that have goals of their own: {subject: {row: (base, times the best durable peer on the
# same database)}}, on the empty store. Any other's are those of the rows, on every store.
GOALS = {"weir_postgres": {
    "submit_64": (None, 15), "cycle": (None, 0.7),
    "idle": (Base(1.25, "submit_statements", "statements of a submit"), None)}}

# (what will be measured, what it joins with)
LATER = []


def goals_of(subject):
    """The goals a subject has of its own, as plain lists for latest.json; None: those of the rows."""
    own = GOALS.get(subject)
    return own and {key: [base and [base.times, base.of, base.name], peer]
                    for key, (base, peer) in own.items()}


def with_needs(keys):
    """The keys, those of the rows they need, and those of the rows that their goals are ratios to."""
    wanted, before = set(keys), None
    while wanted != before:
        before = set(wanted)
        for row in (row for row in ROWS if row.key in before):
            wanted |= {*row.needs, *({row.goal.of} & {other.key for other in ROWS} if row.goal else ())}
    return wanted


def derived(row, found):
    """A derived row's dict for one round, or None."""
    return row.derive(found) if row.derive and row.key not in found else None
