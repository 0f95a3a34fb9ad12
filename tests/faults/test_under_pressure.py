"""What waits, and who is answered sooner, while queues are nearly full. Each has its control on the same
server, one level below."""
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from fail_io import FailIo
from harness.engine_calls import Engine
from harness.pace import Stopwatch
from harness.together import at_once
from harness.weir_server import wait_for

TIMEOUT_MS = 4000
TWENTY = {"jobs.queue_size": 20, "jobs.max_active": 1000, "runner.processes": 0,
          "limits.requests_per_minute": 0, "webhooks.base_ms": 20, "webhooks.cap_ms": 100}
DEGRADED, SHED = 17, 19  # of twenty


class Queue:
    """A queue of twenty jobs and nobody who works on them."""

    def __init__(self, weir, name="o"):
        self.weir, self.name, self.jobs = weir, name, []
        self.key = weir.new_client().api_key

    def look(self):
        """Which jobs are there: a call that timed out may have been done."""
        items = self.weir.api("GET", "/v1/jobs?state=QUEUED", key=self.key).expect(200)["items"]
        self.jobs = [job["job_id"] for job in items]

    def at(self, count, level):
        """So many wait, and the server knows it."""
        while len(self.jobs) > count:
            self.weir.cancel(self.key, self.jobs.pop()).expect(200)
        while len(self.jobs) < count:
            self.jobs.append(self.weir.submit(self.key, queue=self.name)["job_id"])
        wait_for(lambda: self.weir.api("GET", "/v1/jobs", key=self.key).headers.get("weir-pressure") == level,
                 5, str(level), self.weir)


def seconds_to_504(weir, path, key, body=None):
    """How long it took to be told that it takes too long: (by the wall, as a quiet machine has it)."""
    watch = Stopwatch()
    weir.api("POST", path, body, key, timeout=60).expect_problem(504, "RFA_EXEC_TIMEOUT")
    return watch.seconds(), watch.quiet()


@pytest.mark.sqlite_only("the shim stalls the disk of the file")
def test_from_degraded_on_a_change_waits_half_as_long_unless_it_is_critical(fresh_weir):
    """[TOP-079] The disk stands still. At degraded a submit hears of it after half of the request timeout and
    a cancel after all of it; the control, at normal, a submit after all of it."""
    io = FailIo()
    weir = fresh_weir(settings=TWENTY | {"server.request_timeout_ms": TIMEOUT_MS, "store.timeout_ms": 60000},
                      env=io.environment())
    queue = Queue(weir)
    body = {"type": "EXECUTE", "queue": "o", "priority": 5}
    took = []
    for count, level in ((1, None), (DEGRADED, "degraded")):
        queue.at(count, level)
        calls = (("/v1/jobs", body), (f"/v1/jobs/{queue.jobs[0]}/cancel", None))
        io.sync_delay_ms = TIMEOUT_MS + 1500
        took.append(at_once(2, lambda i, calls=calls: seconds_to_504(weir, calls[i][0], queue.key,
                                                                     calls[i][1])))
        io.heal()
        wait_for(lambda: weir.api("POST", "/v1/clients").status == 201, 30, "the disk", weir)
        queue.look()
    (usual, _), (hurried, critical) = took
    whole, half = TIMEOUT_MS / 1000, TIMEOUT_MS / 2000
    assert usual[0] >= whole * 0.95 and critical[0] >= whole * 0.95, took
    assert half * 0.95 <= hurried[0] and hurried[1] < whole * 0.9, took


class Decisions:
    """A run with signals that wait for approval, and the signals and answers that are still to come."""

    def __init__(self, weir):
        self.engine = Engine(weir)
        self.engine.put_plan("p", "a")
        self.run_id = self.engine.start("p")
        self.held = [self.engine.signal(self.run_id, "UPDATE_PARAMS", {"params": {"x": n}}, "why",
                                        sub="ada").expect(202)["policyDecisionId"] for n in range(2)]
        self.engine.token(sub="bob")  # minted now: it is a change, too

    def settle(self, number, verb):
        """Another Admin's word on one that waits."""
        return self.engine.call("POST", f"/signal-decisions/{self.held[number]}:{verb}", {}, sub="bob")

    def pause(self):
        """A signal."""
        return self.engine.signal(self.run_id, "PAUSE", sub="bob")


