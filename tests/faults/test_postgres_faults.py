"""Two nodes on one PostgreSQL, clients and workers on both, while nodes are killed and paused, the
database crashes and restarts, its sessions are terminated, and a proxy cuts around COMMIT: nothing
acknowledged is lost, nothing is done twice by one key, no task has two holders, everything ends."""
import os
import random
import signal
import subprocess
import threading
import time
from collections import Counter

import pytest

from harness.claims import Claim, Claims
from harness.history import History, list_jobs
from harness.nodes import Nodes
from harness.postgres import Postgres
from harness.postgres_proxy import Proxy
from harness.together import Crew
from harness.pace import Stopwatch
from harness.weir_server import wait_for
from kill_load import DELIVERIES, SETTINGS, drained, settle, the_judge_sees_a_planted_loss
from nodes_callbacks import Callbacks
from nodes_faults import READY_SECONDS_MAX, Trouble, crash_often, terminate_sessions
from nodes_load import OUTSIDE, NodesLoad, Workers, outside_half

LONG = os.environ.get("WEIR_TEST_LONG") == "1"
# How often the database crashes, and in which order things go wrong: both can be given by hand.
RESTARTS = int(os.environ.get("WEIR_TEST_RESTARTS", "2000" if LONG else "25"))
SEED = int(os.environ.get("WEIR_TEST_SEED", "11"))
LIMIT_SECONDS = 300 + 12 * RESTARTS
DRAIN_SECONDS_MAX = 300
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


def all_ready(nodes):
    """Waits for every node."""
    for node in nodes:
        node.wait_ready(READY_SECONDS_MAX)


def expect_sound(nodes, callbacks, history, claims):
    """The verdict; {job_id: (name, state)}."""
    all_ready(nodes)
    jobs = settle(nodes[0], callbacks.key, history, more=callbacks.fields)
    listed = {job["job_id"] for job in list_jobs(nodes[1], callbacks.key)}
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


@pytest.mark.limit(LIMIT_SECONDS)
def test_two_nodes_lose_nothing_while_everything_around_them_fails(database, proxies):
    """[JOB-003] [JOB-063] [JOB-070] [JOB-146] Kills, pauses, terminated sessions, cuts around COMMIT and
    crashes of the database, all at once."""
    history, claims = History(), Claims(SETTINGS["queue.lease_ms"] / 1000)
    through = [proxy.port for proxy in proxies]
    with Nodes(database, 2, {**SETTINGS, **DELIVERIES}, through) as nodes, \
            Callbacks(nodes[0], SEED) as callbacks:
        with Workers(nodes, callbacks.key, claims):
            with NodesLoad(nodes, callbacks.key, history, callbacks.fields, threads=6, pause=0.03), \
                    Trouble(nodes, proxies, SEED) as trouble:
                terminated = crash_often(RESTARTS, database, trouble, history, callbacks,
                                         random.Random(SEED))
            all_ready(nodes)
            drained(nodes[0], callbacks.key, DRAIN_SECONDS_MAX)  # before the workers go
        delivered = callbacks.expect_sound(nodes[1])
        jobs = expect_sound(nodes, callbacks, history, claims)
    cuts = sum((proxy.cuts for proxy in proxies), start=Counter())
    troubles = Counter(what for _, what in trouble.done.elements())
    print(f"seed {SEED}: {RESTARTS} crashes, {dict(troubles)}, {terminated} sessions ended, "
          f"cuts {dict(cuts)}; {len(jobs)} jobs, "
          f"{history.count('submit', 'unknown')} answers unknown, {len(claims.claims)} claims, "
          f"{delivered[0]} deliveries in {delivered[1]} requests")
    assert sum(cuts.values()) >= RESTARTS // 5 and terminated >= RESTARTS // 5, "hardly any cuts"
    assert len(jobs) >= 5 * RESTARTS, "hardly any load"
    the_judges_see_planted_faults(history, claims, jobs)


# ---- one thing at a time

STORMS = 8


