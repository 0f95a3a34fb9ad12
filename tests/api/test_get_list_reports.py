"""Reading: one job, its report, lists with filters and cursors, CSV, the summary."""
import csv
import io
import uuid
from datetime import datetime

import pytest

from harness.together import at_once
from harness.weir_server import wait_for

COLUMNS = ["job_id", "type", "work_kind", "queue", "state", "outcome", "attempt", "created_at",
           "started_at", "finished_at", "duration_ms", "kind"]


def page(weir, key, query="", path="/v1/jobs"):
    """One page of a list."""
    return weir.api("GET", path + query, key=key).expect(200)


def all_ids(weir, key, query="", path="/v1/jobs"):
    """Every id of a list, page by page; asserts that no page repeats or reorders."""
    found, cursor = [], ""
    while True:
        joint = "&" if query else "?"
        got = page(weir, key, query + (f"{joint}cursor={cursor}" if cursor else ""), path)
        found += [item["job_id"] for item in got["items"]]
        cursor = got["next_cursor"]
        if not cursor:
            assert len(set(found)) == len(found) and found == sorted(found, reverse=True)
            return found


@pytest.fixture(scope="module")
def history(module_weir):
    """A client with jobs of every state, type, kind and queue; (server, key, jobs by label)."""
    server = module_weir(settings={"runner.processes": 0})
    key = server.new_client().api_key
    jobs = {}
    for n in range(3):
        jobs[f"queued{n}"] = server.submit(key, queue="waiting", work_kind="SUCCESS_FAST")["job_id"]
    jobs["created"] = server.submit(key, type="DEFERRED", execution_at="2099-01-01T00:00:00Z",
                                    work_kind="SCHEDULED_FAR_FUTURE")["job_id"]
    jobs["event"] = server.submit(key, type="EMIT_EVENT", queue="waiting", kind="mail.send")["job_id"]
    jobs["failed"] = server.failed_job(key, work_kind="FAIL_IMMEDIATE")
    jobs["good"] = server.submit(key, queue="outside", work_kind="CPU_BURST")["job_id"]
    server.end_outside(key, jobs["good"], "success", result={"answer": 42})
    jobs["canceled"] = server.submit(key, queue="outside", work_kind="CPU_BURST")["job_id"]
    server.cancel(key, jobs["canceled"]).expect(200)
    jobs["running"] = server.submit(key, queue="outside", work_kind="RUNS_LONG")["job_id"]
    server.tell("start", key, server.claim(key)[0])
    jobs["assigned"] = server.submit(key, queue="outside", work_kind="RUNS_LONG")["job_id"]
    server.claim(key)
    other_client = server.new_client().api_key
    server.submit(other_client, queue="waiting")
    wait_for(lambda: all(c["last_seen_at"] for c in page(server, None, path="/ops/v1/clients")["items"]), 30,
             "the use of both keys to be stored", server)  # which is once a minute, whatever they call
    return server, key, jobs


def test_get_has_no_side_effects(history):
    """[JOB-066 JOB-067] Two GETs of job, report and events give equal bytes and write nothing."""
    weir, key, jobs = history
    before = weir.metrics()["weir_commit_batches_total"]
    for path in (f"/v1/jobs/{jobs['good']}", f"/v1/jobs/{jobs['good']}/report",
                 f"/v1/jobs/{jobs['good']}/events", f"/v1/jobs/{jobs['running']}"):
        assert weir.api("GET", path, key=key).body == weir.api("GET", path, key=key).body
    assert weir.metrics()["weir_commit_batches_total"] == before


def test_a_report_holds_its_fields_and_adds_up(history):
    """[JOB-100 JOB-243 JOB-009] duration_ms is finished minus started; outcome one of three."""
    weir, key, jobs = history
    for label, outcome in (("good", "SUCCESS"), ("failed", "FAILED"), ("canceled", "CANCELED")):
        report = weir.report(key, jobs[label])
        assert {"job_id", "outcome", "events", "started_at", "finished_at",
                "duration_ms"} <= set(report)
        assert (report["job_id"], report["outcome"]) == (jobs[label], outcome)
        if label == "canceled":
            assert report["started_at"] is None and report["duration_ms"] == 0
            continue
        ran = datetime.fromisoformat(report["finished_at"]) - datetime.fromisoformat(
            report["started_at"])
        assert report["duration_ms"] == round(ran.total_seconds() * 1000) >= 0


