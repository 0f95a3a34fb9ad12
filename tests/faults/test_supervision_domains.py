"""Failure domains: each ends alone, at the limit it has by default; what cannot start says why and ends."""
import json
import os
import random
import signal
import time

import pytest

from harness import processes
from harness.pace import Stopwatch
from harness.weir_server import wait_for

TOPOLOGY = "/ops/v1/topology"
FAILURE = "weir.runtime.failure"
INCIDENT_SECONDS = 2.0  # SUPERVISION_INCIDENT_MS
AGENTS = "runner", "agents", 10  # a kind of process, its domain and the limit; of all: tests/unit/runtime


def domain(weir, name):
    """What the topology says of a domain."""
    return next(d for d in weir.api("GET", TOPOLOGY).expect(200)["domains"] if d["name"] == name)


def kill_again_and_again(weir, kind, times):
    """Kills the one process of a kind, `times` times, each as soon as it is there."""
    killed = []
    for _ in range(times):
        old, = weir.wait_pids(kind, 1, other_than=killed, timeout=30)
        os.kill(old, signal.SIGKILL)
        killed.append(old)
    return killed


def test_a_domain_beyond_its_default_limit_ends_and_comes_back_alone(fresh_weir):
    """[TOP-017] [TOP-029] [TOP-051] [TOP-052] [TOP-053] [TOP-054] [TOP-076] At the limit nothing ends (the
    control); one failure more ends that domain with one fatal event, root counts one restart, everybody else
    keeps its pid."""
    weir, (kind, name, limit) = fresh_weir(settings={"runner.processes": 1, "runtime.drain_ms": 200}), AGENTS
    _, key = weir.new_client()
    others = {pid for other in ("core", "runner", "gateway") if other != kind for pid in weir.pids(other)}
    killed = kill_again_and_again(weir, kind, limit)
    weir.wait_pids(kind, 1, other_than=killed, timeout=30)
    assert not weir.logs(event="weir.supervisor.escalation")
    assert domain(weir, name)["restarts_in_window"] == limit
    assert domain(weir, "root")["restarts_in_window"] == 0
    watch = Stopwatch()
    killed.append(kill_one(weir, kind, killed))
    escalation = weir.wait_log(event="weir.supervisor.escalation")
    assert watch.quiet() < 5
    assert (escalation["domain"], escalation["source_child"], escalation["restart_count"]) == (
        name, f"{kind} 1", limit)
    fatal = weir.logs(event=FAILURE, mode="restarts_exhausted")
    assert len(fatal) == 1
    assert {field: fatal[0][field] for field in (
        "component", "failure_class", "restart_count", "window_s", "domain")} == {
            "component": "supervisor", "failure_class": "fatal", "restart_count": limit, "window_s": 60,
            "domain": name}
    weir.wait_pids(kind, 1, other_than=killed)
    wait_for(lambda: domain(weir, name)["state"] == "running", 10, "the domain", weir)
    assert domain(weir, name)["restarts_in_window"] == 0 and domain(weir, name)["endings"] == 1
    assert domain(weir, "root")["restarts"] == 1
    assert others <= set(weir.pids()), "another domain was taken along"
    assert weir.metric("weir_domain_endings_total", domain=name) == 1
    assert weir.metric("weir_cascades_total") == 0
    job_id = weir.submit(key, work_kind="SUCCESS_FAST")["job_id"]
    assert weir.wait_final(key, job_id)["state"] == "SUCCEEDED"


def kill_one(weir, kind, known):
    """Kills the one process of a kind that is not known yet."""
    pid, = weir.wait_pids(kind, 1, other_than=known)
    os.kill(pid, signal.SIGKILL)
    return pid


def test_a_crash_in_one_domain_causes_none_in_another(fresh_weir):
    """[TOP-074] Every kind killed in turn, the others serve on: no cascade. The control: two domains that
    fail together are counted."""
    weir = fresh_weir(settings={"runner.processes": 1, "runtime.root.max_restarts": 10})
    _, key = weir.new_client()
    kinds = ["core", "runner", "gateway"] * 2
    random.Random(4).shuffle(kinds)
    for kind in kinds:
        old, = weir.wait_pids(kind, 1)
        others = set(weir.pids()) - {old}
        os.kill(old, signal.SIGKILL)
        weir.wait_pids(kind, 1, other_than=[old])
        time.sleep(INCIDENT_SECONDS + 0.5)  # what it could take along has failed by then
        assert others <= set(weir.pids())
    weir.wait_ready()
    job_id = weir.submit(key, work_kind="SUCCESS_FAST")["job_id"]
    assert weir.wait_final(key, job_id)["state"] == "SUCCEEDED"
    assert weir.metric("weir_incidents_total") == len(kinds)
    assert weir.metric("weir_cascades_total") == 0
    for kind in ("runner", "gateway"):
        os.kill(weir.pids(kind)[0], signal.SIGKILL)
    wait_for(lambda: weir.metric("weir_cascades_total") == 1, 10, "the count", weir)
    assert weir.logs(at_least=1, event="cross_domain_cascade")


