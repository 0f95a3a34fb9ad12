"""Five hundred deaths under load: KILL, SEGV and STOP of every kind of process, in random order. A death
stays in its process, the API answers but while core itself comes back, nothing accepted is lost."""
import os
import random
import signal
import sqlite3
import time
from datetime import datetime

import pytest

from harness import processes
from harness.pace import Stopwatch
from harness.receiver import Receiver
from harness.weir_server import wait_for
from dead_letters import Letters
from kill_load import drained
from storm_load import Again, Look, Pace

DEATHS = 500
LONG_FACTOR = 20  # make test-long: ten thousand
JOBS_PER_SECOND = 2000
STOPPED_MS = 1500  # silence after which root replaces a process; a busy machine makes none so long
DEATH_SECONDS_MAX = 20  # until the next one runs: a busy machine, a back-off, and what recovery takes
BACK_SECONDS = 1.0  # from a death to the start of the next one; what that has to recover comes on top
BACK_SHARE = 0.99   # of them; the machine has other things to do, too
RATE_SHARE_MIN, LONG_RATE_SHARE_MIN = 0.5, 0.9  # of the pace: beside other tests, and alone
CORE_REST_SECONDS = 1.0  # core takes jobs in between, or there would be no load
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGSEGV, signal.SIGSEGV, signal.SIGSTOP)
KINDS = ("core", "runner", "gateway", "replay")
# Windows so short that no restart limit is met.
SETTINGS = {f"runtime.{domain}.max_{what}": value for domain in ("root", "agents", "outbound", "operations")
            for what, value in (("restarts", 1000), ("seconds", 1))} | {
    "runtime.heartbeat_timeout_ms": STOPPED_MS, "runtime.drain_ms": 1000, "queue.lease_ms": 2000,
    "queue.heartbeat_ms": 400, "runner.time_scale": 0.001, "jobs.max_runtime_ms": 60000000,
    "runner.processes": 2, "runner.concurrency": 8, "jobs.max_active": 10000000, "jobs.queue_size": 10000000,
    "log.level": "warn", "limits.requests_per_minute": 0}


class Storm:
    """Sends the signals; knows how often each process was hit."""

    def __init__(self, weir, seed):
        self.weir, self.rng = weir, random.Random(seed)
        self.hits, self.core_hits, self.back, self.begun = {}, [], [], []
        self.open = {}  # name of a process that was hit: (its old pid, when, after how long it is seen)
        self.core_back = time.monotonic()

    def running(self):
        """{name: pid} of what root says is running."""
        return {name: p["pid"] for name, p in self.processes().items() if p["state"] == "running"}

    def processes(self):
        """{name: what root says of it}"""
        return {p["name"]: p for p in self.weir.topology()["processes"]}

    def settle(self, wait=False):
        """Takes note of those that are back; with `wait` until all are."""
        watch = Stopwatch()
        while self.open:
            now = self.processes()
            for name, (old, since, seen) in list(self.open.items()):
                if now[name]["state"] == "running" and now[name]["pid"] != old:
                    started = datetime.fromisoformat(now[name]["started_at"]).timestamp()
                    after = started - (time.time() - since.seconds()) - seen
                    self.begun.append((name, max(0.0, after - since.stalled())))
                    self.back.append((name, since.quiet()))
                    del self.open[name]
                    if name == "core":
                        self.core_back = time.monotonic()
            if not wait or not self.open:
                return
            assert not watch.is_over(DEATH_SECONDS_MAX), f"not back: {self.open}"
            time.sleep(0.01)

    def hit(self):
        """One signal to one process that runs and has not been hit; False: there is none now."""
        self.settle()
        late = [name for name, (_, since, _) in self.open.items()
                if since.is_over(DEATH_SECONDS_MAX)]
        assert not late, f"not back after {DEATH_SECONDS_MAX} s: {late}"
        names = {kind: [n for n in self.running() if n.startswith(kind) and n not in self.open]
                 for kind in KINDS}
        resting = time.monotonic() - self.core_back < CORE_REST_SECONDS
        kinds = [kind for kind in KINDS if names[kind] and not (kind == "core" and resting)]
        if not kinds:
            return False
        name = self.rng.choice(names[self.rng.choice(kinds)])
        pid, number = self.running().get(name), self.rng.choice(SIGNALS)
        if pid is None or not processes.alive(pid):
            return False
        os.kill(pid, number)
        self.open[name] = (pid, Stopwatch(), STOPPED_MS / 1000 if number == signal.SIGSTOP else 0)
        self.hits[name] = self.hits.get(name, 0) + 1
        if name == "core":
            self.core_hits.append(time.monotonic())
        return True

    def rage(self, deaths):
        """All of them, as fast as processes come back."""
        left, watch = deaths, Stopwatch()
        while left:
            left -= self.hit()
            time.sleep(self.rng.random() * 0.05)
            assert not watch.is_over(deaths * 2 + 60), f"{left} of {deaths} left"
        self.settle(wait=True)


