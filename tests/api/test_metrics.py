"""/metrics as a scraper sees it: well-formed, never falling, bounded, and right."""
import threading
import uuid

import pytest

from harness import prometheus
from harness.weir_server import wait_for

SEED_NAMES = {
    "jobs_submitted_total": "counter", "jobs_queued_total": "counter",
    "jobs_running_total": "counter", "jobs_succeeded_total": "counter",
    "jobs_failed_total": "counter", "jobs_canceled_total": "counter", "job_queue_depth": "gauge",
    "job_queue_wait_seconds": "histogram", "job_execution_seconds": "histogram",
    "webhook_deliveries_total": "counter", "webhook_failures_total": "counter"}


def scrape(weir):
    """One scrape, judged by the strict reader."""
    answer = weir.api("GET", "/metrics")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    return prometheus.parse(answer.text)


@pytest.fixture(scope="module")
def idle(module_weir):
    """No worker of its own."""
    return module_weir(settings={"runner.processes": 0})


def busy(weir, rounds):
    """Every kind of end, a replay, a refusal, a path of nobody."""
    key = weir.new_client().api_key
    for n in range(rounds):
        good, bad, gone = (weir.submit(key, queue=q, retry="manual")["job_id"] for q in ("a", "b", "c"))
        weir.end_outside(key, good, "success", queue="a", result={})
        weir.end_outside(key, bad, queue="b")
        weir.cancel(key, gone)
        weir.submit(key, queue="d", idempotency_key=f"same-{n % 2}")
        weir.try_submit(key, queue="BAD")
        weir.api("GET", f"/nowhere/{uuid.uuid4()}")
        weir.api("GET", f"/v1/jobs/{uuid.uuid4()}", key=key)
    return key


def test_every_name_of_the_seed_is_there_with_its_type_before_anything_happened(fresh_weir):
    page = scrape(fresh_weir(settings={"runner.processes": 0}))
    assert {name: page[name].kind for name in SEED_NAMES} == SEED_NAMES
    for name in SEED_NAMES:
        assert page[name].value() == 0, name
    assert all(name in SEED_NAMES or name.startswith("weir_") for name in page)


def test_a_busy_page_stays_well_formed_and_counters_never_fall(idle):
    done, pages = threading.Event(), []

    def watch():
        while not done.is_set():
            pages.append(scrape(idle))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        busy(idle, 10)
    finally:
        done.set()
        watcher.join()
    assert len(pages) > 5
    for before, after in zip(pages, pages[1:]):
        for name, family in before.items():
            if family.kind == "gauge":
                continue
            for series, number in family.samples.items():
                assert after[name].samples[series] >= number, series


def test_histograms_reach_from_a_tenth_of_a_millisecond_to_a_minute(idle):
    """[JOB-266 JOB-267] And count what the counters count."""
    busy(idle, 2)
    page = scrape(idle)
    for name in ("job_queue_wait_seconds", "weir_job_assigned_seconds", "job_execution_seconds",
                 "weir_webhook_seconds", "weir_commit_seconds"):
        bounds = [bound for bound, _ in page[name].histogram()[0]]
        assert bounds[0] == 0.0001 and 60 in bounds, name
    assert page["job_execution_seconds"].value() == sum(
        page[f"jobs_{end}_total"].value() for end in ("succeeded", "failed"))


def test_latency_stands_by_operation_and_status(idle):
    """[JOB-270 JOB-271] As many latencies as requests, of each operation and status."""
    busy(idle, 2)
    page = scrape(idle)
    for operation, status in (("submitJob", "202"), ("submitJob", "400"), ("getJob", "404"),
                              ("none", "404"), ("cancelJob", "200"), ("claimTasks", "200")):
        _, total, count = page["weir_http_request_seconds"].histogram(operation=operation,
                                                                     status=status)
        assert count == page["weir_http_requests_total"].value(operation=operation, status=status)
        assert count >= 2 and 0 < total < 60 * count


