"""Leases and a database that is away for longer than one lasts: workers could not beat, nothing is lost."""
import time

import pytest

from harness.nodes import Nodes
from harness.postgres import Postgres
from harness.weir_server import wait_for

pytestmark = pytest.mark.postgres_only
PATIENCE_SECONDS = 60
LEASE_SECONDS = 4
SETTINGS = {"queue.lease_ms": LEASE_SECONDS * 1000, "queue.heartbeat_ms": 1000, "runner.processes": 0,
            "gateway.processes": 0, "log.level": "info"}


@pytest.fixture(name="database", scope="module")
def fixture_database():
    """A PostgreSQL that may be stopped."""
    with Postgres() as server:
        yield server


def held_job(node, key, starts):
    """A job that a worker holds, started or not; (job_id, task)."""
    job_id = node.submit(key, queue="outside", retry="manual")["job_id"]
    task, = node.claim(key)
    if starts:
        assert node.tell("start", key, task)["ok"]
    return job_id, task


def away(database, seconds):
    """The database stops for so long."""
    database.stop_immediate()
    try:
        time.sleep(seconds)
    finally:
        database.start()


@pytest.mark.parametrize("restarts", [False, True], ids=["same core", "another core"])
def test_leases_that_ended_while_the_database_was_away_are_given_anew(database, restarts):
    """[JOB-143] A started and an unstarted task are still their worker's, with the same token; then the
    worker falls silent while the database is there, and loses both: the negative control."""
    with Nodes(database, 1, SETTINGS) as (node,):
        key = node.new_client().api_key
        held = [held_job(node, key, starts) for starts in (True, False)]
        if restarts:  # by the next start the database is away: it waits, and has seen nothing itself
            node.kill9_kind("core")
        away(database, LEASE_SECONDS + 1)
        node.wait_ready(PATIENCE_SECONDS)
        assert node.wait_log(PATIENCE_SECONDS, event="leases_given_anew")["count"] == 2
        for _ in range(6):  # for longer than it takes to look for leases that ended
            for _, task in held:
                told = wait_for(lambda task=task: beat(node, key, task), PATIENCE_SECONDS, "an answer", node)
                assert told["ok"], told
            time.sleep(0.5)
        (ran, _), (waited, _) = held
        assert node.job(key, ran)["state"] == "RUNNING" and node.job(key, waited)["state"] == "ASSIGNED"
        lost = node.wait_state(key, ran, "FAILED", timeout=PATIENCE_SECONDS)
        assert lost["error"]["code"] == "worker_lost"
        node.wait_state(key, waited, "QUEUED", timeout=PATIENCE_SECONDS)


def beat(node, key, task):
    """The result of a heartbeat; None when the server could not say."""
    item = {"task_id": task["task_id"], "token": task["token"]}
    answer = node.api("POST", "/worker/v1/heartbeat", {"tasks": [item]}, key)
    assert answer.status in (200, 503), answer
    return answer.json["results"][0] if answer.status == 200 else None
