"""Dead letters that are sent again: by a process that is started on demand, in a domain of its own, and
never at the cost of live deliveries. Real receivers, real processes."""
import os
import signal
import statistics
import time

import pytest

from dead_letters import Letters
from harness.pace import Stopwatch
from harness.partitions import SLOTS, failures, fnv1a64, rows
from harness.receiver import Receiver, hang, slowly
from harness.together import Crew, at_once
from harness.weir_server import wait_for

LONG = os.environ.get("WEIR_TEST_LONG") == "1"
LETTERS, CALLERS = (100000, 16) if LONG else (600, 8)
BATCH = 500 if LONG else 10  # small: how long the first deliveries took to be stored counts for five minutes
TOPOLOGY = "/ops/v1/topology"
QUICK = {"webhooks.base_ms": 20, "webhooks.cap_ms": 100, "webhooks.timeout_ms": 3000,
         "limits.requests_per_minute": 0}
on_sqlite = pytest.mark.sqlite_only("on a shared store it runs all the time; and the file is looked into")


def process(weir, name="replay 1"):
    """As the topology has it."""
    return next(p for p in weir.api("GET", TOPOLOGY).expect(200)["processes"] if p["name"] == name)


def domain(weir, name="operations"):
    """The same."""
    return next(d for d in weir.api("GET", TOPOLOGY).expect(200)["domains"] if d["name"] == name)


def others(weir):
    """Pids of everybody else, once all have been started."""
    wait_for(lambda: weir.pids("runner"), 30, "the runner, which is started last", weir)
    return {pid for kind in ("core", "runner", "gateway") for pid in weir.pids(kind)}


@on_sqlite
def test_it_is_started_for_a_dead_letter_and_ends_when_it_is_idle(fresh_weir, receiver):
    """[TOP-095] No process at first; one under the operations domain when a letter is to be sent; none again
    when there is nothing left. Nobody else restarts, and a rest is no failure."""
    weir = fresh_weir(settings=QUICK)
    letters, before = Letters(weir, receiver), others(weir)
    first = letters.send()
    letters.wait(first)
    told = process(weir)
    assert (told["state"], told["pid"], told["domain"]) == ("resting", None, "operations")
    assert not weir.pids("replay") and domain(weir)["state"] == "running"
    letters.again(first)
    wait_for(lambda: sum(call.id == first for call in receiver.calls) == 2, 20, "it once more", weir)
    letters.wait(first)
    pid, = weir.pids("replay")
    assert process(weir)["pid"] == pid
    wait_for(lambda: process(weir)["state"] == "resting", 30, "it to be idle", weir)
    assert not weir.pids("replay") and others(weir) == before
    letters.again(first)
    wait_for(lambda: sum(call.id == first for call in receiver.calls) == 3, 20, "a second start", weir)
    assert domain(weir)["restarts"] == 0 and process(weir)["restarts"] == 0
    assert not failures(weir, "process_ended")


def bus(weir):
    """{topic: what is known of it}"""
    return {t["topic"]: t for t in weir.api("GET", TOPOLOGY).expect(200)["signal_bus"]}


@on_sqlite
def test_the_signal_bus_is_listed_and_heard(fresh_weir, receiver):
    """[TOP-004] Core says that there are dead letters, and root, which listens, starts who sends them. The
    control: nothing is said, and nobody started, before there is one."""
    weir = fresh_weir(settings=QUICK)
    letters = Letters(weir, receiver)
    letter = letters.send()
    letters.wait(letter)
    told = bus(weir)
    assert [(t["topic"], t["publisher"], t["subscriber"]) for t in told.values()] == [
        ("replay.wanted", "core", "root")]
    assert told["replay.wanted"]["published"] == 0 and not weir.pids("replay")
    letters.again(letter)
    weir.wait_pids("replay", 1)
    assert bus(weir)["replay.wanted"]["published"] > 0


@on_sqlite
def test_a_dead_letter_is_stored_apart_and_no_gateway_takes_it(fresh_weir, receiver):
    """[TOP-095] Its queue is the slot of its id; with no replay process it waits, over a restart, while live
    deliveries of the same webhook go out."""
    weir = fresh_weir(settings=QUICK | {"replay.processes": 0})
    letters = Letters(weir, receiver)
    wanted = {}
    for _ in range(12):
        letter = letters.send()
        letters.wait(letter)
        letters.again(letter)
        wanted[f"~replay.{fnv1a64(letter.encode()) % SLOTS}"] = letter
    assert {queue for (queue,) in rows(weir, "SELECT queue FROM tasks WHERE owner = 1")} == set(wanted)
    letters.wait(letters.send())
    weir.kill9()
    weir.restart({"replay.processes": 0})
    letters.wait(letters.send())
    assert {letters.state(letter) for letter in wanted.values()} == {"pending"}
    weir.restart({"replay.processes": 1})
    for letter in wanted.values():
        letters.wait(letter)
    assert weir.cli("verify").returncode == 0


