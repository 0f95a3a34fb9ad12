"""The stores Weir is measured on besides the empty one: many finished jobs, many pending timers."""
import contextlib
import os
import shutil
import subprocess
import time
from dataclasses import dataclass

SLICE = 100000
COPY_BYTES_MAX = 3 << 30  # a larger store is used in place: a round adds little to it
YEAR_S = 365 * 86400


def short(count):
    """1000000 as 1m, 20000 as 20k."""
    for unit, letter in ((1000000, "m"), (1000, "k")):
        if count % unit == 0:
            return f"{count // unit}{letter}"
    return str(count)


def warm(folder):
    """Reads every file once: a server that has run for a while finds its store in the page cache, and
    reads of random old jobs shall not measure the disk. A copied store is warm already."""
    for path, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(path, name), "rb") as file:
                while file.read(1 << 22):
                    pass


@dataclass(frozen=True)
class State:
    """One kind of store."""
    key: str
    title: str
    count: int
    timers: bool


def about_states(full):
    """What the report says of the states of several subjects, each once."""
    found = {state.key: state for states in full for state in states.list}
    ordered = sorted(found.values(), key=lambda state: (state.timers, state.count))
    return [{"key": "empty", "title": "empty store"},
            *({"key": state.key, "title": state.title} for state in ordered)]


def copy(source, target):
    """A folder with all that is in it, owners too: PostgreSQL looks at who owns its files."""
    subprocess.run(["cp", "-a", "--", source, target], check=True)


class States:
    """Builds the stores of a subject once and gives out copies."""

    def __init__(self, work, subject, stored, timers):
        self.work, self.subject = work, subject
        self.list = [State(f"stored_{short(n)}", f"{n:,} jobs stored", n, False) for n in stored]
        self.list += [State(f"timers_{short(n)}", f"{n:,} timers pending", n, True) for n in timers]

    def folder(self, state):
        """Where a store lies."""
        return os.path.join(self.work, f"{self.subject.name}.{state.key}")

    def build(self, say):
        """Fills all of them through the API. A larger store of finished jobs goes on from a copy of
        the one before it."""
        before = None
        for state in self.list:
            folder, there = self.folder(state), 0
            if before and not state.timers:
                copy(self.folder(before), folder)
                there = before.count
            else:
                os.makedirs(folder)
            self.fill(state, there, say)
            before = None if state.timers else state

    def fill(self, state, there, say):
        """Adds what is missing, a slice at a time, with a line for each tenth."""
        weir, folder, began = self.subject, self.folder(state), time.monotonic()
        weir.start(folder)
        try:
            while there < state.count:
                tenth = there * 10 // state.count
                there += self.add_slice(weir, state, folder, there)
                if there * 10 // state.count > tenth:
                    say(f"  {weir.name} {state.key}: {there:,} of {state.count:,}, "
                        f"{time.monotonic() - began:.0f} s")
        finally:
            weir.stop()

    @staticmethod
    def add_slice(weir, state, folder, there):
        """Submits a slice and, unless its time is to come, has it finished; returns its size."""
        slice_ids = os.path.join(folder, "ids.slice")
        when = None
        if state.timers:  # each slice an hour later than the one before
            due = time.gmtime(time.time() + YEAR_S + there // SLICE * 3600)
            when = time.strftime("%Y-%m-%dT%H:%M:%SZ", due)
        jobs = weir.batch(min(SLICE, state.count - there), slice_ids, when)["jobs"]
        if not state.timers:
            weir.drain()
        with open(slice_ids, "rb") as part, open(os.path.join(folder, "ids"), "ab") as whole:
            shutil.copyfileobj(part, whole)
        os.unlink(slice_ids)
        return jobs

    @contextlib.contextmanager
    def opened(self, state):
        """A folder to measure on. A copy where that is cheap, so that each round finds the same
        store; rounds leave their own finished jobs behind."""
        folder = self.folder(state)
        size = sum(os.path.getsize(os.path.join(path, name))
                   for path, _, names in os.walk(folder) for name in names)
        if size > COPY_BYTES_MAX:
            warm(folder)
            yield folder
            return
        given = folder + ".round"
        copy(folder, given)
        try:
            yield given
        finally:
            shutil.rmtree(given)
