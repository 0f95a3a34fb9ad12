"""Probes, metrics, contracts and the log lines of requests."""
import json
import re
import uuid
from datetime import datetime

import pytest
import yaml

from harness.weir_server import wait_for

TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z$")


@pytest.fixture(scope="module")
def idle(module_weir):
    """No worker at all, and every log line."""
    return module_weir(settings={"runner.processes": 0, "log.level": "debug"})


def test_the_probes_answer_without_a_key(weir):
    for path, status in (("/healthz", "ok"), ("/readyz", "ready"), ("/startupz", "started")):
        body = weir.api("GET", path).expect(200)
        assert body["status"] == status and TIME.match(body["timestamp"])
        weir.api("GET", path, key="junk", headers={"Accept": "*/*"}).expect(200)


def test_readiness_tells_about_store_and_workers(weir, idle):
    wait_for(lambda: weir.api("GET", "/readyz").json["checks"]["workers"] == "ok", 10, "workers")
    assert weir.api("GET", "/readyz").expect(200)["checks"] == {
        "store": "ok", "workers": "ok", "pressure": "normal"}
    assert idle.api("GET", "/readyz").expect(200)["checks"] == {
        "store": "ok", "workers": "degraded", "pressure": "normal"}


def test_zero_workers_are_told_only_when_asked_for(weir, idle):
    """[JOB-218] 503 RFA_EXEC_WORKER_UNAVAILABLE on readiness; a submit is accepted all the same."""
    answer = idle.api("GET", "/readyz?require=workers")
    answer.expect_problem(503, "RFA_EXEC_WORKER_UNAVAILABLE")
    assert int(answer.headers["retry-after"]) >= 1
    idle.api("GET", "/readyz?require=nothing").expect(200)
    idle.submit(idle.new_client().api_key, queue="o")
    wait_for(lambda: weir.api("GET", "/readyz?require=workers").status == 200, 10, "workers")


def test_the_contracts_are_served_as_the_files_are(weir):
    for name, base in (("jobs", "/v1/"), ("worker", "/worker/v1/"), ("engine", "/engine/v1/"), ("ops", "/")):
        answer = weir.api("GET", f"/openapi/{name}.yaml")
        assert answer.status == 200 and "yaml" in answer.headers["content-type"]
        contract = yaml.safe_load(answer.text)
        assert contract["openapi"].startswith("3.1")
        assert all(path.startswith(base) for path in contract["paths"])
    for name in ("jobs", "jobs.yml", "../jobs.yaml", "x.yaml", "jobs.yaml.yaml", ".yaml", "%2e"):
        assert weir.api("GET", f"/openapi/{name}").status == 404


@pytest.mark.parametrize("path, accept, status", [
    ("/openapi/jobs.yaml", "application/yaml", 200), ("/openapi/jobs.yaml", "*/*", 200),
    ("/openapi/jobs.yaml", "text/plain", 200), ("/openapi/jobs.yaml", "application/json", 406),
    ("/metrics", "text/plain;version=0.0.4;q=0.5,*/*;q=0.1", 200), ("/metrics", "application/json", 406),
    ("/metrics", "application/openmetrics-text;version=1.0.0", 200), ("/metrics", "text/html", 406),
    ("/healthz", "application/json", 200), ("/readyz", "text/plain", 200), ("/healthz", "image/png", 406),
])
def test_accept_is_met_with_what_the_page_is(weir, path, accept, status):
    answer = weir.api("GET", path, headers={"Accept": accept})
    if status == 200:
        assert answer.status == 200
    else:
        problem = answer.expect_problem(406, "RFA_REQUEST_NOT_ACCEPTABLE")
        assert "this call answers" in problem["detail"]


