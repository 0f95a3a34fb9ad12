"""Time as a quiet machine has it: what is judged by a clock is judged by this one.

A machine with other work, or one whose host has, makes everything late and nothing wrong. The kernel counts
how long somebody waited for a processor or a disk (/proc/pressure) and how long the host took the processors
away (steal in /proc/stat); a Stopwatch leaves that out. On a quiet machine its seconds are seconds; on a busy
one fewer pass. Lower bounds are judged by the plain clock: nothing is early because a machine is busy.
"""
import os
import re
import time

UNKNOWN_SECONDS = 60.0  # taken off where the kernel does not count
QUIET_SHARE = 0.05
LONGEST = 10  # a wait that the machine draws out ends at last: after so many times its limit
LONGEST_SECONDS_MIN = 60.0


def pressure_seconds(name):
    """How long somebody has waited for it since the machine started; None where nobody counts."""
    try:
        with open("/proc/pressure/" + name, encoding="ascii") as file:
            return int(re.search(r"^some .*total=(\d+)", file.read())[1]) / 1e6
    except OSError:
        return None


def stolen_seconds():
    """How long the host had the processors, all of them added up."""
    with open("/proc/stat", encoding="ascii") as file:
        return int(file.readline().split()[8]) / os.sysconf("SC_CLK_TCK")


class Stopwatch:
    """Runs from where it is made."""

    def __init__(self):
        self.began, self.waited, self.stolen = time.monotonic(), self._waited(), stolen_seconds()

    @staticmethod
    def _waited():
        counted = [pressure_seconds(name) for name in ("cpu", "io", "memory")]
        return None if None in counted else sum(counted)

    def seconds(self):
        """By the clock on the wall."""
        return time.monotonic() - self.began

    def stalled(self):
        """How much of it the machine was busy."""
        waited = self._waited()
        if waited is None or self.waited is None:
            return UNKNOWN_SECONDS
        return waited - self.waited + stolen_seconds() - self.stolen

    def quiet(self):
        """What a quiet machine would have taken, at most."""
        return max(0.0, self.seconds() - self.stalled())

    def was_quiet(self):
        """Whether the machine had hardly anything else to do: then a service level can be judged."""
        return self.stalled() <= QUIET_SHARE * self.seconds()

    def is_over(self, limit):
        """Whether a wait of so many quiet seconds has been long enough."""
        return self.seconds() >= limit and (
            self.quiet() >= limit or self.seconds() >= max(LONGEST * limit, limit + LONGEST_SECONDS_MIN))
