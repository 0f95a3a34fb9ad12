"""The gateway's partitions: which deliveries are whose, that one which fails or is full costs nobody else
anything, and how failures are told. Real receivers, real processes; a preloaded shim makes curl fail."""
import contextlib
import json
import os
import random
import signal
import sqlite3
import subprocess
import time

import pytest

from fail_curl import FailCurl
from harness import wire
from harness.partitions import failures, fnv1a64, rows, slot_of, streams, webhook_number
from harness.receiver import Receiver, hang, one_of, slowly
from harness.together import at_once
from harness.weir_server import binary, server_environment, wait_for
from harness.webhook_calls import job_deliveries, new_client_with_secret, new_webhook, webhook_deliveries

pytestmark = pytest.mark.sqlite_only("it looks into the store's file")
PARTITIONS = 4
QUICK = {"webhooks.base_ms": 20, "webhooks.cap_ms": 100, "webhooks.timeout_ms": 3000,
         "limits.requests_per_minute": 0, "runtime.cpus": 2, "runtime.partitions.outbound": PARTITIONS}


class Hooks:
    """Webhooks of one client, each known by the partition its tests go through (key: webhook and no job)."""

    def __init__(self, weir):
        self.weir, self.made = weir, 0
        self.key, _ = new_client_with_secret(weir)

    def one_in(self, partition, receiver, path):
        """A webhook at this path whose tests are the partition's."""
        while True:
            self.made += 1
            url = f"{receiver.url}{path}?{self.made}"
            hook, _ = new_webhook(self.weir, self.key, url, ["job.retries_exhausted"])
            if slot_of(webhook_number(self.weir, url), 0) % PARTITIONS == partition:
                return hook
            self.weir.api("DELETE", f"/v1/webhooks/{hook}", key=self.key).expect(200)

    def send(self, hook):
        """Sends a test; the delivery's id."""
        sent = self.weir.api("POST", f"/v1/webhooks/{hook}:test", key=self.key, body={})
        return sent.expect(202)["delivery_id"]

    def log(self, hook):
        """{delivery_id: delivery}."""
        return {d["delivery_id"]: d for d in webhook_deliveries(self.weir, self.key, hook)}

    def wait_state(self, hook, delivery, state, seconds=60):
        """The delivery once it is in that state."""
        def reached():
            found = self.log(hook)[delivery]
            return found if found["state"] == state else None

        return wait_for(reached, seconds, state, self.weir)


def only_gateway(weir):
    """Its pid."""
    pid, = weir.wait_pids("gateway", 1)
    return pid


# ---- which is whose

def test_a_delivery_is_stored_with_the_slot_of_its_key_and_keeps_it_over_restarts(fresh_weir, receiver):
    """[TOP-081] [TOP-089] FNV-1a over "receiver:job", the same before and after a kill of everything."""
    assert fnv1a64(b"foobar") == 0x85944171f73967e8
    weir = fresh_weir(settings=QUICK | {"webhooks.max_attempts": 100})
    key, _ = new_client_with_secret(weir)
    receiver.answers = [503]
    new_webhook(weir, key, receiver.url + "/hook", ["job.created", "job.queued"])
    for _ in range(30):
        weir.submit(key, queue="nobody", callback=receiver.url)
    before = sorted(streams(weir))
    assert len(before) == 60 and len({slot % PARTITIONS for _, _, slot in before}) == PARTITIONS
    assert all(slot == slot_of(target, job) for target, job, slot in before)
    weir.kill9()
    weir.start()
    assert sorted(streams(weir)) == before


@pytest.mark.parametrize("setting, words", [
    ("runtime.partitions.outbound=4", "must be at least twice the CPUs (8)"),
    ("runtime.partitions.outbound=12", "must be a power of two"),
    ("runtime.partitions.ingest=3", "must be at least the CPUs (4)")])
def test_too_few_partitions_are_refused_at_the_start(setting, words, tmp_path):
    """[TOP-087] [TOP-089] Exit 2 and one line that names the key; at the minimum it is fine."""
    def show(*sets):
        return subprocess.run([binary(), "config", "show", f"--data={tmp_path}", "--set=runtime.cpus=4",
                               *(f"--set={s}" for s in sets)], capture_output=True, text=True, timeout=60,
                              env=server_environment())
    refused = show(setting)
    assert refused.returncode == 2 and len(refused.stderr.strip().splitlines()) == 1
    assert setting.partition("=")[0] in refused.stderr and words in refused.stderr
    assert show("runtime.partitions.outbound=8", "runtime.partitions.ingest=4").returncode == 0


