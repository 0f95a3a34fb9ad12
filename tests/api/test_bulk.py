"""Cancel and retry by filter: which jobs, how many at a time, from where on; the command line."""
import json
import os
import pty
import subprocess

import pytest

FOREVER = "2100-01-01T00:00:00Z"
NOT_RETRYABLE = {"code": "x", "message": "m", "retryable": False}


def bulk(weir, key, verb, limit=None, cursor=None, **filters):
    """The answer to a call by filter."""
    body = {"filter": filters}
    if limit:
        body["limit"] = limit
    if cursor:
        body["cursor"] = cursor
    answer = weir.api("POST", f"/v1/jobs:{verb}", body, key).expect(200)
    assert set(answer) == {"matched", "changed", "more", "next_cursor"}
    assert answer["more"] == (answer["next_cursor"] is not None)
    return answer


def counts(answer):
    """matched, changed, more"""
    return answer["matched"], answer["changed"], answer["more"]


def submit_many(weir, key, count, **fields):
    """Ids of so many jobs."""
    jobs = [dict({"type": "EXECUTE"}, **fields)] * count
    made = weir.api("POST", "/v1/jobs:batch", {"jobs": jobs}, key).expect(202)["results"]
    return [r["job_id"] for r in made]


def fail_all(weir, key, queue, count):
    """So many failed jobs of the queue, which nobody retries."""
    ids = submit_many(weir, key, count, queue=queue, retry="manual")
    tasks = weir.claim(key, queue, most=count)
    told = [{"task_id": t["task_id"], "token": t["token"]} for t in tasks]
    weir.worker_call("start", key, {"tasks": told})
    ended = [dict(task, outcome="failure", error=NOT_RETRYABLE) for task in told]
    weir.worker_call("finish", key, {"tasks": ended})
    return ids


def states(weir, key, ids):
    """The states of jobs, each once."""
    return {weir.job(key, job_id)["state"] for job_id in ids}


def test_cancel_takes_every_unfinished_job_that_matches(weir, client):
    key = client.api_key
    queued = submit_many(weir, key, 3, queue="mail")
    later = submit_many(weir, key, 1, queue="mail", type="DEFERRED", execution_at=FOREVER)
    submit_many(weir, key, 1, queue="mail", priority=9)
    weir.claim(key, "mail")
    other = submit_many(weir, key, 2, queue="images")
    assert counts(bulk(weir, key, "cancel", queue="mail", state="QUEUED")) == (3, 3, False)
    assert states(weir, key, queued) == {"CANCELED"} and states(weir, key, later) == {"CREATED"}
    assert counts(bulk(weir, key, "cancel", queue="mail")) == (2, 2, False)
    assert counts(bulk(weir, key, "cancel", queue="mail")) == (0, 0, False), "safe to repeat"
    assert states(weir, key, other) == {"QUEUED"}
    assert weir.event_names(key, queued[0])[-1] == "job.canceled"


def test_retry_takes_failed_jobs_that_have_a_retry_left(weir, client):
    key = client.api_key
    failed = fail_all(weir, key, "mail", 3)
    others = fail_all(weir, key, "images", 1)
    used_up = weir.submit(key, queue="mail", max_retries=0, retry="manual")["job_id"]
    weir.end_outside(key, used_up, queue="mail")
    weir.submit(key, queue="mail")
    assert counts(bulk(weir, key, "retry", queue="mail")) == (4, 3, False)
    assert states(weir, key, failed) == {"QUEUED"}
    assert states(weir, key, others + [used_up]) == {"FAILED"}
    assert weir.job(key, failed[0])["attempt"] == 2
    assert counts(bulk(weir, key, "retry", queue="mail", state="FAILED")) == (1, 0, False)