def test_metrics_are_prometheus_text(weir, client):
    weir.submit(client.api_key, work_kind="SUCCESS_FAST")
    answer = weir.api("GET", "/metrics", headers={"Accept": "text/plain; version=0.0.4"})
    assert answer.status == 200 and answer.headers["content-type"].startswith("text/plain")
    typed, previous = {}, None
    for line in answer.text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            assert name not in typed
            typed[name] = previous = kind and name
        elif not line.startswith("#"):
            series = re.match(r'^([a-z_]+)(\{[a-z_]+="[^"]*"(,[a-z_]+="[^"]*")*\})? [\d.]+(e-\d+)?$', line)
            assert series and series.group(1).startswith(previous), line
    for name in ("jobs_submitted_total", "jobs_queued_total", "jobs_running_total",
                 "jobs_succeeded_total", "jobs_failed_total", "jobs_canceled_total",
                 "job_queue_depth", "job_queue_wait_seconds", "job_execution_seconds"):
        assert name in typed


def test_job_counters_follow_a_script(idle):
    """[JOB-254 JOB-255 JOB-256 JOB-257 JOB-258 JOB-259 JOB-260 JOB-268] Exact steps of each."""
    weir = idle
    key, before = weir.new_client().api_key, weir.metrics()

    def grown():
        now = weir.metrics()
        return {n: now[n] - before[n] for n in now if n.startswith("jobs_") or n == "job_queue_depth"
                if now[n] != before.get(n)}

    good, bad, gone = (weir.submit(key, queue=q, retry="manual")["job_id"] for q in ("a", "outside", "c"))
    weir.submit(key, type="DEFERRED", execution_at=weir.soon(3600))
    assert grown() == {"jobs_submitted_total": 4, "jobs_queued_total": 3, "job_queue_depth": 3}
    weir.end_outside(key, good, "success", queue="a", result={})
    weir.end_outside(key, bad)
    for _ in range(2):
        weir.cancel(key, gone).expect(200)
    weir.retry(key, bad).expect(200)
    assert grown() == {"jobs_submitted_total": 4, "jobs_queued_total": 4, "jobs_running_total": 2,
                       "jobs_succeeded_total": 1, "jobs_failed_total": 1, "jobs_canceled_total": 1,
                       "job_queue_depth": 1}


def quantile(weir, name, share, **labels):
    """The upper bound in seconds below which this share of a histogram's values lies."""
    wanted = ",".join(f'{k}="{v}"' for k, v in labels.items())
    found = []
    for series, value in weir.metrics().items():
        match = re.match(rf'{name}_bucket{{(.*?),?le="(.*)"}}$', series)
        if match and match.group(1) == wanted:
            found.append((float(match.group(2).replace("+Inf", "inf")), value))
    assert found and found == sorted(found), f"buckets of {name}: {found}"
    assert [n for _, n in found] == sorted(n for _, n in found)
    return next(bound for bound, n in found if n >= share * found[-1][1])


def test_waits_and_runs_are_measured(idle):
    """[JOB-261 JOB-262 JOB-265 JOB-266 JOB-267 JOB-272] One job: each histogram one more; sums
    near the times seen in its events; submits per minute and quantiles follow from the scrape."""
    weir = idle
    key, before = weir.new_client().api_key, weir.metrics()
    job_id = weir.submit(key, queue="outside")["job_id"]
    weir.end_outside(key, job_id, "success", result={})
    report, after = weir.report(key, job_id), weir.metrics()
    at = {e["next_state"]: datetime.fromisoformat(e["timestamp"]) for e in report["events"]}
    for name, first, last in (("job_queue_wait_seconds", "QUEUED", "ASSIGNED"),
                              ("weir_job_assigned_seconds", "ASSIGNED", "RUNNING"),
                              ("job_execution_seconds", "RUNNING", "SUCCEEDED")):
        seen = (at[last] - at[first]).total_seconds()
        assert after[name + "_count"] == before[name + "_count"] + 1
        assert abs(after[name + "_sum"] - before[name + "_sum"] - seen) < 0.01
        assert 0 < quantile(weir, name, 0.95) <= quantile(weir, name, 0.99)
    assert after["jobs_submitted_total"] - before["jobs_submitted_total"] == 1


