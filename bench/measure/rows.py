"""The rows of the table: what is done, which figure counts, and what it should be.

A row's function takes (subject, plan, folder) and returns a dict with at least `value`. measured()
adds what the step cost: CPU of the server by thread, of the load, of everybody else, and commits.
"""
import os
import time
from dataclasses import dataclass
from typing import Callable, Optional

from measure import processes

SHARE_WORSE_MAX = 0.15  # with many jobs stored, against the same row on an empty store


@dataclass(frozen=True)
class Plan:
    """How long each row takes."""
    seconds: float
    batch_jobs: int
    lifecycle_jobs: int
    disk_jobs: int
    pickups: int


FULL = Plan(seconds=5, batch_jobs=200000, lifecycle_jobs=150000, disk_jobs=50000, pickups=500)
QUICK = Plan(seconds=2, batch_jobs=50000, lifecycle_jobs=40000, disk_jobs=20000, pickups=200)
STORED_JOBS = 20000  # for the memory row


def measured(subject, step, per="jobs"):
    """Runs step() and adds who used how much CPU for it."""
    threads, commits = processes.thread_cpu(subject.root_pid), subject.commits()
    busy, passed = processes.machine_cpu()
    row = step()
    busy_after, passed_after = processes.machine_cpu()
    spent = processes.cpu_between(threads, processes.thread_cpu(subject.root_pid))
    server_s = sum(t["user_s"] + t["system_s"] for t in spent.values())
    load_s = row["cpu_user_s"] + row["cpu_system_s"]
    count = row[per] or 1
    row["server_threads"] = spent
    row["server_cpu_us"] = round(server_s * 1e6 / count, 2)
    row["load_cpu_us"] = round(load_s * 1e6 / count, 2)
    row["load_cpu_share"] = round(load_s / row["seconds"], 3)
    row["others_cpu_share"] = round(
        max(0.0, busy_after - busy - server_s - load_s) / (passed_after - passed), 3)
    if commits is not None and per == "jobs":
        row["per_commit"] = round(count / max(1, subject.commits() - commits), 1)
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
    return rate(subject, lambda: subject.batch(plan.batch_jobs, None if keep else ids))


def drain(subject, _plan, _folder):
    return rate(subject, subject.drain)


def lifecycle(subject, plan, _folder):
    return rate(subject, lambda: subject.lifecycle(plan.lifecycle_jobs))


def pickup(subject, plan, _folder):
    row = measured(subject, lambda: subject.pickup(plan.pickups))
    row["value"] = row["calls"]["pickup"]["p50_us"] / 1000
    return row


def get(subject, plan, folder):
    ids = os.path.join(folder, "ids")
    return rate(subject, lambda: subject.get(plan.seconds / 2, ids), "requests")


def memory(subject, _plan, _folder):
    """All processes of a server as people start it, at rest, with jobs stored."""
    subject.submit(64, count=STORED_JOBS)
    time.sleep(1)
    found = processes.memory_mb(subject.root_pid)
    return found | {"value": round(found["rss"], 1)}


def rest(subject, _plan, _folder):
    """All processes after start, before any traffic."""
    found = processes.memory_mb(subject.root_pid)
    return found | {"value": round(found["rss"], 1)}


def disk(subject, plan, _folder):
    """Bytes kept and bytes written for a job's whole life, from an empty store."""
    written = processes.written_bytes(subject.root_pid)
    jobs = subject.lifecycle(plan.disk_jobs)["jobs"]
    written = processes.written_bytes(subject.root_pid) - written
    subject.stop()
    return {"value": round(subject.stored_bytes() / jobs), "written_per_job": round(written / jobs)}


@dataclass(frozen=True)
class Row:
    """One line of the table."""
    key: str
    title: str
    unit: str
    run: Callable
    goal: Optional[float] = None
    higher_is_better: bool = True

    def reached(self, value):
        """True, False, or None without a goal."""
        if self.goal is None:
            return None
        return value >= self.goal if self.higher_is_better else value < self.goal


START = Row("start", "start to ready", "ms", None, None, False)
REST = Row("rest", "resident memory after start, runners off", "MB", rest, None, False)
# In this order, on one server: drain empties what the rows above it left behind.
TRAFFIC = [
    Row("null", "load generator's ceiling (GET /healthz, 64 connections)", "req/s", null),
    Row("submit_1", "single submit, 1 in flight", "jobs/s", submit_1),
    Row("submit_64", "single submit, 64 in flight", "jobs/s", submit_64, 30000),
    Row("submit_keyed", "the same with idempotency keys", "jobs/s", submit_keyed),
    Row("batch", "submit in batches of 1000", "jobs/s", batch, 80000),
    Row("drain", "claim, start, finish in batches of 256", "jobs/s", drain, 30000),
    Row("lifecycle", "submit, claim, start, finish at once", "jobs/s", lifecycle),
    Row("pickup", "pickup by an idle worker, p50", "ms", pickup, 1.0, False),
    Row("get", "GET of random jobs, 16 in flight", "req/s", get),
]
# Each on a fresh server of its own.
MEMORY = Row("memory", f"resident memory, all processes, {STORED_JOBS} jobs stored", "MB", memory,
             64, False)
DISK = Row("disk", "disk per finished job", "bytes", disk, None, False)
ROWS = [START, REST] + TRAFFIC + [MEMORY, DISK]