def test_every_member_of_the_filter_counts(weir, client):
    key = client.api_key
    own = weir.submit(key, queue="work", kind="mail.send")
    weir.submit(key, queue="work", kind="mail.count")
    weir.submit(key, queue="work", work_kind="SUCCESS_FAST")
    weir.submit(key, queue="work", type="EMIT_EVENT")
    for filters in ({"kind": "mail.read"}, {"kind": "mail.send", "queue": "play"}, {"state": "RUNNING"},
                    {"state": "CANCELED"}, {"outcome": "SUCCESS"}, {"created_before": own["created_at"]},
                    {"created_after": FOREVER}, {"queue": "work", "type": "DEFERRED"}):
        assert counts(bulk(weir, key, "cancel", **filters)) == (0, 0, False), filters
    assert counts(bulk(weir, key, "cancel", kind="mail.send")) == (1, 1, False)
    assert counts(bulk(weir, key, "cancel", work_kind="SUCCESS_FAST", state="QUEUED")) == (1, 1, False)
    assert counts(bulk(weir, key, "cancel", type="EMIT_EVENT", created_before=FOREVER)) == (1, 1, False)
    assert counts(bulk(weir, key, "cancel", created_after="2020-01-01T00:00:00Z")) == (1, 1, False)


def test_a_call_takes_so_many_and_the_next_goes_on(weir, client):
    key = client.api_key
    ids = submit_many(weir, key, 1000, queue="many") + submit_many(weir, key, 200, queue="many")
    first = bulk(weir, key, "cancel", limit=700, queue="many")
    assert counts(first) == (700, 700, True)
    assert states(weir, key, [ids[-1], ids[-700]]) == {"CANCELED"}
    assert states(weir, key, [ids[-701]]) == {"QUEUED"}
    rest = bulk(weir, key, "cancel", cursor=first["next_cursor"], queue="many")
    assert counts(rest) == (500, 500, False)
    assert states(weir, key, ids[::100]) == {"CANCELED"}


def test_a_cursor_passes_over_what_did_not_change(weir, client):
    key = client.api_key
    older = fail_all(weir, key, "mail", 1)
    job = weir.submit(key, queue="mail", max_retries=0, retry="manual")["job_id"]
    weir.end_outside(key, job, queue="mail")
    first = bulk(weir, key, "retry", limit=1, queue="mail")
    assert counts(first) == (1, 0, True)
    again = bulk(weir, key, "retry", limit=1, queue="mail", cursor=first["next_cursor"])
    assert again["changed"] == 1 and states(weir, key, older) == {"QUEUED"}


@pytest.mark.parametrize("body", [
    {}, {"filter": {}}, {"filter": {"state": "WAITING"}}, {"filter": {"queue": 1}},
    {"filter": {"color": "red"}},
    {"filter": {"queue": "q"}, "limit": 0}, {"filter": {"queue": "q"}, "limit": 10001},
    {"filter": {"queue": "q"}, "limit": "5"}, {"filter": {"queue": "q"}, "cursor": "x"},
    {"filter": {"created_after": "yesterday"}}, {"filter": {"work_kind": "NONE"}}, {"queue": "q"}])
def test_a_filter_that_is_none_is_refused(weir, client, body):
    job_id = weir.submit(client.api_key, queue="q")["job_id"]
    for verb in ("cancel", "retry"):
        answer = weir.api("POST", f"/v1/jobs:{verb}", body, client.api_key)
        answer.expect_problem(400, "RFA_REQUEST_MALFORMED")
    assert weir.job(client.api_key, job_id)["state"] == "QUEUED"


def test_only_the_callers_jobs_and_those_of_its_keys_queues_change(weir, client):
    other = weir.new_client()
    theirs = submit_many(weir, other.api_key, 2, queue="mail")
    mine = submit_many(weir, client.api_key, 1, queue="mail")
    hidden = submit_many(weir, client.api_key, 1, queue="images")
    key = weir.api("POST", f"/v1/clients/{client.client_id}/keys", {"queues": ["mail"]},
                   client.api_key).expect(201)["api_key"]
    assert counts(bulk(weir, key, "cancel", state="QUEUED")) == (1, 1, False)
    weir.api("POST", "/v1/jobs:cancel", {"filter": {"queue": "images"}}, key).expect_problem(
        403, "RFA_AUTH_FORBIDDEN")
    assert states(weir, client.api_key, mine) == {"CANCELED"}
    assert states(weir, client.api_key, hidden) == {"QUEUED"}
    assert states(weir, other.api_key, theirs) == {"QUEUED"}


