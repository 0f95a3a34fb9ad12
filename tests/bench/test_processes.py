"""What the benchmark reads of process trees: real processes, each made to do a known thing."""
import os
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(os.path.dirname(os.path.dirname(HERE)), "bench")]
from measure import processes  # noqa: E402  (needs the path above)

BURN = "import os\nwhile sum(os.times()[:2]) < 0.5: pass\n"
# Says when its child has ended, and stays.
PARENT = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {BURN!r}])\n" \
         "print('ended', flush=True)\nsys.stdin.read()\n"


def test_what_an_ended_child_used_is_counted():
    with subprocess.Popen([sys.executable, "-c", PARENT], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as parent:
        assert parent.stdout.readline() == b"ended\n"
        cpu = processes.thread_cpu([parent.pid])
        parent.stdin.close()
    assert sum(cpu[processes.ENDED]) >= 0.4


def test_a_process_that_ends_meanwhile_is_counted_once():
    before = {"worker": (5.0, 1.0), processes.ENDED: (0.0, 0.0), "main": (1.0, 1.0)}
    after = {processes.ENDED: (7.0, 1.0), "main": (1.0, 1.0)}
    spent = processes.cpu_between(before, after)
    assert "main" not in spent
    assert sum(part["user_s"] + part["system_s"] for part in spent.values()) == 2.0


def test_two_trees_are_added_up():
    with subprocess.Popen(["sleep", "60"]) as one, subprocess.Popen(["sleep", "60"]) as other:
        try:
            assert processes.tree([one.pid, other.pid]) == [one.pid, other.pid]
            assert processes.memory_mb([one.pid, other.pid])["processes"] == 2
            alone = processes.memory_mb([one.pid])["rss"]
            assert processes.memory_mb([one.pid, other.pid])["rss"] > alone > 0
        finally:
            one.kill()
            other.kill()


@pytest.mark.parametrize("title, name", [
    ("postgres: walwriter ", "postgres walwriter"), ("postgres: checkpointer ", "postgres checkpointer"),
    ("postgres: autovacuum worker weir", "postgres autovacuum worker"),
    ("postgres: weir weir 127.0.0.1(40000) COMMIT", "postgres backend"), ("sleep", "main")])
def test_the_processes_of_postgresql_are_told_apart(title, name):
    with subprocess.Popen([title, "60"], executable="/bin/sleep") as process:
        try:
            assert name in processes.thread_cpu([process.pid])
        finally:
            process.kill()
