"""Two nodes on one PostgreSQL, clients and workers on both, while nodes are killed and paused, the
database crashes and restarts, its sessions are terminated, and a proxy cuts around COMMIT: nothing
acknowledged is lost, nothing is done twice by one key, no task has two holders, everything ends."""
import os
import random
import signal
import time
from collections import Counter

import pytest

from harness.claims import Claim, Claims
from harness.history import History, list_jobs
from harness.nodes import Nodes
from harness.postgres import Postgres
from harness.postgres_proxy import Proxy
from harness.weir_server import wait_for
from kill_load import SETTINGS, drained, settle, the_judge_sees_a_planted_loss
from nodes_load import OUTSIDE, NodesLoad, Workers, outside_half

LONG = os.environ.get("WEIR_TEST_LONG") == "1"
# How often the database crashes: `make test`, WEIR_TEST_RESTARTS=50 by hand, 2,000 in make test-long.
RESTARTS = int(os.environ.get("WEIR_TEST_RESTARTS", "2000" if LONG else "5"))
LIMIT_SECONDS = 120 + 12 * RESTARTS
READY_SECONDS_MAX = 60
pytestmark = pytest.mark.postgres_only


@pytest.fixture(name="database", scope="module")
def fixture_database():
    """A PostgreSQL that may be crashed: not the one other tests share."""
    with Postgres() as server:
        yield server


@pytest.fixture(name="proxies")
def fixture_proxies(database):
    """One for each node."""
    with Proxy(database.port, seed=1) as one, Proxy(database.port, seed=2) as two:
        yield [one, two]


class Faults:
    """What can go wrong, each as a method that leaves the system able to heal."""

    def __init__(self, nodes, database, proxies, rng):
        self.nodes, self.database, self.proxies, self.rng = nodes, database, proxies, rng
        self.done = {}

    def any(self):
        """One of them."""
        fault = self.rng.choice((self.kill_core, self.kill_node, self.pause_core,
                                 self.terminate_sessions, self.cut_connections))
        fault()
        self.done[fault.__name__] = self.done.get(fault.__name__, 0) + 1

    def kill_core(self):
        """-9 to one node's core; its root starts another."""
        for pid in self.rng.choice(self.nodes).pids("core"):
            os.kill(pid, signal.SIGKILL)

    def kill_node(self):
        """-9 to all processes of a node, and a new start."""
        node = self.rng.choice(self.nodes)
        node.kill9()
        node.spawn()

    def pause_core(self):
        """A core that stands still for longer than leases and the holder of duties may be silent."""
        pids = self.rng.choice(self.nodes).pids("core")
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(self.rng.choice((0.5, 2.0, 5.0)))
        for pid in pids:
            try:
                os.kill(pid, signal.SIGCONT)
            except ProcessLookupError:
                pass  # its root lost patience

    def terminate_sessions(self):
        """A storm of pg_terminate_backend."""
        for share in (0.3, 0.3, 1.0):
            self.database.kill_backends(share)
            time.sleep(0.05)

    def cut_connections(self):
        """The network of a node."""
        proxy = self.rng.choice(self.proxies)
        proxy.refusing = True
        proxy.cut_all()
        time.sleep(self.rng.random())
        proxy.refusing = False

    def crash_database(self):
        """Immediate stop, some time without it, recovery."""
        self.database.stop_immediate()
        time.sleep(self.rng.random() * 0.5)
        self.database.start()


def all_ready(nodes):
    """Waits for every node."""
    for node in nodes:
        node.wait_ready(READY_SECONDS_MAX)


def expect_sound(nodes, key, history, claims):
    """The verdict; {job_id: (name, state)}."""
    all_ready(nodes)
    jobs = settle(nodes[0], key, history, more=outside_half)
    listed = {job["job_id"] for job in list_jobs(nodes[1], key)}
    assert listed == set(jobs), "the nodes do not tell the same"
    assert not claims.faults(), claims.faults()[:20]
    nodes.stop()
    for node in nodes:
        done = node.cli("verify", timeout=600)
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    return jobs


def the_judges_see_planted_faults(history, claims, jobs):
    """The negative control, on the very histories of the run."""
    the_judge_sees_a_planted_loss(history, jobs)
    again = claims.claims[-1]
    claims.claims.append(Claim("twin", again.task, again.token, again.before, again.after))
    assert claims.faults()
    claims.claims.pop()
    assert not claims.faults()


def run_faults(faults, history):
    """RESTARTS times: two faults, then a crash of the database, after which submits must go on; all the
    while the proxies cut one COMMIT of a hundred."""
    for proxy in faults.proxies:
        proxy.late_s = 0.3
        proxy.arm("before", "after", "late", share=0.01)
    for _ in range(RESTARTS):
        for _ in range(2):
            faults.any()
            time.sleep(faults.rng.random() * 0.5)
        all_ready(faults.nodes)
        faults.crash_database()
        seen = history.count("submit", "ok")
        wait_for(lambda: history.count("submit", "ok") > seen, READY_SECONDS_MAX,
                 "submits after a crash of the database", faults.nodes[0])
    for proxy in faults.proxies:
        proxy.disarm()