def test_a_call_is_one_request_of_the_rate_limit(fresh_weir):
    weir = fresh_weir(settings={"runner.processes": 0, "limits.requests_per_minute": 3})
    key = weir.new_client().api_key
    submit_many(weir, key, 900, queue="q")
    assert counts(bulk(weir, key, "cancel", queue="q")) == (900, 900, False)
    weir.api("GET", "/v1/queues", key=key).expect(200)
    weir.api("GET", "/v1/queues", key=key).expect_problem(429, "RFA_REQUEST_RATE_LIMITED")


# --- the command line ---


def test_the_command_line_asks_before_it_acts_on_many(weir, client):
    key = client.api_key
    submit_many(weir, key, 3, queue="mail")
    asked = weir.cli("job", "cancel", "--queue", "mail", key=key)
    assert asked.returncode == 2 and "3 jobs match" in asked.stderr and "--yes" in asked.stderr
    done = weir.cli("job", "cancel", "--queue", "mail", "--state", "QUEUED", "--yes", key=key)
    assert (done.returncode, done.stdout) == (0, "3 of 3 jobs canceled\n")
    done = weir.cli("job", "cancel", "--queue", "mail", "-y", "-o", "json", key=key)
    assert json.loads(done.stdout) == {"matched": 0, "changed": 0, "more": False}


@pytest.mark.parametrize("answer, code, state", [("n", 1, "QUEUED"), ("y", 0, "CANCELED")])
def test_on_a_terminal_the_command_line_waits_for_an_answer(weir, client, answer, code, state):
    job_id = weir.submit(client.api_key, queue="mail")["job_id"]
    main, side = pty.openpty()
    os.write(main, (answer + "\n").encode())
    done = subprocess.run(weir.program + ["job", "cancel", "--queue", "mail"], stdin=side, stderr=side,
                          stdout=subprocess.PIPE, env=weir.cli_environment(client.api_key), timeout=60,
                          check=False)
    shown = os.read(main, 4096).decode()
    os.close(side)
    os.close(main)
    assert "1 job matches. Cancel it? [y/N]" in shown and done.returncode == code
    assert weir.job(client.api_key, job_id)["state"] == state


def test_the_command_line_retries_what_failed(weir, client):
    key = client.api_key
    failed = fail_all(weir, key, "mail", 3)
    done = weir.cli("job", "retry", "--state", "FAILED", "--queue", "mail", "--limit", "2", "--yes", key=key)
    assert (done.returncode, done.stdout) == (0, "2 of 2 jobs queued again\n")
    used_up = weir.submit(key, queue="mail", max_retries=0, retry="manual", priority=9)["job_id"]
    weir.end_outside(key, used_up, queue="mail")
    done = weir.cli("job", "retry", "--queue", "mail", "--yes", key=key)
    assert done.stdout == "1 of 2 jobs queued again\n" and "no retry left" in done.stderr
    assert states(weir, key, failed) == {"QUEUED"}


def test_the_command_line_needs_one_job_or_a_filter(weir, client):
    key = client.api_key
    assert weir.cli("job", "cancel", key=key).returncode == 2
    job_id = weir.submit(key, queue="mail")["job_id"]
    both = weir.cli("job", "cancel", job_id, "--queue", "mail", key=key)
    assert both.returncode == 2 and "not both" in both.stderr
    assert weir.job(key, job_id)["state"] == "QUEUED"
    assert weir.cli("job", "cancel", job_id, key=key).returncode == 0
