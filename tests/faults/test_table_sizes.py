"""Months of low load leave the tables of PostgreSQL as large as what is kept: a day of small commits in
seconds, with a retention of one second, and autovacuum as the schema sets it up.

What would be without a vacuum is measured first, on a database where somebody holds an old snapshot: so much
each table grows by a job that comes and goes. That is the yardstick, and the negative control."""
import subprocess
import time
from contextlib import contextmanager

import pytest

from harness.nodes import Nodes
from harness.postgres import Postgres
from harness.together import Crew
from harness.weir_server import wait_for
from harness.worker_calls import Worker

# Jobs until retention and vacuum are at work, jobs that are measured, and tries that a busy machine has.
WARM_UP, MEASURED, TRIES = 5000, 100000, 3
UNCLEANED = 2200
SHARE_MAX = 0.3  # of the growth without a vacuum
SAMPLES = 5
SLACK_BYTES = 256 * 1024  # two at once that need a page get twenty more
THREADS, AT_ONCE, ROUND_SECONDS = 4, 4, 0.03  # 500 jobs and 800 commits a second
SETTINGS = {"jobs.retention_seconds": 1, "runner.processes": 0, "gateway.processes": 0,
            "jobs.max_active": 1000000, "jobs.queue_size": 1000000, "log.level": "warn"}
# Everything goes a thousand times faster than in life, so autovacuum looks every second, not every minute.
FASTER = {"autovacuum_naptime": "1s"}
LOAD_SECONDS_MAX = 1200
pytestmark = [pytest.mark.postgres_only, pytest.mark.long, pytest.mark.limit(3 * LOAD_SECONDS_MAX)]


@pytest.fixture(name="database", scope="module")
def fixture_database():
    """A PostgreSQL in a hurry."""
    with Postgres(FASTER) as server:
        yield server


class Days(Crew):
    """Jobs that come and go, a few in a commit: submit, claim, start, heartbeat, finish."""

    def __init__(self, node):
        super().__init__(THREADS)
        self.node, self.key = node, node.new_client().api_key
        self.ended = [0] * THREADS

    def run(self, n):
        """One client that is its own worker."""
        with Worker(self.node, self.key, queue=f"q{n}") as worker:
            while not self.stopping.is_set():
                next_round = time.monotonic() + ROUND_SECONDS
                self.submit(worker.kept, n, self.ended[n])
                tasks = worker.claim(AT_ONCE, wait_ms=5000)
                worker.start(tasks)
                worker.heartbeat(tasks)
                assert all(result["ok"] for result in worker.finish(tasks))
                self.ended[n] += len(tasks)
                time.sleep(max(0.0, next_round - time.monotonic()))

    @staticmethod
    def submit(kept, n, first):
        """The next ones."""
        jobs = [{"type": "EXECUTE", "queue": f"q{n}", "idempotency_key": f"{n}-{first + i}",
                 "payload": {"n": i}} for i in range(AT_ONCE)]
        kept.call("POST", "/v1/jobs:batch", {"jobs": jobs}).expect(202)

    @property
    def jobs(self):
        """How many have ended."""
        return sum(self.ended)

    def wait(self, more):
        """Until so many more have ended; how many it were."""
        before = self.jobs
        wait_for(lambda: self.faults or self.jobs >= before + more, LOAD_SECONDS_MAX, f"{more} jobs",
                 self.node)
        return self.jobs - before


@contextmanager
def old_snapshot(database, name):
    """Somebody else's transaction that never ends: nothing that it may see is cleaned up."""
    session = subprocess.Popen(database.psql(name), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                               env=database.environment())
    try:
        session.stdin.write("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM jobs;\n")
        session.stdin.flush()
        assert session.stdout.readline().strip() == "0"
        yield
    finally:
        session.kill()
        session.communicate()


def sizes(database, name):
    """{table: bytes}, indexes and all."""
    rows = database.sql("SELECT relname, pg_total_relation_size(oid) FROM pg_class WHERE relkind = 'r' "
                        "AND relnamespace = 'public'::regnamespace;", name)
    return {table: int(size) for table, size in (row.split("|") for row in rows)}


def smallest(database, name, days, jobs):
    """The smallest size of each table while so many jobs end: a vacuum gives pages back now and then."""
    found = sizes(database, name)
    for _ in range(SAMPLES):
        days.wait(jobs // SAMPLES)
        found = {table: min(size, found[table]) for table, size in sizes(database, name).items()}
    return found


def growth(database, name, days, jobs):
    """{table: bytes a job} from the first quarter of so many jobs to the last, and how many are between."""
    began = days.jobs
    before = smallest(database, name, days, jobs // 4)
    days.wait(jobs // 2)
    count = days.jobs - began
    after = smallest(database, name, days, jobs // 4)
    return {table: (after[table] - before[table]) / count for table in after}, count


def too_much(grown, count, unbounded):
    """The tables that keep more than a share of what passes through them."""
    return {table: (round(by, 1), round(unbounded[table], 1)) for table, by in grown.items()
            if by > SHARE_MAX * unbounded[table] and by * count > SLACK_BYTES}


def without_vacuum(database):
    """The yardstick."""
    with Nodes(database, 1, SETTINGS) as nodes, old_snapshot(database, nodes.name), Days(nodes[0]) as days:
        days.wait(UNCLEANED // 10)
        grown, count = growth(database, nodes.name, days, UNCLEANED)
    print({table: round(by) for table, by in grown.items() if by}, "bytes a job that nobody cleans up")
    assert set(too_much(grown, count, grown)) >= {"tasks", "jobs", "ends", "log", "client_deltas"}
    return grown


def test_tables_do_not_grow_with_what_has_passed_through_them(database):
    """[JOB-297] See the module's text."""
    unbounded = without_vacuum(database)
    with Nodes(database, 1, SETTINGS) as nodes, Days(nodes[0]) as days:
        days.wait(WARM_UP)
        for _ in range(TRIES):
            began = time.monotonic()
            grown, count = growth(database, nodes.name, days, MEASURED)
            found = too_much(grown, count, unbounded)
            shown = {table: round(by, 1) for table, by in grown.items() if by}
            print(f"{count} jobs in {time.monotonic() - began:.1f} s: bytes a job {shown}")
            if not found:
                break
        assert not found, f"grown by (bytes a job, without any vacuum): {found}"
