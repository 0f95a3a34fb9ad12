"""Deliveries: callbacks and webhooks arrive, signed and in order; failures are recorded and tried again;
nothing of it holds up a job. Real receivers on loopback."""
import time

import pytest

from harness.receiver import hang, is_signed, slowly
from harness.webhook_calls import (QUICK_ATTEMPTS, job_deliveries, new_client_with_secret, new_webhook,
                                   webhook_deliveries)
from harness.pace import Stopwatch
from harness.weir_server import wait_for

RUN = ["job.created", "job.queued", "job.assigned", "job.running", "job.succeeded"]
FAST = {**QUICK_ATTEMPTS, "webhooks.max_attempts": 4}


@pytest.fixture(scope="module")
def weir(module_weir):
    """Short pauses between attempts."""
    return module_weir(settings=FAST)


def wait_done(weir, key, job_id, state, count=5):
    """The callback's deliveries once all are in that state."""
    wait_for(lambda: [d["state"] for d in job_deliveries(weir, key, job_id)] == [state] * count, 30,
             f"{count} {state} deliveries", weir)
    return job_deliveries(weir, key, job_id)


def names(calls):
    """The events they carry."""
    return [call.json["type"] for call in calls]


def test_a_callback_hears_every_event_of_its_job_in_order_and_signed(weir, receiver):
    """[JOB-001] [JOB-063] [JOB-041] One call per state change, in order, signed over the raw bytes."""
    key, secret = new_client_with_secret(weir)
    job_id = weir.submit(key, work_kind="WEBHOOK_SUCCESS", callback=receiver.url + "/hook?a=b")["job_id"]
    calls = receiver.wait(5)
    assert names(calls) == RUN
    assert {call.path for call in calls} == {"/hook?a=b"}
    assert [call.event["seq"] for call in calls] == [1, 2, 3, 4, 5]
    assert {call.event["job_id"] for call in calls} == {job_id}
    assert all(is_signed(call, secret) for call in calls)
    assert not is_signed(calls[0], "whsec_" + "A" * 43 + "=")
    assert len({call.id for call in calls}) == 5
    events = weir.api("GET", f"/v1/jobs/{job_id}/events", key=key).json["items"]
    assert [call.event for call in calls[:-1]] == events[:-1]
    report = weir.report(key, job_id)
    assert calls[-1].event == {**events[-1], "result": report["result"], "error": None}
    done = wait_done(weir, key, job_id, "delivered")
    assert [d["delivery_id"] for d in done] == [call.id for call in calls]
    assert [d["event_id"] for d in done] == [e["event_id"] for e in events]
    assert all(len(d["attempts"]) == 1 and d["attempts"][0]["status"] == 200 and d["next_attempt_at"] is None
               for d in done)
    assert weir.wait_final(key, job_id)["state"] == "SUCCEEDED"


def test_the_event_that_ends_an_attempt_brings_its_result_or_error(weir, receiver):
    """A large result is left out, and that is told; what was given back has none. What is sent again says the
    same, also when the job has been retried since."""
    key, _ = new_client_with_secret(weir)
    hook, _ = new_webhook(weir, key, receiver.url, ["job.succeeded", "job.failed", "job.queued"])
    large, most = {"text": "x" * 65536}, {"text": "x" * (65536 - len('{"text": ""}'))}
    ends = [("failure", {"error": {"code": "a", "message": "b", "retryable": True}}),
            ("success", {"result": {"n": 1}}), ("success", {"result": most}), ("success", {"result": large}),
            ("success", {})]
    jobs = [weir.submit(key, queue="outside", retry="manual")["job_id"] for _ in ends]
    tasks = weir.claim(key, most=len(ends))
    weir.worker_call("start", key, {"tasks": [{"task_id": t["task_id"], "token": t["token"]} for t in tasks]})
    weir.tell("release", key, tasks[0], reason="later")
    tasks[0] = weir.claim(key)[0]
    weir.tell("start", key, tasks[0])
    for task, (outcome, fields) in zip(tasks, ends):
        weir.tell("finish", key, task, outcome=outcome, **fields)
    calls = receiver.wait(2 * len(ends) + 2)
    told = {(call.event["job_id"], call.event["event_name"], call.event["payload"].get("reason")): call.event
            for call in calls}
    assert all("result" not in call.event for call in calls if call.json["type"] == "job.queued")
    released = told[jobs[0], "job.failed", "released"]
    assert (released["result"], released["error"]) == (None, None)
    failed = told[jobs[0], "job.failed", "a"]
    assert (failed["result"], failed["error"]) == (None, ends[0][1]["error"])
    for job_id, (_, fields) in list(zip(jobs, ends))[1:]:
        event = told[job_id, "job.succeeded", None]
        is_large = fields.get("result") is large
        assert event["result"] == (None if is_large else fields.get("result"))
        assert event["error"] is None and event.get("result_omitted", False) is is_large
    weir.retry(key, jobs[0]).expect(200)
    deliveries = [d for d in webhook_deliveries(weir, key, hook)
                  if d["job_id"] == jobs[0] and d["event_name"] == "job.failed"]
    for delivery in deliveries:
        weir.api("POST", f"/v1/webhooks/{hook}/deliveries/{delivery['delivery_id']}:redeliver",
                 key=key).expect(202)
    again = [call.event for call in receiver.wait(len(calls) + 3)[len(calls):]
             if call.event["event_name"] == "job.failed"]
    assert sorted((released, failed), key=lambda e: e["seq"]) == sorted(again, key=lambda e: e["seq"])