@pytest.mark.limit(LIMIT_SECONDS)
def test_two_nodes_lose_nothing_while_everything_around_them_fails(database, proxies):
    """[JOB-003] [JOB-070] [JOB-146] Kills, pauses, terminated sessions, cuts around COMMIT and
    crashes of the database, all at once."""
    lease_s = SETTINGS["queue.lease_ms"] / 1000
    history, claims, rng = History(), Claims(lease_s), random.Random(11)
    with Nodes(database, 2, SETTINGS, through=[proxy.port for proxy in proxies]) as nodes:
        key = nodes[0].new_client().api_key
        faults = Faults(nodes, database, proxies, rng)
        with Workers(nodes, key, claims):
            with NodesLoad(nodes, key, history, threads=4, pause=0.02):
                run_faults(faults, history)
            all_ready(nodes)
            drained(nodes[0], key)  # before the workers go
        jobs = expect_sound(nodes, key, history, claims)
    cuts = sum((proxy.cuts for proxy in proxies), start=Counter())
    print(f"{RESTARTS} crashes, {faults.done}, cuts {dict(cuts)}; {len(jobs)} jobs, "
          f"{history.count('submit', 'unknown')} answers unknown, {len(claims.claims)} claims")
    assert sum(cuts.values()) >= RESTARTS, "the proxies cut nothing"
    assert len(jobs) >= 10 * RESTARTS, "hardly any load"
    the_judges_see_planted_faults(history, claims, jobs)


# ---- one thing at a time

STORAGE_PROBLEMS = ("RFA_STORAGE_UNAVAILABLE", "RFA_STORAGE_DB_ERROR", "RFA_STORAGE_FSYNC")
ANSWER_SECONDS_MAX = 60  # of a request whose timeout is 2 s


def expect_unavailable(node, key):
    """A submit and a read are refused in time, with a code and a time to come back."""
    for answer in (node.try_submit(key, queue=OUTSIDE), node.api("GET", "/v1/jobs", key=key)):
        assert answer.status == 503 and answer.json["code"] in STORAGE_PROBLEMS, answer
    assert int(node.try_submit(key, queue=OUTSIDE).headers["retry-after"]) >= 1


@pytest.mark.parametrize("way", ["stopped", "refused"])
def test_a_database_that_is_gone_is_told_in_time_and_found_again(database, proxies, way):
    """[JOB-216] 503 with a code, readiness says so, the process lives; afterwards it goes on by itself, and
    everything that was acknowledged is there, nothing else."""
    proxy = proxies[0]
    settings = {"server.request_timeout_ms": 2000, "store.timeout_ms": 1000, "runner.processes": 0}
    with Nodes(database, 1, settings, through=[proxy.port]) as (node,):
        key = node.new_client().api_key
        taken = [node.submit(key, queue=OUTSIDE)["job_id"] for _ in range(3)]
        if way == "stopped":
            database.stop_immediate()
        else:
            proxy.refusing = True
            proxy.cut_all()
        before = time.monotonic()
        expect_unavailable(node, key)
        assert time.monotonic() - before < ANSWER_SECONDS_MAX
        wait_for(lambda: node.api("GET", "/readyz").status == 503, READY_SECONDS_MAX, "not ready", node)
        assert node.api("GET", "/healthz").status == 200
        if way == "stopped":
            database.start()
        proxy.refusing = False
        node.wait_ready(READY_SECONDS_MAX)
        wait_for(lambda: node.try_submit(key, queue=OUTSIDE, idempotency_key="again").status == 202,
                 READY_SECONDS_MAX, "a submit", node)
        taken.append(node.submit(key, queue=OUTSIDE, idempotency_key="again")["job_id"])
        assert {job["job_id"] for job in list_jobs(node, key)} == set(taken)


def holder_of_duties(nodes):
    """(who has the duties, who has not)."""
    def found():
        lead = [bool(node.logs(event="duties_taken")) for node in nodes]
        return sum(lead) == 1 and (nodes[lead.index(True)], nodes[lead.index(False)])
    return wait_for(found, READY_SECONDS_MAX, "one holder of the duties", nodes[0])


@pytest.mark.parametrize("way", ["paused", "killed"])
def test_duties_go_on_when_their_holder_is_paused_or_killed(database, way):
    """[JOB-128] A schedule that comes due while the node with the duties stands still, or is gone, is kept
    by the other; when it wakes up, two of them do no harm."""
    settings = {"runner.processes": 0, "log.level": "info", "runtime.root.max_restarts": 100}
    with Nodes(database, 2, settings) as nodes:
        key = nodes[0].new_client().api_key
        holder, other = holder_of_duties(nodes)
        jobs = [other.submit(key, type="DEFERRED", execution_at=other.soon(1.0), queue=OUTSIDE)["job_id"]
                for _ in range(5)]
        paused = holder.kill9_kind("core", signal.SIGSTOP) if way == "paused" else holder.kill9() or []
        for job_id in jobs:
            other.wait_state(key, job_id, "QUEUED", timeout=READY_SECONDS_MAX)
        assert other.logs(event="duties_taken")
        for pid in paused:
            os.kill(pid, signal.SIGCONT)
        if way == "killed":
            holder.spawn()
        holder.wait_ready(READY_SECONDS_MAX)
        later = holder.submit(key, type="DEFERRED", execution_at=other.soon(0.5), queue=OUTSIDE)["job_id"]
        other.wait_state(key, later, "QUEUED", timeout=READY_SECONDS_MAX)
        for job_id in jobs + [later]:
            assert other.event_names(key, job_id) == ["job.created", "job.queued"]
        nodes.stop()
        assert nodes[0].cli("verify").returncode == 0
