"""A server whose database is away when it starts waits for it; one that could wait for ever ends at once
and says what to do. And what an outage tells those who ask: nothing of where the database is."""
import os
import subprocess

import pytest

from harness.nodes import Nodes
from harness.postgres import Postgres
from harness.weir_server import Weir, wait_for

pytestmark = pytest.mark.postgres_only
PATIENCE_SECONDS = 60
EXIT_CONFIG = 78
QUIET = {"runner.processes": 0, "gateway.processes": 0, "log.level": "info"}
# Roles that have to give a password: the server of the tests trusts `weir`.
ACCESS = "host all careful 127.0.0.1/32 scram-sha-256\n"
PASSWORD, WRONG = "right-hunter2", "wrong-hunter3"


@pytest.fixture(name="database", scope="module")
def fixture_database():
    """A PostgreSQL that may be stopped."""
    with Postgres() as server:
        with open(os.path.join(server.data, "pg_hba.conf"), "a", encoding="ascii") as file:
            file.write(ACCESS)
        server.sql(f"CREATE ROLE careful LOGIN PASSWORD '{PASSWORD}'; SELECT pg_reload_conf();")
        server.sql("CREATE ROLE poor LOGIN; GRANT poor TO weir;")
        yield server


@pytest.fixture(name="weir_at")
def fixture_weir_at():
    """weir_at(url): a server, not started; gone after the test."""
    made = []

    def make(url, **settings):
        made.append(Weir(store_url=url, settings={**QUIET, **settings}))
        return made[-1]
    yield make
    for server in made:
        server.close()


def listening(node):
    """True once it answers /healthz with 200."""
    assert node.process.poll() is None, node.log_tail()
    try:
        return node.api("GET", "/healthz").status == 200
    except OSError:
        return False


def expect_waiting(node):
    """What everybody who asks is told meanwhile."""
    wait_for(lambda: listening(node), PATIENCE_SECONDS, "a server that listens", node)
    ready = node.api("GET", "/readyz")
    assert (ready.status, ready.json["status"], ready.json["checks"]["store"]) == (503, "not_ready", "down")
    assert node.api("GET", "/startupz").status == 503
    for method, path in (("POST", "/v1/clients"), ("GET", "/v1/jobs"), ("POST", "/worker/v1/claim")):
        answer = node.api(method, path)
        answer.expect_problem(503, "RFA_STORAGE_UNAVAILABLE")
        assert int(answer.headers["retry-after"]) >= 1
    assert node.api("GET", "/v1/nothing").status == 404
    assert node.api("GET", "/metrics").status == 200 and node.api("GET", "/openapi/jobs.yaml").status == 200
    assert node.process.poll() is None


def test_a_server_that_starts_without_its_database_waits_and_serves_when_it_comes(database, weir_at):
    """[JOB-216] One line says what is awaited; nobody is restarted meanwhile, nothing has to be done."""
    url = database.url(database.fresh_database())
    database.stop()
    try:
        node = weir_at(url)
        node.spawn()
        expect_waiting(node)
        told = node.wait_log(PATIENCE_SECONDS, event="store_awaited")
        assert "see that PostgreSQL runs" in told["error_message"]
    finally:
        database.start()
    node.wait_ready(PATIENCE_SECONDS)
    assert node.api("GET", "/startupz").status == 200
    assert len(node.logs(event="process_started", name="core")) == 1
    awaited = [line["error_message"] for line in node.logs(event="store_awaited")]
    assert len(awaited) == len(set(awaited)), "the same reason was told twice"
    key = node.new_client().api_key
    assert node.submit(key, queue="outside")["state"]
    node.stop()


def test_a_database_that_comes_back_is_a_sample_of_the_time_that_took(database, weir_at):
    """[TOP-070] weir.instance.connected with its dimensions, and the SLO knows of it."""
    node = weir_at(database.url(database.fresh_database()))
    node.spawn()
    node.wait_ready(PATIENCE_SECONDS)
    key = node.new_client().api_key
    node.submit(key, queue="outside")
    database.stop()
    try:
        wait_for(lambda: node.try_submit(key, queue="outside").status == 503 and
                 node.metric("weir_store_writable") == 0, PATIENCE_SECONDS, "a commit that fails", node)
    finally:
        database.start()
    wait_for(lambda: node.try_submit(key, queue="outside").status == 202, PATIENCE_SECONDS, "202", node)
    line = node.wait_log(PATIENCE_SECONDS, event="weir.instance.connected", instance_id="database")
    assert line["attempts"] >= 1 and line["reason"]
    wait_for(lambda: node.metric("weir_slo_samples", slo="instance_reconnect_recovery") >= 1, 10, "it", node)
    assert node.metric("weir_slo_level", slo="instance_reconnect_recovery") == 0
    node.stop()