def test_a_webhook_hears_what_it_asked_for_and_nothing_else(weir, receiver):
    """[JOB-103] [JOB-105] Subscribed names of its client's jobs; nothing of others, nothing once gone."""
    key, _ = new_client_with_secret(weir)
    other, _ = new_client_with_secret(weir)
    hook, secret = new_webhook(weir, key, receiver.url, ["job.succeeded", "job.failed"])
    good = weir.submit(key, work_kind="SUCCESS_FAST")["job_id"]
    bad = weir.submit(key, work_kind="FAIL_IMMEDIATE")["job_id"]
    weir.wait_final(other, weir.submit(other, work_kind="SUCCESS_FAST")["job_id"])
    calls = receiver.wait(2)
    weir.wait_final(key, good)
    time.sleep(0.3)
    assert len(receiver.calls) == 2
    assert {(call.json["type"], call.event["job_id"]) for call in calls} == {
        ("job.succeeded", good), ("job.failed", bad)}
    assert all(is_signed(call, secret) for call in calls)
    assert {d["state"] for d in webhook_deliveries(weir, key, hook)} == {"delivered"}
    weir.api("DELETE", f"/v1/webhooks/{hook}", key=key).expect(200)
    weir.wait_final(key, weir.submit(key, work_kind="SUCCESS_FAST")["job_id"])
    time.sleep(0.3)
    assert len(receiver.calls) == 2


def test_a_receiver_that_fails_once_gets_it_again_with_the_same_id(weir, receiver):
    """[JOB-043] [JOB-189] 500 then 200: the second attempt has the same id and a signature of its own."""
    key, secret = new_client_with_secret(weir)
    receiver.answers = [500, 200]
    job_id = weir.submit(key, work_kind="WEBHOOK_5XX", callback=receiver.url)["job_id"]
    calls = receiver.wait(6)
    assert names(calls) == [RUN[0]] + RUN
    assert calls[0].id == calls[1].id and calls[1].id != calls[2].id
    assert all(is_signed(call, secret) for call in calls)
    first = wait_done(weir, key, job_id, "delivered")[0]
    assert [a["status"] for a in first["attempts"]] == [500, 200]
    assert first["attempts"][0]["error"] == "http_status" and first["attempts"][1]["error"] is None


@pytest.mark.parametrize("status", [302, 404, 503])
def test_any_answer_but_2xx_is_a_failure(weir, receiver, status):
    """[JOB-189] Redirects are not followed."""
    key, _ = new_client_with_secret(weir)
    receiver.headers = {"Location": receiver.url + "/elsewhere"}
    receiver.answers = [status, 204]
    job_id = weir.submit(key, queue="nobody", callback=receiver.url + "/here")["job_id"]
    calls = receiver.wait(3)
    assert {call.path for call in calls} == {"/here"}
    first = wait_done(weir, key, job_id, "delivered", 2)[0]
    assert [a["status"] for a in first["attempts"]] == [status, 204]


