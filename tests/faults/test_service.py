"""deploy/systemd: the unit is as hardened as it says, lets pass what Weir's own walls allow, and a server
tells its service manager what the unit expects to hear."""
import os
import re
import shutil
import signal
import socket
import subprocess
import time

import pytest

from harness import machine
from harness.weir_server import REPOSITORY, wait_for

UNIT = os.path.join(REPOSITORY, "deploy", "systemd", "weir.service")
EXPOSURE_MAX = 1.5
ANALYZE = shutil.which("systemd-analyze")
needs_systemd = machine.needs("systemd_analyze")

# What the unit refuses although a process may ask for it: without it things work as well.
DONE_WITHOUT = {"setpriority",  # CPU work of a runner is not nice
                "fchown"}       # only where SQLite runs as root


def unit(section="Service"):
    """Keys of a section; a key that comes more than once has all its values."""
    values = {}
    with open(UNIT, encoding="utf-8") as file:
        current = None
        for line in file:
            if line.startswith("["):
                current = line.strip("[]\n")
            elif current == section and "=" in line and not line.startswith("#"):
                key, value = line.rstrip("\n").split("=", 1)
                values.setdefault(key, []).append(value)
    return values


def exposure(path):
    """By systemd-analyze, which needs no running systemd for it."""
    done = subprocess.run([ANALYZE, "security", "--offline=true", "--no-pager", path],
                          capture_output=True, text=True, check=False, timeout=60)
    found = re.search(r"Overall exposure level for \S+: ([0-9.]+)", done.stdout)
    assert found, done.stdout + done.stderr
    return float(found[1])


@needs_systemd
def test_the_unit_is_hardened(tmp_path):
    """With a control: the same unit without its hardening is rated as exposed."""
    assert exposure(UNIT) <= EXPOSURE_MAX
    bare = tmp_path / "bare.service"
    bare.write_text("[Service]\nType=notify\nExecStart=/usr/local/bin/weir serve\n", encoding="utf-8")
    assert exposure(str(bare)) > 9


def test_the_unit_leaves_the_stop_to_root_and_enough_time_for_it():
    """KillMode=mixed, and TimeoutStopSec above the longest stop of the default drain, 15 s."""
    service = unit()
    assert service["Type"] == ["notify"] and service["NotifyAccess"] == ["main"]
    assert service["KillMode"] == ["mixed"]
    assert int(service["TimeoutStopSec"][0]) > 15
    assert int(service["WatchdogSec"][0]) > 0
    assert "78" in service["RestartPreventExitStatus"][0].split()


def test_the_unit_hides_no_process_from_root():
    """A thread that waits for its disk is told from one that hangs by what /proc says of it."""
    assert "ProtectProc" not in unit()


def syscalls_of(names, seen=()):
    """What a list of systemd's means, groups resolved."""
    result = set()
    for name in names:
        if not name.startswith("@"):
            result.add(name)
        elif name not in seen:
            text = subprocess.run([ANALYZE, "syscall-filter", "--no-pager", name], capture_output=True,
                                  text=True, check=True, timeout=60).stdout
            members = [line.strip() for line in text.splitlines()[1:]
                       if line.strip() and not line.strip().startswith("#")]
            result |= syscalls_of(members, (*seen, name))
    return result


@needs_systemd
def test_the_unit_lets_pass_what_the_sandbox_allows():
    """Every system call of src/runtime/sandbox_syscalls.h, but for those that nothing depends on."""
    allowed = set()
    for value in unit()["SystemCallFilter"]:
        if value.startswith("~"):
            allowed -= syscalls_of(value[1:].split())
        else:
            allowed |= syscalls_of(value.split())
    with open(os.path.join(REPOSITORY, "src", "runtime", "sandbox_syscalls.h"), encoding="utf-8") as file:
        text = file.read()
    groups = text[text.index("#define SANDBOX_SYSCALLS"):text.index("#define SANDBOX_HOSTILE")]
    ours = set()
    for entry in re.findall(r'BY_[A-Z_| ]+,((?:[\s\\]*"[^"]*")+)\)', groups):
        ours |= set("".join(re.findall(r'"([^"]*)"', entry)).split())
    assert len(ours) > 100 and {"read", "accept4", "seccomp"} <= ours
    assert ours - allowed == DONE_WITHOUT
    hostile = text[text.index("#define SANDBOX_HOSTILE"):]
    assert not set(" ".join(re.findall(r'"([^"]*)"', hostile)).split()) & ours