def test_a_server_that_waits_can_be_stopped_and_its_core_killed(database, weir_at):
    """SIGTERM ends it with 0 at once; a core that dies meanwhile is followed by one that waits too."""
    url = database.url(database.fresh_database())
    database.stop()
    try:
        node = weir_at(url)
        node.spawn()
        expect_waiting(node)
        first, = node.kill9_kind("core")
        node.wait_pids("core", 1, other_than=[first], timeout=PATIENCE_SECONDS)
        expect_waiting(node)
        node.stop()
    finally:
        database.start()


def ended(node):
    """The exit code and everything it said, of a server that ends by itself."""
    node.spawn()
    try:
        code = node.process.wait(timeout=PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        raise AssertionError(f"it waits:\n{node.log_tail()}") from None
    return code, node.log_text()


def newer_schema(database):
    """A database that a program of the future has had."""
    name = database.fresh_database()
    database.sql("CREATE TABLE marks(name text PRIMARY KEY, value bigint NOT NULL);"
                 "INSERT INTO marks VALUES('schema', 999); ALTER TABLE marks OWNER TO weir;", database=name)
    return database.url(name)


def no_rights(database):
    """A role that may connect and nothing else."""
    name = database.fresh_database()
    database.sql(f"GRANT CONNECT ON DATABASE {name} TO careful;")
    database.sql("REVOKE CREATE ON SCHEMA public FROM PUBLIC;", database=name)
    return database.url(name).replace("weir@", f"careful:{PASSWORD}@")


# What is wrong: the URL, and what is said of it.
PERMANENT = {
    "database": (lambda d: d.url("nothing"), "create the database"),
    "user": (lambda d: d.url().replace("weir@", "unknown@"), "pg_hba.conf"),
    "password": (lambda d: d.url().replace("weir@", f"careful:{WRONG}@"), "PGPASSWORD"),
    "no password": (lambda d: d.url().replace("weir@", "careful@"), "PGPASSWORD"),
    "rights": (no_rights, "give the role its rights"),
    "schema": (newer_schema, "run a newer weir"),
    "option": (lambda d: d.url() + "?sslmode=perhaps", "set store.url right"),
    "port": (lambda d: "postgres://weir@127.0.0.1:99999/weir", "store.url is no URL"),
    "no URL": (lambda d: "postgres://weir@[127.0.0.1/weir", "store.url is no URL"),
    "at": (lambda d: f"postgres://weir:my@{WRONG}@127.0.0.1/weir", "write it as %40"),
}


@pytest.mark.parametrize("what", PERMANENT)
def test_a_permanent_fault_ends_the_server_at_once_and_says_the_remedy(database, weir_at, what):
    """The negative control of the waiting. No password is ever told."""
    url, advice = PERMANENT[what]
    code, said = ended(weir_at(url(database)))
    assert code == EXIT_CONFIG and advice in said, said
    assert "store_awaited" not in said
    assert PASSWORD not in said and WRONG not in said


def test_answers_say_nothing_of_where_the_database_is(database):
    """[JOB-216] The log does: of an outage, and of a right that was taken away."""
    with Nodes(database, 1, {**QUIET, "store.timeout_ms": 1000}) as (node,):
        key = node.new_client().api_key
        node.submit(key, queue="outside")
        secrets = ("127.0.0.1", str(database.port), "weir@", f'"{nodes_name(node)}"', "role", "user ")
        database.stop()
        try:
            answers = [wait_for(lambda: refused(node, key), PATIENCE_SECONDS, "a refusal", node)
                       for _ in range(20)]
        finally:
            database.start()
        answers.append(node.api("GET", "/readyz"))
        for answer in answers:
            assert not [secret for secret in secrets if secret in answer.text], answer.text
        assert any("127.0.0.1" in line.get("error_message", "") for line in node.logs(level="error")), \
            "the log has nothing to hide, so this test proves nothing"
        node.wait_ready(PATIENCE_SECONDS)
        database.sql("REVOKE INSERT ON jobs FROM weir;", database=nodes_name(node))
        answer = wait_for(lambda: refused(node, key), PATIENCE_SECONDS, "a refusal", node)
        database.sql("GRANT INSERT ON jobs TO weir;", database=nodes_name(node))
        answer.expect_problem(503, "RFA_STORAGE_DB_ERROR")
        assert "permission" not in answer.text
        assert any("permission denied" in line.get("error_message", "") for line in node.logs(level="error"))


def nodes_name(node):
    """The database's name, from the URL."""
    return node.settings["store.url"].rpartition("/")[2]


def refused(node, key):
    """A problem that a submit or a read gets, or None."""
    for answer in (node.try_submit(key, queue="outside"), node.api("GET", "/v1/jobs", key=key)):
        if answer.status == 503:
            return answer
    return None
