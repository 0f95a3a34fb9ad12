"""One client never has the last quarter of the server; jobs that nobody claims expire."""
from harness.weir_server import wait_for

SMALL = {"jobs.max_active": 40, "jobs.queue_size": 40, "jobs.max_active_per_client": 0, "runner.processes": 0}


def fill(weir, key, count):
    """One batch into a queue that nobody serves; the codes of what was refused, and how many were taken."""
    jobs = [{"type": "EXECUTE", "queue": "nobody"}] * count
    items = weir.api("POST", "/v1/jobs:batch", {"jobs": jobs}, key).expect(202)["results"]
    refused = [item["error"]["code"] for item in items if "error" in item]
    return refused, len(items) - len(refused)


def test_one_client_cannot_fill_the_server(fresh_weir):
    """Before: nine batches of one client, and everybody else got 429 or 503."""
    weir = fresh_weir(settings=SMALL)
    greedy, other = weir.new_client(), weir.new_client()
    refused, taken = fill(weir, greedy.api_key, 45)
    assert taken == 30 and set(refused) == {"RFA_EXEC_CLIENT_LIMIT"}
    problem = weir.try_submit(greedy.api_key).expect_problem(429, "RFA_EXEC_CLIENT_LIMIT")
    assert "jobs.max_active_per_client" in problem["detail"]
    for _ in range(10):
        weir.submit(other.api_key, queue="outside")
    weir.try_submit(other.api_key).expect_problem(429, "RFA_REQUEST_RATE_LIMITED")
    weir.restart()
    weir.try_submit(greedy.api_key).expect_problem(429, "RFA_EXEC_CLIENT_LIMIT")
    job = weir.api("GET", "/v1/jobs?limit=1", key=greedy.api_key).expect(200)["items"][0]["job_id"]
    weir.cancel(greedy.api_key, job)
    job = weir.api("GET", "/v1/jobs?limit=1", key=other.api_key).expect(200)["items"][0]["job_id"]
    weir.cancel(other.api_key, job)
    weir.submit(greedy.api_key, queue="nobody")
    weir.try_submit(greedy.api_key).expect_problem(429, "RFA_EXEC_CLIENT_LIMIT")


def test_a_job_nobody_claims_expires_and_its_client_is_told_why(fresh_weir):
    weir = fresh_weir(settings={"runner.processes": 0})
    client = weir.new_client()
    kept = weir.submit(client.api_key, queue="nobody")["job_id"]
    job = weir.submit(client.api_key, queue="nobody", queue_ttl_seconds=1)["job_id"]
    assert weir.job(client.api_key, job)["queue_ttl_seconds"] == 1
    assert weir.job(client.api_key, kept)["queue_ttl_seconds"] is None
    wait_for(lambda: weir.job(client.api_key, job)["state"] == "CANCELED", 30, "it expires", weir)
    queued, canceled = weir.events(client.api_key, job)[-2:]
    assert (canceled["event_name"], canceled["payload"]["reason"]) == ("job.canceled", "expired")
    assert (seconds(canceled["timestamp"]) - seconds(queued["timestamp"])) % 86400 >= 1
    assert weir.report(client.api_key, job)["outcome"] == "CANCELED"
    assert weir.job(client.api_key, kept)["state"] == "QUEUED"
    for bad in (0, -1, 31536001):
        assert weir.try_submit(client.api_key, queue_ttl_seconds=bad).status == 400
    weir.stop()
    assert weir.cli("verify").returncode == 0


def seconds(text):
    """A timestamp of an event, in seconds of its day."""
    hours, minutes, rest = text.split("T")[1].rstrip("Z").split(":")
    return int(hours) * 3600 + int(minutes) * 60 + float(rest)
