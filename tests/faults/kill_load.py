"""Load for the kill tests: clients that never give a submit up, and write everything into a
History.

A submit whose answer was cut off is unknown and is sent again with the same key until somebody
answers: that is what an honest client does, and what must never make a second job. The name of a
job is its idempotency key and stands in its payload, so that the judge can tell whose work a stored
job is."""
import http.client
import os
import random
import signal
import time
from collections import Counter

from harness.deliveries import delivery_faults
from harness.pace import Stopwatch
from harness.history import Operation, check_client, judge
from harness.kept import Kept
from harness.together import Crew
from harness.weir_server import wait_for

KINDS = ("SUCCESS_FAST", "FAIL_IMMEDIATE", "RETRY_ON_FAIL", "PAYLOAD_SMALL", "MANY_SMALL_OUTPUTS")
RESEND_SECONDS = 0.02
CUT = (OSError, http.client.HTTPException)

# A server that may be killed often: windows so short that no restart limit is met.
SETTINGS = {"runtime.root.max_restarts": 1000, "runtime.root.max_seconds": 1,
            "runtime.agents.max_restarts": 1000, "runtime.agents.max_seconds": 1,
            "runtime.drain_ms": 1000, "queue.lease_ms": 1000, "queue.heartbeat_ms": 200,
            "runner.processes": 2, "runner.time_scale": 0.001, "jobs.max_runtime_ms": 60000000,
            "jobs.max_active": 1000000, "jobs.queue_size": 1000000, "jobs.retry_base_ms": 10,
            "log.level": "warn"}
# Besides, for one whose receivers fail often.
DELIVERIES = {"webhooks.base_ms": 10, "webhooks.cap_ms": 100, "webhooks.timeout_ms": 700,
              "webhooks.max_attempts": 100, "runtime.outbound.max_restarts": 1000,
              "runtime.outbound.max_seconds": 1}


def kill_core(weir):
    """Kills core and waits until another one serves; how long that took, as a quiet machine has it."""
    old, = weir.wait_pids("core", 1)
    watch = Stopwatch()
    os.kill(old, signal.SIGKILL)
    weir.wait_pids("core", 1, other_than=[old])
    weir.wait_ready()
    return watch.quiet()


class Load(Crew):
    """`threads` clients at work until the end of the `with`; each pauses `pause` seconds between jobs.
    `more` gives further fields of a job by its name."""

    def __init__(self, weir, key, history, threads=3, pause=0.03, more=None):
        super().__init__(threads)
        self.weir, self.key, self.history, self.pause = weir, key, history, pause
        self.more = more or (lambda name: {})
        self.round = f"{time.monotonic_ns():x}"  # names differ from those of an earlier load

    def connect(self, _n):
        """Client n's connection."""
        return Kept(self.weir.address, self.key, timeout=10)

    def run(self, n):
        """One client."""
        rng, done = random.Random(n), []
        with self.connect(n) as kept:
            i = 0
            while not self.stopping.is_set():
                name = f"{self.round}-{n}-{i}"
                i += 1
                job_id = self.submit(kept, name, KINDS[i % len(KINDS)])
                if job_id:
                    done.append((name, job_id, KINDS[i % len(KINDS)]))
                if done:
                    self.also(kept, rng, *rng.choice(done[-50:]))
                time.sleep(self.pause * rng.random() * 2)

    def submit(self, kept, name, kind):
        """Sends until there is an answer; the job id, or None when it was refused."""
        body = {"type": "EXECUTE", "work_kind": kind, "idempotency_key": name,
                "payload": {"name": name}, **self.more(name)}
        while True:
            answer = self.once("submit", name, kept, "POST", "/v1/jobs", body)
            if answer is None or answer.status >= 500:
                time.sleep(RESEND_SECONDS)
                continue
            assert answer.status == 202, answer
            self.history.add("submit", name, "ok", answer.json["job_id"])
            return answer.json["job_id"]

    def once(self, kind, name, kept, method, path, body=None):
        """One call; what is not an answer of success is noted here. 504 and a cut are unknown."""
        try:
            answer = kept.call(method, path, body)
        except ConnectionRefusedError:  # nobody was there to hear it
            self.history.add(kind, name, "refused")
            return None
        except CUT:
            self.history.add(kind, name, "unknown")
            return None
        if answer.status >= 400:
            unknown = answer.status == 504 or b"FSYNC" in answer.body
            self.history.add(kind, name, "unknown" if unknown else "refused")
        return answer

    def also(self, kept, rng, name, job_id, kind):
        """Something else with a job: read it, cancel it, send its submit again."""
        what = rng.choice(("read", "read", "cancel", "submit", "none"))
        if what == "read":
            answer = self.once("read", name, kept, "GET", f"/v1/jobs/{job_id}")
        elif what == "cancel":
            answer = self.once("cancel", name, kept, "POST", f"/v1/jobs/{job_id}/cancel")
        elif what == "submit":
            self.submit(kept, name, kind)
            return
        else:
            return
        if answer is not None and answer.status == 200:
            self.history.add(what, name, "ok", (job_id, answer.json["state"]))
        elif answer is not None:
            assert answer.status >= 500, answer  # in particular: never 404 for what was acknowledged


