"""What goes wrong with several nodes on one PostgreSQL, all at the same time.

Each node has a thread of Trouble: killed, paused, cut off, one after the other, each followed until the node
is ready again. Meanwhile crash() takes the database away from under all of them, and the proxies cut around
COMMITs. Nothing here needs luck to happen: the kinds of trouble take turns in a shuffled order."""
import os
import random
import signal
import time
from collections import Counter

from harness.together import Crew
from harness.weir_server import wait_for

READY_SECONDS_MAX = 60
# Longer than a lease, than the holder of duties may be silent, and than clients wait: each now and then.
PAUSES_SECONDS = (0.5, 1.5, 4.0)
PEACE_SECONDS = 1.5
DOWN_SECONDS_MAX = 0.3
CUT_SHARE, LATE_SECONDS = 0.05, 0.3
SUBMITS_BETWEEN = 12
CRASHES_TOLD = 100  # a line after so many: a long run shows where it is


class Trouble(Crew):
    """See the module's text. `done` counts what has happened and was survived."""

    def __init__(self, nodes, proxies, seed):
        super().__init__(len(nodes))
        self.nodes, self.proxies, self.seed = nodes, proxies, seed
        self.done = Counter()
        self.kinds = (self.kill_core, self.kill_node, self.pause_core, self.cut_off)

    def run(self, n):
        """The life of node n."""
        rng, turn = random.Random(self.seed + n), []
        while not self.stopping.is_set():
            turn = turn or rng.sample(self.kinds, len(self.kinds))
            what = turn.pop()
            what(n, rng)
            self.nodes[n].wait_ready(READY_SECONDS_MAX)
            self.done[n, what.__name__] += 1
            self.stopping.wait(rng.random() * PEACE_SECONDS)

    def saw_everything(self):
        """Whether every kind has happened to every node."""
        return len(self.done) == len(self.nodes) * len(self.kinds)

    def kill_core(self, n, _rng):
        """-9 to the node's core; its root starts another."""
        self.nodes[n].kill9_kind("core")

    def kill_node(self, n, _rng):
        """-9 to all processes of the node, and a new start."""
        self.nodes[n].kill9()
        self.nodes[n].spawn()

    def pause_core(self, n, rng):
        """A core that stands still while the others go on."""
        pids = self.nodes[n].kill9_kind("core", signal.SIGSTOP)
        time.sleep(rng.choice(PAUSES_SECONDS))
        for pid in pids:
            try:
                os.kill(pid, signal.SIGCONT)
            except ProcessLookupError:
                pass  # its root lost patience

    def cut_off(self, n, rng):
        """The node's network."""
        self.proxies[n].refusing = True
        self.proxies[n].cut_all()
        time.sleep(rng.random())
        self.proxies[n].refusing = False


def terminate_sessions(database):
    """A storm of pg_terminate_backend; how many were hit."""
    return sum(database.kill_backends(share) for share in (0.3, 0.3, 1.0))


def crash(database, rng):
    """Immediate stop, some time without it, recovery."""
    database.stop_immediate()
    time.sleep(rng.random() * DOWN_SECONDS_MAX)
    database.start()


def crash_often(times, database, trouble, history, callbacks, rng):
    """So many crashes, and a storm before every second one; after each, work goes on. The proxies cut a
    small share of the COMMITs all the while. How many sessions the storms ended."""
    terminated = 0
    for proxy in trouble.proxies:
        proxy.late_s = LATE_SECONDS
        proxy.arm("before", "after", "late", share=CUT_SHARE)
    for n in range(times):
        if n % 2:
            terminated += terminate_sessions(database)
        crash(database, rng)
        seen = history.count("submit", "ok")
        wait_for(lambda: history.count("submit", "ok") >= seen + SUBMITS_BETWEEN, READY_SECONDS_MAX,
                 "submits after a crash of the database", trouble.nodes[0])
        if (n + 1) % CRASHES_TOLD == 0:
            print(f"{n + 1} of {times} crashes, {seen} jobs, {callbacks.taken()} deliveries", flush=True)
    wait_for(lambda: trouble.faults or trouble.saw_everything(), 2 * READY_SECONDS_MAX,
             "every kind of trouble")
    for proxy in trouble.proxies:
        proxy.disarm()
    return terminated
