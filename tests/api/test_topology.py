"""GET /ops/v1/topology: who may ask, and that it tells what is."""
import contextlib
import os
import signal
import time

import pytest
import yaml

from harness import machine, wire
from harness.engine_calls import UnixConnection
from harness.weir_server import wait_for

PATH = "/ops/v1/topology"
# seed 004: domain, supervisor's last word, intensity
MATRIX = {"root": "3/10s", "rooms": "20/60s", "agents": "10/60s", "instances": "6/30s",
          "instance_subtree": "5/30s", "outbound": "30/60s", "sessions": "15/60s", "operations": "10/60s"}
OPERATOR = "an-operators-secret-of-some-length"


def by_name(items):
    """A list of {"name": ...} as a dict."""
    return {item["name"]: item for item in items}


def test_it_shows_the_processes_that_run(weir):
    """[TOP-002] Every process is in the list with its domain and pid, and is a child of root."""
    told = weir.api("GET", PATH).expect(200)
    assert set(told) == {"processes", "domains", "pressure", "partitions", "slos", "signal_bus"}
    settled = ("running", "resting")
    wait_for(lambda: all(p["state"] in settled for p in weir.api("GET", PATH).json["processes"]), 10,
             "all to run", weir)
    processes = [p for p in weir.api("GET", PATH).json["processes"] if p["state"] == "running"]
    assert {p["pid"] for p in processes} == set(weir.pids())
    domains = {"core": "root", "runner": "agents", "gateway": "outbound", "replay": "operations"}
    for process in processes:
        assert set(process) == {"name", "domain", "pid", "state", "restarts", "started_at"}
        assert process["domain"] == domains[process["name"].split()[0]]
        with open(f"/proc/{process['pid']}/stat", encoding="ascii") as file:
            assert int(file.read().rsplit(")", 1)[1].split()[1]) == weir.process.pid


def agents(weir):
    """{name: pid} of the running processes of the agents' domain."""
    return {p["name"]: p["pid"] for p in weir.api("GET", PATH).expect(200)["processes"]
            if p["domain"] == "agents" and p["state"] == "running"}


@pytest.mark.parametrize("count", [1, 2])
def test_every_agent_is_a_worker_set_of_its_own(fresh_weir, count):
    """[TOP-006] One process each under the agents' supervisor, and each works under its own ids. The
    control: one agent is one."""
    weir = fresh_weir(settings={"runner.processes": count, "runner.workers": 2, "runner.time_scale": 0.01})
    key = weir.new_client().api_key
    wanted = {f"runner {n + 1}" for n in range(count)}
    wait_for(lambda: set(agents(weir)) == wanted, 10, f"{wanted}", weir)
    assert sorted(agents(weir).values()) == sorted(weir.pids("runner"))

    def sets():
        jobs = [weir.submit(key, work_kind="SUCCESS_FAST")["job_id"] for _ in range(8)]
        for job in jobs:
            weir.wait_final(key, job)
        starts = weir.logs(event="job_started")
        assert all(line["worker_id"].startswith(line["process"].replace(" ", "-")) for line in starts)
        return {line["process"] for line in starts}

    wait_for(lambda: sets() == wanted, 20, "work of each", weir)


@pytest.mark.sqlite_only("the open file tells who opened the store")
def test_core_is_the_child_that_opens_the_store(weir):
    """[TOP-010] Listed under root, and of all processes the only one with the store open: that a store which
    does not open ends there is shown by tests/faults/test_supervision_domains.py."""
    machine.need("looking_inside")
    processes = by_name(weir.api("GET", PATH).expect(200)["processes"])
    assert processes["core"]["domain"] == "root"
    path = os.path.realpath(os.path.join(weir.data, "weir.db"))

    def opened(pid):
        folder, found = f"/proc/{pid}/fd", []
        for fd in os.listdir(folder):
            with contextlib.suppress(FileNotFoundError):  # closed since
                found.append(os.readlink(os.path.join(folder, fd)))
        return found

    holders = {name for name, p in processes.items() if p["pid"] and path in opened(p["pid"])}
    assert holders == {"core"} and path not in opened(weir.process.pid)
    assert len(processes) >= 3


