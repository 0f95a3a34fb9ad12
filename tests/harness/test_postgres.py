"""The harness's PostgreSQL and the proxy before it do what they say: each fault really happens, there
and nowhere else."""
import os
import subprocess
import time

import pytest

from harness import machine, processes
from harness.postgres import NoPostgres, Postgres, find_binaries
from harness.postgres_proxy import Proxy, is_commit, messages

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
pytestmark = pytest.mark.postgres_only
WITH_POSTGRES = os.path.join(REPOSITORY, "tools", "with_postgres")
SCRIPTS = {
    "simple": "BEGIN;\nINSERT INTO seen VALUES (1);\nCOMMIT;\n",
    "pipeline": "\\startpipeline\nBEGIN;\nINSERT INTO seen VALUES (1);\nCOMMIT;\n\\endpipeline\n",
}


@pytest.fixture(scope="module")
def database():
    """One PostgreSQL for this file."""
    find_binaries_or_skip()
    with Postgres() as server:
        yield server


@pytest.fixture
def name(database):  # pylint: disable=redefined-outer-name
    """A database with a table `seen`."""
    made = database.fresh_database()
    database.sql("CREATE TABLE seen (n int);", made, user="weir")
    yield made
    database.drop_database(made)


def transaction(database, name, port, script):  # pylint: disable=redefined-outer-name
    """One transaction through a proxy, by another client than Weir; True when it was told success."""
    path = os.path.join(database.home, "script-" + script)
    with open(path, "w", encoding="ascii") as file:
        file.write(SCRIPTS[script])
    mode = "prepared" if script == "pipeline" else "simple"
    done = subprocess.run(
        [os.path.join(database.folder, "pgbench"), "-n", "-c", "1", "-t", "1", "-M", mode, "-f", path,
         database.url(name, port)], env=database.environment(), capture_output=True, text=True,
        check=False, timeout=60)
    return done.returncode == 0


def seen(database, name):  # pylint: disable=redefined-outer-name
    """How many transactions are in the database."""
    return int(database.sql("SELECT count(*) FROM seen;", name)[0])


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_proxy_that_is_not_armed_changes_nothing(database, name, script):
    """The control of the next tests."""
    with Proxy(database.port) as proxy:
        assert transaction(database, name, proxy.port, script)
        assert seen(database, name) == 1 and not proxy.cuts


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("place,committed", [("before", 0), ("after", 1), ("late", 1)])
def test_a_commit_is_cut_exactly_there(database, name, script, place, committed):
    """The client is told of a failure each time; what the server did differs by the place."""
    with Proxy(database.port) as proxy:
        proxy.arm(place, count=1)
        assert not transaction(database, name, proxy.port, script)
        deadline = time.monotonic() + 30
        while not proxy.cuts and time.monotonic() < deadline:
            time.sleep(0.01)
        assert dict(proxy.cuts) == {place: 1}
        while seen(database, name) < committed and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.1 if place == "before" else 0)
        assert seen(database, name) == committed
        assert transaction(database, name, proxy.port, script), "only one was to be cut"


def test_a_late_commit_is_not_there_at_once(database, name):
    """Who looks right after the cut finds nothing, and something later."""
    with Proxy(database.port) as proxy:
        proxy.late_s = 3.0
        proxy.arm("late", count=1)
        assert not transaction(database, name, proxy.port, "pipeline")
        at_once = seen(database, name)
        deadline = time.monotonic() + 60
        while not seen(database, name) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert (at_once, seen(database, name)) == (0, 1)


def test_transactions_that_only_read_are_left_alone(database, name):
    """Unless they are asked for."""
    reading = "BEGIN; SELECT 1; COMMIT;"
    with Proxy(database.port) as proxy:
        session = [os.path.join(database.folder, "psql"), "-XqAt", "-c", reading,
                   database.url(name, proxy.port)]
        proxy.arm("before")
        subprocess.run(session, check=True, capture_output=True, env=database.environment())
        proxy.arm("before", writers_only=False)
        cut = subprocess.run(session, check=False, capture_output=True, env=database.environment())
        assert cut.returncode != 0