@on_sqlite
def test_a_replay_that_keeps_crashing_is_nobody_elses_matter(fresh_weir, receiver):
    """[TOP-027] Beyond its limit the operations domain ends and comes back alone: core, gateway and runners
    keep their pids, live deliveries go on all the while, and the letters arrive in the end."""
    weir = fresh_weir(settings=QUICK | {"runtime.drain_ms": 200, "webhooks.timeout_ms": 30000,
                                        "webhooks.max_attempts": 100, "queue.lease_ms": 2000,
                                        "queue.heartbeat_ms": 400})
    with Receiver() as slow:
        letters, live = Letters(weir, slow), Letters(weir, receiver, "/live")
        letter = letters.send()
        letters.wait(letter)
        slow.answers = [hang]
        letters.again(letter)
        before, killed, limit = others(weir), [], 10
        for n in range(limit + 1):
            old, = weir.wait_pids("replay", 1, other_than=killed, timeout=40)
            os.kill(old, signal.SIGKILL)
            killed.append(old)
            live.send()
            if n + 1 == limit:
                assert not weir.logs(event="weir.supervisor.escalation")
        ended = weir.wait_log(event="weir.supervisor.escalation")
        assert (ended["domain"], ended["source_child"]) == ("operations", "replay 1")
        assert ended["restart_count"] == limit
        slow.answers = [200]
        letters.wait(letter, seconds=60)
    for delivery in live.ids:
        live.wait(delivery)
    assert others(weir) == before
    assert domain(weir)["endings"] == 1 and domain(weir, "outbound")["restarts"] == 0
    assert weir.metric("weir_cascades_total") == 0


class Live(Crew):
    """Deliveries one after the other to a receiver of their own: how long each took to arrive."""

    def __init__(self, weir, receiver):
        super().__init__(1)
        self.letters, self.receiver, self.took = Letters(weir, receiver, "/live"), receiver, []

    def run(self, n):
        while not self.stopping.is_set():
            count, watch = len(self.receiver.calls), Stopwatch()
            self.letters.send()
            self.receiver.wait(count + 1, 30)
            self.took.append(watch.quiet())
            time.sleep(0.01)

    def p95(self, begin=0):
        """In seconds, of those from `begin` on."""
        return statistics.quantiles(self.took[begin:], n=20)[-1]


@pytest.mark.limit(7200 if LONG else 180)
def test_a_large_replay_starves_no_live_traffic(fresh_weir, receiver):
    """[TOP-096] While many letters go to a slow receiver live deliveries arrive as ever, the SLOs of outbound
    work hold, and every letter arrives."""
    weir = fresh_weir(settings=QUICK | {"webhooks.timeout_ms": 30000, "jobs.max_active": 1000000,
                                        "jobs.queue_size": 1000000})
    with Receiver() as slow:
        letters = Letters(weir, slow)
        letters.send_of_jobs(LETTERS, BATCH)
        wait_for(lambda: len(slow.calls) >= LETTERS, 600, "the first time", weir)
        letters.ids = sorted({call.id for call in slow.calls})
        assert len(letters.ids) == LETTERS
        slow.answers = [slowly(0.05)]
        watch = Stopwatch()
        with Live(weir, receiver) as live:
            time.sleep(2)
            alone, counted = live.p95(), len(live.took)
            at_once(CALLERS, lambda n: [letters.again(i) for i in letters.ids[n::CALLERS]])
            wait_for(lambda: len(slow.calls) >= 2 * len(letters.ids), 3600, "each once more", weir)
            under_load = live.p95(counted)
        slos = {slo["name"]: slo for slo in weir.api("GET", TOPOLOGY).expect(200)["slos"]}
    assert under_load < max(0.25, 5 * alone), (alone, under_load)
    if watch.was_quiet():
        assert slos["outbound_enqueue_latency"]["value"] <= 50, slos["outbound_enqueue_latency"]
    assert {call.id for call in slow.calls} == set(letters.ids)
