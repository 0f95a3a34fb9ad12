"""Queues as things: numbers, pause and resume, purge, defaults; metrics; the command line."""
import json

import pytest

from harness import postgres
from harness.nodes import Nodes
from harness.weir_server import wait_for

MEMBERS = {"queue", "depth", "oldest_age_seconds", "running", "scheduled", "paused", "completed_per_minute",
           "failed_per_minute"}
NOTHING_SET = {"retry": None, "max_retries": None, "queue_ttl_seconds": None, "retention_seconds": None}


def queues(weir, key, query=""):
    """The caller's queues by name."""
    items = weir.api("GET", "/v1/queues" + query, key=key).expect(200)["items"]
    assert all(set(q) == MEMBERS for q in items)
    assert [q["queue"] for q in items] == sorted(q["queue"] for q in items)
    return {q["queue"]: q for q in items}


def queue(weir, key, name):
    """One queue."""
    found = weir.api("GET", f"/v1/queues/{name}", key=key).expect(200)
    assert set(found) == MEMBERS | {"defaults"}
    return found


def act(weir, key, name, verb):
    """Pauses, resumes or purges it."""
    return weir.api("POST", f"/v1/queues/{name}:{verb}", key=key).expect(200)


def numbers(q):
    """depth, running, scheduled"""
    return q["depth"], q["running"], q["scheduled"]


def test_the_numbers_follow_the_life_of_jobs(weir, client):
    key = client.api_key
    assert queues(weir, key) == {}
    for _ in range(3):
        weir.submit(key, queue="mail")
    weir.submit(key, queue="mail", type="DEFERRED", execution_at="2100-01-01T00:00:00Z")
    weir.submit(key, queue="images")
    found = queues(weir, key)
    assert {name: numbers(q) for name, q in found.items()} == {"mail": (3, 0, 1), "images": (1, 0, 0)}
    assert not any(q["paused"] for q in found.values())
    tasks = weir.claim(key, "mail", most=3)
    assert numbers(queue(weir, key, "mail")) == (0, 3, 1)
    for task in tasks:
        weir.tell("start", key, task)
    weir.tell("finish", key, tasks[0], outcome="success")
    weir.tell("finish", key, tasks[1], outcome="success")
    weir.tell("finish", key, tasks[2], outcome="failure",
              error={"code": "x", "message": "m", "retryable": False})
    mail = queue(weir, key, "mail")
    assert numbers(mail) == (0, 0, 1) and mail["oldest_age_seconds"] == 0
    assert (mail["completed_per_minute"], mail["failed_per_minute"]) == (2, 1)
    assert mail["defaults"] == NOTHING_SET


def test_an_attempt_that_is_tried_again_counts_as_failed_and_one_given_back_does_not(weir, client):
    key = client.api_key
    weir.submit(key, queue="again")
    task = weir.claim(key, "again")[0]
    weir.tell("start", key, task)
    weir.tell("release", key, task)
    assert queue(weir, key, "again")["failed_per_minute"] == 0
    task = weir.claim(key, "again")[0]
    weir.tell("start", key, task)
    weir.tell("finish", key, task, outcome="failure", error={"code": "x", "message": "m", "retryable": True})
    found = queue(weir, key, "again")
    assert numbers(found) == (1, 0, 0) and found["failed_per_minute"] == 1


def test_the_oldest_age_is_that_of_the_job_that_waits_longest(weir, client):
    key = client.api_key
    weir.submit(key, queue="slow", priority=0)
    wait_for(lambda: queue(weir, key, "slow")["oldest_age_seconds"] >= 1, 20, "a second to pass", weir)
    weir.submit(key, queue="slow", priority=9)
    age = queue(weir, key, "slow")["oldest_age_seconds"]
    assert age >= 1
    first = weir.claim(key, "slow")[0]
    assert queue(weir, key, "slow")["oldest_age_seconds"] >= age, "the older one has the lower priority"
    weir.worker_call("release", key, {"tasks": [{"task_id": first["task_id"], "token": first["token"]}]})
    weir.claim(key, "slow", most=2)
    assert queue(weir, key, "slow")["oldest_age_seconds"] == 0