def test_commits_are_found_in_texts():
    """And nothing else is."""
    assert is_commit("COMMIT") and is_commit(" commit;") and is_commit("BEGIN; SELECT 1; COMMIT")
    assert not is_commit("INSERT INTO commits VALUES ('COMMIT')") and not is_commit(None)
    whole = b"Q\0\0\0\x0bCOMMIT\0"
    assert [m[:2] for m in messages(whole + whole[:7])] == [("Q", b"COMMIT\0")]


def test_an_immediate_stop_loses_nothing_committed_and_keeps_the_port(database, name):
    """Rows, port and role are there again after a crash recovery."""
    port = database.port
    database.sql("INSERT INTO seen VALUES (1);", name, user="weir")
    database.restart()
    assert database.port == port and seen(database, name) == 1


def test_terminated_backends_are_really_gone(database, name):
    """Only weir's are hit."""
    sleeper = subprocess.Popen(
        [os.path.join(database.folder, "psql"), "-XqAt", "-c", "SELECT pg_sleep(600)",
         database.url(name)], env=database.environment(), stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE)
    hit = 0
    deadline = time.monotonic() + 30
    while not hit and time.monotonic() < deadline:
        hit = database.kill_backends()
    assert hit == 1 and sleeper.wait(timeout=30) != 0
    sleeper.stderr.close()


def test_weir_is_no_superuser_and_the_superuser_has_no_network(database):
    """Least privilege, so that a statement that needs more fails here and not at a user's."""
    assert database.sql("SELECT rolsuper OR rolcreatedb OR rolcreaterole FROM pg_roles "
                        "WHERE rolname = 'weir';") == ["f"]
    done = subprocess.run(
        [os.path.join(database.folder, "psql"), "-XqAt", "-c", "SELECT 1",
         database.url().replace("weir@", "postgres@")], env=database.environment(),
        capture_output=True, text=True, check=False)
    assert done.returncode != 0 and "pg_hba" in done.stderr
    assert os.geteuid() != 0 or processes.read_text(
        f"/proc/{database.process.pid}/status").split("Uid:")[1].split()[0] != "0"


def test_with_postgres_gives_the_code_of_its_command_and_leaves_nothing():
    """The address works while the command runs; then server and files are gone."""
    script = 'psql -XqAt -c "SELECT 40 + 2" "$WEIR_TEST_POSTGRES"; ps -eo args | ' \
             'sed -n "s,.*postgres -D \\(/[^ ]*\\) -p ${WEIR_TEST_POSTGRES##*:}.*,\\1,p"; exit 5'
    env = {**os.environ, "PATH": find_binaries_or_skip() + ":" + os.environ["PATH"]}
    done = subprocess.run([WITH_POSTGRES, "sh", "-c", script], env=env, capture_output=True,
                          text=True, check=False, timeout=120)
    assert done.returncode == 5, done
    assert "42" in done.stdout


def find_binaries_or_skip():
    """Where PostgreSQL is, when somebody may run it."""
    machine.need("second_user")
    try:
        return find_binaries()
    except NoPostgres as why:
        pytest.skip(str(why))
        raise


def test_with_postgres_ended_by_a_signal_leaves_no_server():
    """SIGTERM to it ends command and server; a killed one takes its server along."""
    find_binaries_or_skip()
    for number, code in ((15, 143), (9, -9)):
        running = subprocess.Popen([WITH_POSTGRES, "sh", "-c", "echo up; exec sleep 600"],
                                   stdout=subprocess.PIPE, text=True)
        assert running.stdout.readline() == "up\n"
        family = processes.descendants(running.pid)
        servers = [pid for pid in family if "postgres" in processes.title(pid)]
        assert servers
        running.send_signal(number)
        assert running.wait(timeout=60) == code
        running.stdout.close()
        left = processes.wait_gone(servers, 30)
        for pid in processes.wait_gone(family, 0):
            os.kill(pid, 9)  # the command of a killed one is nobody's
        assert not left