def drained(weir, key, timeout=60):
    """Waits until the client has no unfinished job."""
    def over():
        counts = weir.api("GET", "/v1/reports/summary", key=key).expect(200)["by_state"]
        return not any(counts.get(s) for s in ("CREATED", "QUEUED", "ASSIGNED", "RUNNING"))
    wait_for(over, timeout, "everything to end", weir)


def settle(weir, key, history, more=None):
    """After the faults: drains, walks every chain, judges the history; {job_id: (name, state)}.
    `more`: as the load's."""
    weir.wait_ready()
    drained(weir, key)
    jobs = {job_id: (job["payload"]["name"], job["state"])
            for job_id, (job, _) in check_client(weir, key).items()}
    faults = judge(history.operations, jobs)
    assert not faults, f"{len(faults)} faults, the first: {faults[:20]}"
    with Kept(weir.address, key) as kept:
        for op in history.of("submit", "ok")[::10]:
            job = kept.call("GET", f"/v1/jobs/{op.value}").expect(200)
            body = {"type": "EXECUTE", "work_kind": job["work_kind"], "idempotency_key": op.name,
                    "payload": {"name": op.name}, **(more(op.name) if more else {})}
            answer = kept.call("POST", "/v1/jobs", body)
            assert answer.expect(202)["job_id"] == op.value
            assert answer.headers["idempotency-replayed"] == "true"
    return jobs


def the_judge_sees_a_planted_loss(history, jobs):
    """The negative control on the very history of the run: each doctored copy of it is blamed."""
    ok = history.of("submit", "ok")[-1]
    assert not judge(history.operations, jobs)
    assert judge(history.operations, {k: v for k, v in jobs.items() if k != ok.value})
    assert judge(history.operations, {**jobs, "phantom": ("never-sent", "SUCCEEDED")})
    assert judge(history.operations, {**jobs, "twin": (ok.name, "SUCCEEDED")})
    assert judge(history.operations + [Operation(0, "submit", ok.name, "ok", "other")], jobs)


def the_judge_sees_planted_deliveries(wanted, known, arrivals):
    """The same for what receivers got: one taken out, one not signed, two of a job the other way round."""
    times = Counter((arrival.receiver, arrival.id) for arrival in arrivals)
    once = [i for i, arrival in enumerate(arrivals) if times[arrival.receiver, arrival.id] == 1]
    about = [(arrivals[i].receiver, arrivals[i].event["job_id"]) for i in once]
    first = next(n for n, job in enumerate(about) if job in about[n + 1:])
    one, two = once[first], once[about.index(about[first], first + 1)]
    swapped = list(arrivals)
    swapped[one], swapped[two] = swapped[two], swapped[one]
    bent = arrivals[one]._replace(signed=False)
    assert not delivery_faults(wanted, known, arrivals)
    assert delivery_faults(wanted, known, arrivals[:one] + arrivals[one + 1:])
    assert delivery_faults(wanted, known, arrivals[:one] + [bent] + arrivals[one + 1:])
    assert delivery_faults(wanted, known, swapped)
