"""The PostgreSQL cluster of the benchmark: a real one, started as the row `idle` starts it."""
import os
import subprocess
import sys
import tempfile

import pytest

from harness import machine

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(os.path.dirname(os.path.dirname(HERE)), "bench")]
from subjects import server  # noqa: E402  (needs the path above)
from subjects.peer import LeftOut  # noqa: E402
from subjects.postgres import LOGGED, Cluster, can_reach, logged_statements  # noqa: E402


@pytest.fixture(name="cluster", scope="module")
def running_cluster():
    """A cluster whose statements are counted; stopped at the end."""
    machine.need("second_user")
    try:
        cluster = Cluster()
    except LeftOut as why:
        pytest.skip(str(why))
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o711)
        if not can_reach(folder):
            pytest.skip("PostgreSQL's user cannot reach the temporary folder")
        cluster.make(os.path.join(folder, "cluster"))
        postmaster = server.Server(cluster.command(server.free_port(), *LOGGED), os.path.join(folder, "log"),
                                   cluster.is_ready, **cluster.popen())
        cluster.log_path = postmaster.log_path
        try:
            yield cluster
        finally:
            postmaster.stop(cluster.stop_signal)


def send(cluster, program, script, *options):
    """A script through a program of PostgreSQL's."""
    place = ["-h", "127.0.0.1", "-p", str(cluster.port), "-U", "postgres"]
    subprocess.run([f"{cluster.binaries}/{program}", *place, *options], input=script, text=True, check=True,
                   capture_output=True, cwd="/")


def counted(cluster, before):
    """What came in since."""
    found = logged_statements(cluster.log_path)
    found.subtract(before)
    return dict(+found)


def test_every_statement_of_a_client_is_counted_and_no_other(cluster):
    before = logged_statements(cluster.log_path)
    send(cluster, "psql", "select 1;\n" * 3 + "select 'a\n@postgres@LOG:  statement: b';\n", "-Xq")
    send(cluster, "psql", "select 4;\n", "-Xq", "-d", "template1")
    assert counted(cluster, before) == {"select 1;": 3, "select 'a": 1}


def test_prepared_statements_are_counted_each_time(cluster):
    before = logged_statements(cluster.log_path)
    send(cluster, "pgbench", "begin;\nselect 2;\ncommit;\n", "-n", "-M", "prepared", "-t", "5", "-f",
         "/dev/stdin", "postgres")
    found = counted(cluster, before)
    assert [found[text] for text in ("begin;", "select 2;", "commit;")] == [5, 5, 5]


def test_durability_is_what_initdb_sets_and_a_cluster_is_made_once(cluster):
    shown = [cluster.ask(f"show {name}") for name in ("fsync", "synchronous_commit", "full_page_writes")]
    assert shown == ["on", "on", "on"]
    cluster.ask("create table kept as select generate_series(1, 10000) as n")
    cluster.make(cluster.folder)
    assert cluster.ask("select count(*) from kept") == "10000"
    cluster.begin_growth()
    cluster.ask("insert into kept select generate_series(1, 100000)")
    cluster.checkpoint()
    assert cluster.grown_bytes() > 1000000
