#!/usr/bin/python3
"""What broken webhooks cost everybody else: the same work with and without 1,000 of them.

What is compared. In every arm the same jobs run: 1,000 clients submit BURST jobs each at once, then one
each in turn, all together PER_SECOND a second, run by the built-in runner; HEALTHY clients more do the
same and listen to all their events at healthy receivers; beside them one client without webhooks submits
and runs as many jobs as it can (weir-load, batches, the worker API). Its jobs a second are the throughput.
The arms differ in what the 1,000 clients have registered:

    none     nothing: what the machine can do
    broken   a webhook each for all events, a quarter each that hang, refuse, answer 500, trickle
    healthy  the same webhooks at receivers that take everything

`broken` against `none` is the cost of the broken ones to a bystander, with everything in it: writing the
deliveries, trying them, the receivers' own CPU. (Jobs whose own events go to webhooks pay for writing
these, broken or not; `healthy` shows how much of the cost that is.) How late the healthy receivers hear is
counted from the event's own timestamp, from the first moment on: also while every broken receiver is new.

Jobs a second need a machine of one's own. Where others use it, look at `extra`: the CPU that core and gateway
take beyond what the same number of jobs takes in arm `none`, as a share of all CPUs. That much is missing to
others when the CPUs are what is short.

    tests/webhooks/broken_receivers.py --rounds 5          (release build; prints a table)
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness.kept import Kept  # noqa: E402  (needs the path above)
from harness.weir_server import Weir, binary, wait_for  # noqa: E402
from webhooks.crowd import BROKEN, Crowd  # noqa: E402

ARMS = ("none", "broken", "healthy")
HEALTHY = 20
PER_SECOND = 100
BURST = 10
PATIENCE_SECONDS = 120
JOB = {"type": "EXECUTE", "work_kind": "SUCCESS_FAST"}
SETTINGS = {"limits.requests_per_minute": 0, "jobs.max_active": 100000000, "jobs.queue_size": 100000000,
            "runner.processes": 1, "runner.time_scale": 0.0001, "log.level": "warn"}


class Field:
    """One server, its clients and the crowd of receivers, in one arm."""

    def __init__(self, weir, crowd, arm, clients, characters):
        self.weir, self.crowd = weir, crowd
        self.listeners = []  # keys of those with a healthy receiver
        self.keys = []
        with Kept(weir.address) as kept:
            self.load_key = self.new_client(kept)
            for i in range(HEALTHY):
                self.listeners.append(self.new_client(kept, crowd.url("healthy", i)))
            for i in range(clients):
                character = characters[i % len(characters)] if arm == "broken" else "healthy"
                self.keys.append(self.new_client(
                    kept, None if arm == "none" else crowd.url(character, HEALTHY + i)))

    @staticmethod
    def new_client(kept, url=None):
        """Its key; with a webhook for everything when there is a URL."""
        client_id = kept.call("POST", "/v1/clients", {}).expect(201)["client_id"]
        key = kept.call("POST", f"/v1/clients/{client_id}/keys", {}).expect(201)["api_key"]
        if url:
            as_client(kept, key).call("POST", "/v1/webhooks", {"url": url, "events": ["*"]}).expect(201)
            del kept.headers["Authorization"]
        return key

    def burst(self, jobs):
        """So many jobs of every client at once, so that each receiver has several deliveries to take."""
        with Kept(self.weir.address) as kept:
            for key in self.keys:
                as_client(kept, key).call("POST", "/v1/jobs:batch", {"jobs": [JOB] * jobs}).expect(202)

    def cpu_seconds(self):
        """Of core and gateway, so far."""
        used = 0
        for pid in self.weir.pids("core") + self.weir.pids("gateway"):
            with open(f"/proc/{pid}/stat", encoding="ascii") as file:
                used += sum(map(int, file.read().rpartition(")")[2].split()[11:13]))
        return used / os.sysconf("SC_CLK_TCK")

    def load(self, seconds):
        """What a client without webhooks gets done: (jobs, seconds, CPU seconds of core and gateway)."""
        before = self.cpu_seconds()
        tool = os.path.join(os.path.dirname(os.path.abspath(binary())), "bench", "load", "weir-load")
        done = subprocess.run([tool, "lifecycle", "-u", self.weir.url, "-k", self.load_key, "-c", "2", "-w",
                               "4", "-s", str(seconds)], check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr + done.stdout
        line = json.loads(done.stdout)
        return line["jobs"], line["seconds"], self.cpu_seconds() - before


def as_client(kept, key):
    """The same connection with another key."""
    kept.headers["Authorization"] = "Bearer " + key
    return kept


class Background(threading.Thread):
    """Jobs of all clients in turn, PER_SECOND of them a second and the listeners' beside them."""

    def __init__(self, field, per_second):
        super().__init__()
        self.field, self.per_second = field, per_second
        self.stopping = threading.Event()
        self.fault = None
        self.heard = 0  # jobs of listeners

    def run(self):
        try:
            with Kept(self.field.weir.address) as kept:
                began, i = time.monotonic(), 0
                while not self.stopping.is_set():
                    self.submit(kept, self.field.keys[i % len(self.field.keys)])
                    if i % 5 == 0:
                        self.submit(kept, self.field.listeners[i // 5 % HEALTHY])
                        self.heard += 1
                    i += 1
                    time.sleep(max(0, began + i / self.per_second - time.monotonic()))
        except BaseException as fault:  # raised again where the thread is joined
            self.fault = fault

    @staticmethod
    def submit(kept, key):
        """One job."""
        as_client(kept, key).call("POST", "/v1/jobs", JOB).expect(202)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        self.join(timeout=60)
        if self.fault:
            raise self.fault


def latencies(report):
    """Seconds between event and arrival at a healthy receiver, sorted."""
    return sorted(late for _, late in report["healthy"])


def at(sorted_values, part):
    """The value below which this part of them lies; NaN of nothing."""
    if not sorted_values:
        return float("nan")
    return sorted_values[min(len(sorted_values) - 1, int(part * len(sorted_values)))]


def run_arm(weir, arm, clients, warm_seconds, load_seconds, per_second=PER_SECOND, characters=BROKEN,
            burst=BURST):
    """What one arm shows: latencies in seconds, sorted; CPU seconds of core and gateway."""
    with Crowd() as crowd:
        field = Field(weir, crowd, arm, clients, characters)
        with Background(field, per_second) as background:
            field.burst(burst)
            time.sleep(warm_seconds)
            quiet = crowd.report()
            jobs, seconds, cpu = field.load(load_seconds)
            loaded = crowd.report()
        want = background.heard * 5 if arm != "healthy" else 0
        seen = [quiet, loaded]
        wait_for(lambda: seen.append(crowd.report()) or sum(len(r["healthy"]) for r in seen) >= want,
                 PATIENCE_SECONDS, f"{want} events at healthy receivers", weir)
    return {"rate": jobs / seconds, "jobs": jobs, "seconds": seconds, "cpu": cpu,
            "quiet": latencies(quiet), "loaded": latencies(loaded),
            "heard": sum(len(r["healthy"]) for r in seen), "wanted": want,
            "requests": {name: sum(r["requests"][name] for r in seen) for name in quiet["requests"]}}


def show(arm, got):
    """A line about one arm of one round."""
    print(f"{arm:8} {got['rate']:6.0f} jobs/s {got['cpu'] / got['jobs'] * 1e6:5.1f} us   "
          "healthy p50/p99/max ms: "
          f"quiet {at(got['quiet'], .5) * 1000:.0f}/{at(got['quiet'], .99) * 1000:.0f}"
          f"/{at(got['quiet'], 1) * 1000:.0f}, "
          f"under load {at(got['loaded'], .5) * 1000:.0f}/{at(got['loaded'], .99) * 1000:.0f}"
          f"/{at(got['loaded'], 1) * 1000:.0f}   requests {got['requests']}", flush=True)


def main():
    """Rounds over all arms, each on a fresh server; medians at the end."""
    parser = argparse.ArgumentParser(description="the cost of broken webhooks to everybody else")
    parser.add_argument("--broken", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--warm", type=float, default=12)
    parser.add_argument("--load", type=float, default=6)
    parser.add_argument("--per-second", type=int, default=PER_SECOND)
    parser.add_argument("--arms", default=",".join(ARMS))
    parser.add_argument("--characters", default=",".join(BROKEN), help="of the broken ones, in turn")
    options = parser.parse_args()
    seen = {arm: [] for arm in options.arms.split(",")}
    for number in range(options.rounds):
        for arm in list(seen)[::1 if number % 2 else -1]:  # they take turns in going first
            weir = Weir(settings=SETTINGS).start()
            try:
                got = run_arm(weir, arm, options.broken, options.warm, options.load, options.per_second,
                              options.characters.split(","))
                weir.stop()
            finally:
                weir.close()
            show(arm, got)
            seen[arm].append(got)
    none = statistics.median(got["rate"] for got in seen["none"])
    each = statistics.median(got["cpu"] / got["jobs"] for got in seen["none"])
    for arm, rounds in seen.items():
        rates = [got["rate"] for got in rounds]
        extra = [(got["cpu"] - got["jobs"] * each) / got["seconds"] / os.cpu_count() for got in rounds]
        print(f"{arm:8} median {statistics.median(rates):.0f} jobs/s ({min(rates):.0f} to {max(rates):.0f}), "
              f"{statistics.median(rates) / none - 1:+.1%} against none; "
              f"extra {statistics.median(extra):.1%} ({min(extra):.1%} to {max(extra):.1%}) "
              f"of {os.cpu_count()} CPUs")


if __name__ == "__main__":
    main()
