#!/usr/bin/python3
"""What this machine allows, found out by trying, each ability once: the one place that decides whether
a test can run here. A test names what it needs; where that is not allowed it is skipped with the
reason, and fails with WEIR_TEST_STRICT=1.

    pytestmark = machine.needs("mounts")       of a file or a test
    machine.need("tracing")                    inside a test

    tests/harness/machine.py                   says what is not allowed here; ends with 0 when everything is
    tests/harness/machine.py ABILITY           ends with 77 and the reason when that one is not allowed
"""
import ctypes
import functools
import os
import shutil
import signal
import socket
import subprocess
import sys

NOBODY = 65534
AS_NOBODY = f"setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups"
# A command after it runs as another user than root, for whom /proc hides whom it may not trace, as
# ProtectProc= of systemd does.
HIDDEN = ["/usr/bin/unshare", "-m", "/bin/sh", "-c",
          f"mount -t proc -o hidepid=invisible proc /proc && exec {AS_NOBODY} \"$0\" \"$@\""]
PROBE_SECONDS_MAX = 60


def fails(command):
    """Why a command cannot do its work, or nothing."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=False,
                              stderr=subprocess.PIPE, text=True, timeout=PROBE_SECONDS_MAX)
    except OSError as why:
        return str(why)
    said = done.stderr.strip().splitlines()
    if done.returncode == 0:
        return ""
    return said[-1] if said else f"{command[0]} ended with {done.returncode}"


def as_root_or_in_user_namespace(flag, script):
    """Why neither root nor a user namespace of one's own lets a script run in a new namespace, or nothing."""
    tail = [flag, "sh", "-c", script]
    return fails(["unshare", *tail]) and fails(["unshare", "-Ur", *tail])


def probe_mounts():
    """A file system of our own (tests/faults/small_disk.py)."""
    return as_root_or_in_user_namespace("-m", "mount -t tmpfs none /proc")


def probe_network_namespace():
    """A network that has nothing but loopback (alone())."""
    return as_root_or_in_user_namespace("-n", "true")


def probe_hidden_processes():
    """HIDDEN."""
    return fails([*HIDDEN, "/bin/true"])


def probe_tracing():
    """Holding a thread of another process, as a debugger does."""
    child = subprocess.Popen(["sleep", "60"])
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.ptrace(0x4206, child.pid, 0, 0) != 0:  # PTRACE_SEIZE
            return os.strerror(ctypes.get_errno())
        return ""
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()


def probe_looking_inside():
    """Seeing the open files of a process that hides them, as ours do from other users."""
    hides = "import ctypes, sys; ctypes.CDLL(None).prctl(4, 0); print(flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", hides], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as child:
        child.stdout.readline()
        try:
            os.readlink(f"/proc/{child.pid}/fd/0")
        except OSError as why:
            return str(why)
        finally:
            child.stdin.close()
    return ""


def probe_unfiltered():
    """Processes that have no seccomp filter but those of our own."""
    with open("/proc/self/status", encoding="ascii") as file:
        return "" if "\nSeccomp:\t0\n" in file.read() else "this process has a seccomp filter"


def probe_second_user():
    """A program that runs as another user than root: PostgreSQL refuses to run as root. Whoever is not root
    is another user already."""
    if os.geteuid() != 0:
        return ""
    return fails(["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups", "true"])


def probe_ipv6():
    """Sockets of IPv6 on loopback."""
    try:
        with socket.socket(socket.AF_INET6) as tried:
            tried.bind(("::1", 0))
    except OSError as why:
        return str(why)
    return ""


def probe_systemd_analyze():
    """The command that rates the hardening of a unit."""
    return "" if shutil.which("systemd-analyze") else "systemd-analyze is not installed"


def probe_bare_system():
    """A Debian of its own (tools/bare_system)."""
    if os.geteuid() != 0:
        return "it takes root"
    return fails(["unshare", "--mount", "--propagation", "private", "--net", "--pid", "--fork", "sh", "-c",
                  "mount -t tmpfs none /mnt && mount -t proc proc /proc"])


PROBES = {name[6:]: probe for name, probe in list(globals().items()) if name.startswith("probe_")}


@functools.cache
def cannot(ability):
    """Why the machine does not allow it; nothing when it does."""
    why = PROBES[ability]()
    return f"no {ability.replace('_', ' ')} here: {why}" if why else ""


def need(ability):
    """Skips the running test unless the machine allows it."""
    import pytest  # pylint: disable=import-outside-toplevel  # tools use this file, too
    if cannot(ability):
        pytest.skip(cannot(ability))


def needs(ability):
    """A mark: the test runs where the machine allows it."""
    import pytest  # pylint: disable=import-outside-toplevel
    return pytest.mark.skipif(bool(cannot(ability)), reason=cannot(ability) or ability)


def without_leaks(asan_options):
    """Sanitizer options for this machine: whoever looks for leaks at the end of a program traces it."""
    return asan_options + ":detect_leaks=0" if cannot("tracing") else asan_options


def alone():
    """The start of a command line that runs without any network."""
    return ["unshare", "-n"] if not fails(["unshare", "-n", "true"]) else ["unshare", "-Urn"]


SKIPPED = 77

if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(cannot(sys.argv[1]) or "allowed")
        sys.exit(SKIPPED if cannot(sys.argv[1]) else 0)
    reasons = [cannot(ability) for ability in PROBES if cannot(ability)]
    print("\n".join(reasons or ["the machine allows everything that tests need"]))
    sys.exit(1 if reasons else 0)
