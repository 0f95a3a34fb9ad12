"""Traces as a collector gets them: one trace through a job's life, whoever begins it."""
import json
import os
import signal
import time
import uuid

import pytest

from harness.engine_calls import UnixConnection
from harness.otlp_receiver import OtlpReceiver
from harness.receiver import hang, slowly
from harness.weir_server import wait_for

FAST = {"webhooks.base_ms": 20, "webhooks.cap_ms": 100, "webhooks.max_attempts": 4}
LIFE = ["job CREATED", "job QUEUED", "job ASSIGNED", "job RUNNING", "job report"]


@pytest.fixture(scope="module")
def collector():
    """Takes the spans of all servers of this module."""
    with OtlpReceiver() as receiver:
        yield receiver


@pytest.fixture(scope="module")
def traced(module_weir, collector):
    """Sends its spans there."""
    return module_weir(env={"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url + "/"},
                       settings={"jobs.retry_base_ms": 0, **FAST})


def new_context(sampled=True):
    """(traceparent, trace id, span id) as a client would make them."""
    trace, span = uuid.uuid4().hex, uuid.uuid4().hex[:16]
    return f"00-{trace}-{span}-{'01' if sampled else '00'}", trace, span


def wait_attempt(collector, job_id, attempt=1):
    """All spans of an ended attempt, by name; `attempt` is the last to come."""
    collector.wait(lambda spans: [s for s in spans if s.name == "job attempt"
                                  and s["weir.job_id"] == job_id and s["weir.attempt"] == attempt],
                   f"the attempt {attempt} of {job_id}")
    found = [s for s in collector.of(weir__job_id=job_id, weir__attempt=attempt)]
    return {s.name: s for s in found}


def wait_request(collector, answer):
    """The span of a request that was answered."""
    request_id = answer.headers["x-request-id"]
    return collector.wait(lambda _: collector.of(weir__request_id=request_id),
                          f"the span of request {request_id}")[0]


def wait_delivery_spans(collector, job_id, count):
    """The spans of a job's deliveries, once there are so many, in the order they began."""
    def found(spans):
        ours = [s for s in spans if s.kind == "client" and s["weir.job_id"] == job_id]
        return ours if len(ours) >= count else None
    return sorted(collector.wait(found, f"{count} delivery spans of {job_id}", 30), key=lambda s: s.start)


def told(call):
    """(trace id, span id) that a receiver was told."""
    version, trace, span, flags = call.headers["traceparent"].split("-")
    assert (version, flags) == ("00", "01")
    return trace, span


def test_one_trace_holds_a_job_from_submit_to_report(traced, collector):
    """[JOB-281] The client's trace id on the submit, on each state and on the report; parents lead
    back to the client's span; times follow each other as the events do."""
    client = traced.new_client()
    traceparent, trace, span = new_context()
    answer = traced.try_submit(client.api_key, {"traceparent": traceparent}, work_kind="SUCCESS_FAST")
    job_id = answer.expect(202)["job_id"]
    traced.wait_state(client.api_key, job_id, "SUCCEEDED")
    submit, life = wait_request(collector, answer), wait_attempt(collector, job_id)
    assert submit.kind == "server" and submit.name == "POST /v1/jobs" and submit.parent == span
    assert submit["http.route"] == "/v1/jobs" and submit["http.response.status_code"] == 202
    assert submit["http.request.method"] == "POST" and submit["weir.client_id"] == client.client_id
    assert submit["weir.job_id"] == job_id and not submit.failed
    assert sorted(life) == sorted(LIFE + ["job attempt"])
    whole = life["job attempt"]
    assert whole.parent == submit.id and whole["weir.outcome"] == "SUCCESS" and not whole.failed
    assert whole["weir.scenario"] == "SUCCESS_FAST"
    assert {s.trace for s in [submit, *life.values()]} == {trace}
    assert {life[name].parent for name in LIFE} == {whole.id}
    ids = [submit.id, span] + [s.id for s in life.values()]
    assert len(ids) == len(set(ids))
    for before, after in zip(LIFE, LIFE[1:]):
        assert life[before].end == life[after].start
    assert whole.start == life["job CREATED"].start and whole.end == life["job report"].end
    assert life["job RUNNING"]["weir.worker_id"].startswith("runner-")
    assert whole["weir.ran_ms"] == pytest.approx(
        1000 * (life["job RUNNING"].end - life["job RUNNING"].start), abs=2)


def test_a_worker_gets_the_context_of_its_run(traced, collector):
    """[JOB-281] What the claim hands out is the span that the run becomes, in the same trace."""
    key = traced.new_client().api_key
    traceparent, trace, span = new_context()
    job_id = traced.submit(key, {"traceparent": traceparent}, queue="w1")["job_id"]
    task = traced.end_outside(key, job_id, "success", queue="w1", result={})
    version, task_trace, task_span, flags = task["traceparent"].split("-")
    assert (version, task_trace, flags) == ("00", trace, "01") and task_span != span
    life = wait_attempt(collector, job_id)
    assert life["job RUNNING"].id == task_span
    assert life["job RUNNING"]["weir.worker_id"] == "test-worker"


def test_without_a_context_a_trace_begins_at_the_submit(traced, collector):
    key = traced.new_client().api_key
    answers = [traced.try_submit(key, queue="w2") for _ in range(2)]
    spans = [wait_request(collector, answer) for answer in answers]
    assert all(span.parent is None for span in spans) and spans[0].trace != spans[1].trace
    tasks = traced.claim(key, "w2", most=2)
    assert {t["traceparent"].split("-")[1] for t in tasks} == {span.trace for span in spans}


def test_an_attempt_that_follows_by_itself_is_in_the_trace_of_its_job(traced, collector):
    """Both attempts of a job with `retry: auto` have their spans, though nobody asked for the second."""
    key = traced.new_client().api_key
    context, job_trace, _ = new_context()
    job_id = traced.try_submit(key, {"traceparent": context}, queue="w9").json["job_id"]
    traced.end_outside(key, job_id, queue="w9")
    first = wait_attempt(collector, job_id, 1)
    task = wait_for(lambda: traced.claim(key, "w9"), 20, "the second attempt")[0]
    traced.tell("start", key, task)
    traced.tell("finish", key, task, outcome="success", result={})
    second = wait_attempt(collector, job_id, 2)
    assert first["job attempt"].failed and second["job attempt"]["weir.outcome"] == "SUCCESS"
    assert sorted(second) == sorted(["job attempt"] + LIFE[1:])
    assert {s.trace for s in (*first.values(), *second.values())} == {job_trace}


def test_a_retry_links_to_the_trace_of_its_job(traced, collector):
    """[JOB-282] The retry is a trace of its own that links to the job's; the second attempt is a
    second set of spans in the job's trace."""
    key = traced.new_client().api_key
    submit_context, job_trace, _ = new_context()
    submitted = traced.try_submit(key, {"traceparent": submit_context}, queue="w3", retry="manual")
    job_id = submitted.json["job_id"]
    first_task = traced.end_outside(key, job_id, queue="w3")
    first = wait_attempt(collector, job_id, 1)
    assert first["job attempt"].failed and first["job attempt"]["weir.outcome"] == "FAILED"
    assert first["job RUNNING"].failed and first["job RUNNING"]["weir.next_state"] == "FAILED"
    retry_context, retry_trace, retry_parent = new_context()
    retried = traced.api("POST", f"/v1/jobs/{job_id}/retry", key=key,
                         headers={"traceparent": retry_context})
    assert retried.status == 200
    second_task = wait_for(lambda: traced.claim(key, "w3"), 5, "the second attempt")[0]
    traced.tell("start", key, second_task)
    traced.tell("finish", key, second_task, outcome="success", result={})
    second, retry = wait_attempt(collector, job_id, 2), wait_request(collector, retried)
    submit = wait_request(collector, submitted)
    assert (retry.trace, retry.parent) == (retry_trace, retry_parent)
    assert retry.links == [(job_trace, submit.id)] and retry["weir.job_id"] == job_id
    assert sorted(second) == sorted(["job attempt"] + LIFE[1:])
    assert {s.trace for s in second.values()} == {job_trace}
    assert second["job attempt"].parent == submit.id
    assert second["job attempt"]["weir.outcome"] == "SUCCESS"
    assert first_task["traceparent"] != second_task["traceparent"]
    assert second["job RUNNING"].id == second_task["traceparent"].split("-")[2]


def test_a_cancel_is_followed_from_request_to_transition(traced, collector):
    """[JOB-284] The request's span links to the job's trace, where the last state ends in CANCELED
    while the request is under way."""
    key = traced.new_client().api_key
    context, trace, _ = new_context()
    submitted = traced.try_submit(key, {"traceparent": context}, queue="w4")
    job_id = submitted.json["job_id"]
    canceled = traced.cancel(key, job_id)
    assert canceled.status == 200
    life, cancel = wait_attempt(collector, job_id), wait_request(collector, canceled)
    assert sorted(life) == ["job CREATED", "job QUEUED", "job attempt", "job report"]
    assert life["job QUEUED"]["weir.next_state"] == "CANCELED"
    assert life["job attempt"]["weir.outcome"] == "CANCELED" and not life["job attempt"].failed
    assert cancel.name == "POST /v1/jobs/{job_id}/cancel" and cancel["weir.job_id"] == job_id
    assert cancel.links == [(trace, wait_request(collector, submitted).id)]
    assert cancel.start <= life["job QUEUED"].end <= cancel.end
    again = wait_request(collector, traced.cancel(key, job_id))
    assert again.links == cancel.links and again["http.response.status_code"] == 200


def test_the_life_of_an_api_key_is_traced_without_the_key(traced, collector):
    """[JOB-285] Create, renew and revoke carry key_id and client_id; no key is in any span."""
    made = traced.api("POST", "/v1/clients").expect(201)
    path = f"/v1/clients/{made['client_id']}/keys"
    context, trace, parent = new_context()
    created = traced.api("POST", path, {}, headers={"traceparent": context})
    key, key_id = created.expect(201)["api_key"], created.json["key_id"]
    renewed = traced.api("POST", path + "/renew", {}, key)
    second = renewed.expect(200)
    revoked = traced.api("POST", path + "/revoke", {"key_id": key_id}, second["api_key"])
    assert revoked.status == 200
    create, revoke = wait_request(collector, created), wait_request(collector, revoked)
    assert (create.trace, create.parent) == (trace, parent)
    assert create["weir.key_id"] == revoke["weir.key_id"] == key_id
    assert wait_request(collector, renewed)["weir.key_id"] == second["key_id"]
    assert create.name == "POST /v1/clients/{client_id}/keys" and "revoke" in revoke.name
    assert revoke["weir.client_id"] == made["client_id"]
    everything = json.dumps([s.attributes for s in collector.spans])
    for secret in (key, second["api_key"], made["webhook_secret"], key[-20:]):
        assert secret not in everything


def test_failures_of_requests_show(traced, collector):
    key = traced.new_client().api_key
    bad = wait_request(collector, traced.try_submit(key, queue="BAD"))
    assert bad["error.type"] == "RFA_JOB_VALIDATION_FAILED"
    assert bad["http.response.status_code"] == 400 and not bad.failed
    anonymous = wait_request(collector, traced.try_submit(None))
    assert anonymous["http.response.status_code"] == 401 and anonymous["weir.client_id"] is None


def test_worker_calls_and_probes_leave_no_spans_of_their_own(traced, collector):
    key = traced.new_client().api_key
    answers = [traced.api("GET", "/healthz"), traced.api("GET", "/metrics"),
               traced.api("POST", "/worker/v1/claim",
                          {"worker_id": "w", "queues": ["none"], "max": 1}, key)]
    wait_request(collector, traced.api("GET", "/v1/jobs", key=key))
    for answer in answers:
        assert not collector.of(weir__request_id=answer.headers["x-request-id"])


def test_a_lost_lease_shows_as_a_second_wait(traced, collector):
    """The job goes back: ASSIGNED ends in QUEUED, and both come again, under the same attempt."""
    weir = traced
    key = weir.new_client().api_key
    job_id = weir.submit(key, queue="w7")["job_id"]
    weir.tell("release", key, weir.claim(key, "w7")[0])
    weir.end_outside(key, job_id, "success", queue="w7", result={})
    wait_attempt(collector, job_id)
    spans = collector.of(weir__job_id=job_id, weir__attempt=1)
    names = [s.name for s in spans]
    assert names.count("job ASSIGNED") == names.count("job QUEUED") == 2
    assert len({s.id for s in spans}) == len(spans) == 8


def test_after_a_restart_a_claimed_job_goes_on_in_its_trace(fresh_weir, collector):
    weir = fresh_weir(env={"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url},
                      settings={"runner.processes": 0})
    key = weir.new_client().api_key
    context, trace, _ = new_context()
    job_id = weir.submit(key, {"traceparent": context}, queue="w8")["job_id"]
    weir.restart()
    weir.end_outside(key, job_id, "success", queue="w8", result={})
    life = wait_attempt(collector, job_id)
    assert {s.trace for s in life.values()} == {trace}
    assert {"job RUNNING", "job report", "job attempt"} <= set(life)


def test_the_ratio_thins_traces_that_begin_here(fresh_weir, collector):
    weir = fresh_weir(env={"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url},
                      settings={"runner.processes": 0, "traces.sample_ratio": 0})
    key = weir.new_client().api_key
    context, trace, _ = new_context()
    silent = weir.try_submit(key, queue="w9")
    told = weir.try_submit(key, {"traceparent": context}, queue="w9")
    assert wait_request(collector, told).trace == trace
    assert not collector.of(weir__request_id=silent.headers["x-request-id"])
    assert {t["traceparent"] is None for t in weir.claim(key, "w9", most=2)} == {True, False}
    assert weir.metric("weir_spans_total") >= 1


def test_without_an_endpoint_nothing_is_recorded_and_contexts_pass(weir):
    key = weir.new_client().api_key
    context, _, _ = new_context()
    weir.submit(key, {"traceparent": context}, queue="w")
    weir.submit(key, {"traceparent": "x" * 55}, queue="w")
    assert {t["traceparent"] for t in weir.claim(key, "w", most=2)} == {context, None}
    assert weir.metric("weir_spans_total") == 0


def test_spans_are_given_to_nobody_over_tcp(traced):
    """The way out is the Unix socket; over TCP there is nothing, with or without a key."""
    key = traced.new_client().api_key
    for options in ({}, {"key": key}):
        traced.api("POST", "/internal/v1/spans:take", {}, **options).expect_problem(
            404, "RFA_REQUEST_ROUTE_NOT_FOUND")
    connection = UnixConnection(os.path.join(traced.data, "core.sock"))
    connection.request("POST", "/internal/v1/spans:take")
    answer = connection.getresponse()
    assert answer.status == 200 and b'"resourceSpans"' in answer.read()
    connection.close()


@pytest.mark.limit(90)
def test_a_collector_that_is_away_holds_nobody_up(fresh_weir):
    """Jobs run; spans wait, then drop and are counted; what waited arrives when it is back."""
    with OtlpReceiver() as collector:
        collector.status = 503
        weir = fresh_weir(env={"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url},
                          settings={"runner.processes": 0})
        key = weir.new_client().api_key
        wait_for(lambda: collector.requests >= 1, 10, "a try", weir)
        assert weir.wait_log(event="collector_away")["status"] == 503
        jobs = [{"type": "EXECUTE", "queue": "many"}] * 1000
        while weir.metric("weir_spans_dropped_total") == 0:
            weir.api("POST", "/v1/jobs:batch", {"jobs": jobs}, key).expect(202)
            for task in weir.claim(key, "many", most=256):
                assert task["traceparent"]
            assert weir.metric("jobs_submitted_total") < 20000, "nothing was ever dropped"
        collector.status = 200
        collector.wait(lambda spans: len(spans) > 1000, "what waited", 30)
        weir.wait_log(event="collector_back")


def test_the_gateway_sends_what_is_left_when_the_server_stops(fresh_weir, collector):
    weir = fresh_weir(env={"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url},
                      settings={"runner.processes": 0})
    answer = weir.api("POST", "/v1/clients")
    weir.stop()
    assert collector.of(weir__request_id=answer.headers["x-request-id"])


def test_a_killed_gateway_goes_on_exporting(traced, collector):
    old = traced.pids("gateway")
    traced.kill9_kind("gateway")
    traced.wait_pids("gateway", 1, other_than=old)
    assert wait_request(collector, traced.api("POST", "/v1/clients"))


# ---- deliveries

def test_every_attempt_of_a_delivery_is_a_span_in_the_jobs_trace(traced, collector, receiver):
    """[JOB-283] Submit, run, a receiver that fails twice, then takes everything: one client span
    for each request, whose `traceparent` is that span's, under the submit."""
    key = traced.new_client().api_key
    context, trace, _ = new_context()
    receiver.answers = [500, 503, 200]
    submitted = traced.try_submit(key, {"traceparent": context}, work_kind="SUCCESS_FAST",
                                  callback=receiver.url + "/secret-path?token=hidden")
    job_id = submitted.expect(202)["job_id"]
    calls = receiver.wait(7)
    spans = wait_delivery_spans(collector, job_id, 7)
    submit = wait_request(collector, submitted)
    assert [told(call) for call in calls] == [(trace, s.id) for s in spans]
    assert len({s.id for s in spans}) == 7 and {s.parent for s in spans} == {submit.id}
    assert {s.name for s in spans} == {"POST callback"}
    assert [s["http.response.status_code"] for s in spans] == [500, 503, 200, 200, 200, 200, 200]
    assert [s.failed for s in spans] == [True, True] + [False] * 5
    assert [s["error.type"] for s in spans] == ["500", "503"] + [None] * 5
    assert [s["weir.delivery_attempt"] for s in spans] == [1, 2, 3, 1, 1, 1, 1]
    assert [s["http.request.resend_count"] for s in spans] == [None, 1, 2] + [None] * 4
    assert [s["weir.event_seq"] for s in spans] == [1, 1, 1, 2, 3, 4, 5]
    assert [s["weir.delivery_id"] for s in spans] == [call.id for call in calls]
    for span, call in zip(spans, calls):
        assert span.start <= call.at <= span.end
        assert (span["server.address"], span["server.port"]) == receiver.server.server_address
        assert (span["http.request.method"], span["url.scheme"]) == ("POST", "http")
        assert span["weir.webhook_id"] is None
    assert "secret-path" not in repr(spans) and "hidden" not in repr(spans)
    assert wait_attempt(collector, job_id)["job attempt"].trace == trace


def test_spans_of_a_webhook_and_of_a_redelivery(traced, collector, receiver):
    """[JOB-283] A registered webhook's spans name it. Sent again on request, the same delivery begins at
    attempt 1 again, in a span of its own. A test is about no job: it has no context and no span."""
    key = traced.new_client().api_key
    hook = traced.api("POST", "/v1/webhooks", key=key,
                      body={"url": receiver.url, "events": ["job.queued"]}).expect(201)["webhook_id"]
    submitted = traced.try_submit(key, queue="nobody")
    job_id = submitted.expect(202)["job_id"]
    first = wait_delivery_spans(collector, job_id, 1)[0]
    traced.api("POST", f"/v1/webhooks/{hook}/deliveries/{first['weir.delivery_id']}:redeliver", key=key,
               body={}).expect(202)
    spans = wait_delivery_spans(collector, job_id, 2)
    assert [told(call) for call in receiver.calls] == [(first.trace, s.id) for s in spans]
    assert spans[0].id != spans[1].id and {s.name for s in spans} == {"POST webhook"}
    for span in spans:
        assert span["weir.webhook_id"] == hook and span["weir.delivery_attempt"] == 1
        assert span.parent == wait_request(collector, submitted).id
    traced.api("POST", f"/v1/webhooks/{hook}:test", key=key, body={}).expect(202)
    assert "traceparent" not in receiver.wait(3)[2].headers
    log = f"/v1/webhooks/{hook}/deliveries"
    wait_for(lambda: {d["state"] for d in traced.api("GET", log, key=key).json["items"]} == {"delivered"}, 20,
             "the test delivered", traced)
    wait_request(collector, traced.api("GET", log, key=key))  # whatever it left behind came before this
    assert not [s for s in collector.spans if s["weir.webhook_id"] == hook and s not in spans]


@pytest.mark.limit(90)
def test_ids_that_receivers_were_told_outlive_kills(fresh_weir, collector, receiver):
    """[JOB-283] Core dies while a delivery is out: the core after it records the attempt under the id that
    was sent. The gateway dies: the attempt ends as lost, under its id, and the next has another one."""
    weir = fresh_weir(env={"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url},
                      settings={**FAST, "queue.lease_ms": 1000, "queue.heartbeat_ms": 200,
                                "runner.processes": 0, "webhooks.timeout_ms": 20000})
    key = weir.new_client().api_key
    context, trace, _ = new_context()
    receiver.answers = [slowly(2), 200, hang, 200]
    job_id = weir.submit(key, {"traceparent": context}, queue="nobody", callback=receiver.url)["job_id"]
    receiver.wait(1)
    old = weir.kill9_kind("core")
    weir.wait_pids("core", 1, other_than=old)
    spans = wait_delivery_spans(collector, job_id, 2)
    assert [told(call) for call in receiver.wait(2)] == [(trace, s.id) for s in spans]
    assert not any(s.failed for s in spans)

    job_id = weir.submit(key, {"traceparent": context}, queue="nobody", callback=receiver.url)["job_id"]
    receiver.wait(3)
    weir.kill9_kind("gateway")
    calls = receiver.wait(5, 30)[2:]
    spans = wait_delivery_spans(collector, job_id, 3)
    assert [told(call) for call in calls] == [(trace, s.id) for s in spans]
    assert [s["error.type"] for s in spans] == ["sender_lost", None, None]
    assert [s["weir.delivery_attempt"] for s in spans] == [1, 2, 1]


# ---- the way to the collector

def test_a_collector_at_a_private_address_is_reached_and_no_delivery_gets_there(fresh_weir):
    """The operator's endpoint is not judged. A delivery is, even to that endpoint, whatever was sent there
    before (tests/egress has the same with the collector's connection in hand)."""
    with OtlpReceiver() as collector:
        weir = fresh_weir(env={"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url},
                          settings={**FAST, "webhooks.allow_private": False, "runner.processes": 0})
        key = weir.new_client().api_key
        for _ in range(3):
            wait_request(collector, weir.api("GET", "/v1/jobs", key=key))
            job_id = weir.submit(key, queue="nobody", callback=collector.url + "/v1/traces")["job_id"]
            spans = wait_delivery_spans(collector, job_id, 2)
            assert {s["error.type"] for s in spans} == {"refused_by_policy"}
        assert not [head for head in collector.heads if "webhook-id" in head]
        wait_request(collector, weir.api("GET", "/v1/jobs", key=key))


@pytest.mark.limit(120)
def test_a_collector_that_hangs_delays_no_delivery(fresh_weir, receiver):
    """Deliveries are made while one export hangs, from before the first to behind the last of them; what
    hung arrives once the collector answers. Control: a gateway that stands still delivers nothing."""
    with OtlpReceiver() as collector:
        weir = fresh_weir(env={"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}, settings=FAST)
        key = weir.new_client().api_key
        collector.gate.clear()

        def delivered_during_one_export():
            begun = wait_for(lambda: collector.requests > seen and collector.requests, 60, "an export", weir)
            before = len(receiver.calls)
            weir.submit(key, work_kind="SUCCESS_FAST", callback=receiver.url)
            receiver.wait(before + 5, 60)
            return collector.requests == begun

        rounds = []  # a machine that is very slow may need more than the one
        while True not in rounds and len(rounds) < 4:
            seen = collector.requests
            weir.api("GET", "/v1/jobs", key=key)
            rounds.append(delivered_during_one_export())
        assert True in rounds

        weir.kill9_kind("gateway", signal.SIGSTOP)
        before = len(receiver.calls)
        weir.submit(key, work_kind="SUCCESS_FAST", callback=receiver.url)
        time.sleep(0.5)
        assert len(receiver.calls) == before
        weir.kill9_kind("gateway", signal.SIGCONT)
        collector.gate.set()
        wanted = 5 * (len(rounds) + 1)
        collector.wait(lambda spans: len([s for s in spans if s.kind == "client"]) == wanted, "all spans", 60)


def test_a_stop_does_not_wait_for_a_collector_that_hangs(fresh_weir):
    """What it holds is lost, and said to be; the server ends as asked."""
    with OtlpReceiver() as collector:
        weir = fresh_weir(env={"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url},
                          settings={"runner.processes": 0})
        collector.gate.clear()
        weir.api("POST", "/v1/clients")
        wait_for(lambda: collector.held, 20, "an export that is held", weir)
        weir.stop()
        assert [line["process"] for line in weir.logs(event="spans_lost")] == ["gateway 1"]
        assert not weir.logs(event="process_killed")


def test_headers_for_the_collector_are_sent_and_never_shown(fresh_weir):
    """Percent-decoded values, spaces around them ignored, as OpenTelemetry has it."""
    with OtlpReceiver() as collector:
        weir = fresh_weir(settings={"log.level": "debug", "runner.processes": 0},
                          env={"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
                               "OTEL_EXPORTER_OTLP_HEADERS":
                               "authorization=Bearer%20qu%2Ciet==, x-tenant = a%25b ,"})
        wait_request(collector, weir.api("POST", "/v1/clients"))
        assert {(h["authorization"], h["x-tenant"]) for h in collector.heads} == {("Bearer qu,iet==", "a%b")}
        collector.status = 503
        weir.api("POST", "/v1/clients")
        weir.wait_log(event="collector_away")
        weir.stop()
        assert "iet" not in weir.log_text()


def test_headers_that_cannot_be_sent_are_told_without_a_word_of_them(fresh_weir):
    """Nothing is exported then; everything else goes on."""
    with OtlpReceiver() as collector:
        weir = fresh_weir(settings={"runner.processes": 0},
                          env={"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
                               "OTEL_EXPORTER_OTLP_HEADERS": "authorization=quiet%2iet"})
        line = weir.wait_log(event="spans_not_exported")
        assert line["variable"] == "OTEL_EXPORTER_OTLP_HEADERS" and "1" in line["error_message"]
        assert weir.api("POST", "/v1/clients").status == 201
        weir.stop()
        assert "quiet" not in weir.log_text() and collector.requests == 0


def test_an_export_that_is_refused_is_dropped_and_counted(fresh_weir):
    """400: the collector will never take it, so it is not asked again; the metric tells."""
    with OtlpReceiver() as collector:
        collector.status = 400
        weir = fresh_weir(env={"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url},
                          settings={"runner.processes": 0})
        weir.api("POST", "/v1/clients")
        lost = weir.wait_log(event="spans_lost")
        assert lost["status"] == 400 and collector.requests == 1
        wait_for(lambda: weir.metric("weir_spans_dropped_total") == lost["spans"], 20, "a count", weir)
        collector.status = 200
        wait_request(collector, weir.api("POST", "/v1/clients"))
        weir.wait_log(event="collector_back")


@pytest.mark.limit(120)
@pytest.mark.long
def test_an_export_is_tried_six_times_then_dropped_and_counted(fresh_weir):
    with OtlpReceiver() as collector:
        collector.status = 503
        weir = fresh_weir(env={"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url},
                          settings={"runner.processes": 0})
        weir.api("POST", "/v1/clients")
        lost = weir.wait_log(timeout=90, event="spans_lost")
        assert collector.requests == 6
        wait_for(lambda: weir.metric("weir_spans_dropped_total") == lost["spans"], 20, "a count", weir)


def test_several_gateways_export_every_span_once(fresh_weir):
    with OtlpReceiver() as collector:
        weir = fresh_weir(env={"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url},
                          settings={"runner.processes": 0, "gateway.processes": 3})
        wait_for(lambda: len(weir.pids("gateway")) == 3, 20, "three gateways", weir)
        made = []

        def more_than_one():
            made.extend(weir.api("POST", "/v1/clients").headers["x-request-id"] for _ in range(20))
            return len(collector.peers) >= 2

        wait_for(more_than_one, 60, "exports by more than one of them", weir)
        collector.wait(lambda spans: {s["weir.request_id"] for s in spans} >= set(made), "all spans", 30)
        ids = [s.id for s in collector.spans]
        assert len(ids) == len(set(ids))


def test_without_a_gateway_the_log_says_that_nothing_is_exported(fresh_weir, collector):
    weir = fresh_weir(env={"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url},
                      settings={"runner.processes": 0, "gateway.processes": 0})
    assert "gateway.processes" in weir.wait_log(event="spans_not_exported")["error_message"]
    assert weir.api("POST", "/v1/clients").status == 201