def test_report_events_are_the_stored_events_in_order(history):
    """[JOB-101 JOB-241 JOB-239] Six fields each, time rising, folding them gives the state."""
    weir, key, jobs = history
    for label in ("good", "failed", "canceled"):
        events = weir.report(key, jobs[label])["events"]
        assert events == weir.events(key, jobs[label])
        state = None
        for seq, event in enumerate(events, 1):
            assert {"event_id", "job_id", "event_name", "prev_state", "next_state",
                    "timestamp"} <= set(event)
            assert uuid.UUID(event["event_id"]).version == 4
            assert event["job_id"] == jobs[label] and event["seq"] == seq
            assert event["prev_state"] == state
            state = event["next_state"]
        assert state == weir.job(key, jobs[label])["state"]
        times = [e["timestamp"] for e in events]
        assert times == sorted(times) and len(set(times)) == len(times)


def test_events_have_distinct_triples_and_ids(history):
    """[JOB-008] No two events of a job share (job, timestamp, name), nor an event_id."""
    weir, key, jobs = history
    events = [e for job_id in jobs.values() for e in weir.events(key, job_id)]
    assert len({(e["job_id"], e["timestamp"], e["event_name"]) for e in events}) == len(events)
    assert len({e["event_id"] for e in events}) == len(events)


def test_an_unfinished_job_has_no_report(history):
    """[JOB-102] 404 RFA_JOB_REPORT_NOT_FOUND in every state that is not final."""
    weir, key, jobs = history
    for label in ("created", "queued0", "assigned", "running"):
        weir.api("GET", f"/v1/jobs/{jobs[label]}/report", key=key).expect_problem(
            404, "RFA_JOB_REPORT_NOT_FOUND")


@pytest.mark.parametrize("tail", ["", "/report", "/events", "/explain"])
def test_unknown_and_malformed_ids_are_404_on_get(weir, client, tail):
    """[JOB-099 JOB-102 JOB-211 JOB-237] No job has them."""
    job_id = weir.submit(client.api_key, queue="o")["job_id"]
    twisted = job_id[:-1] + ("0" if job_id[-1] != "0" else "1")
    for unknown in (str(uuid.uuid4()), twisted, "nonsense", "0", job_id + "0", job_id[:-1],
                    "{" + job_id + "}", "%00", "00000000-0000-0000-0000-000000000000"):
        weir.api("GET", f"/v1/jobs/{unknown}{tail}", key=client.api_key).expect_problem(
            *((400, "RFA_REQUEST_MALFORMED") if unknown == "%00" else (404, "RFA_JOB_NOT_FOUND")))


def test_the_list_is_newest_first_and_complete(history):
    weir, key, jobs = history
    assert all_ids(weir, key) == sorted(jobs.values(), reverse=True)
    for item in page(weir, key)["items"]:
        whole = weir.job(key, item["job_id"])
        assert {"result", "progress"} == set(whole) - set(item)  # of one job only: results may be large
        assert item == {name: whole[name] for name in item}