def test_labels_come_from_lists_of_ours(idle):
    """However many paths, keys and ids clients think of, no new series appear. Only queues have some, which
    are so many and no more (test_queues.py)."""
    key = busy(idle, 1)

    def series():
        page = scrape(idle)
        return {(name, labels) for name, family in page.items() for labels in family.series()
                if not name.startswith("weir_queue_")}

    before = series()
    for n in range(40):
        idle.api("GET", f"/v1/jobs/{uuid.uuid4()}", key=key)
        idle.api("GET", f"/v1/{uuid.uuid4()}/x{n}?y={n}", key=key)
        idle.submit(key, queue=f"queue-{n}", idempotency_key=str(uuid.uuid4()))
        idle.claim(key, queue=f"queue-{n}", worker_id=f"worker-{n}")
        idle.api("GET", "/v1/jobs", key=f"junk-{n}")
    new = series() - before
    assert {name for name, _ in new} <= {"weir_http_requests_total", "weir_http_request_seconds",
                                         "weir_http_problems_total", "weir_scenario_submitted_total"}
    assert all("queue" not in str(labels) and "worker-" not in str(labels) for _, labels in new)
    assert len(new) < 60  # operations, codes and work kinds that were not used before
    assert len(series()) < 400


def test_heartbeats_replays_problems_and_retries_are_counted(idle):
    """[JOB-273 JOB-274 JOB-275] Each by exactly what was done."""
    key = idle.new_client().api_key
    before = scrape(idle)
    once = {"queue": "beats", "idempotency_key": "once", "retry": "manual"}
    job_id = idle.submit(key, **once)["job_id"]
    idle.submit(key, **once)
    task = idle.claim(key, queue="beats")[0]
    idle.tell("start", key, task)
    for _ in range(3):
        assert idle.tell("heartbeat", key, task)["ok"]
    assert not idle.tell("heartbeat", key, {**task, "token": "99"})["ok"]
    idle.tell("finish", key, task, outcome="failure",
              error={"code": "x", "message": "y", "retryable": True})
    idle.retry(key, job_id).expect(200)
    idle.try_submit(key, queue="BAD")
    after = scrape(idle)

    def grown(name, **labels):
        return after[name].value(**labels) - before[name].value(**labels)

    assert grown("weir_worker_heartbeats_total") == 3
    assert grown("weir_idempotent_replays_total") == 1 == grown("jobs_submitted_total")
    assert grown("weir_job_retries_total") == 1
    assert grown("weir_http_problems_total", code="RFA_JOB_VALIDATION_FAILED") == 1
    assert after["weir_workers"].value() >= 1


def test_commits_show_their_size_and_length(idle):
    before = scrape(idle)
    busy(idle, 3)
    after = scrape(idle)
    sizes, seconds = after["weir_commit_batch_commands"], after["weir_commit_seconds"]
    assert sizes.value() == seconds.value() > before["weir_commit_seconds"].value() + 10
    _, total, count = sizes.histogram()
    assert count <= total <= after["weir_commit_commands_total"].value()
    assert count <= after["weir_commit_batches_total"].value()
    assert idle.database or after["weir_wal_pages"].value() > 0  # a file of SQLite's alone
    assert after["weir_store_writable"].value() == 1
    assert after["weir_store_errors_total"].value() == 0


def test_the_process_tells_about_itself(idle):
    first = scrape(idle)
    busy(idle, 1)
    page = scrape(idle)
    cpu = [p["weir_process_cpu_seconds_total"].value() for p in (first, page)]
    assert 0 < cpu[0] <= cpu[1]
    assert page["weir_process_resident_memory_bytes"].value() > 1e6
    assert 5 < page["weir_process_open_fds"].value() < page["weir_process_max_fds"].value()
    started = page["weir_process_start_time_seconds"].value()
    assert abs(started - first["weir_process_start_time_seconds"].value()) < 1
    old = idle.pids("core")
    idle.kill9_kind("core")
    idle.wait_pids("core", 1, other_than=old)
    idle.wait_ready()
    wait_for(lambda: scrape(idle)["weir_process_start_time_seconds"].value() > started, 5, "a new start")