# ---- one that fails

def test_a_partition_that_fails_ten_times_costs_the_others_nothing(fresh_weir, receiver):
    """[TOP-023] [TOP-043] [TOP-055] Curl refuses ten requests of partition 0: it is restarted ten times,
    alone. What it had out goes back and is sent again under its id; partition 1 never noticed; no process
    ended."""
    curl = FailCurl()
    weir = fresh_weir(settings=QUICK | {"webhooks.max_attempts": 50, "runtime.outbound.max_seconds": 1},
                      env=curl.environment())
    hooks, gateway = Hooks(weir), only_gateway(weir)
    bad, beside = hooks.one_in(0, receiver, "/planted"), hooks.one_in(0, receiver, "/beside")
    other = hooks.one_in(1, receiver, "/other")
    hooks.wait_state(bad, hooks.send(bad), "delivered")  # the negative control: the shim alone breaks nothing
    assert curl.seen == 1 and not failures(weir, "actor_failed")
    with Receiver() as slow:
        slow.answers = [slowly(2), 200]
        waiting = hooks.one_in(0, slow, "/slow")
        under_way = hooks.send(waiting)
        slow.wait(1)
        curl.failures_left = 10
        planted, others = hooks.send(bad), []
        while curl.failed < 10:
            others.append(hooks.send(other))
            time.sleep(0.1)
        hooks.wait_state(bad, planted, "delivered")
        hooks.wait_state(waiting, under_way, "delivered")
        assert len({call.id for call in slow.calls}) == 1 < len(slow.calls)
    errors = [a["error"] for a in hooks.log(waiting)[under_way]["attempts"]]
    assert errors[0] == "sender_lost" and errors[-1] is None
    assert [a["error"] for a in hooks.log(bad)[planted]["attempts"]] == ["sender_lost"] * 10 + [None]
    hooks.wait_state(beside, hooks.send(beside), "delivered")
    for delivery in others:
        assert len(hooks.wait_state(other, delivery, "delivered")["attempts"]) == 1
    lines = failures(weir, "actor_failed", at_least=10)
    assert [(e["partition"], e["restart_count"]) for e in lines] == [(0, n + 1) for n in range(10)]
    assert {(e["component"], e["domain"], e["failure_class"]) for e in lines} == {
        ("gateway", "outbound", "recoverable")}
    assert {e["reason"] for e in lines} == {"no request could be begun: Out of memory"}
    assert only_gateway(weir) == gateway and not weir.logs(event="process_ended")


def test_partitions_that_fail_too_often_end_the_domain_and_nothing_else(fresh_weir, receiver):
    """[TOP-029] [TOP-051] [TOP-053] [TOP-076] The restart beyond 3 in the window: the gateway leaves, is
    started again, and what it had is delivered; core and runners keep their pids. It is told and counted
    as an end of the domain."""
    curl = FailCurl()
    weir = fresh_weir(settings=QUICK | {"webhooks.max_attempts": 50, "runtime.outbound.max_restarts": 3},
                      env=curl.environment())
    hooks, gateway = Hooks(weir), only_gateway(weir)
    others = set(weir.pids()) - {gateway}
    bad = hooks.one_in(0, receiver, "/planted")
    curl.failures_left = 4
    planted = hooks.send(bad)
    weir.wait_pids("gateway", 1, other_than=[gateway], timeout=30)
    hooks.wait_state(bad, planted, "delivered")
    assert len(failures(weir, "actor_failed", at_least=4)) == 4
    (ended,) = failures(weir, "restarts_exhausted", at_least=1, domain="outbound", component="gateway")
    assert ended["failure_class"] == "fatal" and ended["restart_count"] == 3 and ended["window_s"] == 60
    (escalation,) = weir.logs(at_least=1, event="weir.supervisor.escalation")
    assert (escalation["domain"], escalation["source_child"], escalation["restart_count"]) == (
        "outbound", "gateway 1 partition 0", 3)
    endings = {d["name"]: d["endings"] for d in weir.topology()["domains"] if d["endings"]}
    assert endings == {"outbound": 1}
    assert weir.metric("weir_domain_endings_total", domain="outbound") == 1
    assert others <= set(weir.pids())


# ---- one that is full