def test_a_page_of_queues_goes_on_where_the_one_before_ended(weir, client):
    key = client.api_key
    names = [f"q{i}" for i in range(5)]
    for name in names:
        weir.submit(key, queue=name)
    seen, cursor = [], ""
    while cursor is not None:
        page = weir.api("GET", f"/v1/queues?limit=2{cursor}", key=key).expect(200)
        seen += [q["queue"] for q in page["items"]]
        cursor = f"&cursor={page['next_cursor']}" if page["next_cursor"] else None
    assert seen == names
    weir.api("GET", "/v1/queues?limit=1001", key=key).expect_problem(400, "RFA_REQUEST_MALFORMED")


def test_a_queue_that_nobody_used_is_empty_and_a_name_that_none_can_have_is_unknown(weir, client):
    key = client.api_key
    assert numbers(queue(weir, key, "never-used")) == (0, 0, 0)
    for name in ("UPPER", "-x", "a" * 65, "with%20space"):
        weir.api("GET", f"/v1/queues/{name}", key=key).expect_problem(404, "RFA_QUEUE_NOT_FOUND")
        weir.api("POST", f"/v1/queues/{name}:pause", key=key).expect_problem(404, "RFA_QUEUE_NOT_FOUND")


def test_a_paused_queue_takes_jobs_and_hands_out_none(weir, client):
    key = client.api_key
    weir.submit(key, queue="mail")
    running = weir.claim(key, "mail")[0]
    weir.tell("start", key, running)
    assert act(weir, key, "mail", "pause") == {"queue": "mail", "paused": True, "defaults": NOTHING_SET}
    assert act(weir, key, "mail", "pause")["paused"], "to repeat it changes nothing"
    waiting = weir.submit(key, queue="mail")["job_id"]
    other = weir.submit(key, queue="images")["job_id"]
    assert weir.claim(key, "mail") == []
    tasks = weir.worker_call("claim", key, {"worker_id": "w", "queues": ["mail", "images"], "max": 5})
    assert [t["job_id"] for t in tasks["tasks"]] == [other], "other queues go on"
    assert weir.tell("finish", key, running, outcome="success")["ok"], "what runs goes on"
    found = queues(weir, key)["mail"]
    assert found["paused"] and numbers(found) == (1, 0, 0)
    told = weir.api("GET", f"/v1/jobs/{waiting}/explain", key=key).expect(200)
    assert told["waiting_on"] == "worker" and "paused" in told["detail"]
    assert not act(weir, key, "mail", "resume")["paused"]
    assert [t["job_id"] for t in weir.claim(key, "mail")] == [waiting]
    assert "mail" in queues(weir, key) and not queues(weir, key)["mail"]["paused"]


def test_the_built_in_runner_passes_over_a_paused_queue(weir, client):
    other = weir.new_client()
    act(weir, client.api_key, "default", "pause")
    held = weir.submit(client.api_key, work_kind="SUCCESS_FAST")["job_id"]
    free = weir.submit(other.api_key, work_kind="SUCCESS_FAST")["job_id"]
    weir.wait_final(other.api_key, free)
    assert weir.job(client.api_key, held)["state"] == "QUEUED"
    act(weir, client.api_key, "default", "resume")
    weir.wait_final(client.api_key, held)


@pytest.mark.postgres_only
def test_a_pause_holds_on_every_node():
    with Nodes(postgres.session(), 2, {"runner.processes": 0}) as (first, second):
        key = first.new_client().api_key
        first.submit(key, queue="mail")
        act(first, key, "mail", "pause")
        assert second.claim(key, "mail") == []
        assert queues(second, key)["mail"]["paused"]
        act(second, key, "mail", "resume")
        task = first.claim(key, "mail", wait_ms=10000)[0]
        first.tell("start", key, task)
        first.tell("finish", key, task, outcome="success")
        wait_for(lambda: queue(second, key, "mail")["completed_per_minute"] == 1, 30,
                 "the other node to hear of it", second)