def test_request_latency_has_quantiles_per_operation(weir, client):
    """[JOB-271] p95 and p99 of each endpoint from its histogram."""
    for _ in range(20):
        weir.submit(client.api_key, queue="o")
        weir.api("GET", "/v1/jobs", key=client.api_key).expect(200)
    for labels in ({"operation": "submitJob", "status": 202}, {"operation": "listJobs", "status": 200}):
        wait_for(lambda: weir.metric("weir_http_request_seconds_count", **labels) >= 20, 5, labels)
        p95 = quantile(weir, "weir_http_request_seconds", 0.95, **labels)
        assert 0 < p95 <= quantile(weir, "weir_http_request_seconds", 0.99, **labels) < 60
    answered = weir.metric("weir_http_requests_total", operation="listJobs")
    assert abs(weir.metric("weir_http_request_seconds_count", operation="listJobs") - answered) <= 1


def test_retries_and_their_successes_are_counted(module_weir):
    """[JOB-273] RETRY_ON_FAIL retried once: one attempt more, one success."""
    weir = module_weir(settings={"jobs.retry_base_ms": 0})
    key = weir.new_client().api_key
    job_id = weir.submit(key, work_kind="RETRY_ON_FAIL")["job_id"]
    weir.wait_state(key, job_id, "FAILED")
    assert weir.metric("weir_job_retries_total") == 0
    weir.retry(key, job_id).expect(200)
    weir.wait_state(key, job_id, "SUCCEEDED")
    assert weir.metric("weir_job_retries_total") == weir.metric("weir_job_retry_successes_total") == 1


def test_a_failed_job_is_logged_with_its_reason(weir, client):
    """[JOB-278] At the usual level, with the worker's code and message."""
    job_id = weir.submit(client.api_key, queue="outside")["job_id"]
    weir.end_outside(client.api_key, job_id, error={"code": "disk-7", "message": "bad sector",
                                                    "retryable": True})
    line = weir.wait_log(job_id=job_id, next_state="FAILED")
    assert "disk-7" in json.dumps(line) and "bad sector" in json.dumps(line)


@pytest.mark.long
@pytest.mark.limit(120)
def test_live_workers_and_heartbeats_show_and_dead_ones_leave(fresh_weir):
    """[JOB-275] The gauge equals the workers heard of and drops when they fall silent."""
    weir = fresh_weir(settings={"runner.processes": 0})
    key = weir.new_client().api_key
    weir.submit(key, queue="outside")
    task = weir.claim(key, worker_id="w0")[0]
    weir.tell("start", key, task)
    for n in (1, 2):
        weir.claim(key, worker_id=f"w{n}")
    wait_for(lambda: weir.metric("weir_workers") == 3, 5, "three workers", weir)
    weir.tell("heartbeat", key, task)
    wait_for(lambda: weir.metric("weir_http_requests_total", operation="heartbeatTasks") == 1, 5,
             "a heartbeat", weir)
    wait_for(lambda: weir.metric("weir_workers") == 0, 60, "no worker", weir)
    weir.api("GET", "/readyz?require=workers").expect_problem(503, "RFA_EXEC_WORKER_UNAVAILABLE")


def test_scenarios_are_counted(idle):
    """[JOB-017 JOB-018] Submitted and ended, by kind and outcome."""
    weir = idle
    key = weir.new_client().api_key
    for kind, outcome in (("SUCCESS_FAST", "success"), ("FAIL_IMMEDIATE", "failure"), ("none", "success")):
        ended = {"success": "SUCCESS", "failure": "FAILED"}[outcome]
        fields = {} if kind == "none" else {"work_kind": kind}  # own work
        made = weir.metric("weir_scenario_submitted_total", scenario=kind)
        over = weir.metric("weir_scenario_ended_total", scenario=kind, outcome=ended)
        weir.end_outside(key, weir.submit(key, queue="k", retry="manual", **fields)["job_id"], outcome, "k")
        assert weir.metric("weir_scenario_submitted_total", scenario=kind) == made + 1
        assert weir.metric("weir_scenario_ended_total", scenario=kind, outcome=ended) == over + 1