def test_a_partition_whose_receivers_hang_blocks_no_other(fresh_weir, receiver):
    """[TOP-082] Partition 0 is filled to the last place by receivers that hang: what is
    sent there waits, all others hear at once; core shows how full it is."""
    weir = fresh_weir(settings=QUICK | {"gateway.in_flight": 16, "webhooks.timeout_ms": 8000})
    hooks = Hooks(weir)
    blocked = hooks.one_in(0, receiver, "/blocked")
    free = [hooks.one_in(p, receiver, f"/free{p}") for p in range(1, PARTITIONS)]
    with Receiver() as dead:
        dead.answers = [hang]
        for i in range(12):  # a receiver that was never heard gets one at a time
            hooks.send(hooks.one_in(0, dead, f"/dead{i}"))
        dead.wait(4)
        stuck = hooks.send(blocked)
        for _ in range(5):
            for hook in free:
                hooks.wait_state(hook, hooks.send(hook), "delivered", 5)
        assert hooks.log(blocked)[stuck]["attempts"] == [], "it was not full: nothing is proved"
        weir.wait_log(event="weir.pressure.transition", component="outbound", partition=0,
                      pressure_level="shed")
        assert not weir.logs(event="weir.pressure.transition", component="outbound", partition=1)
    hooks.wait_state(blocked, stuck, "delivered")


# ---- order

def disorder(sent, arrived):
    """Routes whose first arrivals are not in the order of sending; both {route: [delivery_id]}."""
    first = {route: list(dict.fromkeys(ids)) for route, ids in arrived.items()}
    return [route for route, ids in sent.items() if first.get(route) != ids]


@pytest.mark.limit(300)
def test_ten_thousand_sends_on_a_hundred_routes_arrive_in_order_per_route(fresh_weir, receiver):
    """[TOP-090] With a receiver that fails now and then, over all partitions."""
    routes, each = 100, 100
    weir = fresh_weir(settings=QUICK | {"webhooks.max_attempts": 100, "webhooks.max_per_client": routes},
                      program=os.path.abspath("build/weir"))
    key, _ = new_client_with_secret(weir)
    receiver.answers = [one_of(random.Random(4), *[200] * 60, 503)]
    hooks = {f"/r{i}": new_webhook(weir, key, f"{receiver.url}/r{i}", ["job.retries_exhausted"])[0]
             for i in range(routes)}
    paths = list(hooks)

    def send(crew):
        mine = {path: [] for path in paths[crew::4]}
        said = {"Authorization": "Bearer " + key, "Content-Type": "application/json"}
        with contextlib.closing(wire.connect(weir.address, 60)) as connection:
            for _ in range(each):
                for path, ids in mine.items():
                    connection.request("POST", f"/v1/webhooks/{hooks[path]}:test", b"{}", said)
                    answer = connection.getresponse()
                    body = json.loads(answer.read())
                    assert answer.status == 202, body
                    ids.append(body["delivery_id"])
        return mine

    sent = {path: ids for part in at_once(4, send) for path, ids in part.items()}

    def taken():
        calls = list(receiver.calls)
        return len(calls) >= routes * each and len({c.id for c in calls if c.status == 200}) == routes * each

    wait_for(taken, 200, "10,000 deliveries", weir)
    arrived = {}
    for call in receiver.calls:
        if call.status == 200:
            arrived.setdefault(call.path, []).append(call.id)
    assert disorder(sent, arrived) == []
    one = arrived["/r7"]
    swapped = {**arrived, "/r7": one[:3] + [one[4], one[3]] + one[5:]}
    assert disorder(sent, swapped) == ["/r7"], "the judge is blind"
    assert len(receiver.calls) > routes * each, "nothing ever failed"


# ---- receivers that fail

@pytest.mark.parametrize("answer, code", [(429, "429"), (503, "503"), (hang, "timeout")],
                         ids=["429", "503", "timeout"])
def test_a_failing_receiver_is_tried_again_under_one_id_and_told_as_recoverable(fresh_weir, receiver, answer,
                                                                                code):
    """[TOP-042] [TOP-044] [TOP-067] Twice, then 200."""
    weir = fresh_weir(settings=QUICK | {"webhooks.timeout_ms": 300, "log.level": "debug"})
    hooks, gateway = Hooks(weir), only_gateway(weir)
    hook = hooks.one_in(2, receiver, "/hook")
    receiver.answers = [answer, answer, 200]
    delivery = hooks.send(hook)
    hooks.wait_state(hook, delivery, "delivered")
    assert [call.id for call in receiver.calls] == [delivery] * 3
    lines = failures(weir, "outbound_failed", at_least=2)
    assert [(e["component"], e["failure_class"], e["partition"], e["attempt"], e["provider_code"])
            for e in lines] == [("gateway", "recoverable", 2, n, code) for n in (1, 2)]
    told = weir.logs(at_least=3, event="weir.outbound.result", delivery_id=delivery)
    assert [(e["channel"], e["provider_code"], e["classification"]) for e in told] == [
        ("webhook", code, "retried")] * 2 + [("webhook", "200", "delivered")]
    assert only_gateway(weir) == gateway and not failures(weir, "actor_failed")