def test_a_purge_cancels_what_is_queued_and_nothing_else(weir, client):
    key = client.api_key
    later = weir.submit(key, queue="mail", type="DEFERRED", execution_at="2100-01-01T00:00:00Z")["job_id"]
    taken = weir.submit(key, queue="mail", priority=9)["job_id"]
    jobs = {"jobs": [{"type": "EXECUTE", "queue": "mail"}] * 700}
    made = [r["job_id"] for r in weir.api("POST", "/v1/jobs:batch", jobs, key).expect(202)["results"]]
    other = weir.submit(key, queue="images")["job_id"]
    weir.claim(key, "mail")
    assert act(weir, key, "mail", "purge") == {"canceled": 700, "more": False}
    assert act(weir, key, "mail", "purge") == {"canceled": 0, "more": False}
    assert weir.job(key, made[0])["state"] == "CANCELED"
    event = weir.events(key, made[-1])[-1]
    assert (event["event_name"], event["payload"]["reason"]) == ("job.canceled", "purged")
    states = [weir.job(key, job)["state"] for job in (later, taken, other)]
    assert states == ["CREATED", "ASSIGNED", "QUEUED"]
    assert numbers(queue(weir, key, "mail")) == (0, 1, 1)


def test_defaults_are_given_to_jobs_that_do_not_say(weir, client):
    key = client.api_key
    wish = {"retry": "manual", "max_retries": 1, "queue_ttl_seconds": 600}
    answer = weir.api("POST", "/v1/queues/mail", wish, key).expect(200)
    assert answer == {"queue": "mail", "paused": False, "defaults": dict(NOTHING_SET, **wish)}
    job = weir.job(key, weir.submit(key, queue="mail")["job_id"])
    assert {name: job[name] for name in wish} == wish
    own = {"retry": "auto", "max_retries": 3, "queue_ttl_seconds": 60}
    job = weir.job(key, weir.submit(key, queue="mail", **own)["job_id"])
    assert {name: job[name] for name in own} == own, "what a job says wins"
    job = weir.job(key, weir.submit(key, queue="images")["job_id"])
    assert (job["retry"], job["max_retries"]) == ("auto", 3), "another queue has its own"
    answer = weir.api("POST", "/v1/queues/mail", {"retry": "auto"}, key).expect(200)
    assert answer["defaults"] == dict(NOTHING_SET, retry="auto"), "the body is the whole of it"
    weir.api("POST", "/v1/queues/mail", {}, key).expect(200)
    assert queue(weir, key, "mail")["defaults"] == NOTHING_SET
    other = weir.new_client().api_key
    assert queue(weir, other, "mail")["defaults"] == NOTHING_SET


@pytest.mark.parametrize("wish, code", [
    ({"retry": "perhaps"}, "RFA_REQUEST_MALFORMED"), ({"paused": True}, "RFA_REQUEST_MALFORMED"),
    ({"max_retries": 4}, "RFA_JOB_VALIDATION_FAILED"),
    ({"retention_seconds": 2592001}, "RFA_JOB_VALIDATION_FAILED")])
def test_a_default_that_is_not_allowed_is_refused(weir, client, wish, code):
    weir.api("POST", "/v1/queues/mail", wish, client.api_key).expect_problem(400, code)
    assert queue(weir, client.api_key, "mail")["defaults"] == NOTHING_SET


def test_a_key_that_is_limited_to_queues_sees_and_touches_those_only(weir, client):
    for name in ("mail", "images"):
        weir.submit(client.api_key, queue=name)
    key = weir.api("POST", f"/v1/clients/{client.client_id}/keys", {"queues": ["mail"]},
                   client.api_key).expect(201)["api_key"]
    assert set(queues(weir, key)) == {"mail"}
    weir.api("GET", "/v1/queues/images", key=key).expect_problem(403, "RFA_AUTH_FORBIDDEN")
    for verb in (":pause", ":resume", ":purge", ""):
        weir.api("POST", f"/v1/queues/images{verb}", {}, key).expect_problem(403, "RFA_AUTH_FORBIDDEN")
    assert act(weir, key, "mail", "pause")["paused"]
    assert numbers(queue(weir, client.api_key, "images")) == (1, 0, 0)


