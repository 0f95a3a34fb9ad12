"""Deliveries while gateway, core and everything are killed, to receivers that fail part of the time:
each event reaches each receiver that wanted it, signed, in order, under one id."""
import os
import random
import signal
import time
from collections import Counter

import pytest

from harness.deliveries import arrival_of, delivery_faults, read_logs
from harness.history import History, check_client, judge
from harness.receiver import Receiver, hang_up, is_signed, one_of, slowly, take_and_reset
from harness.weir_server import wait_for
from kill_load import (DELIVERIES, SETTINGS, Load, drained, kill_core,
                       the_judge_sees_planted_deliveries)

KILLS, KILLS_LONG = 10, 300
WHAT_IS_KILLED = ("gateway",) * 5 + ("core",) * 4 + ("all",)
ENDS = ["job.succeeded", "job.failed", "job.canceled"]
PATIENCE_SECONDS = 300


class Receivers:
    """Two for callbacks, two webhooks; one of each fails part of the time, in every way there is."""

    def __init__(self, weir, rng):
        self.weir = weir
        made = weir.api("POST", "/v1/clients", body={}).expect(201)
        self.key = weir.api("POST", f"/v1/clients/{made['client_id']}/keys", body={}).expect(201)["api_key"]
        self.each = {name: Receiver() for name in ("callback", "bad callback", "all", "ends")}
        self.secrets = dict.fromkeys(("callback", "bad callback"), made["webhook_secret"])
        self.webhooks = {}
        often = (200,) * 12
        self.each["bad callback"].answers = [one_of(rng, *often, 500, 302, hang_up, slowly(1), slowly(0.1))]
        self.each["all"].answers = [one_of(rng, *often, 503, 500, hang_up, take_and_reset, slowly(0.2))]
        self.each["ends"].answers = [one_of(rng, 200, slowly(0.05))]
        for name, events in (("all", ["*"]), ("ends", ENDS)):
            hook = weir.api("POST", "/v1/webhooks", key=self.key,
                            body={"url": self.each[name].url, "events": events}).expect(201)
            self.webhooks[hook["webhook_id"]] = name
            self.secrets[name] = hook["secret"]

    def __enter__(self):
        for receiver in self.each.values():
            receiver.__enter__()
        return self

    def __exit__(self, *_):
        for receiver in self.each.values():
            receiver.__exit__()

    def callback(self, name):
        """Fields of the job of this name: a third has the good callback, a third the bad one."""
        kind = (None, "callback", "bad callback")[sum(name.encode()) % 3]
        return {"callback": self.each[kind].url} if kind else {}

    def callback_of(self, job):
        """Which receiver a job's callback is; None: it has none."""
        return next((name for name, receiver in self.each.items() if receiver.url == job["callback"]), None)

    def wanted(self, jobs):
        """Who was to hear of what; `jobs` as check_client() gives them."""
        found = {name: {} for name in self.each}
        for job_id, (job, events) in jobs.items():
            if job["callback"]:
                found[self.callback_of(job)][job_id] = events
            found["all"][job_id] = events
            found["ends"][job_id] = [event for event in events if event["event_name"] in ENDS]
        return found

    def taken(self):
        """How many deliveries were taken by whom they were for."""
        return len({(name, call.id) for name, receiver in self.each.items() for call in list(receiver.calls)
                    if call.status == 200})

    def arrivals(self):
        """Every request of every receiver."""
        return [arrival_of(name, call, is_signed(call, self.secrets[name]))
                for name, receiver in self.each.items() for call in list(receiver.calls)]


def kill_gateway(weir, rng):
    """Kills the gateway, now and then the next one too while it starts."""
    for _ in range(rng.choice((1, 1, 1, 2))):
        old, = weir.wait_pids("gateway", 1)
        os.kill(old, signal.SIGKILL)
        weir.wait_pids("gateway", 1, other_than=[old])