def test_a_delivery_is_given_up_after_the_last_attempt_and_the_next_one_follows(weir, receiver):
    """[JOB-044] [JOB-190] [JOB-291] Always 500: attempts stop at the limit, the job is not touched by it."""
    key, _ = new_client_with_secret(weir)
    receiver.answers = [500]
    before = weir.metric("webhook_failures_total")
    job_id = weir.submit(key, work_kind="WEBHOOK_RETRIES_EXHAUSTED", callback=receiver.url)["job_id"]
    assert weir.wait_final(key, job_id)["state"] == "SUCCEEDED"
    done = wait_done(weir, key, job_id, "exhausted")
    assert [len(d["attempts"]) for d in done] == [4] * 5
    time.sleep(0.5)
    assert len(receiver.calls) == 20
    assert weir.metric("webhook_failures_total") - before == 20
    order = [call.json["type"] for call in receiver.calls]
    assert order == [name for name in RUN for _ in range(4)]


def test_a_receiver_that_hangs_is_cut_off_and_nobody_waits_for_it(weir, receiver):
    """[JOB-042] [JOB-188] [JOB-196] [JOB-220] Cut off at webhooks.timeout_ms; the job is on time."""
    key, _ = new_client_with_secret(weir)
    receiver.answers = [hang, 200]
    watch = Stopwatch()
    job_id = weir.submit(key, work_kind="WEBHOOK_TIMEOUT", callback=receiver.url)["job_id"]
    assert weir.wait_final(key, job_id)["state"] == "SUCCEEDED"
    assert watch.quiet() < 0.9
    first = wait_done(weir, key, job_id, "delivered")[0]
    assert [a["error"] for a in first["attempts"]] == ["timeout", None]
    took_ms = first["attempts"][0]["duration_ms"]
    assert 950 <= took_ms <= 2500 + watch.stalled() * 1000 and first["attempts"][0]["status"] is None


def test_a_slow_receiver_gets_everything_late(weir, receiver):
    """[JOB-045] Slower than the job, faster than the timeout."""
    key, _ = new_client_with_secret(weir)
    receiver.answers = [slowly(0.3)]
    watch = Stopwatch()
    job_id = weir.submit(key, work_kind="WEBHOOK_SLOW_RECEIVER", callback=receiver.url)["job_id"]
    assert weir.wait_final(key, job_id)["state"] == "SUCCEEDED"
    assert watch.quiet() < 1
    done = wait_done(weir, key, job_id, "delivered")
    assert watch.seconds() > 1.4
    assert all(len(d["attempts"]) == 1 for d in done)


def test_counters_and_log_lines_tell_of_every_attempt(fresh_weir, receiver):
    """[JOB-263] [JOB-264] [JOB-269] [JOB-279] One line per attempt, with status or error."""
    weir = fresh_weir(settings={**FAST, "log.level": "debug"})
    key, _ = new_client_with_secret(weir)
    receiver.answers = [500, 200]
    job_id = weir.submit(key, queue="nobody", callback=receiver.url)["job_id"]
    done = wait_done(weir, key, job_id, "delivered", 2)
    assert weir.metric("webhook_deliveries_total") == 2
    assert weir.metric("webhook_failures_total") == 1
    lines = weir.logs(at_least=3, event="weir.outbound.result")
    assert [(e["delivery_id"], e["status"]) for e in lines] == [
        (done[0]["delivery_id"], 500), (done[0]["delivery_id"], 200), (done[1]["delivery_id"], 200)]
    assert all(e["job_id"] == job_id and "duration_ms" in e for e in lines)
    assert lines[0]["error_code"] == "http_status" and lines[0]["attempt"] == 1


def test_timeout_and_attempts_are_settings(fresh_weir, receiver):
    """[JOB-296] Other values, other behaviour."""
    weir = fresh_weir(settings={**FAST, "webhooks.timeout_ms": 200, "webhooks.max_attempts": 2})
    key, _ = new_client_with_secret(weir)
    receiver.answers = [hang]
    watch = Stopwatch()
    job_id = weir.submit(key, queue="nobody", callback=receiver.url)["job_id"]
    done = wait_done(weir, key, job_id, "exhausted", 2)
    assert [[a["error"] for a in d["attempts"]] for d in done] == [["timeout"] * 2] * 2
    most_ms = 900 + watch.stalled() * 1000
    assert all(150 <= a["duration_ms"] <= most_ms for d in done for a in d["attempts"])