def test_what_is_put_into_a_partition_is_told_at_debug_and_never_else(fresh_weir, receiver):
    """[TOP-064] One line a delivery would be too many at full rate; counters have them always."""
    weir = fresh_weir(settings=QUICK | {"log.level": "debug"})
    hooks = Hooks(weir)
    hook = hooks.one_in(3, receiver, "/hook")
    delivery = hooks.send(hook)
    hooks.wait_state(hook, delivery, "delivered")
    (line,) = weir.logs(at_least=1, event="weir.outbound.enqueued", message_id=delivery)
    (number,) = rows(weir, "SELECT id FROM webhooks WHERE url LIKE '%/hook?%'")[0]
    assert (line["instance_id"], line["partition"], line["operation"]) == (number, 3, "webhook")
    assert weir.metric("weir_outbound_results_total", channel="webhook", classification="delivered") == 1
    quiet = fresh_weir(settings=QUICK)
    hooks = Hooks(quiet)
    hook = hooks.one_in(3, receiver, "/hook")
    hooks.wait_state(hook, hooks.send(hook), "delivered")
    assert not quiet.logs(event="weir.outbound.enqueued") and not quiet.logs(event="weir.outbound.result")
    assert quiet.metric("weir_outbound_results_total", channel="webhook", classification="delivered") == 1


def test_a_delivery_that_is_given_up_is_classified(fresh_weir, receiver):
    """[TOP-042] Always 500: bounded tries, one id, and the last says so."""
    weir = fresh_weir(settings=QUICK | {"webhooks.max_attempts": 3})
    hooks = Hooks(weir)
    hook = hooks.one_in(1, receiver, "/hook")
    receiver.answers = [500]
    delivery = hooks.send(hook)
    hooks.wait_state(hook, delivery, "exhausted")
    assert [call.id for call in receiver.calls] == [delivery] * 3
    told = weir.logs(at_least=3, event="weir.outbound.result", delivery_id=delivery)
    assert [e["classification"] for e in told] == ["retried", "retried", "exhausted"]
    assert weir.metric("weir_outbound_results_total", channel="webhook", classification="exhausted") == 1


def test_many_failures_are_counted_and_not_all_told(fresh_weir, receiver):
    """[TOP-055] Ten lines a second from each partition at most; the delivery log has every attempt."""
    weir = fresh_weir(settings=QUICK | {"webhooks.max_attempts": 6, "webhooks.cap_ms": 20,
                                        "webhooks.slots": 64})
    key, _ = new_client_with_secret(weir)
    receiver.answers = [one_of(random.Random(1), 200, 500)]
    jobs = [weir.submit(key, queue="nobody", callback=receiver.url)["job_id"] for _ in range(150)]
    for job in jobs:
        wait_for(lambda job=job: "pending" not in {d["state"] for d in job_deliveries(weir, key, job)}, 60,
                 "all done", weir)
    lines, failed = failures(weir, "outbound_failed", at_least=1), weir.metric("webhook_failures_total")
    assert failed > 100 and 0 < len(lines) <= failed
    per_second = {}
    for line in lines:
        second = (line["at"][:19], line["partition"])
        per_second[second] = per_second.get(second, 0) + 1
    assert max(per_second.values()) <= 20  # two of the program's seconds may meet in one of the clock's


# ---- what cannot be sent

def plant_bad_url(db, job):
    """Something that no check would have let in."""
    db.execute("UPDATE jobs SET callback = 'http://[no-host/' WHERE id = ?", (job,))


def plant_lost_state(db, job):
    """A job whose state is gone: its events cannot be read any more."""
    db.execute("DELETE FROM tasks WHERE id = ?", (job,))


@pytest.mark.parametrize("plant, error", [(plant_bad_url, "malformed"), (plant_lost_state, "unreadable")],
                         ids=["bad-url", "unreadable"])
