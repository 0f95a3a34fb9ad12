"""The walls around a running server's processes: they are up, in every thread, and all still works inside.

What each wall refuses is tried from inside in tests/unit/runtime/test_sandbox.c; the other black-box tests
run inside it too, since it is the default."""
import json
import os
import re
import signal

import pytest

from dead_letters import wake_replay
from harness import machine, processes
from harness.webhook_calls import new_client_with_secret, new_webhook
from harness.weir_server import wait_for

SIGSYS_TEXT = "signal 31"


def threads(pid):
    """The status of every thread."""
    found = []
    for task in os.listdir(f"/proc/{pid}/task"):
        text = processes.read_text(f"/proc/{pid}/task/{task}/status")
        found.append(dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line))
    return found


PROCESSES = 4  # core, a runner, a gateway, and one for dead letters


def wait_all_ready(weir, receiver):
    """A server is ready when core is; the others follow, the last one when there is work for it."""
    wake_replay(weir, receiver)

    def all_ready():
        ready = {line["pid"] for line in weir.logs(event="process_ready")}
        pids = set(weir.pids())
        return len(pids) == PROCESSES and pids <= ready
    wait_for(all_ready, 20, "all processes", weir)


def everybody(weir, receiver):
    """kind -> statuses of all threads of its processes."""
    wait_all_ready(weir, receiver)
    kinds = {"root": threads(weir.process.pid)}
    for kind in ("core", "runner", "gateway", "replay"):
        kinds[kind] = [status for pid in weir.pids(kind) for status in threads(pid)]
        assert kinds[kind], f"no process {kind}"
    return kinds


def on_postgres():
    """Is the suite on PostgreSQL?"""
    return os.environ.get("WEIR_TEST_STORE") == "postgres"


def test_every_thread_of_every_process_is_behind_its_walls(fresh_weir, receiver):
    """Root's filter, the process's own, and on SQLite the one that closes core's network."""
    weir = fresh_weir()
    outside = int(re.search(r"Seccomp_filters:\s(\d+)", processes.read_text("/proc/self/status"))[1])
    filters = {"root": 1, "core": 2 if on_postgres() else 3, "runner": 2, "gateway": 2, "replay": 2}
    for kind, statuses in everybody(weir, receiver).items():
        for status in statuses:
            assert status["Seccomp"] == "2" and status["NoNewPrivs"] == "1", kind
            assert int(status["Seccomp_filters"]) == filters[kind] + outside, kind
    started, = weir.logs(event="sandbox")
    assert started["mode"] == started["seccomp"] == "enforce" and started["core_dumps"] == "off"


def test_without_the_setting_there_is_no_wall(fresh_weir, receiver):
    """The control of the test above, and a warning in the log."""
    machine.need("unfiltered")
    weir = fresh_weir(settings={"runtime.sandbox": "off"})
    for kind, statuses in everybody(weir, receiver).items():
        assert {(status["Seccomp"], status["NoNewPrivs"]) for status in statuses} == {("0", "0")}, kind
    started, = weir.logs(event="sandbox")
    assert started["mode"] == "off" and started["level"] == "warn"


def test_logging_refuses_nothing(fresh_weir, receiver):
    """The filters are there, and jobs run."""
    weir = fresh_weir(settings={"runtime.sandbox": "log"})
    found = everybody(weir, receiver).values()
    assert all(status["Seccomp"] == "2" for statuses in found for status in statuses)
    _, key = weir.new_client()
    assert weir.wait_final(key, weir.submit(key, work_kind="SUCCESS_FAST")["job_id"])["state"] == "SUCCEEDED"


@pytest.mark.parametrize("kind", ["SUCCESS_FAST", "IO_HEAVY", "MEMORY_SPIKE", "CPU_BURST"])
def test_work_that_uses_the_machine_runs_inside(weir, client, kind):
    """A runner writes its one file, and takes memory and CPU."""
    job_id = weir.submit(client.api_key, work_kind=kind)["job_id"]
    assert weir.wait_final(client.api_key, job_id, timeout=40)["state"] == "SUCCEEDED"
    assert not [line for line in weir.logs(event="process_ended") if SIGSYS_TEXT in line["reason"]]


def test_a_name_is_resolved_and_reached_from_inside(weir, receiver):
    """The gateway reads hosts and resolver files, and connects out."""
    key, _ = new_client_with_secret(weir)
    url = receiver.url.replace("127.0.0.1", "localhost") + "/named"
    new_webhook(weir, key, url, ["job.succeeded"])
    weir.submit(key, work_kind="SUCCESS_FAST")
    call, = receiver.wait(1)
    assert call.path == "/named"


def test_core_measures_itself_inside(weir):
    """/proc of its own is readable: the metrics of the process are there."""
    lines = weir.api("GET", "/metrics").text.splitlines()
    found = [line for line in lines if line.startswith("weir_process_")]
    values = {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in found}
    assert values and all(value > 0 for value in values.values()), values


def test_what_was_killed_comes_back_behind_its_walls(fresh_weir, receiver):
    """Root starts them from behind its own, and the new core can take over the old one's socket."""
    weir = fresh_weir()
    wait_all_ready(weir, receiver)
    for kind in ("replay", "core", "runner", "gateway"):
        old = weir.pids(kind)
        os.kill(old[0], signal.SIGKILL)
        weir.wait_pids(kind, 1, other_than=old)
        weir.wait_ready()
    for kind, statuses in everybody(weir, receiver).items():
        assert all(status["Seccomp"] == "2" for status in statuses), kind


def doctor(weir, *arguments):
    """The line of `weir doctor` about the sandbox."""
    done = json.loads(weir.cli("doctor", "-o", "json", *arguments).stdout)
    line, = [check for check in done["checks"] if check["check"] == "sandbox"]
    return line


def test_doctor_sees_the_walls_and_their_absence(fresh_weir, receiver):
    """Of the running processes, by what the kernel says of them."""
    weir = fresh_weir()
    wait_all_ready(weir, receiver)
    assert f"{PROCESSES} of {PROCESSES} running processes have their filter" in doctor(weir)["found"]
    weir.stop()
    machine.need("unfiltered")
    bare = fresh_weir(settings={"runtime.sandbox": "off"})
    wait_all_ready(bare, receiver)
    found = doctor(bare)
    assert found["result"] == "warn" and f"0 of {PROCESSES} running processes" in found["found"]
    off = doctor(bare, "--set", "runtime.sandbox=off")
    assert off["result"] == "warn" and "runtime.sandbox is off" in off["found"]