@needs_systemd
def test_make_installs_a_unit_that_systemd_takes(tmp_path):
    """Into another root; the binary is a stand-in, what counts is that the unit finds it."""
    program = tmp_path / "usr/local/bin/weir"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n", encoding="utf-8")
    program.chmod(0o755)
    folder = tmp_path / "usr/local/lib/systemd/system"
    subprocess.run(["make", "-s", "-C", REPOSITORY, "install-service", f"DESTDIR={tmp_path}",
                    "PREFIX=/usr/local",
                    "--assume-old=install", "--assume-old=build", "--assume-old=setup-run"],
                   check=True, timeout=120, capture_output=True)
    installed = (folder / "weir.service").read_text(encoding="utf-8")
    assert "ExecStart=/usr/local/bin/weir serve" in installed
    users = (tmp_path / "usr/local/lib/sysusers.d/weir.conf").read_text(encoding="utf-8")
    assert re.search(r"^u weir ", users, re.MULTILINE)


# ---- what a server tells

class Manager:
    """A service manager's ear: a datagram socket."""

    def __init__(self, path):
        self.path = str(path)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self.socket.bind(self.path)
        self.socket.settimeout(0)
        self.heard = []  # (pid, assignment)

    def environment(self, **more):
        """What the manager gives to the service."""
        return {"NOTIFY_SOCKET": self.path, **more}

    def listen(self):
        """All assignments so far."""
        while True:
            try:
                text, extra, _, _ = self.socket.recvmsg(4096, 256)
            except BlockingIOError:
                return [assignment for _, assignment in self.heard]
            pid = int.from_bytes(extra[0][2][:4], "little")
            self.heard += [(pid, assignment) for assignment in text.decode().split("\n")]


@pytest.fixture
def manager(tmp_path):
    """Its socket's path has to be short."""
    ear = Manager(tmp_path / "notify")
    yield ear
    ear.socket.close()


def test_a_server_tells_when_it_is_ready_and_when_it_stops(fresh_weir, manager):
    """READY=1 from the main process, once, and then STOPPING=1 with the time it needs."""
    weir = fresh_weir(env=manager.environment())
    wait_for(lambda: "READY=1" in manager.listen(), 10, "READY=1", weir)
    wait_for(lambda: "STATUS=3 of 3 processes ready" in manager.listen(), 10, "the status", weir)
    assert "STOPPING=1" not in manager.listen()
    root = weir.process.pid
    weir.stop()
    heard = manager.listen()
    assert heard.count("READY=1") == 1 and heard.count("STOPPING=1") == 1
    extended, = [text for text in heard if text.startswith("EXTEND_TIMEOUT_USEC=")]
    assert int(extended.split("=")[1]) > 15_000_000
    assert heard.index("READY=1") < heard.index("STOPPING=1")
    assert {pid for pid, _ in manager.heard} == {root}, "only the main process is believed"


def test_signs_of_life_come_and_end_with_root(fresh_weir, manager):
    """At half of WATCHDOG_USEC; none while root is stopped, which is the control."""
    weir = fresh_weir(env=manager.environment(WATCHDOG_USEC="400000"))
    wait_for(lambda: manager.listen().count("WATCHDOG=1") >= 5, 20, "signs of life", weir)
    os.kill(weir.process.pid, signal.SIGSTOP)
    try:
        manager.listen()
        before = manager.listen().count("WATCHDOG=1")
        time.sleep(2)  # ten of them would have come
        assert manager.listen().count("WATCHDOG=1") == before
    finally:
        os.kill(weir.process.pid, signal.SIGCONT)
    wait_for(lambda: manager.listen().count("WATCHDOG=1") > before, 20, "a sign of life", weir)


def test_signs_of_life_end_while_a_child_stands_still(fresh_weir, manager):
    """Root is well and says nothing, as one of its children is not: a stopped runner, until its end."""
    weir = fresh_weir(env=manager.environment(WATCHDOG_USEC="400000"),
                      settings={"runtime.heartbeat_timeout_ms": 4000, "runner.processes": 1})
    victim, = weir.wait_pids("runner", 1)
    wait_for(lambda: manager.listen().count("WATCHDOG=1") >= 5, 20, "signs of life", weir)
    os.kill(victim, signal.SIGSTOP)

    def silent_for_a_second():
        before = manager.listen().count("WATCHDOG=1")
        time.sleep(1)
        return manager.listen().count("WATCHDOG=1") == before

    wait_for(silent_for_a_second, 4, "silence", weir)
    before = manager.listen().count("WATCHDOG=1")
    weir.wait_pids("runner", 1, other_than=[victim], timeout=20)
    wait_for(lambda: manager.listen().count("WATCHDOG=1") > before, 20, "a sign of life", weir)


def test_no_child_knows_the_manager(fresh_weir, manager):
    """The socket is root's alone, so a process that is taken over cannot speak for the service."""
    machine.need("looking_inside")
    weir = fresh_weir(env=manager.environment())
    wait_for(lambda: "STATUS=3 of 3 processes ready" in manager.listen(), 10, "the status", weir)
    counts = {}
    for pid in [weir.process.pid, *weir.pids()]:
        links = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
        counts[pid] = {link for link in links if link.startswith("socket:")}
    ours = counts.pop(weir.process.pid)
    assert len(ours) == 1, "root has the manager's socket and no other"
    assert all(not ours & theirs for theirs in counts.values())
