"""What stands still is replaced, what waits for its disk is not, and a core that was replaced never
writes."""
import ctypes
import os
import signal
import subprocess
import threading
import time

import pytest

from dead_letters import wake_replay
from fail_io import FailIo
from harness import machine, processes
from harness.weir_server import binary, wait_for

TIMEOUT_MS = 1500
HUNG = {"event": "weir.runtime.failure", "mode": "process_hung"}


def settings(**more):
    """A short patience, so that a test sees its end."""
    return {"runtime.heartbeat_timeout_ms": TIMEOUT_MS, "runner.processes": 1, "runtime.drain_ms": 500,
            **more}


def lock_lines(weir):
    """root's pid, epoch, core's pid, as the lock file has them."""
    with open(os.path.join(weir.data, "weir.lock"), encoding="ascii") as file:
        return [int(word) for word in file.read().split()]


def start_all(fresh_weir, receiver, kind):
    """A server in which a process of this kind runs; replay is started on demand."""
    weir = fresh_weir(settings=settings())
    if kind == "replay":
        wake_replay(weir, receiver)
    return weir


@pytest.mark.parametrize("kind, name", [("core", "root"), ("runner", "agents"), ("gateway", "outbound"),
                                        ("replay", "operations")])
def test_a_stopped_process_is_replaced_and_the_others_stay(fresh_weir, receiver, kind, name):
    """[TOP-055] SIGSTOP: no crash tells of it, its silence does. It is started again alone, and counted in
    its domain."""
    weir = start_all(fresh_weir, receiver, kind)
    _, key = weir.new_client()
    victim, = weir.wait_pids(kind, 1)
    others = set(weir.pids()) - {victim}
    os.kill(victim, signal.SIGSTOP)
    weir.wait_pids(kind, 1, other_than=[victim], timeout=20)
    weir.wait_ready()
    told = weir.wait_log(**HUNG)
    assert (told["failure_class"], told["domain"]) == ("recoverable", name)
    assert told["silent_ms"] >= TIMEOUT_MS and told["component"].startswith(kind)
    assert not processes.alive(victim)
    assert others <= set(weir.pids())
    job_id = weir.submit(key, work_kind="SUCCESS_FAST")["job_id"]
    assert weir.wait_final(key, job_id)["state"] == "SUCCEEDED"
    assert weir.metric("weir_restarts_total", domain=name) == 1
    assert weir.metric("weir_failures_total", mode="process_hung") == 1


def stop_before_the_first_beat(weir, kind):
    """One as it begins, and sees it replaced."""
    first, = weir.wait_pids(kind, 1)
    os.kill(first, signal.SIGKILL)
    victim = None
    while victim is None:
        victim = next((pid for pid in weir.pids(kind) if pid != first), None)
    os.kill(victim, signal.SIGSTOP)
    weir.wait_pids(kind, 1, other_than=[first, victim], timeout=20)
    weir.wait_ready()
    assert not processes.alive(victim) and weir.wait_log(**HUNG)["component"].startswith(kind)


@pytest.mark.parametrize("kind", ["core", "replay"])
def test_one_that_is_stopped_before_its_first_beat_is_replaced(fresh_weir, receiver, kind):
    """When no loop has shown yet that it lives: the kernel's word counts."""
    stop_before_the_first_beat(start_all(fresh_weir, receiver, kind), kind)


@machine.needs("hidden_processes")
def test_one_that_is_stopped_is_replaced_where_processes_are_hidden(fresh_weir):
    """Root cannot read /proc of its own children there, which is the control."""
    weir = fresh_weir(settings=settings(), program=[*machine.HIDDEN, binary()], start=False)
    os.chown(weir.home, machine.NOBODY, machine.NOBODY)
    weir.start()
    runner, = weir.wait_pids("runner", 1)
    look = ["/usr/bin/nsenter", "-t", str(weir.process.pid), "-m", *machine.AS_NOBODY.split(),
            "/bin/cat", f"/proc/{runner}/stat"]
    assert subprocess.run(look, check=False, capture_output=True).returncode != 0
    stop_before_the_first_beat(weir, "runner")


class HeldThread:
    """One thread of a process, held as a debugger does; the others go on."""

    SEIZE, INTERRUPT, DETACH, WALL = 0x4206, 0x4207, 17, 0x40000000

    def __init__(self, thread_id):
        self.thread_id = thread_id
        self.ptrace = ctypes.CDLL(None, use_errno=True).ptrace

    def __enter__(self):
        for request in (self.SEIZE, self.INTERRUPT):
            if self.ptrace(request, self.thread_id, 0, 0) != 0:
                raise OSError(ctypes.get_errno(), "ptrace")
        return self

    def __exit__(self, *_):
        self.ptrace(self.DETACH, self.thread_id, 0, 0)

    def ended(self):
        """Of a process that was killed meanwhile; its parent hears of it only when we did."""
        pid, status = os.waitpid(self.thread_id, self.WALL | os.WNOHANG)
        return pid and not os.WIFSTOPPED(status)


def test_a_main_thread_that_stands_still_is_seen_though_core_serves(fresh_weir):
    """The HTTP loops beat and answer: it is one loop that is silent, and core is replaced for it."""
    machine.need("tracing")
    weir = fresh_weir(settings=settings(**{"runtime.core_dumps": "on"}))
    core, = weir.pids("core")
    with HeldThread(core) as held:
        assert weir.api("GET", "/healthz").status == 200
        wait_for(held.ended, 20, "its end", weir)
    weir.wait_pids("core", 1, other_than=[core])
    weir.wait_ready()
    told = weir.wait_log(**HUNG)
    assert (told["component"], told["loop"]) == ("core", "main")