def stored(weir):
    """The key of every job in the file of a server that was stopped."""
    with sqlite3.connect(os.path.join(weir.data, "weir.db")) as db:
        return [row[0] for row in db.execute("SELECT id FROM jobs")]


def stored_key(job_id):
    """A UUIDv7 without its version: the first 60 bits that count."""
    digits = job_id.replace("-", "")
    return int(digits[:12] + digits[13:16], 16)


def silent_without_reason(look, storm):
    """Gaps of the API longer than a second that no death of core explains."""
    return [(since, length) for since, length, quiet in look.gaps if quiet > BACK_SECONDS
            and not any(since - 1 <= hit <= since + length for hit in storm.core_hits)]


@pytest.mark.sqlite_only("the same root, whatever the store; the stored ids are read from the file")
@pytest.mark.limit(7200 if os.environ.get("WEIR_TEST_LONG") == "1" else 300)
def test_five_hundred_deaths_stay_where_they_happened(fresh_weir, long_run):
    """[TOP-017] [TOP-055] Each process is started anew exactly as often as it was hit, so nothing was
    taken along; no domain ended; every acknowledged job is there, once, and final; `weir verify`
    finds nothing."""
    deaths = DEATHS * (LONG_FACTOR if long_run else 1)
    weir = fresh_weir(settings=SETTINGS, program=os.path.abspath("build/weir"))
    _, key = weir.new_client()
    with Receiver() as receiver, Again(Letters(weir, receiver)) as again:
        weir.wait_pids("replay", 1)
        storm, watch = Storm(weir, 11), Stopwatch()
        with Look(weir, key) as look, Pace(weir, key, JOBS_PER_SECOND) as pace:
            storm.rage(deaths)
            took, quiet = watch.seconds(), max(1.0, watch.quiet())
    weir.wait_ready()
    assert restarts(weir) == storm.hits, "a process died that was not hit, or was started twice"
    domains = weir.topology()["domains"]
    assert all(d["state"] != "ended" for d in domains), domains
    assert not silent_without_reason(look, storm)
    the_storm_sees_what_it_must(weir, storm, look)
    drained(weir, key, timeout=600 if long_run else 120)
    summary = weir.api("GET", "/v1/reports/summary", key=key).expect(200)
    weir.stop()
    ids, jobs = pace.ids, stored(weir)
    assert len(set(ids)) == len(ids) == len(jobs), "a job was lost, or made twice"
    assert {stored_key(job_id) for job_id in ids} == set(jobs)
    ends = summary["by_state"]
    assert ends["SUCCEEDED"] + ends["FAILED"] == len(ids), ends
    done = weir.cli("verify")
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    core = sorted(t for name, t in storm.back if name == "core")
    begun = sorted(t for name, t in storm.begun if name == "core")
    print(f"{deaths} deaths in {took:.0f} s {storm.hits}; {len(ids)} jobs ({len(ids) / took:.0f}/s), "
          f"{pace.cut} answers cut off, {again.asked} letters; core back after {core[len(core) // 2]:.2f} s "
          f"(median), {core[-1]:.2f} s (longest), of which until its start {begun[len(begun) // 2]:.2f} and "
          f"{begun[-1]:.2f} s")
    assert pace.cut and again.asked, "the deaths hit nothing"
    assert begun[int(len(begun) * BACK_SHARE)] <= BACK_SECONDS, begun[-10:]
    assert len(ids) / quiet >= JOBS_PER_SECOND * (LONG_RATE_SHARE_MIN if long_run else RATE_SHARE_MIN)


def restarts(weir):
    """{name: how often} of the processes that were started again, as root counts."""
    return {p["name"]: p["restarts"] for p in weir.topology()["processes"] if p["restarts"]}


def the_storm_sees_what_it_must(weir, storm, look):
    """The negative control on the very run: a death that the storm did not cause, and a silence without a
    reason."""
    victim = storm.running()["runner 1"]
    os.kill(victim, signal.SIGKILL)
    wait_for(lambda: storm.running().get("runner 1", victim) != victim, DEATH_SECONDS_MAX, "runner 1", weir)
    assert restarts(weir) != storm.hits
    calm = look.gaps[0][0] - 100
    assert silent_without_reason(type("Planted", (), {"gaps": [(calm, 2.0, 2.0)]}), storm)