@pytest.mark.tsan
def test_terminated_sessions_are_replaced_by_every_thread_that_had_one(database):
    """[JOB-146] Both lanes, the readers and the listener of a node lose their sessions again and again under
    load, and nothing else."""
    history, claims = History(), Claims(SETTINGS["queue.lease_ms"] / 1000)
    with Nodes(database, 1, {**SETTINGS, "store.lanes": 2}) as nodes:
        key = nodes[0].new_client().api_key
        with Workers(nodes, key, claims):
            with NodesLoad(nodes, key, history, threads=6, pause=0.01):
                for _ in range(STORMS):
                    seen = history.count("submit", "ok")
                    wait_for(lambda: terminate_sessions(database) >= 2, READY_SECONDS_MAX,
                             "two sessions to end at once", nodes[0])  # the last storm's may not be back yet
                    wait_for(lambda: history.count("submit", "ok") >= seen + 20, READY_SECONDS_MAX,
                             "submits after a storm", nodes[0])
            drained(nodes[0], key, DRAIN_SECONDS_MAX)
        settle(nodes[0], key, history, more=outside_half)
    assert not claims.faults(), claims.faults()[:20]


STORAGE_PROBLEMS = ("RFA_STORAGE_UNAVAILABLE", "RFA_STORAGE_DB_ERROR", "RFA_STORAGE_FSYNC")
# As the defaults are to each other. Later than the first, the server itself would have said 504.
IMPATIENT = {"server.request_timeout_ms": 2500, "store.timeout_ms": 1000, "runner.processes": 0}
ANSWER_SECONDS_MAX = 2.5 + 1.0  # a busy machine's
SUBMITTERS, HANGING_SECONDS = 4, 3


def expect_refused(answer, seconds):
    """In time, with a code and a time to come back."""
    assert answer.status == 503 and answer.json["code"] in STORAGE_PROBLEMS, answer
    assert int(answer.headers["retry-after"]) >= 1
    assert seconds < ANSWER_SECONDS_MAX


def timed(call, *args, **fields):
    """(the answer, the seconds it took, as a quiet machine has them)."""
    watch = Stopwatch()
    return call(*args, **fields), watch.quiet()


def expect_unavailable(node, key):
    """A submit and a read are refused."""
    for _ in range(2):
        expect_refused(*timed(node.try_submit, key, queue=OUTSIDE))
        expect_refused(*timed(node.api, "GET", "/v1/jobs", key=key))


class Submitters(Crew):
    """Submit all the time; `taken` are the acknowledged, `refused` the other answers with their seconds."""

    def __init__(self, node, key):
        super().__init__(SUBMITTERS)
        self.node, self.key = node, key
        self.taken, self.refused = [], []

    def run(self, _n):
        """One of them."""
        while not self.stopping.is_set():
            answer, seconds = timed(self.node.try_submit, self.key, queue=OUTSIDE)
            if answer.status == 202:
                self.taken.append(answer.json["job_id"])
            else:
                self.refused.append((answer, seconds))
                self.stopping.wait(0.05)


def recovered(node, key):
    """It is ready, and takes jobs; the id of one."""
    node.wait_ready(READY_SECONDS_MAX)
    wait_for(lambda: node.try_submit(key, queue=OUTSIDE, idempotency_key="again").status == 202,
             READY_SECONDS_MAX, "a submit", node)
    return node.submit(key, queue=OUTSIDE, idempotency_key="again")["job_id"]


@pytest.mark.parametrize("way", ["stopped", "refused"])
def test_a_database_that_is_gone_is_told_in_time_and_found_again(database, proxies, way):
    """[JOB-216] 503 with a code, readiness says so, the process lives; afterwards it goes on by itself, and
    everything that was acknowledged is there, nothing else."""
    proxy = proxies[0]
    with Nodes(database, 1, IMPATIENT, through=[proxy.port]) as (node,):
        key = node.new_client().api_key
        taken = [node.submit(key, queue=OUTSIDE)["job_id"] for _ in range(3)]
        if way == "stopped":
            database.stop_immediate()
        else:
            proxy.refusing = True
            proxy.cut_all()
        expect_unavailable(node, key)
        wait_for(lambda: node.api("GET", "/readyz").status == 503, READY_SECONDS_MAX, "not ready", node)
        assert node.api("GET", "/healthz").status == 200
        if way == "stopped":
            database.start()
        proxy.refusing = False
        taken.append(recovered(node, key))
        assert {job["job_id"] for job in list_jobs(node, key)} == set(taken)