@pytest.mark.parametrize("query, labels", [
    ("?state=QUEUED", "queued0 queued1 queued2 event"), ("?state=CREATED", "created"),
    ("?state=ASSIGNED", "assigned"), ("?state=RUNNING", "running"), ("?state=FAILED", "failed"),
    ("?state=SUCCEEDED", "good"), ("?state=CANCELED", "canceled"), ("?outcome=SUCCESS", "good"),
    ("?outcome=FAILED", "failed"), ("?outcome=CANCELED", "canceled"),
    ("?state=FAILED&outcome=SUCCESS", ""), ("?state=FAILED&outcome=FAILED", "failed"),
    ("?type=DEFERRED", "created"), ("?type=EMIT_EVENT", "event"),
    ("?work_kind=CPU_BURST", "good canceled"), ("?work_kind=CPU_BURST&outcome=SUCCESS", "good"),
    ("?kind=mail.send", "event"), ("?kind=mail", ""), ("?kind=mail.send&work_kind=CPU_BURST", ""),
    ("?queue=waiting", "queued0 queued1 queued2 event"), ("?queue=default", "created"),
    ("?queue=waiting&type=EMIT_EVENT&state=QUEUED", "event"), ("?queue=nobody", ""),
    ("?created_after=2099-01-01T00:00:00Z", ""), ("?created_before=1970-01-01T00:00:00Z", ""),
    ("?state=running", "running"),
])
@pytest.mark.parametrize("path", ["/v1/jobs", "/v1/reports"])
def test_filters_hold_together_and_alone(history, path, query, labels):
    weir, key, jobs = history
    wanted = sorted((jobs[label] for label in labels.split()), reverse=True)
    assert all_ids(weir, key, query, path) == wanted
    assert all_ids(weir, key, query + "&limit=1", path) == wanted


def test_time_filters_are_strict(history):
    weir, key, jobs = history
    middle = weir.job(key, jobs["failed"])["created_at"]
    after = all_ids(weir, key, f"?created_after={middle}")
    before = all_ids(weir, key, f"?created_before={middle}")
    same = [j for j in jobs.values() if weir.job(key, j)["created_at"] == middle]
    assert sorted(after + before + same) == sorted(jobs.values())
    assert jobs["assigned"] in after and jobs["queued0"] in before and jobs["failed"] in same
    assert all_ids(weir, key, f"?created_after={middle}&created_before={middle}") == []


@pytest.mark.any_store
@pytest.mark.parametrize("query", [
    "?state=queue", "?state=", "?colour=red&state=RUNNING", "?outcome=SUCCEEDED", "?type=execute",
    "?work_kind=NOPE",
    "?limit=0", "?limit=201", "?limit=-1", "?limit=x", "?limit=", "?limit=1.0", "?limit=+1",
    "?created_after=yesterday", "?created_before=2024-01-01", "?cursor=x", "?cursor=",
    "?cursor=c00000000000000g", "?cursor=C000000000000000", "?state=%zz", "?limit=%31%",
])
@pytest.mark.parametrize("path", ["/v1/jobs", "/v1/reports"])
def test_a_parameter_that_means_nothing_is_malformed(history, path, query):
    weir, key, _ = history
    problem = weir.api("GET", path + query, key=key).expect_problem(400, "RFA_REQUEST_MALFORMED")
    assert problem["detail"]


def test_pages_neither_repeat_nor_lose_while_jobs_are_added(weir, client):
    """A walk sees every job that existed when it began, once, though new ones arrive."""
    first = [weir.submit(client.api_key, queue="o")["job_id"] for _ in range(25)]
    seen, cursor = [], ""
    while True:
        got = page(weir, client.api_key, "?limit=4" + (f"&cursor={cursor}" if cursor else ""))
        seen += [item["job_id"] for item in got["items"]]
        cursor = got["next_cursor"]
        if not cursor:
            break
        weir.submit(client.api_key, queue="o")
    assert seen == first[::-1]


def test_a_page_of_exactly_the_rest_has_no_cursor(weir, client):
    ids = [weir.submit(client.api_key, queue="o")["job_id"] for _ in range(4)]
    assert page(weir, client.api_key, "?limit=4")["next_cursor"] is None
    two = page(weir, client.api_key, "?limit=2")
    rest = page(weir, client.api_key, f"?limit=2&cursor={two['next_cursor']}")
    assert rest["next_cursor"] is None and rest["items"][-1]["job_id"] == ids[0]
    assert page(weir, weir.new_client().api_key) == {"items": [], "next_cursor": None}