def test_nobody_is_replaced_without_a_patience(fresh_weir):
    """The control: with runtime.heartbeat_timeout_ms=0 a stopped process stays as it is, and is itself when
    it goes on."""
    weir = fresh_weir(settings=settings(**{"runtime.heartbeat_timeout_ms": 0}))
    victim, = weir.wait_pids("runner", 1)
    os.kill(victim, signal.SIGSTOP)
    time.sleep(3 * TIMEOUT_MS / 1000)
    assert weir.pids("runner") == [victim] and not weir.logs(**HUNG)
    os.kill(victim, signal.SIGCONT)
    _, key = weir.new_client()
    job_id = weir.submit(key, work_kind="SUCCESS_FAST")["job_id"]
    assert weir.wait_final(key, job_id)["state"] == "SUCCEEDED"


def test_busy_and_idle_processes_beat(fresh_weir):
    """Nothing to do, then much: nobody is taken for hung."""
    weir = fresh_weir(settings=settings())
    for kind in ("core", "runner", "gateway"):
        weir.wait_pids(kind, 1)
    family = set(weir.pids())
    time.sleep(2 * TIMEOUT_MS / 1000)
    _, key = weir.new_client()
    end = time.monotonic() + 2 * TIMEOUT_MS / 1000
    while time.monotonic() < end:
        weir.submit(key, queue="outside")
    assert set(weir.pids()) == family and not weir.logs(**HUNG)


def test_a_disk_that_stalls_is_no_reason_to_kill(fresh_weir):
    """Each sync takes far longer than a loop may be silent: core waits, serves reads meanwhile and is left
    alone. What was accepted is there."""
    io = FailIo()
    weir = fresh_weir(settings=settings(), env=io.environment())
    client = weir.new_client()
    core = weir.pids("core")
    assert io.syncs_seen > 0
    io.sync_delay_ms = 4 * TIMEOUT_MS
    answers = []

    def submit():
        answers.append(weir.try_submit(client.api_key, queue="outside"))

    threads = [threading.Thread(target=submit) for _ in range(3)]
    for thread in threads:
        thread.start()
    time.sleep(2.5 * TIMEOUT_MS / 1000)
    assert weir.api("GET", "/healthz").status == 200
    io.heal()
    for thread in threads:
        thread.join()
    assert weir.pids("core") == core and not weir.logs(**HUNG)
    for answer in answers:
        if answer.status == 202:
            assert weir.job(client.api_key, answer.json["job_id"])["state"] == "QUEUED"
    weir.submit(client.api_key, queue="outside")


@pytest.mark.sqlite_only("a shared store has several writers")
def test_a_replaced_core_is_gone_before_the_next_one_begins(fresh_weir):
    """Stopped while it takes writes and replaced: the old one is dead when the new one has the epoch, so it
    cannot wake up and commit. Watched all the time there is one core or none."""
    weir = fresh_weir(settings=settings(**{"runtime.root.max_restarts": 20}))
    _, key = weir.new_client()
    seen, both, over = [], [], threading.Event()

    def watch():
        while not over.is_set():
            cores = weir.pids("core")
            seen.append(len(cores))
            if len(cores) > 1:
                both.append(cores)
            time.sleep(0.005)

    watcher = threading.Thread(target=watch)
    watcher.start()
    kept, old = [], []
    for n in range(3):
        kept += [weir.submit(key, queue="outside")["job_id"] for _ in range(5)]
        root, epoch, core = lock_lines(weir)
        assert (root, epoch, [core]) == (weir.process.pid, n + 1, weir.pids("core"))
        os.kill(core, signal.SIGSTOP)
        weir.wait_pids("core", 1, other_than=old + [core], timeout=20)
        with pytest.raises(ProcessLookupError):
            os.kill(core, signal.SIGCONT)
        old.append(core)
        weir.wait_ready()
    over.set()
    watcher.join()
    assert not both and len(seen) > 50
    assert [e["epoch"] for e in weir.logs(at_least=4, event="core_started")] == [1, 2, 3, 4]
    for job_id in kept:
        assert weir.job(key, job_id)["state"] == "QUEUED"
    weir.stop()
    assert weir.cli("verify").returncode == 0


def kill_root_above_a_stopped_core(weir):
    """The core that is left, stopped; None when it left by itself: had it come to a stop before root died,
    the kernel lets it go on (SIGHUP and SIGCONT to stopped members of a group that nobody watches)."""
    core, = weir.pids("core")
    family = weir.pids()
    os.kill(core, signal.SIGSTOP)
    os.kill(weir.process.pid, signal.SIGKILL)
    weir.process.wait()
    weir.process = None
    assert not processes.wait_gone([pid for pid in family if pid != core], 6), "orphans"
    return core if processes.alive(core) else None


def test_a_new_start_ends_a_stopped_core_that_its_dead_root_left(fresh_weir):
    """Root killed while core is stopped: core does not hear that it should leave, and holds the lock. The
    next start waits as long as a core may take, then kills it and serves; the epoch goes on."""
    weir = fresh_weir(settings=settings())
    _, key = weir.new_client()
    job_id = weir.submit(key, queue="outside")["job_id"]
    core, starts = kill_root_above_a_stopped_core(weir), 1
    while not core and starts < 10:
        weir.spawn()
        weir.wait_ready()
        core, starts = kill_root_above_a_stopped_core(weir), starts + 1
    assert core and processes.alive(core), "the control: nothing else would have ended it"
    weir.spawn()
    wait_for(lambda: not processes.alive(core), 20, "the old core to go", weir)
    weir.wait_ready()
    assert lock_lines(weir)[1] == starts + 1
    assert weir.job(key, job_id)["state"] == "QUEUED"