def kill_one(weir, rng):
    """Kills gateway, core or everything; says which."""
    what = rng.choice(WHAT_IS_KILLED)
    if what == "gateway":
        kill_gateway(weir, rng)
    elif what == "core":
        kill_core(weir)
    else:
        weir.kill9()
        weir.start()
    return what


def numbers(kills, jobs, arrivals, logs):
    """What happened, in a line; how many attempts were lost with their sender."""
    attempts = Counter(attempt["error"] for log in logs.values() for delivery in log
                       for attempt in delivery["attempts"])
    deliveries = sum(map(len, logs.values()))
    again = Counter(a.id for a in arrivals if a.ok)
    print(f"{sum(kills.values())} kills ({dict(kills)}), {len(jobs)} jobs, {deliveries} deliveries, "
          f"{len(arrivals)} arrivals, {len(arrivals) - deliveries} repeats, "
          f"{sum(n - 1 for n in again.values())} of them of what had been taken; "
          f"attempts by error: {dict(attempts)}")
    return attempts["sender_lost"]


@pytest.mark.limit(3600 if os.environ.get("WEIR_TEST_LONG") == "1" else 120)
def test_kills_lose_no_delivery(fresh_weir, long_run):
    """[JOB-003] [JOB-063] [JOB-103] [JOB-146] [JOB-189] Kills of gateway, core and all at once: 0 events
    missing, 0 unsigned, one id per delivery with a fresh timestamp, in order per receiver and job, and
    nothing the store does not know; the jobs' own history is sound, and `weir verify` finds nothing."""
    weir = fresh_weir(settings={**SETTINGS, **DELIVERIES})
    history, rng, kills = History(), random.Random(11), Counter()
    with Receivers(weir, random.Random(2)) as receivers:
        with Load(weir, receivers.key, history, threads=2, pause=0.1, more=receivers.callback):
            for _ in range(KILLS_LONG if long_run else KILLS):
                time.sleep(rng.random() * 0.5)
                kills[kill_one(weir, rng)] += 1
        drained(weir, receivers.key, PATIENCE_SECONDS)
        jobs = check_client(weir, receivers.key)
        wanted = receivers.wanted(jobs)
        count = sum(len(events) for of_jobs in wanted.values() for events in of_jobs.values())
        wait_for(lambda: receivers.taken() >= count, PATIENCE_SECONDS, "every event to be taken", weir)
        callbacks = {job_id: receivers.callback_of(job) for job_id, (job, _) in jobs.items()
                     if job["callback"]}

        def log():
            read = read_logs(weir, receivers.key, callbacks, receivers.webhooks)
            done = all(d["state"] == "delivered" for deliveries in read.values() for d in deliveries)
            return read if done else None

        logs = wait_for(log, PATIENCE_SECONDS, "every delivery to be reported", weir)
        arrivals = receivers.arrivals()
    known = {d["delivery_id"]: (name, d["event_id"]) for name, log in logs.items() for d in log}
    faults = delivery_faults(wanted, known, arrivals)
    assert not faults, f"{len(faults)} faults, the first: {faults[:20]}"
    assert not judge(history.operations, {job_id: (job["payload"]["name"], job["state"])
                                          for job_id, (job, _) in jobs.items()})
    lost = numbers(kills, jobs, arrivals, logs)
    assert lost >= sum(kills.values()) // 10, "the kills hit nothing"
    the_judge_sees_planted_deliveries(wanted, known, arrivals)
    weir.stop()
    done = weir.cli("verify")
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


def cpu_seconds(pid):
    """What a process has used."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        return sum(map(int, file.read().rpartition(")")[2].split()[11:13])) / os.sysconf("SC_CLK_TCK")


def test_the_gateway_is_idle_when_core_is_back(fresh_weir):
    """It asks the new core for work and waits for the answer; waiting takes no CPU."""
    weir = fresh_weir()
    gateway, = weir.wait_pids("gateway", 1)
    kill_core(weir)
    time.sleep(0.5)  # its calls to the old core fail, and are made again
    before = cpu_seconds(gateway)
    time.sleep(2)
    assert cpu_seconds(gateway) - before < 0.2