def test_a_long_history_is_walked_whole_under_a_rare_filter(weir, client):
    """A call looks at a bounded number of rows; following the cursor still finds the one job."""
    rare = weir.submit(client.api_key, queue="rare", work_kind="IO_HEAVY")["job_id"]
    for _ in range(3):
        weir.api("POST", "/v1/jobs:batch", {"jobs": [
            {"type": "EXECUTE", "queue": "o", "work_kind": "SUCCESS_FAST"}] * 1000},
                 client.api_key).expect(202)
    assert all_ids(weir, client.api_key, "?queue=rare") == [rare]
    assert all_ids(weir, client.api_key, "?work_kind=IO_HEAVY&state=QUEUED") == [rare]
    assert len(all_ids(weir, client.api_key, "?limit=200")) == 3001


def test_reports_show_what_is_known(history):
    """[JOB-002] One row per job; what an unfinished job does not know yet is null."""
    weir, key, jobs = history
    rows = {row["job_id"]: row for row in page(weir, key, path="/v1/reports")["items"]}
    assert sorted(rows) == sorted(jobs.values())
    for row in rows.values():
        assert set(COLUMNS) <= set(row)
    running, good = rows[jobs["running"]], rows[jobs["good"]]
    assert running["started_at"] and running["outcome"] is None
    assert running["finished_at"] is None and running["duration_ms"] is None
    report = weir.report(key, jobs["good"])
    for field in ("outcome", "started_at", "finished_at", "duration_ms"):
        assert good[field] == report[field]


def test_reports_as_csv_hold_the_same_rows(history):
    weir, key, _ = history
    answer = weir.api("GET", "/v1/reports", key=key, headers={"Accept": "text/csv"})
    assert answer.status == 200 and answer.headers["content-type"].startswith("text/csv")
    table = list(csv.reader(io.StringIO(answer.text)))
    assert table[0] == COLUMNS
    rows = page(weir, key, path="/v1/reports")["items"]
    as_text = [["" if row[c] is None else str(row[c]) for c in COLUMNS] for row in rows]
    assert table[1:] == as_text
    assert answer.text.endswith("\r\n")


def test_csv_pages_by_header(weir, client):
    ids = [weir.submit(client.api_key, queue="o")["job_id"] for _ in range(5)]
    found, query = [], "?limit=2"
    while query:
        answer = weir.api("GET", "/v1/reports" + query, key=client.api_key,
                          headers={"Accept": "text/csv"})
        found += [row["job_id"] for row in csv.DictReader(io.StringIO(answer.text))]
        cursor = answer.headers.get("x-next-cursor")
        query = f"?limit=2&cursor={cursor}" if cursor else None
    assert found == ids[::-1]


def test_the_summary_counts_every_job_once(history):
    weir, key, jobs = history
    summary = page(weir, key, path="/v1/reports/summary")
    assert summary["total"] == len(jobs)
    wanted = {"CREATED": 1, "QUEUED": 4, "ASSIGNED": 1, "RUNNING": 1, "SUCCEEDED": 1, "FAILED": 1,
              "CANCELED": 1}
    assert {s: n for s, n in summary["by_state"].items() if n} == wanted
    assert summary["by_outcome"] == {"SUCCESS": 1, "FAILED": 1, "CANCELED": 1}
    assert sum(summary["by_work_kind"].values()) == len(jobs) - 1  # the event is the caller's own work
    assert summary["by_work_kind"]["CPU_BURST"] == 2


def test_the_summary_stays_right_under_parallel_changes(weir, client):
    def storm(i):
        job_id = weir.submit(client.api_key, queue=f"s{i}", retry="manual")["job_id"]
        if i % 3 == 0:
            weir.cancel(client.api_key, job_id).expect(200)
        elif i % 3 == 1:
            weir.end_outside(client.api_key, job_id, queue=f"s{i}")
            weir.retry(client.api_key, job_id).expect(200)

    at_once(24, storm)
    summary = page(weir, client.api_key, path="/v1/reports/summary")
    assert summary["total"] == 24
    assert {s: n for s, n in summary["by_state"].items() if n} == {"CANCELED": 8, "QUEUED": 16}
