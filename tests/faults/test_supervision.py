"""Root and its children: a crash stays where it happened, what dies comes back within a second,
there are never two cores, and a program that cannot run says why and ends."""
import os
import signal
import socket
import subprocess
import threading
import time

import pytest

from harness import processes
from harness.pace import Stopwatch
from harness.weir_server import Weir, server_environment, wait_for

RESTART_SECONDS_MAX = 1.0
# Windows so short that no restart limit is met.
MANY_CRASHES = {f"runtime.{domain}.max_{what}": value for domain in ("root", "agents")
                for what, value in (("restarts", 100), ("seconds", 1))}
# A planted crash is not the sanitizer's business here.
PLAIN_CRASHES = {"ASAN_OPTIONS": "handle_segv=0:handle_abort=0:handle_sigbus=0"}


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV], ids=["KILL", "SEGV"])
@pytest.mark.parametrize("kind", ["core", "runner"])
def test_a_crash_is_contained_and_the_process_is_back_within_a_second(module_weir, kind, number):
    """The others keep their pids; the new one serves within a second; work goes on."""
    weir = module_weir(env=PLAIN_CRASHES, settings=MANY_CRASHES | {"runner.processes": 2})
    _, key = weir.new_client()
    kinds = {pid: "core" if pid in weir.pids("core") else "runner" for pid in weir.pids()}
    victim = weir.pids(kind)[0]
    others = set(kinds) - {victim}
    watch = Stopwatch()
    os.kill(victim, number)
    new, = weir.wait_pids(kind, 1, other_than=kinds, timeout=3)
    weir.wait_ready()
    assert watch.quiet() <= RESTART_SECONDS_MAX
    assert others <= set(weir.pids()), "another process was taken along"
    job_id = weir.submit(key, work_kind="SUCCESS_FAST")["job_id"]
    assert weir.wait_final(key, job_id)["state"] == "SUCCEEDED"
    ended = weir.wait_log(event="process_ended", pid=victim)
    assert ended["failure_class"] == "recoverable" and new != victim


def first_pid(root, other_than):
    """Of the child that root starts next: the kernel is asked until there is one."""
    while True:
        children = processes.read_text(f"/proc/{root}/task/{root}/children").split()
        new = [int(pid) for pid in children if int(pid) not in other_than]
        if new:
            return new[0]


def test_a_core_that_is_told_to_stop_as_it_begins_does(fresh_weir):
    """SIGTERM right after the fork, before its main function: it is not forgotten, core leaves by itself."""
    weir = fresh_weir(settings={"runtime.root.max_restarts": 100, "runtime.root.max_seconds": 1})
    for _ in range(10):
        old, known = weir.wait_pids("core", 1)[0], weir.pids()
        os.kill(old, signal.SIGKILL)
        victim = first_pid(weir.process.pid, known)
        os.kill(victim, signal.SIGTERM)
        assert not processes.wait_gone([victim], 10), "it serves on"
        weir.wait_ready()
    assert weir.logs(event="process_ended", pid=victim)[0]["reason"] == "exit status 0"


def test_there_are_never_two_cores(fresh_weir):
    """Watched every few milliseconds over ten kills, there is one core or none."""
    weir = fresh_weir(settings={"runtime.root.max_restarts": 100, "runtime.root.max_seconds": 1})
    seen, over = [], threading.Event()

    def watch():
        while not over.is_set():
            seen.append(len(weir.pids("core")))
            time.sleep(0.005)

    watcher = threading.Thread(target=watch)
    watcher.start()
    for _ in range(10):
        old, = weir.wait_pids("core", 1)
        os.kill(old, signal.SIGKILL)
        weir.wait_pids("core", 1, other_than=[old])
        weir.wait_ready()
    over.set()
    watcher.join()
    assert max(seen) == 1 and min(seen) == 0 and len(seen) > 50, (max(seen), min(seen), len(seen))


def second_start(weir):
    """Another server on the same data, ended: (exit code, what it said)."""
    other = Weir(settings=weir.settings, data=weir.data)
    try:
        other.spawn()
        code = other.process.wait(timeout=20)
        other.process = None
        return code, other.log_text()
    finally:
        other.close()