def test_private_addresses_are_out_of_reach_unless_allowed(fresh_weir, receiver):
    """The guard: nothing is sent, and nothing is tried again; an exception opens the way."""
    weir = fresh_weir(settings={**FAST, "webhooks.allow_private": False})
    key, _ = new_client_with_secret(weir)
    job_id = weir.submit(key, queue="nobody", callback=receiver.url)["job_id"]
    done = wait_done(weir, key, job_id, "exhausted", 2)
    assert [[a["error"] for a in d["attempts"]] for d in done] == [["refused_by_policy"]] * 2
    assert receiver.calls == []
    weir.stop()
    weir.settings["webhooks.allow_cidrs"] = "127.0.0.0/8"
    weir.start()
    weir.submit(key, queue="nobody", callback=receiver.url)
    receiver.wait(2)


def test_a_test_and_a_redelivery(weir, receiver):
    """A test has a body of its own; a redelivery the same id and one more attempt."""
    key, _ = new_client_with_secret(weir)
    hook, secret = new_webhook(weir, key, receiver.url, ["job.failed"])
    accepted = weir.api("POST", f"/v1/webhooks/{hook}:test", key=key, body={}).expect(202)
    call = receiver.wait(1)[0]
    assert call.json["type"] == "webhook.test" and call.id == accepted["delivery_id"]
    assert is_signed(call, secret)
    wait_for(lambda: webhook_deliveries(weir, key, hook)[0]["state"] == "delivered", 10, "delivered", weir)
    path = f"/v1/webhooks/{hook}/deliveries/{accepted['delivery_id']}:redeliver"
    weir.api("POST", path, key=key, body={}).expect(202)
    again = receiver.wait(2)[1]
    assert again.id == call.id and again.body == call.body
    wait_for(lambda: len(webhook_deliveries(weir, key, hook)[0]["attempts"]) == 2, 10, "two attempts", weir)
    other_client, _ = new_client_with_secret(weir)
    weir.api("POST", path, key=other_client, body={}).expect_problem(403, "RFA_AUTH_FORBIDDEN")
    weir.api("GET", f"/v1/webhooks/{hook}/deliveries", key=other_client).expect_problem(
        403, "RFA_AUTH_FORBIDDEN")
    missing = path.replace(accepted["delivery_id"], hook)
    weir.api("POST", missing, key=key, body={}).expect_problem(404, "RFA_WEBHOOK_NOT_FOUND")


def test_two_secrets_sign_while_one_is_rotated(weir, receiver):
    """The former and the new one, both of a webhook and of callbacks."""
    key, _ = new_client_with_secret(weir)
    hook, former = new_webhook(weir, key, receiver.url, ["job.queued"])
    now = weir.api("POST", f"/v1/webhooks/{hook}:rotate-secret", key=key, body={}).expect(200)["secret"]
    weir.submit(key, queue="nobody")
    call = receiver.wait(1)[0]
    assert former != now and is_signed(call, former) and is_signed(call, now)
    assert len(call.headers["webhook-signature"].split(" ")) == 2


def test_a_page_of_deliveries_and_its_cursor(weir, receiver):
    """Newest first, each once."""
    key, _ = new_client_with_secret(weir)
    hook, _ = new_webhook(weir, key, receiver.url, ["job.created"])
    for _ in range(7):
        weir.submit(key, queue="nobody")
    receiver.wait(7)
    seen, cursor = [], ""
    while cursor is not None:
        query = f"?limit=3{'&cursor=' + cursor if cursor else ''}"
        page = weir.api("GET", f"/v1/webhooks/{hook}/deliveries{query}", key=key).expect(200)
        seen += [item["delivery_id"] for item in page["items"]]
        cursor = page["next_cursor"]
    assert len(seen) == 7 == len(set(seen)) and seen == sorted(seen, reverse=True)
    weir.api("GET", f"/v1/webhooks/{hook}/deliveries?limit=0", key=key).expect_problem(
        400, "RFA_REQUEST_MALFORMED")
    weir.api("GET", f"/v1/webhooks/{hook}/deliveries?cursor=x", key=key).expect_problem(
        400, "RFA_REQUEST_MALFORMED")


def test_a_worker_cannot_claim_deliveries(weir, client):
    """The queues of the gateway are the server's own."""
    weir.api("POST", "/worker/v1/claim", key=client.api_key,
             body={"worker_id": "w", "queues": ["~deliver.0"], "max": 1}).expect_problem(
                 403, "RFA_AUTH_FORBIDDEN")