@pytest.mark.parametrize("key, value", [("jobs.queue_size", "many"), ("jobs.nonsense", 1)])
def test_a_bad_setting_is_a_fatal_failure_with_its_stage(fresh_weir, key, value):
    """[JOB-221] [TOP-033] [TOP-034] [TOP-035] Exit 2, the key named in one line and in the event; nothing was
    started, nothing is left."""
    weir = fresh_weir(start=False, settings={key: value})
    weir.spawn()
    assert weir.process.wait(timeout=20) == 2
    weir.process = None
    event, = weir.logs(event=FAILURE)
    assert (event["mode"], event["failure_class"], event["component"], event["boot_stage"]) == (
        "boot_config_invalid", "fatal", "serve", "settings")
    line, = [line for line in weir.log_text().splitlines() if not line.startswith("{")]
    assert key in event["reason"] and key in line
    assert not os.path.exists(weir.data) and not weir.logs(event="process_started")


def test_an_address_that_cannot_be_had_is_fatal_too(fresh_weir):
    """[JOB-221] [TOP-034] [TOP-035] Found in core: it leaves with 78 and names the address, root stops what
    was begun and starts nothing else; whoever has the address serves on."""
    first = fresh_weir()
    weir = fresh_weir(start=False)
    weir.port = first.port
    weir.spawn()
    assert weir.process.wait(timeout=20) == 78
    weir.process = None
    event, = weir.logs(event=FAILURE)
    assert (event["mode"], event["component"], event["boot_stage"]) == (
        "boot_config_invalid", "core", "listeners")
    started, = weir.logs(event="process_started")
    assert not processes.wait_gone([started["pid"]], 5)
    assert f"127.0.0.1:{first.port}" in weir.log_text() and first.api("GET", "/healthz").status == 200
    weir.assert_no_sanitizer_report()


@pytest.mark.sqlite_only("writes into the file")
def test_a_store_that_does_not_open_is_tried_four_times_and_then_ends_the_program(fresh_weir):
    """[TOP-010] [TOP-013] [TOP-030] [TOP-036] [TOP-037] [TOP-038] [TOP-054] One try a start, three
    restarts, exit 1. The control: with the file whole again the same data directory serves."""
    weir = fresh_weir()
    weir.stop()
    path = os.path.join(weir.data, "weir.db")
    with open(path, "rb") as file:
        good = file.read()
    for name in os.listdir(weir.data):
        if name.startswith("weir.db-"):
            os.unlink(os.path.join(weir.data, name))
    damaged = b"this is no database" * 50 + good[950:]
    with open(path, "wb") as file:
        file.write(damaged)
    seen = len(weir.logs(event="process_started", name="core"))
    weir.spawn()
    assert weir.process.wait(timeout=30) == 1
    weir.process = None
    events = weir.logs(event=FAILURE, mode="adapter_init_failed")
    assert len(events) == 4 == len(weir.logs(event="process_started", name="core")) - seen
    for event in events:
        assert (event["component"], event["failure_class"], event["adapter"]) == ("core", "fatal", "sqlite")
        assert event["reason"]
    fatal, = weir.logs(event=FAILURE, mode="restarts_exhausted")
    assert (fatal["domain"], fatal["restart_count"], fatal["window_s"]) == ("root", 3, 10)
    assert not processes.wait_gone([e["pid"] for e in weir.logs(event="process_started")], 5)
    with open(path, "rb") as file:
        assert file.read() == damaged, "what is no database of ours is left alone"
    with open(path, "wb") as file:
        file.write(good)
    weir.start()
    weir.wait_ready()


def test_a_stop_tells_its_phases_and_how_long_each_took(fresh_weir):
    """Workers first, then core; each process that leaves is told with the time it took."""
    weir = fresh_weir()
    expected = {p["name"] for p in weir.api("GET", TOPOLOGY).json["processes"]} - {"replay 1"}  # on demand
    weir.stop()
    lines = [json.loads(line) for line in weir.log_text().splitlines() if line.startswith("{")]
    root = [e for e in lines if e["process"] == "root"]
    names = [(e["event"], e.get("phase")) for e in root if e["event"].startswith("stop")]
    assert names == [("stop_requested", None), ("stop_phase", "workers"), ("stop_phase_over", "workers"),
                     ("stop_phase", "core"), ("stop_phase_over", "core"), ("stopped", None)]
    left = [e for e in root if e["event"] == "process_ended"]
    assert {e["name"] for e in left} - {"replay 1"} == expected and left[-1]["name"] == "core"
    assert all(e["stop_ms"] >= 0 and "failure_class" not in e for e in left)
    over = [e for e in root if e["event"] == "stop_phase_over"]
    assert root[-1]["event"] == "stopped" and root[-1]["exit_code"] == 0
    assert root[-1]["duration_ms"] >= sum(e["duration_ms"] for e in over) - 1
    assert not [e for e in root if e["event"] == FAILURE]