def test_requests_are_counted_by_operation_and_status(weir, client):
    """[JOB-270] One more for each call, under its own status code."""
    calls = (("submitJob", 202, lambda: weir.submit(client.api_key, queue="o")),
             ("submitJob", 400, lambda: weir.try_submit(client.api_key, queue="BAD")),
             ("submitJob", 401, lambda: weir.try_submit(None)),
             ("getJob", 404, lambda: weir.api("GET", f"/v1/jobs/{uuid.uuid4()}", key=client.api_key)),
             ("none", 404, lambda: weir.api("GET", "/nowhere")),
             ("none", 405, lambda: weir.api("PUT", "/v1/jobs", {})))
    for operation, status, act in calls:
        before = weir.metric("weir_http_requests_total", operation=operation, status=status)
        act()
        wait_for(lambda: weir.metric("weir_http_requests_total", operation=operation,
                                     status=status) == before + 1, 5, f"{operation} {status}")


def test_every_action_logs_its_request(idle):
    """[JOB-248 JOB-249 JOB-250 JOB-251] request_id, client_id, job_id and the action's name."""
    weir = idle
    client = weir.new_client()
    submitted = weir.try_submit(client.api_key, queue="outside", retry="manual")
    job_id = submitted.expect(202)["job_id"]
    weir.end_outside(client.api_key, job_id)
    calls = {"submit": submitted,
             "get": weir.api("GET", f"/v1/jobs/{job_id}", key=client.api_key),
             "report": weir.api("GET", f"/v1/jobs/{job_id}/report", key=client.api_key),
             "retry": weir.retry(client.api_key, job_id),
             "cancel": weir.cancel(client.api_key, job_id)}
    for action, answer in calls.items():
        assert answer.status in (200, 202)
        line = weir.wait_log(request_id=answer.headers["x-request-id"])
        assert (line["action"], line["client_id"]) == (action, client.client_id)
        assert line["status"] == answer.status
        assert line["job_id"] == job_id, action
        assert "error_code" not in line


def test_a_failed_request_logs_code_and_message(weir, client):
    """[JOB-253 JOB-231] The problem's instance is the line's request_id; also at the usual level."""
    problem = weir.try_submit(client.api_key, queue="BAD").expect_problem(
        400, "RFA_JOB_VALIDATION_FAILED")
    line = weir.wait_log(request_id=problem["instance"])
    assert line["error_code"] == problem["code"] and line["error_message"] == problem["detail"]
    assert (line["action"], line["client_id"]) == ("submit", client.client_id)


def test_transitions_are_logged_with_both_states(idle):
    """[JOB-252 JOB-277] As many lines as events, in their order."""
    weir = idle
    key = weir.new_client().api_key
    job_id = weir.failed_job(key)
    events = weir.events(key, job_id)

    def lines():
        found = [e for e in weir.logs(job_id=job_id) if "next_state" in e]
        return found if len(found) == len(events) else None

    found = wait_for(lines, 5, "a line for each event", weir)
    assert [(e.get("current_state"), e["next_state"]) for e in found] == [
        (e["prev_state"], e["next_state"]) for e in events]
    assert [e["event"] for e in found] == [e["event_name"] for e in events]


def test_every_log_line_is_one_json_object(idle):
    """Whatever clients send: hostile paths and names cannot break the log."""
    weir = idle
    key = weir.new_client().api_key
    weir.api("GET", "/v1/jobs/%0a%22%7b%7d%1b%5b31m", key=key)
    weir.submit(key, queue="outside")
    weir.claim(key, worker_id='"}\n{"level":"error"\u2028')
    weir.stop()
    for line in weir.log_text().rstrip("\n").split("\n"):
        if not line.startswith("weir: "):
            assert isinstance(json.loads(line), dict)
    weir.start()
