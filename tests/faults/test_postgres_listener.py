"""Core's listener to PostgreSQL loses its connection: it comes back by itself, and both are told."""
import time

import pytest

from harness.nodes import Nodes
from harness.partitions import failures
from harness.postgres import Postgres
from harness.postgres_proxy import Proxy
from harness.weir_server import wait_for

pytestmark = pytest.mark.postgres_only
LISTENER = "postgres listener"
# By its last query: a node says that it has joined when LISTEN was granted, and looks every 10 s.
LISTENS = "SELECT {} FROM pg_stat_activity WHERE query IN ('SELECT pg_notify(''weir'',$1)','SELECT 1')"


@pytest.fixture(name="database", scope="module")
def fixture_database():
    """A PostgreSQL that may be stopped."""
    with Postgres() as server:
        yield server


def test_a_listener_that_was_cut_off_listens_again(database):
    """[TOP-039] [TOP-041] [TOP-070] Its session is ended, then the whole database: tries with growing pauses,
    each told as recoverable; then that it is back. Core keeps its pid and takes jobs."""
    with Nodes(database, 1, {"gateway.processes": 0}) as (node,):
        key = node.new_client().api_key
        core = node.pids("core")
        wait_for(lambda: database.sql(LISTENS.format("pid")), 30, "a listener", node)
        assert not failures(node, "listener_disconnected")
        database.sql(LISTENS.format("pg_terminate_backend(pid)"))
        first = node.wait_log(event="weir.instance.connected", instance_id=LISTENER, timeout=30)
        lost = failures(node, "listener_disconnected")
        assert first["attempts"] == len(lost) and first["reason"] == "connection lost"
        database.stop_immediate()
        try:
            time.sleep(6)
        finally:
            database.start()
        wait_for(lambda: len(node.logs(event="weir.instance.connected", instance_id=LISTENER)) == 2, 60,
                 "it is back", node)
        lines = failures(node, "listener_disconnected")[len(lost):]
        assert {(e["component"], e["failure_class"], e["instance_id"]) for e in lines} == {
            ("core", "recoverable", LISTENER)}
        assert [e["attempt"] for e in lines] == list(range(1, len(lines) + 1)) and len(lines) >= 3
        elapsed = [e["elapsed_ms"] for e in lines]
        pauses = [later - earlier for earlier, later in zip(elapsed, elapsed[1:])]
        assert elapsed[0] == 0 and pauses[-1] > pauses[0] and max(pauses) <= 8000, pauses
        wait_for(lambda: node.try_submit(key, queue="nobody").status == 202, 30, "a job is taken", node)
        assert node.pids("core") == core


def test_a_listener_whose_listen_was_refused_asks_again(database):
    """As by a standby. [TOP-041] It is no listener before LISTEN was granted, and told as such."""
    with Proxy(database.port) as proxy:
        proxy.spoils = b"LISTEN"
        with Nodes(database, 1, {"gateway.processes": 0}, through=[proxy.port]) as (node,):
            wait_for(lambda: len(failures(node, "listener_disconnected")) >= 2, 30, "two refusals", node)
            assert proxy.cuts["spoilt"] >= 2
            proxy.spoils = None
            back = node.wait_log(event="weir.instance.connected", instance_id=LISTENER, timeout=30)
            assert back["attempts"] >= 2 and back["reason"] == "LISTEN refused"
            assert len(database.sql(LISTENS.format("pid"))) == 1
