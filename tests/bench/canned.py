"""Results of a run that never was: Weir on one store or two, six peers, four states, three rounds.

The rows are ours, not those of bench/measure/rows.py, so that a goal may change without a test.
"""
from dataclasses import dataclass
from typing import Optional

from measure.summary import Base

ROUND_FACTORS = (0.9, 1.0, 1.2)  # smallest, median and largest round


@dataclass(frozen=True)
class Row:
    """What the report reads of a row."""
    key: str
    title: str
    unit: str
    goal: Optional[Base] = None
    higher_is_better: bool = True
    peer_goal: Optional[float] = None
    latency_call: Optional[str] = None
    grows: bool = False
    run: object = "measured"  # None: derived from another row


ROWS = [
    Row("start", "start to ready", "ms", None, False),
    Row("null", "load generator's ceiling", "req/s"),
    Row("submit_1", "single submit, 1 in flight", "jobs/s", None, True, None, "submit", True),
    Row("submit_64", "single submit, 64 in flight", "jobs/s", Base(0.3, "null", "ceiling"), True, 2.0,
        "submit", True),
    Row("batch", "submit in batches of 1000", "jobs/s", Base(0.8, "null", "ceiling"), True, 2.5,
        "batch", True),
    Row("drain", "claim, start, finish in batches of 256", "jobs/s", None, True, 1.2, "claim", True),
    Row("cycle", "full lifecycle: bulk submit, then drain of everything that it submitted",
        "jobs/s", None, True, 2.0, None, True),
    Row("pickup", "pickup by an idle worker, p50", "ms", Base(4, "fdatasync", "fdatasync"), False, 1.0,
        "pickup", True),
    Row("pickup_p99", "pickup by an idle worker, p99", "ms", None, False, 1.0, "pickup", True,
        None),
    Row("memory", "memory, all processes, 20000 jobs stored", "MB", Base(2.5, "start", "start"), False),
    Row("disk", "disk per finished job", "bytes", None, False),
    Row("cpu", "server CPU per million whole lives", "s", None, False),
    Row("idle", "statements of an idle server", "per s", None, False),
]
# name: (title, durable, {row: median})
SUBJECTS = {
    "weir": ("Weir, SQLite", True, {
        "start": 20, "null": 100000, "submit_1": 3000, "submit_64": 49000, "batch": 108000, "drain": 85000,
        "cycle": 47000, "pickup": 0.3, "pickup_p99": 1.2, "memory": 45.8, "disk": 772,
        "cpu": 22.6}),
    "beanstalkd_f0": ("beanstalkd -f0", True, {
        "submit_1": 2400, "submit_64": 5800, "batch": 7200, "drain": 6800, "cycle": 3500,
        "pickup": 0.41, "pickup_p99": 2.0, "memory": 33, "cpu": 310}),
    "bullmq": ("BullMQ, Redis appendfsync always", True, {
        "submit_1": 1500, "submit_64": 20000, "batch": 21000, "drain": 15000, "cycle": 8700,
        "pickup": 1.0, "pickup_p99": 4.5, "memory": 79, "cpu": 90}),
    "pgboss": ("pg-boss, PostgreSQL", True, {
        "submit_1": 700, "submit_64": 1600, "batch": 38000, "drain": 34000, "cycle": 17900,
        "pickup": 2.1, "pickup_p99": 4.6, "memory": 205, "disk": 1100, "cpu": 120}),
    "graphile": ("graphile-worker, PostgreSQL", True, {
        "submit_1": 650, "submit_64": 1500, "batch": 41000, "drain": 34000, "cycle": 18500,
        "pickup": 1.7, "pickup_p99": 5.6, "memory": 260, "cpu": 140}),
    "restate": ("Restate", True, {
        "submit_1": 400, "submit_64": 1400, "cycle": 1400, "pickup": 2.1, "pickup_p99": 4.1,
        "memory": 440, "cpu": 700}),
    "beanstalkd_f50": ("beanstalkd -f50 (default)", False, {
        "submit_1": 9000, "submit_64": 143000, "batch": 149000, "drain": 151000, "cycle": 125000,
        "pickup": 0.11, "pickup_p99": 0.53, "memory": 22, "cpu": 20}),
}
# Ours too, with goals of its own; tests that need it ask for it: results(WITH_POSTGRES).
POSTGRES = {"weir_postgres": ("Weir, PostgreSQL", True, {
    "start": 90, "submit_1": 900, "submit_64": 17000, "batch": 45000, "drain": 25000, "cycle": 16000,
    "pickup": 1.0, "pickup_p99": 4.0, "memory": 120, "disk": 900, "cpu": 90, "idle": 8})}