@pytest.mark.sqlite_only("the shim stalls the disk of the file")
def test_what_is_critical_has_a_lane_of_its_own_while_commands_are_shed(fresh_weir):
    """[TOP-080] The disk stands still and as many changes wait as may. The control, one more submit, is
    refused at once; heartbeat, result, cancel, signal, approval and rejection wait for the disk, and are
    done."""
    io = FailIo()
    weir = fresh_weir(settings={"server.commands_max": 16, "runner.processes": 0, "store.timeout_ms": 60000,
                                "server.request_timeout_ms": 60000, "limits.requests_per_minute": 0,
                                "queue.lease_ms": 60000, "engine.approval_required": "UPDATE_PARAMS"},
                      env=io.environment())
    key, decisions = weir.new_client().api_key, Decisions(weir)
    spare = weir.submit(key, queue="p")["job_id"]
    for _ in range(2):
        weir.submit(key, queue="o")
    tasks = weir.claim(key, queue="o", most=2)
    for task in tasks:
        weir.tell("start", key, task)

    def tell(verb, task, **fields):
        item = {"task_id": task["task_id"], "token": task["token"], **fields}
        return weir.api("POST", f"/worker/v1/{verb}", {"tasks": [item]}, key)

    critical = (decisions.pause, lambda: decisions.settle(0, "approve"),
                lambda: decisions.settle(1, "reject"), lambda: weir.cancel(key, spare),
                lambda: tell("heartbeat", tasks[0]),
                lambda: tell("finish", tasks[1], outcome="success"))
    io.sync_delay_ms = 6000
    with ThreadPoolExecutor(48) as pool:
        flood = [pool.submit(weir.try_submit, key, queue="q") for _ in range(36)]
        wait_for(lambda: weir.metric("weir_pressure_level", component="commands") == 3, 5, "shed", weir)
        answers = [pool.submit(action) for action in critical]
        wait_for(lambda: weir.metric("weir_pressure_ratio", component="critical_commands") > 0, 5,
                 "their lane", weir)
        weir.try_submit(key, queue="q").expect_problem(503, "RFA_EXEC_QUEUE_FULL")
        assert not any(answer.done() for answer in answers)
        io.heal()
        assert [answer.result().status for answer in answers] == [200] * len(critical)
        assert {answer.result().status for answer in flood} == {202, 503}
    assert weir.job(key, spare)["state"] == "CANCELED"
    assert weir.job(key, tasks[1]["job_id"])["state"] == "SUCCEEDED"
    assert answers[-2].result().json["results"][0]["ok"]
    run = decisions.engine.run(decisions.run_id)
    assert run["status"] == "PAUSED" and run["params"] == {"x": 0}


def test_the_purge_is_rare_at_shed(fresh_weir):
    """[TOP-080] A job that could go stays while load is shed, and goes afterwards; the control before: it
    goes within seconds."""
    weir = fresh_weir(settings=TWENTY | {"jobs.retention_seconds": 1})
    queue = Queue(weir)

    def ended():
        job = weir.submit(queue.key, queue="done")["job_id"]
        weir.cancel(queue.key, job).expect(200)
        return job

    def gone(job):
        return weir.api("GET", f"/v1/jobs/{job}", key=queue.key).status == 404

    usual = ended()
    wait_for(lambda: gone(usual), 20, "it is purged", weir)
    queue.at(SHED, "shed")
    kept = ended()
    time.sleep(6)
    assert not gone(kept)
    queue.at(5, None)
    wait_for(lambda: gone(kept), 20, "it is purged, too", weir)