def test_metrics_have_a_series_for_so_many_queues_and_one_for_the_rest(fresh_weir):
    weir = fresh_weir(settings={"runner.processes": 0, "metrics.queues_max": 2})
    key = weir.new_client().api_key
    for name in ("a", "b"):
        weir.submit(key, queue=name)
        task = weir.claim(key, name)[0]
        weir.tell("start", key, task)
        weir.tell("finish", key, task, outcome="success")
    for name in ("c", "c", "d", "a"):
        weir.submit(key, queue=name)
    weir.claim(key, "d")

    def depths():
        found = {n: weir.metric("weir_queue_depth", queue=n) for n in ("a", "b", "other")}
        return found == {"a": 1, "b": 0, "other": 2}
    wait_for(depths, 20, "the gauges", weir)
    assert weir.metric("weir_queue_running", queue="other") == 1
    assert weir.metric("weir_queue_completed_total", queue="a") == 1
    assert weir.metric("weir_queue_failed_total", queue="b") == 0
    assert weir.metric("weir_queue_oldest_age_seconds", queue="b") == 0
    assert 'queue="c"' not in weir.api("GET", "/metrics").text


def test_operators_see_the_queues_of_all_clients(weir):
    one, two = weir.new_client(), weir.new_client()
    for client in (one, two):
        weir.submit(client.api_key, queue="of-all")
    act(weir, one.api_key, "of-all", "pause")

    def shown(query=""):
        items = weir.api("GET", "/ops/v1/queues" + query).expect(200)["items"]
        return next((q for q in items if q["queue"] == "of-all"), None)
    assert set(shown()) == MEMBERS and shown()["depth"] == 2 and shown()["paused"]
    theirs = shown(f"?client_id={two.client_id}")
    assert theirs["depth"] == 1 and not theirs["paused"]
    weir.api("GET", "/ops/v1/queues?client_id=x").expect_problem(400, "RFA_REQUEST_MALFORMED")


# --- the command line ---


def test_the_command_line_shows_and_steers_queues(weir, client):
    key = client.api_key

    def cli(*args):
        done = weir.cli("queue", *args, key=key)
        assert done.returncode == 0, done.stderr
        return done.stdout
    assert cli("list") == ""
    for _ in range(3):
        weir.submit(key, queue="mail")
    head, line = cli("list").splitlines()
    assert head.split() == ["QUEUE", "STATE", "DEPTH", "OLDEST", "RUNNING", "SCHEDULED", "DONE/MIN",
                            "FAILED/MIN"]
    assert line.split()[:3] == ["mail", "active", "3"]
    assert json.loads(cli("list", "-o", "json"))["items"][0]["depth"] == 3
    assert "paused             true" in cli("pause", "mail")
    assert "paused" in cli("list")
    shown = cli("set", "mail", "--max-retries", "1", "--retry", "manual")
    assert "max_retries        1" in shown and "retry              manual" in shown
    assert json.loads(cli("set", "mail", "--retry", "none", "-o", "json"))["defaults"] == dict(
        NOTHING_SET, max_retries=1), "other defaults stay"
    assert json.loads(cli("resume", "mail", "-o", "json"))["paused"] is False
    assert json.loads(cli("show", "mail", "-o", "json"))["depth"] == 3
    asked = weir.cli("queue", "purge", "mail", key=key)
    assert asked.returncode == 2 and "3 jobs wait" in asked.stderr and "--yes" in asked.stderr
    assert cli("purge", "mail", "--yes") == "mail: 3 jobs canceled\n"
    assert json.loads(cli("purge", "mail", "-y", "-o", "json")) == {"canceled": 0}
    assert weir.cli("queue", "show", "NO", key=key).returncode == 3
    assert weir.cli("queue", "set", "mail", "--max-retries", "many", key=key).returncode != 0
    assert weir.cli("queue", "pause", key=key).returncode == 2


def test_top_shows_the_fullest_queues(fresh_weir):
    weir = fresh_weir(settings={"runner.processes": 0})
    key = weir.new_client().api_key
    for _ in range(4):
        weir.submit(key, queue="top-of-all")

    def shown():
        lines = weir.cli("top", "--once", "--interval", "100ms").stdout.splitlines()
        return next((line.split()[:2] for line in lines if line.startswith("top-of-all")), None)
    wait_for(lambda: shown() == ["top-of-all", "4"], 30, "the queue to show", weir)