POSTGRES_GOALS = {"submit_64": ([15, "submit_1", "one at a time"], None),
                  "cycle": ([0.3, "batch", "bulk"], 0.5),
                  "idle": ([2, "submit_statements", "statements of a submit"], None)}
WITH_POSTGRES = ("weir", "weir_postgres", *list(SUBJECTS)[1:])
STATES = {"empty": ("empty store", 1.0), "stored_1m": ("1,000,000 jobs stored", 0.97),
          "stored_10m": ("10,000,000 jobs stored", 0.93),
          "timers_1m": ("1,000,000 timers pending", 1.02)}


def found(row, value, factor):
    """One round's figures of a row."""
    value *= factor
    out = {"value": value}
    if row.latency_call:
        out |= {"jobs": 10000, "requests": 10000, "seconds": 1.0, "server_cpu_us": 23.0,
                "load_cpu_us": 6.3, "load_cpu_share": 0.3, "others_cpu_share": 0.01,
                "per_commit": 21.1, "calls": {row.latency_call: {
                    "count": 10000, "p50_us": 1110 * factor, "p99_us": 4390 * factor,
                    "p999_us": 7340 * factor, "max_us": 14400 * factor}},
                "server_threads": {"commit": {"user_s": 0.06, "system_s": 0.06},
                                   "http": {"user_s": 0.03, "system_s": 0.07}}}
    return out


def subject(name):
    """The entry of a subject."""
    title, durable, _ = (SUBJECTS | POSTGRES)[name]
    return {"name": name, "title": title, "version": f"{name} 1.2.3", "durable": durable,
            "settings": "as people run it", "peer": not name.startswith("weir"),
            "database": "PostgreSQL" if title.endswith("PostgreSQL") else None,
            "goals": POSTGRES_GOALS if name in POSTGRES else None}


def rounds(name, state, count):
    """Every row of a subject in a state, worse by the state's factor."""
    factor = STATES[state][1]
    return {row.key: [found(row, value, f * (factor if row.higher_is_better else 1 / factor))
                      for f in (ROUND_FACTORS if count == 3 else (1.0,) * count)]
            for row in ROWS for key, value in (SUBJECTS | POSTGRES)[name][2].items() if key == row.key}


def results(subjects=tuple(SUBJECTS), states=tuple(STATES), round_count=3):
    """A whole run; only ours are measured in other states than the empty one."""
    sync = {"per_second": 3597, "p50_ms": 0.241, "p99_ms": 1.33}
    return {
        "machine": {"at": "2026-11-16T00:56:50Z", "cores": 2, "cpu": "AMD EPYC", "memory_gib": 23.5,
                    "kernel": "6.1", "file_system": "ext4", "load_average": 0.1,
                    "commit": "0123abcd", "fdatasync": {"append": sync, "overwrite": sync}},
        "quick": round_count == 1, "round_count": round_count,
        "subjects": [subject(name) for name in subjects],
        "states": [{"key": key, "title": STATES[key][0]} for key in states],
        "rounds": {name: {state: rounds(name, state, round_count) for state in states
                          if state == "empty" or name.startswith("weir")} for name in subjects},
    }