def test_a_poisoned_delivery_between_good_ones_is_set_aside(fresh_weir, receiver, plant, error):
    """[TOP-045] [TOP-046] [TOP-047] [TOP-056] Of one partition: the good ones arrive, the bad one is
    exhausted with its reason and told as degraded; nobody is restarted."""
    weir = fresh_weir(settings=QUICK | {"webhooks.max_attempts": 100})
    key, _ = new_client_with_secret(weir)
    receiver.answers = [503]
    jobs = {}
    while not any(len(of) >= 3 for of in jobs.values()):
        weir.submit(key, queue="nobody", callback=receiver.url)
        jobs = {}
        for _, job, slot in sorted(streams(weir), key=lambda s: s[1]):
            jobs.setdefault(slot % PARTITIONS, []).append(job)
    good, bad, also_good = next(of for of in jobs.values() if len(of) >= 3)[:3]
    weir.stop()
    with sqlite3.connect(f"{weir.data}/weir.db") as db:
        ids = {job: [f"{i:x}" for (i,) in db.execute("SELECT id FROM deliveries WHERE job = ?", (job,))]
               for job in (good, bad, also_good)}
        plant(db, bad)
    del receiver.calls[:]
    receiver.answers = [200]
    weir.start()
    gateway = only_gateway(weir)

    def states():
        sql = "SELECT id, state FROM deliveries WHERE job IN (?, ?, ?)"
        return dict(rows(weir, sql, good, bad, also_good))

    wait_for(lambda: len(set(states().values())) and 0 not in states().values(), 60, "all three done", weir)
    lines = failures(weir, "poison_message", at_least=len(ids[bad]))
    assert len(lines) == len(ids[bad])
    for line in lines:
        assert line["component"] == "gateway" and line["failure_class"] == "degraded"
        assert line["disposition"] == "exhausted" and line["reason"] and line["message_id"]
    told = weir.logs(at_least=len(lines), event="weir.outbound.result", error_code=error)
    assert {e["delivery_id"] for e in told} == {line["message_id"] for line in lines}
    assert {e["classification"] for e in told} == {"rejected"}
    arrived = {call.id for call in receiver.calls}
    assert not arrived & {line["message_id"] for line in lines} and len(arrived) >= 4
    assert only_gateway(weir) == gateway and not failures(weir, "actor_failed")
    assert not weir.logs(event="process_ended", failure_class="recoverable", pid=gateway)


# ---- the link to core

def test_a_lost_link_to_core_is_told_and_that_it_is_back(fresh_weir, receiver):
    """[TOP-039] [TOP-041] [TOP-070] Core is gone for seconds: tries with growing, bounded and spread pauses,
    each told; then one line says how long it took, and the gateway is the same process and sends."""
    weir = fresh_weir(settings=QUICK)
    hooks, gateway = Hooks(weir), only_gateway(weir)
    hook = hooks.one_in(0, receiver, "/hook")
    assert not failures(weir, "listener_disconnected") and not weir.logs(event="weir.instance.connected")
    core, = weir.wait_pids("core", 1)
    weir.process.send_signal(signal.SIGSTOP)  # root: nobody starts another core meanwhile
    os.kill(core, signal.SIGKILL)
    time.sleep(8)
    weir.process.send_signal(signal.SIGCONT)
    weir.wait_pids("core", 1, other_than=[core])
    weir.wait_ready()
    back = weir.wait_log(event="weir.instance.connected", instance_id="gateway 1", timeout=20)
    lines = failures(weir, "listener_disconnected", instance_id="gateway 1")
    assert [line["attempt"] for line in lines] == list(range(1, len(lines) + 1)) and lines
    assert {line["failure_class"] for line in lines} == {"recoverable"}
    assert {line["component"] for line in lines} == {"gateway"}
    elapsed = [line["elapsed_ms"] for line in lines]
    assert elapsed[0] == 0 and elapsed == sorted(elapsed)
    pauses = [later - earlier for earlier, later in zip(elapsed, elapsed[1:])]
    assert len(pauses) >= 6 and sum(pauses[:3]) < sum(pauses[-3:]) and max(pauses[3:]) >= 500, pauses
    assert max(pauses) <= 3000, "2 s at most, and what a busy machine adds"
    assert len({pause // 10 for pause in pauses if pause >= 900}) > 1, "they are all alike: not spread"
    assert back["attempts"] == len(lines) and back["reason"] and elapsed[-1] >= 5000
    hooks.wait_state(hook, hooks.send(hook), "delivered")
    assert only_gateway(weir) == gateway
