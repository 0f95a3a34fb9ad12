"""The stopwatch leaves out what a busy machine adds, and nothing else."""
import os
import subprocess
import sys
import time

import pytest

from harness import pace
from harness.pace import Stopwatch
from harness.weir_server import wait_for

pytestmark = pytest.mark.sqlite_only("no server runs here")
BURN = "import time\nend = time.monotonic() + 2\nwhile time.monotonic() < end: pass"


def test_time_on_a_machine_that_keeps_others_waiting_does_not_count():
    """Twice as many burners as processors for two seconds: some of them wait all the time."""
    watch = Stopwatch()
    burners = [subprocess.Popen([sys.executable, "-c", BURN]) for _ in range(2 * os.cpu_count())]
    for burner in burners:
        burner.wait()
    assert watch.seconds() >= 2 and watch.quiet() < 1.5 and not watch.was_quiet()


def test_a_quiet_wait_is_counted_in_full(monkeypatch):
    """The control: with nothing counted against it, a second is a second, and a wait ends at its limit."""
    monkeypatch.setattr(pace, "pressure_seconds", lambda name: 0.0)
    monkeypatch.setattr(pace, "stolen_seconds", lambda: 0.0)
    watch = Stopwatch()
    time.sleep(0.3)
    assert watch.quiet() == pytest.approx(watch.seconds(), abs=0.05) and watch.quiet() >= 0.3
    assert watch.was_quiet() and watch.is_over(0.3) and not watch.is_over(60)
    with pytest.raises(AssertionError, match="for nothing"):
        wait_for(lambda: False, 0.2, "nothing")


def test_a_wait_on_a_machine_that_is_always_busy_ends_at_last(monkeypatch):
    """All the time is spent waiting: the limit is drawn out, and not without end."""
    monkeypatch.setattr(pace, "pressure_seconds", lambda name: time.monotonic())
    monkeypatch.setattr(pace, "LONGEST_SECONDS_MIN", 0.5)
    watch = Stopwatch()
    time.sleep(0.2)
    assert watch.quiet() == 0 and not watch.is_over(0.1)
    time.sleep(1)
    assert watch.is_over(0.1)


def test_where_the_kernel_does_not_count_the_machine_is_taken_for_busy(monkeypatch):
    """A container may hide /proc/pressure."""
    monkeypatch.setattr(pace, "pressure_seconds", lambda name: None)
    assert Stopwatch().stalled() == pace.UNKNOWN_SECONDS