def test_a_database_that_hangs_is_told_in_time_and_found_again(database):
    """[JOB-216] The same where nothing is refused and nothing is answered: submits under way, and later ones.
    What was refused may have happened, since nobody could find out; what was acknowledged has."""
    with Nodes(database, 1, IMPATIENT) as (node,):
        key = node.new_client().api_key
        with Submitters(node, key) as submitters:
            wait_for(lambda: len(submitters.taken) >= 20, READY_SECONDS_MAX, "submits", node)
            with database.hanging():
                wait_for(lambda: node.api("GET", "/readyz").status == 503, READY_SECONDS_MAX, "503", node)
                time.sleep(HANGING_SECONDS)
                expect_unavailable(node, key)
            seen = len(submitters.taken)
            wait_for(lambda: len(submitters.taken) >= seen + 20, READY_SECONDS_MAX, "submits again", node)
        assert len(submitters.refused) >= SUBMITTERS
        for answer, seconds in submitters.refused:
            expect_refused(answer, seconds)
        recovered(node, key)
        assert {job["job_id"] for job in list_jobs(node, key)} >= set(submitters.taken)


def test_reads_of_a_database_that_hangs_keep_no_loop_from_its_other_work(database):
    """[JOB-216] One request finds out, those behind it are refused at once. Whoever waits for the database
    longer than a loop may be silent is not taken for hanging itself."""
    settings = {"server.threads": 1, "store.timeout_ms": 3000, "runtime.heartbeat_timeout_ms": 1500,
                "runner.processes": 0, "gateway.processes": 0}
    with Nodes(database, 1, settings) as (node,):
        key = node.new_client().api_key
        core = node.pids("core")
        node.api("GET", "/v1/jobs", key=key)
        with database.hanging():
            took = []
            for _ in range(5):
                read = threading.Thread(target=node.api, args=("GET", "/v1/jobs"), kwargs={"key": key})
                read.start()
                time.sleep(0.2)
                answer, seconds = timed(node.api, "GET", "/healthz")
                assert answer.status == 200
                took.append(seconds)
                read.join()
                time.sleep(1.3)
        assert max(took[2:]) < 1.0, took
        node.wait_ready(READY_SECONDS_MAX)
        assert node.pids("core") == core


def test_a_lock_of_somebody_else_is_told_in_time(database):
    """[JOB-216] Nor does the server wait for it on and on."""
    with Nodes(database, 1, IMPATIENT) as nodes:
        node, key = nodes[0], nodes[0].new_client().api_key
        node.submit(key, queue=OUTSIDE)
        session = subprocess.Popen(database.psql(nodes.name), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   env=database.environment(), text=True)
        try:
            session.stdin.write("BEGIN; LOCK TABLE jobs; SELECT 'locked';\n")
            session.stdin.flush()
            assert session.stdout.readline().strip() == "locked"
            expect_refused(*timed(node.try_submit, key, queue=OUTSIDE))
        finally:
            session.stdin.close()
            session.wait()
        recovered(node, key)


def holder_of_duties(nodes):
    """(who has the duties, who has not)."""
    def found():
        lead = [bool(node.logs(event="duties_taken")) for node in nodes]
        return sum(lead) == 1 and (nodes[lead.index(True)], nodes[lead.index(False)])
    return wait_for(found, READY_SECONDS_MAX, "one holder of the duties", nodes[0])


TAKEOVER_SECONDS_MAX = 15  # a second until they are due, three of silence, and a busy machine


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
        before = time.monotonic()
        paused = holder.kill9_kind("core", signal.SIGSTOP) if way == "paused" else holder.kill9() or []
        for job_id in jobs:
            other.wait_state(key, job_id, "QUEUED", timeout=before + TAKEOVER_SECONDS_MAX - time.monotonic())
        assert other.logs(at_least=1, event="duties_taken")
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
