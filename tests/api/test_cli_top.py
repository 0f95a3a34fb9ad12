"""weir top: a server at a glance."""
import json
import os
import select
import signal
import subprocess
import termios

import pytest

from harness.cli_calls import open_terminal
from harness.pace import Stopwatch

PARTS = ("server", "submits/s", "process", "queue", "domain")


def test_what_is_no_terminal_gets_one_look_as_tables(weir, client):
    """All parts of the picture, and no control characters."""
    weir.submit(client.api_key, work_kind="SUCCESS_FAST")
    done = weir.cli("top", "--interval", "200ms")
    assert done.returncode == 0, done.stderr
    assert all(part in done.stdout for part in PARTS), done.stdout
    assert "core" in done.stdout and "runner 1" in done.stdout and "\033" not in done.stdout
    head = done.stdout.splitlines()[1].split()
    assert head[1] == "ready" and " 0 MB" not in " ".join(head)  # the numbers of /metrics are in it


def test_programs_get_json(weir, client):
    """Rates of what lies between the two looks, and the topology as the server gives it."""
    for _ in range(3):
        weir.submit(client.api_key, queue="outside")
    seen = json.loads(weir.cli("top", "-o", "json", "--interval", "200ms").stdout)
    assert seen["window_ms"] >= 200 and seen["rates"]["submitted"] >= 0
    assert {p["name"] for p in seen["topology"]["processes"]} >= {"core", "runner 1", "gateway 1"}
    assert seen["readiness"]["status"] == "ready"


@pytest.mark.parametrize("interval", ["x", "1ms", "-1s"])
def test_an_interval_that_is_none_is_refused(weir, interval):
    """Exit code 2 and one clear line."""
    done = weir.cli("top", "--interval", interval)
    assert done.returncode == 2 and "--interval must be a time" in done.stderr and not done.stdout


def test_a_server_that_is_not_there_is_told(weir):
    """One line, exit code 1."""
    done = weir.cli("top", "--once", "--url", "http://127.0.0.1:9")
    assert done.returncode == 1 and done.stderr.startswith("weir: ") and not done.stdout


def read_until(fd, wanted, seconds=20):
    """What a terminal showed until it showed this."""
    shown, watch = b"", Stopwatch()
    while not watch.is_over(seconds) and wanted not in shown:
        if select.select([fd], [], [], 0.2)[0]:
            shown += os.read(fd, 65536)
    assert wanted in shown, shown[-2000:]
    return shown


def test_on_a_terminal_it_watches_over_a_restart_of_core(fresh_weir):
    """While nobody answers the last picture stays, with its age; then it goes on. Root is held meanwhile, so
    that core stays away for a while."""
    weir = fresh_weir()
    master, slave = open_terminal()
    with subprocess.Popen([*weir.program, "top", "--interval", "200ms"], stdin=slave, stdout=slave,
                          stderr=slave, env=weir.cli_environment()) as process:
        read_until(master, b"p pause")
        weir.process.send_signal(signal.SIGSTOP)
        try:
            weir.kill9_kind("core")
            shown = read_until(master, b"no answer for 1 s")
            assert b"submits/s" in shown and b"weir: " not in shown
        finally:
            weir.process.send_signal(signal.SIGCONT)
        weir.wait_ready()
        read_until(master, b"\033[7m p pause")  # and no word about an answer before it
        os.write(master, b"q")
        read_until(master, b"\033[?1049l")
        assert process.wait(timeout=20) == 0
    os.close(master)
    os.close(slave)


def test_on_a_terminal_it_draws_again_until_q(weir):
    """On a screen of its own, which it leaves as it was; no line is wider than the terminal."""
    master, slave = open_terminal()
    before = termios.tcgetattr(slave)
    with subprocess.Popen([*weir.program, "top", "--interval", "200ms"], stdin=slave, stdout=slave,
                          stderr=slave, env=weir.cli_environment()) as process:
        shown = read_until(master, b"\033[?1049h")
        shown += read_until(master, b"q quit")  # the last line of a frame
        read_until(master, b"submits/s")  # of a second frame
        os.write(master, b"p")
        read_until(master, b"paused")
        os.write(master, b"q")
        read_until(master, b"\033[?1049l")
        assert process.wait(timeout=20) == 0
    assert termios.tcgetattr(slave)[3] == before[3]
    os.close(master)
    os.close(slave)
    assert b"submits/s" in shown