def test_every_domain_of_the_matrix_is_there_with_its_intensity(weir):
    """[TOP-011] [TOP-028] Also those whose processes come later: declared, with a supervisor of their own."""
    told = weir.api("GET", PATH).expect(200)
    domains = by_name(told["domains"])
    assert {name: d["intensity"] for name, d in domains.items()} == MATRIX
    assert {d["strategy"] for d in domains.values()} == {"one_for_one"}
    assert len({d["supervisor"] for d in domains.values()}) == len(MATRIX)
    used = {p["domain"] for p in told["processes"]}
    for name, domain in domains.items():
        assert domain["state"] == ("running" if name in used else "declared")
        assert domain["restarts_in_window"] == 0 and domain["owner"]
    assert "OutboundGateway" in domains["outbound"]["supervisor"]
    assert "SessionManager" in domains["sessions"]["supervisor"]
    assert "Onboarding" in domains["operations"]["supervisor"]
    assert "Replay" in domains["operations"]["supervisor"]


def test_a_restart_shows_in_the_topology_and_in_the_metrics(fresh_weir):
    weir = fresh_weir(settings={"runner.processes": 1})
    runner, = weir.wait_pids("runner", 1)
    assert weir.metric("weir_restarts_total", domain="agents") == 0
    os.kill(runner, signal.SIGKILL)
    new, = weir.wait_pids("runner", 1, other_than=[runner])
    wait_for(lambda: by_name(weir.api("GET", PATH).json["processes"])["runner 1"]["state"] == "running", 10,
             "the runner", weir)
    told = weir.api("GET", PATH).json
    assert by_name(told["processes"])["runner 1"]["pid"] == new
    assert by_name(told["processes"])["runner 1"]["restarts"] == 1
    assert by_name(told["domains"])["agents"]["restarts_in_window"] == 1
    assert weir.metric("weir_restarts_total", domain="agents") == 1
    assert weir.metric("weir_restarts_in_window", domain="agents") == 1
    assert weir.metric("weir_processes", domain="agents") == 1
    assert weir.metric("weir_processes", domain="sessions") == 0
    assert weir.metric("weir_failures_total", mode="process_ended", failure_class="recoverable") == 1
    assert weir.metric("weir_incidents_total") == 1
    assert weir.metric("weir_cascades_total") == 0


def test_a_cascade_that_takes_core_is_seen_by_the_next_one(fresh_weir):
    """[TOP-074] [TOP-075] The SLO, and with it the alert, knows of it for the rest of its five minutes. The
    control: a core that was killed alone leaves the SLO as it was."""
    weir = fresh_weir(settings={"runner.processes": 1})
    core, = weir.pids("core")
    os.kill(core, signal.SIGKILL)
    weir.wait_pids("core", 1, other_than=[core])
    weir.wait_ready()
    time.sleep(2.5)  # an incident's end; two looks at the SLOs
    assert weir.metric("weir_slo_level", slo="crash_containment") == 0
    core, = weir.pids("core")
    for pid in (*weir.pids("gateway"), core):
        os.kill(pid, signal.SIGKILL)
    weir.wait_pids("core", 1, other_than=[core])
    weir.wait_ready()
    wait_for(lambda: weir.metric("weir_slo_level", slo="crash_containment") == 2, 5, "the SLO", weir)
    assert weir.metric("weir_cascades_total") == 1
    assert weir.metric("weir_slo_value", slo="crash_containment") == 1


def test_partitions_of_every_domain_are_shown_with_what_they_hold(fresh_weir):
    """[TOP-091] Also where nobody works: an idle replay, ingest and session. The control: what a
    process reports is seen, in the answer and in the metrics."""
    weir = fresh_weir(settings={"runtime.cpus": 3, "runtime.partitions.replay": 4, "runner.processes": 0})
    assert {p["domain"]: (p["count"], p["depths"]) for p in weir.api("GET", PATH).json["partitions"]} == {
        "outbound": (8, [0] * 8), "ingest": (3, [0] * 3), "session": (8, [0] * 8), "replay": (4, [0] * 4)}
    assert weir.metric("weir_partitions", domain="session") == 8
    assert weir.metric("weir_partitions", domain="replay") == 4
    wait_for(lambda: len([q for q in weir.api("GET", PATH).json["pressure"]
                          if q["component"] == "outbound"]) == 8, 10, "the gateway", weir)
    queue = {"component": "ingest", "partition": 2, "depth": 5, "capacity": 10}
    body, kind = wire.encode({"process": "connector 1", "queues": [queue]})
    connection = UnixConnection(os.path.join(weir.data, "core.sock"))
    with contextlib.closing(connection):
        connection.request("POST", "/internal/v1/pressure", body, {"Content-Type": kind})
        assert connection.getresponse().status == 200
    ingest = next(p for p in weir.api("GET", PATH).json["partitions"] if p["domain"] == "ingest")
    assert ingest["depths"] == [0, 0, 5] and ingest["key"] == "instance_id:room_id"
    assert weir.metric("weir_partition_depth", domain="ingest", partition="2") == 5
    assert weir.metric("weir_partition_depth", domain="replay", partition="3") == 0


