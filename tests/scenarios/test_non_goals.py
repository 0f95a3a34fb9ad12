"""What Weir does not do: run anybody's code, and need anything but this machine."""
import os
import subprocess
import sys

from harness import machine
from harness.weir_server import binary

NEVER_CALLED = ("system", "popen", "execl", "execle", "execlp", "execv", "execve", "execvp", "execvpe",
                "posix_spawn", "posix_spawnp", "fexecve", "dlopen")

# Run inside a network namespace of its own, where there is nothing but loopback.
ALONE = """
import fcntl, socket, struct, sys
sys.path.insert(0, sys.argv[1])
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    up = struct.pack("16sh", b"lo", 0x1 | 0x40)
    fcntl.ioctl(s, 0x8914, up)  # SIOCSIFFLAGS: loopback comes up
assert open("/proc/net/route").read().count("\\n") <= 1, "there is a way out"
from harness.weir_server import Weir
weir = Weir(settings={"runner.time_scale": 0.01})
try:
    weir.start()
    _client, key = weir.new_client()
    job = weir.submit(key, type="EXECUTE", work_kind="SUCCESS_FAST")["job_id"]
    assert weir.wait_final(key, job)["outcome"] == "SUCCESS"
    weir.stop()
finally:
    weir.close()
print("done alone")
"""


def imported_functions(program):
    """Names of the functions a program takes from shared libraries."""
    listing = subprocess.run(["nm", "-D", "--undefined-only", program], check=True, capture_output=True,
                             text=True)
    return {line.split()[-1].split("@")[0] for line in listing.stdout.splitlines() if line.strip()}


def test_the_program_has_no_way_to_start_another_program():
    """[JOB-004] The runner only lets synthetic time pass: no shell, no user code, in the whole binary."""
    names = imported_functions(os.path.join(os.path.dirname(__file__), "..", "..", "build", "weir"))
    assert "fork" in names, "the listing is not that of weir"
    assert not names & set(NEVER_CALLED)


def test_a_shell_does_have_one():
    """The negative control: the same look at a program that starts others finds what it looks for."""
    assert imported_functions("/bin/sh") & set(NEVER_CALLED)


def test_everything_works_with_the_network_cut_off():
    """[JOB-005] Server, store and runner need nothing but this machine."""
    machine.need("network_namespace")
    tests = os.path.abspath(os.path.join(os.path.dirname(__file__), ".."))
    done = subprocess.run([*machine.alone(), sys.executable, "-c", ALONE, tests], check=False,
                          capture_output=True, text=True, timeout=60,
                          env={**os.environ, "WEIR_BIN": os.path.abspath(binary())})
    assert done.returncode == 0, done.stderr
    assert "done alone" in done.stdout


def test_a_payload_is_data_and_nothing_else(weir, client):
    """[JOB-004] What looks like a command comes back as it was and has no effect."""
    trap = os.path.join(weir.data, "trap")
    payload = {"cmd": f"touch {trap}", "$(touch x)": "`id`"}
    job = weir.submit(client[1], type="EXECUTE", work_kind="SUCCESS_FAST", payload=payload)["job_id"]
    assert weir.wait_final(client[1], job)["payload"] == payload
    assert not os.path.exists(trap)