def test_a_second_start_on_the_same_data_is_refused(fresh_weir):
    """Exit 1 with one line that names the first one's pid; the first does not notice."""
    weir = fresh_weir()
    _, key = weir.new_client()
    core = weir.pids("core")
    code, said = second_start(weir)
    assert code == 1
    assert str(weir.process.pid) in said and "in use" in said
    assert weir.pids("core") == core
    weir.submit(key)


def test_a_second_start_is_also_refused_while_core_is_down(fresh_weir):
    """Root holds the lock itself: frozen between two cores, the data are still its own."""
    weir = fresh_weir()
    weir.process.send_signal(signal.SIGSTOP)
    try:
        weir.kill9_kind("core")
        assert second_start(weir)[0] == 1
    finally:
        weir.process.send_signal(signal.SIGCONT)
    weir.wait_pids("core", 1)
    weir.wait_ready()


def test_children_of_a_killed_root_leave_and_a_new_start_takes_over(fresh_weir):
    """kill -9 of root alone: no orphan stays, and the next start waits for the old core, then
    serves."""
    weir = fresh_weir(settings={"runtime.drain_ms": 1000})
    _, key = weir.new_client()
    job_id = weir.submit(key, queue="outside")["job_id"]
    family = weir.pids()
    os.kill(weir.process.pid, signal.SIGKILL)
    weir.process.wait()
    weir.process = None
    weir.spawn()
    assert not processes.wait_gone(family, 4), "orphans"
    weir.wait_ready()
    assert weir.job(key, job_id)["state"] == "QUEUED"
    assert len(weir.pids("core")) == 1


def test_who_stops_a_server_is_told(fresh_weir):
    """Also at log.level warn, unless it is whoever started it."""
    weir = fresh_weir(settings={"log.level": "warn"})
    with subprocess.Popen(["/bin/sh", "-c", f"kill -TERM {weir.process.pid}; read wait"],
                          stdin=subprocess.PIPE) as other:
        told = weir.wait_log(event="stop_requested")
        other.stdin.close()
    assert (told["level"], told["by_pid"], told["by"]) == ("warn", other.pid, "sh")
    assert told["by_uid"] == os.getuid()
    assert weir.process.wait(timeout=60) == 0
    weir.process = None
    weir.start()
    weir.stop()
    assert len(weir.logs(event="stop_requested")) == 1


def listen_on(address):
    """A socket that does; None while somebody else does."""
    try:
        return socket.create_server(address)
    except OSError:
        return None


def test_a_port_that_is_taken_while_core_restarts_is_tried_again(fresh_weir):
    """Core has served: its configuration is good, whatever the address says now. It comes back when the port
    is free, by restarts within the limit."""
    weir = fresh_weir(settings={"runtime.root.max_restarts": 100})
    weir.process.send_signal(signal.SIGSTOP)
    try:
        weir.kill9_kind("core")
        thief = wait_for(lambda: listen_on(weir.address), 5, "its port to be free", weir)
    finally:
        weir.process.send_signal(signal.SIGCONT)
    with thief:
        told = weir.wait_log(event="weir.runtime.failure", mode="adapter_init_failed")
    assert (told["adapter"], told["component"]) == ("listeners", "core")
    weir.wait_ready()
    assert not weir.logs(event="weir.runtime.failure", mode="boot_config_invalid")


def test_a_log_that_nobody_reads_does_not_hold_up_the_end(fresh_weir):
    """The port in use again, and stderr a full pipe: core and root leave all the same, with exit 78."""
    weir, other = fresh_weir(), Weir()
    other.port = weir.port
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with pytest.raises(BlockingIOError):
        while True:
            os.write(writer, b"x")
    os.set_blocking(writer, True)
    try:
        with subprocess.Popen(other.command(), stderr=writer, stdout=subprocess.DEVNULL,
                              env=server_environment()) as process:
            try:
                assert process.wait(timeout=20) == 78
            finally:
                Weir.kill_pids([process.pid, *processes.descendants(process.pid)])
    finally:
        other.close()
        os.close(reader)
        os.close(writer)
