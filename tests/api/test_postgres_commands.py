"""verify, doctor, backup and the settings with a PostgreSQL store. Only with --store postgres."""
import json

import pytest

from harness import postgres
from harness.weir_server import Weir

pytestmark = pytest.mark.postgres_only
NOT_THERE = "postgres://weir:hunter2@127.0.0.1:1/none"


def findings(weir, *args):
    """What `weir doctor` found, by check."""
    done = weir.cli("doctor", "-o", "json", *args)
    return done.returncode, {check["check"]: check for check in json.loads(done.stdout)["checks"]}


def with_password(url):
    """The same address; the server of the tests trusts any password."""
    return url.replace("postgres://weir@", "postgres://weir:hunter2@")


def test_verify_runs_beside_a_server_and_finds_a_changed_row(fresh_weir):
    """The second half is the negative control of the first."""
    weir = fresh_weir()
    _, key = weir.new_client()
    jobs = [weir.submit(key, work_kind="SUCCESS_FAST") for _ in range(5)]
    for job in jobs:
        weir.wait_state(key, job["job_id"], "SUCCEEDED")
    weir.submit(key, queue="outside")
    told = json.loads(weir.cli("verify", "-o", "json").stdout)
    assert (told["jobs"], told["live"], told["ended"], told["problems"]) == (6, 1, 5, 0)
    assert told["file"] is None and told["store"] == weir.settings["store.url"]
    postgres.session().sql("UPDATE ends SET attempt = 2 WHERE id = (SELECT min(id) FROM ends);",
                           database=weir.database)
    done = weir.cli("verify")
    assert done.returncode == 1 and "its row says attempt 2" in done.stderr


def test_doctor_looks_at_the_database(weir):
    """And leaves out what is about SQLite."""
    code, found = findings(weir)
    assert code == 0 and "SQLite" not in found
    assert found["PostgreSQL"]["found"].startswith("version ")
    assert found["PostgreSQL durability"]["found"] == \
        "fsync on, full_page_writes on, synchronous_commit on"
    assert found["PostgreSQL role"] == {"check": "PostgreSQL role", "result": "ok", "advice": None,
                                        "found": "schema public, may create tables"}
    assert found["PostgreSQL clock"]["result"] == "ok"
    assert found["database schema"]["found"].startswith("version ")


def test_doctor_names_what_is_wrong_with_a_role(weir):
    """A role that may not create tables, and a search path that leads nowhere."""
    database = postgres.session()
    name = database.fresh_database()
    database.sql("REVOKE CREATE ON SCHEMA public FROM PUBLIC, pg_database_owner;", database=name)
    code, found = findings(weir, "--store", database.url(name))
    assert code == 1 and "may not create tables in schema public" in found["PostgreSQL role"]["found"]
    code, found = findings(weir, "--store", database.url(name) + "?options=-csearch_path%3Dnowhere")
    assert code == 1 and "no schema of the search path exists" in found["PostgreSQL role"]["found"]
    database.drop_database(name)


# URLs that are none, each with "hunter" in its password.
NO_URLS = {
    "escape": "postgres://weir:hunter%zz@127.0.0.1/none",
    "bracket": "postgres://weir:hunter@[::1/none",
    "port": "postgres://weir:hunter@127.0.0.1:none/none",
    "at": "postgres://weir:my@hunter@127.0.0.1/none",
    "second at": "postgres://weir:my@@hunter@127.0.0.1/none",
    "slash": "postgres://weir:1/hunter@127.0.0.1/none",
    "at and slash": "postgres://weir:my@hunter/2@127.0.0.1/none",
}


@pytest.mark.parametrize("what", NO_URLS)
def test_no_command_tells_a_password_of_a_url_that_cannot_be_read(weir, tmp_path, what):
    """Nor a part of one that has an @ or a / in it; each says what to do."""
    url, free = NO_URLS[what], f"sqlite:{tmp_path}/free.db"
    advice = "store.url has an @" if url.count("@") > 1 or what == "slash" else "store.url is no URL"
    for command in (["doctor", "--store", url], ["verify", "--store", url],
                    ["store", "inbox", "--store", url], ["store", "events", "--store", url],
                    ["store", "copy", "--from", url, "--to", free],
                    ["store", "copy", "--from", free, "--to", url]):
        done = weir.cli(*command)
        assert done.returncode not in (0, 70) and "hunter" not in done.stdout + done.stderr, (command, done)
        assert advice in done.stdout + done.stderr or free in command[:4], (command, done)


def test_a_database_that_is_not_there_is_told_without_the_password(weir):
    """By doctor and verify with exit code 1; serve waits for it (tests/faults/test_postgres_start.py)."""
    code, found = findings(weir, "--store", NOT_THERE)
    assert code == 1 and found["PostgreSQL"]["result"] == "fail"
    assert "127.0.0.1" in found["PostgreSQL"]["found"] and "hunter2" not in json.dumps(found)
    done = weir.cli("verify", "--store", NOT_THERE)
    assert done.returncode == 1 and "postgres://weir:***@127.0.0.1:1/none: " in done.stderr
    assert "hunter2" not in done.stderr
    server = Weir(settings={"store.url": NOT_THERE}).spawn()
    try:
        assert "127.0.0.1" in server.wait_log(60, event="store_awaited")["error_message"]
        assert "hunter2" not in server.log_text()
        server.stop()
    finally:
        server.close()


def test_a_password_in_the_url_is_shown_nowhere(fresh_weir):
    """Neither at the start nor in the log, the settings, or the list of processes."""
    url = with_password(postgres.session().url(postgres.session().fresh_database()))
    weir = fresh_weir(settings={"store.url": url})
    told = weir.cli("config", "show", "--origin", "--store", url)
    assert "postgres://weir:***@127.0.0.1" in told.stdout and "hunter2" not in told.stdout
    assert "hunter2" not in weir.greeting("(postgres://weir:***@127.0.0.1")
    assert "hunter2" not in weir.log_text()
    for pid in weir.pids():
        with open(f"/proc/{pid}/cmdline", encoding="utf-8") as line:
            assert "hunter2" not in line.read()


def test_backup_and_restore_name_the_tools_of_postgresql(weir, tmp_path):
    """Exit code 2: the caller has to do something else."""
    for command in (["backup", str(tmp_path / "copy.db")], ["restore", str(tmp_path / "copy.db")]):
        done = weir.cli(*command)
        assert done.returncode == 2 and "pg_restore" in done.stderr
    assert not list(tmp_path.iterdir())
