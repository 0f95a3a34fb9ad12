"""The targets of seed 004 at nominal load: jobs at a steady pace whose callbacks go to a healthy receiver,
senders that die now and then, and links to core that are cut again and again."""
import os
import signal
import time

import pytest

from harness.pace import Stopwatch
from harness.receiver import Receiver
from harness.together import Crew
from harness.weir_server import wait_for
from storm_load import BATCH, Pace

JOBS_PER_SECOND = 300
CALLBACK_OF = 10  # every tenth job tells a receiver of its five events
LOAD_SECONDS = 12
GATEWAY_KILLS = 3
CUTS = 17  # of core: each loses the links of the gateway and of two runners
MTTR_MS_MAX = 60000
# What seed 004 asks for: (slo, bound of its value, whether more is better)
TARGETS = (("ingest_decision_latency", 100, False), ("outbound_enqueue_latency", 50, False),
           ("outbound_delivery_reliability", 0.995, True),
           ("instance_reconnect_recovery", MTTR_MS_MAX, False))
STEADY = ("ingest_decision_latency", "outbound_enqueue_latency", "outbound_delivery_reliability")
RATIO_MAX = 0.70
SETTINGS = {"runner.time_scale": 0.001, "runner.concurrency": 8, "limits.requests_per_minute": 0,
            "webhooks.base_ms": 20, "webhooks.cap_ms": 100, "queue.lease_ms": 2000, "queue.heartbeat_ms": 400,
            "runtime.root.max_restarts": 1000, "runtime.root.max_seconds": 1, "runner.processes": 2}


def board(weir):
    """What core tells, not what root writes: it knows of queues and service levels."""
    return weir.api("GET", "/ops/v1/topology").expect(200)


class Told(Pace):
    """The same pace; every CALLBACK_OF-th job has a callback."""

    def __init__(self, weir, key, per_second, url):
        super().__init__(weir, key, per_second, threads=2)
        self.url = url

    def job(self, n, i):
        """The i-th of client n."""
        job = super().job(n, i)
        return {**job, "callback": self.url} if i % CALLBACK_OF == 0 else job


class Ratios(Crew):
    """Looks at the pressure of every queue ten times a second; keeps the fullest of each component."""

    def __init__(self, weir):
        super().__init__(1)
        self.weir, self.worst, self.looks = weir, {}, 0

    def run(self, n):
        while not self.stopping.is_set():
            for gauge in board(self.weir)["pressure"]:
                name = gauge["component"]
                self.worst[name] = max(self.worst.get(name, 0), gauge["ratio"])
            self.looks += 1
            time.sleep(0.1)


def missed(weir, names):
    """Of these SLOs, those that have no sample, are critical by the server's own word, or whose number is
    beyond seed 004's. (A warning comes before the target: on a busy machine it may.)"""
    told = {slo["name"]: slo for slo in board(weir)["slos"]}
    found = []
    for name, bound, more in TARGETS:
        slo = told[name]
        beyond = slo["value"] < bound if more else slo["value"] > bound
        if name in names and (beyond or slo["samples"] == 0 or slo["level"] == "critical"):
            found.append((name, slo))
    return found


def too_full(ratios):
    """Components that were at the bound or above it."""
    return {name: worst for name, worst in ratios.worst.items() if worst >= RATIO_MAX}


def kill_gateway(weir):
    """Another one takes over what it had."""
    gateway, = weir.wait_pids("gateway", 1)
    os.kill(gateway, signal.SIGKILL)
    weir.wait_pids("gateway", 1, other_than=[gateway], timeout=30)


def returned(weir):
    """Lines of the log that say a link is back."""
    return weir.logs(event="weir.instance.connected")


def cut(weir):
    """Core dies with every link to it; all three processes are the same and say that they are back."""
    others, before = set(weir.pids("runner") + weir.pids("gateway")), len(returned(weir))
    weir.kill9_kind("core")
    wait_for(lambda: len(returned(weir)) == before + 3, 60, "three links", weir)
    assert set(weir.pids("runner") + weir.pids("gateway")) == others
    weir.wait_ready()
    wait_for(lambda: weir.metric("weir_slo_samples", slo="instance_reconnect_recovery") == 3, 10,
             "three samples", weir)
    assert not missed(weir, ["instance_reconnect_recovery"])


def before_others(weir):
    """The machine may be busy with other tests: what is measured is this server on a machine that has time
    for it. Whoever may not ask for that gets what there is."""
    for pid in [weir.process.pid] + weir.pids():
        try:
            os.setpriority(os.PRIO_PROCESS, pid, -15)
        except PermissionError:
            return