@pytest.fixture(scope="module")
def strict(module_weir):
    """Not dev: being on the same machine is not enough."""
    return module_weir(settings={"environment": "stage", "operator.token": OPERATOR})


def test_outside_of_dev_it_takes_a_credential(strict, weir):
    """The operator token, or a token of the role owner or Admin. The control: in dev anyone here may ask."""
    weir.api("GET", PATH).expect(200)
    strict.api("GET", PATH).expect_problem(401, "RFA_AUTH_INVALID_CREDENTIALS")
    strict.api("GET", PATH, key="junk").expect_problem(401, "RFA_AUTH_INVALID_CREDENTIALS")
    client = strict.api("POST", "/v1/clients", key=OPERATOR).expect(201)["client_id"]
    key = strict.api("POST", f"/v1/clients/{client}/keys", key=OPERATOR).expect(201)["api_key"]
    strict.api("GET", PATH, key=key).expect_problem(401, "RFA_AUTH_INVALID_CREDENTIALS")
    strict.api("GET", PATH, key=OPERATOR).expect(200)
    for role, status in (("Admin", 200), ("owner", 200), ("Engineer", 403), ("Worker", 403)):
        done = strict.cli("token", "mint", "--sub", "somebody", "--role", role, "--tenant", "acme",
                          "--set", "environment=stage")
        assert done.returncode == 0, done.stderr
        token = done.stdout.strip()
        answer = strict.api("GET", PATH, key=token)
        assert answer.status == status, (role, answer.text)


def test_only_an_operator_may_say_that_the_clock_is_right(strict, weir):
    """POST /ops/v1/clock:accept takes what the topology takes."""
    path = "/ops/v1/clock:accept"
    strict.api("POST", path).expect_problem(401, "RFA_AUTH_INVALID_CREDENTIALS")
    strict.api("POST", path, key="junk").expect_problem(401, "RFA_AUTH_INVALID_CREDENTIALS")
    assert strict.api("POST", path, key=OPERATOR).expect(200)["status"] == "accepted"
    assert weir.api("POST", path).expect(200)["status"] == "accepted"


def test_the_answer_is_what_the_contract_says(weir):
    contract = yaml.safe_load(weir.api("GET", "/openapi/ops.yaml").text)["components"]["schemas"]
    told = weir.api("GET", PATH).expect(200)
    for kind, items in (("Process", told["processes"]), ("Domain", told["domains"])):
        for item in items:
            assert set(item) == set(contract[kind]["properties"]) == set(contract[kind]["required"])
            assert item["state"] in contract[kind]["properties"]["state"]["enum"]


def test_a_damaged_status_file_is_an_error_and_heals(fresh_weir):
    weir = fresh_weir()
    settled = ("running", "resting")
    wait_for(lambda: all(p["state"] in settled for p in weir.api("GET", PATH).json["processes"]), 10,
             "all to run", weir)
    path = os.path.join(weir.data, "topology.json")
    with open(path, "rb") as file:
        good = file.read()
    for bad in (b"", b"{", b"[]", b"x" * 300000):
        with open(path, "wb") as file:
            file.write(bad)
        weir.api("GET", PATH).expect_problem(503, "RFA_STORAGE_UNAVAILABLE")
        assert weir.api("GET", "/metrics").status == 200
    with open(path, "wb") as file:
        file.write(good)
    weir.api("GET", PATH).expect(200)
