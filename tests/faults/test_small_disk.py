"""The small disk is small, is seen by children only, and gives its room back."""

import errno
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from harness import machine
from small_disk import SmallDiskRefused, small_disk

pytestmark = [pytest.mark.sqlite_only("about the disk under the file"), machine.needs("mounts")]

WRITER = textwrap.dedent("""
    import sqlite3, sys
    db = sqlite3.connect(sys.argv[1] + "/w.db", isolation_level=None)
    db.execute("PRAGMA journal_mode=WAL"); db.execute("PRAGMA synchronous=FULL")
    db.execute("CREATE TABLE IF NOT EXISTS t(n INTEGER PRIMARY KEY, body BLOB)")
    for line in sys.stdin:
        n = int(line)
        try:
            db.execute("INSERT INTO t VALUES(?, zeroblob(8000))", (n,)); print("ok", flush=True)
        except sqlite3.OperationalError as e:
            print(e, db.execute("SELECT count(*) FROM t").fetchone()[0], flush=True)
""")


def test_a_full_disk_is_enospc_for_this_process_and_room_comes_back():
    with small_disk(1 << 20) as disk:
        assert 0 < disk.free_bytes() <= 1 << 20
        disk.fill()
        assert disk.free_bytes() == 0
        with pytest.raises(OSError) as refused:
            (disk.path / "more").write_bytes(b"x" * 5000)
        assert refused.value.errno == errno.ENOSPC
        disk.free()
        (disk.path / "more").write_bytes(b"x" * 5000)
        disk.fill(leave_bytes=65536)
        assert disk.free_bytes() == 65536


def test_a_running_child_hits_the_full_disk_keeps_what_it_acknowledged_and_resumes():
    with small_disk(4 << 20) as disk:
        child = subprocess.Popen([sys.executable, "-c", WRITER, str(disk.path)], text=True,
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE)

        def insert(n):
            child.stdin.write(f"{n}\n")
            child.stdin.flush()
            return child.stdout.readline().strip()

        assert insert(1) == "ok"
        disk.fill()
        assert insert(2) == "database or disk is full 1"
        disk.free()
        assert insert(3) == "ok"
        child.stdin.close()
        assert child.wait() == 0


def test_nothing_is_left_behind_and_nobody_outside_saw_it():
    with small_disk() as disk:
        here = disk.path
        (here / "mark").write_text("inside")
        assert str(here) in Path("/proc/self/mounts").read_text()
        parent = Path(f"/proc/{os.getppid()}/mounts").read_text()
        assert str(here) not in parent
    assert not here.exists()


def test_where_the_kernel_refuses_the_test_fails_and_does_not_pass():
    script = ("import small_disk\n"
              "small_disk._own_namespace = None\n"
              "def refuse(*args): raise PermissionError(1, 'refused')\n"
              "small_disk._call = refuse\n"
              "with small_disk.small_disk(): pass\n")
    ran = subprocess.run([sys.executable, "-B", "-c", script], cwd=Path(__file__).parent,
                         capture_output=True, text=True)
    assert ran.returncode != 0
    assert SmallDiskRefused.__name__ in ran.stderr