class Window:
    """One time of nominal load on a server of its own, and what was seen of it."""

    def __init__(self, weir):
        self.weir = weir
        _, key = weir.new_client()
        assert {name for name, _ in missed(weir, STEADY)} == set(STEADY), "no sample yet is no proof"
        before_others(weir)
        watch = Stopwatch()
        with Receiver() as receiver:
            with Ratios(weir) as self.ratios, Told(weir, key, JOBS_PER_SECOND, receiver.url) as load:
                for _ in range(GATEWAY_KILLS):
                    time.sleep(LOAD_SECONDS / (GATEWAY_KILLS + 1))
                    kill_gateway(weir)
                time.sleep(LOAD_SECONDS / (GATEWAY_KILLS + 1))
            told = len(load.ids) // CALLBACK_OF * 5
            wait_for(lambda: weir.metric("weir_slo_samples", slo=STEADY[-1]) >= told, 60, "all sent", weir)
        self.jobs = len(load.ids)
        self.missed = missed(weir, STEADY)
        self.slos = {slo["name"]: slo for slo in board(weir)["slos"]}
        self.was_quiet = watch.was_quiet()

    def judged(self):
        """What was missed; latencies only of a window in which the machine had nothing else to do."""
        return [miss for miss in self.missed if self.was_quiet or miss[0] not in STEADY[:2]]


@pytest.mark.sqlite_only("what is measured is the server; a database elsewhere has a machine of its own")
@pytest.mark.limit(240)
def test_at_nominal_load_every_target_is_met(fresh_weir):
    """[TOP-059] [TOP-062] [TOP-065] [TOP-071] Ingest p95 at most 100 ms, enqueue p95 at most 50 ms, 99.5 % of
    the deliveries made although their sender dies three times, no queue ever 70 % full."""
    seen = Window(fresh_weir(settings=SETTINGS, program=os.path.abspath("build/weir")))
    assert not too_full(seen.ratios), seen.ratios.worst
    assert not seen.judged()
    assert seen.jobs >= JOBS_PER_SECOND * LOAD_SECONDS / 2 or not seen.was_quiet, "hardly any load"
    assert seen.ratios.looks >= LOAD_SECONDS
    assert {"commands", "task_queue", "outbound"} <= set(seen.ratios.worst)
    assert seen.slos["queue_pressure_safety"]["level"] == "normal"
    for name in STEADY:
        assert seen.weir.metric("weir_slo_level", slo=name) < 2 or name in {n for n, _ in seen.missed}
        assert seen.weir.metric("weir_slo_samples", slo=name) == seen.slos[name]["samples"] > 0
    numbers = ", ".join(f"{n} {seen.slos[n]['value']:.4g} of {seen.slos[n]['samples']}" for n in STEADY)
    print(f"{seen.jobs} jobs; {numbers}; fullest {seen.ratios.worst}")


@pytest.mark.sqlite_only("the same processes and the same socket, whatever the store")
def test_links_that_are_cut_are_back_within_a_minute(fresh_weir):
    """[TOP-068] Core dies seventeen times, which cuts 51 links; its window goes with it, so each life is
    judged by itself and all of them by the log."""
    weir = fresh_weir(settings=SETTINGS, program=os.path.abspath("build/weir"))
    weir.wait_pids("gateway", 1)
    weir.wait_pids("runner", 2)
    settled = ("running", "resting")
    wait_for(lambda: all(p["state"] in settled for p in weir.topology()["processes"]), 10, "all", weir)
    assert missed(weir, ["instance_reconnect_recovery"]), "no sample yet is no proof"
    for _ in range(CUTS):
        cut(weir)
    times = sorted(line["reconnect_mttr_ms"] for line in returned(weir))
    assert {line["instance_id"] for line in returned(weir)} == {"gateway 1", "runner 1", "runner 2"}
    assert len(times) == 3 * CUTS and times[len(times) * 95 // 100] <= MTTR_MS_MAX
    print(f"{len(times)} links: median {times[len(times) // 2]} ms, p95 {times[len(times) * 95 // 100]} ms")


@pytest.mark.sqlite_only("the controls of the two above")
def test_the_same_look_sees_what_is_missed(fresh_weir):
    """Targets that no machine meets, a receiver that refuses everything, a queue that is small: each is
    found by the judge that found nothing above."""
    strict = {"slo.ingest_p95_ms": 1, "slo.enqueue_p95_ms": 1, "slo.reconnect_p95_ms": 1}
    weir = fresh_weir(settings=SETTINGS | strict | {"webhooks.max_attempts": 1, "jobs.queue_size": BATCH,
                                                    "runner.processes": 0},
                      program=os.path.abspath("build/weir"))
    _, key = weir.new_client()
    weir.kill9_kind("core")  # a link that was cut; before the samples, whose window core takes along
    weir.wait_log(event="weir.instance.connected", timeout=60)
    weir.wait_ready()
    jobs = [{"type": "EXECUTE", "queue": "o", "payload": {"x": "y" * 10000}} for _ in range(BATCH - 1)]
    with Receiver() as receiver, Ratios(weir) as ratios:
        receiver.answers = [500]
        jobs[0]["callback"] = receiver.url
        weir.api("POST", "/v1/jobs:batch", {"jobs": jobs}, key).expect(202)
        wait_for(lambda: weir.metric("weir_slo_level", slo=STEADY[-1]) == 2, 30, "critical", weir)
        names = [name for name, _, _ in TARGETS]
        wait_for(lambda: [name for name, _ in missed(weir, names)] == names, 10, "all four", weir)
    assert "task_queue" in too_full(ratios)
