"""Levels of queues and of the service, as clients, operators and other processes meet them."""
import os
import time

import pytest

from harness import wire
from harness.engine_calls import UnixConnection
from harness.receiver import Receiver
from harness.pace import Stopwatch
from harness.weir_server import wait_for

FULL = "RFA_EXEC_QUEUE_FULL"
TRANSITION = "weir.pressure.transition"


@pytest.fixture
def twenty(fresh_weir):
    """A queue of twenty jobs and nobody who works on them."""
    return fresh_weir(settings={"jobs.queue_size": 20, "jobs.max_active": 1000, "runner.processes": 0,
                                "limits.requests_per_minute": 0})


def level(weir):
    """Of the fullest queue, as readiness tells it."""
    return weir.api("GET", "/readyz").expect(200)["checks"]["pressure"]


def wait_level(weir, wanted):
    """It is measured after each batch, and now and then."""
    wait_for(lambda: level(weir) == wanted, 5, f"level {wanted}, not {level(weir)}", weir)


def transitions(weir, component="task_queue"):
    """Levels that the log says were entered, in order."""
    return [line["pressure_level"] for line in weir.logs(event=TRANSITION) if line["component"] == component]


def outbound_level(weir):
    """Of the queue that the test reports of."""
    return weir.metric("weir_pressure_level", component="outbound", partition="300")


def fill(weir, key, count, **fields):
    """Submits so many jobs that stay queued."""
    return [weir.submit(key, queue="o", **fields)["job_id"] for _ in range(count)]


def report(weir, body, path="/internal/v1/pressure"):
    """What a process of ours tells core."""
    connection = UnixConnection(os.path.join(weir.data, "core.sock"))
    try:
        payload, kind = wire.encode(body)
        connection.request("POST", path, payload, {"Content-Type": kind})
        answer = connection.getresponse()
        return wire.Response(answer.status, {}, answer.read(), "POST " + path)
    finally:
        connection.close()


def test_levels_are_entered_at_their_bounds_and_left_a_twentieth_below(twenty):
    """[TOP-072] [TOP-073] [TOP-077] [TOP-078] A queue of 20: normal at 13, warn at 14, degraded at 17, shed
    at 19; back to normal at 13, not at 14. One event for each change, gauges and a header besides."""
    weir, key = twenty, twenty.new_client().api_key
    jobs = fill(weir, key, 13)
    time.sleep(0.6)
    assert level(weir) == "normal" and not transitions(weir)
    assert "weir-pressure" not in weir.api("GET", "/v1/jobs", key=key).headers
    jobs += fill(weir, key, 1)
    wait_level(weir, "warn")
    assert weir.api("GET", "/v1/jobs", key=key).headers["weir-pressure"] == "warn"
    assert weir.metric("weir_pressure_ratio", component="task_queue", partition="0") == pytest.approx(0.7)
    assert weir.metric("weir_pressure_level", component="task_queue") == 1
    jobs += fill(weir, key, 3)
    wait_level(weir, "degraded")
    jobs += fill(weir, key, 2)
    wait_level(weir, "shed")
    for job_id in jobs[:5]:
        weir.cancel(key, job_id).expect(200)
    wait_level(weir, "warn")  # 14 of 20: entered there, not left there
    time.sleep(0.6)
    assert level(weir) == "warn"
    weir.cancel(key, jobs[5]).expect(200)
    wait_level(weir, "normal")
    wait_for(lambda: transitions(weir)[-1:] == ["normal"], 5, "the last event", weir)
    steps = transitions(weir)
    assert steps[:3] == ["warn", "degraded", "shed"] and len(steps) == len(set(zip(steps, steps[1:]))) + 1
    assert weir.metric("weir_pressure_transitions_total", component="task_queue") == len(steps)
    line = weir.logs(event=TRANSITION)[0]
    assert line["component"] == "task_queue" and line["partition"] == 0


def test_from_degraded_on_low_work_is_refused_and_the_rest_only_when_full(twenty):
    """[TOP-079] [TOP-080] 0 to 2: 503, Retry-After and the stable code. 3 to 9 up to the last place. A key
    seen before replays whatever its class."""
    weir, key = twenty, twenty.new_client().api_key
    first = weir.submit(key, queue="o", priority=0, idempotency_key="k")
    fill(weir, key, 16)
    wait_level(weir, "degraded")
    for priority in (0, 1, 2):
        answer = weir.try_submit(key, queue="o", priority=priority)
        answer.expect_problem(503, FULL)
        assert answer.headers["weir-pressure"] == "degraded" and int(answer.headers["retry-after"]) >= 1
    later = weir.try_submit(key, queue="o", priority=1, type="DEFERRED", execution_at=weir.soon(60))
    later.expect_problem(503, FULL)  # it would not wait in this queue, but it is new work of the low class
    again = weir.submit(key, queue="o", priority=0, idempotency_key="k")
    assert again["job_id"] == first["job_id"]
    for priority in (3, 5, 9):
        weir.submit(key, queue="o", priority=priority)
    wait_level(weir, "shed")
    weir.try_submit(key, queue="o", priority=9).expect_problem(503, FULL)  # the queue is full


def test_long_polls_are_shorter_from_degraded_on(twenty):
    """[TOP-079] A claim that would wait 30 seconds is answered after five."""
    weir, key = twenty, twenty.new_client().api_key
    fill(weir, key, 17)
    wait_level(weir, "degraded")
    watch = Stopwatch()
    assert weir.claim(key, queue="empty", wait_ms=30000) == []
    assert watch.seconds() >= 4.9 and watch.quiet() < 20


def test_other_processes_report_what_they_hold(twenty):
    """[TOP-070] [TOP-072] Seen at once; dropped when nothing is heard for ten seconds; over TCP there is no
    such path; what cannot be read is refused."""
    weir = twenty
    body = {"process": "gateway 7", "queues": [
        {"component": "outbound", "partition": 300, "depth": 250, "capacity": 256},
        {"component": "outbound", "partition": 301, "depth": 1, "capacity": 256}],
            "reconnects": [{"instance_id": "gateway 7", "elapsed_ms": 40000, "attempts": 3,
                            "reason": "refused"}]}
    weir.api("POST", "/internal/v1/pressure", body).expect_problem(404, "RFA_REQUEST_ROUTE_NOT_FOUND")
    # A report is forgotten after ten seconds: what a busy machine sees later than that is no answer.
    while True:
        watch = Stopwatch()
        assert report(weir, body).expect(200) == {"level": "normal"}  # it governs no request
        seen = level(weir), outbound_level(weir)
        assert report(weir, {"process": "gateway 7", "reconnects": []}).status == 200
        after_silence = outbound_level(weir)  # no word of queues
        if watch.seconds() < 10:
            break
    assert (seen, after_silence) == (("shed", 3), 3)
    wait_for(lambda: weir.metric("weir_slo_level", slo="instance_reconnect_recovery") == 1, 5, "warn", weir)
    line = weir.wait_log(event="weir.instance.connected")
    assert line["instance_id"] == "gateway 7" and line["attempts"] == 3 and line["reason"] == "refused"
    negative = {"component": "outbound", "partition": 0, "depth": -1, "capacity": 9}
    odd = {"instance_id": "g", "elapsed_ms": -1, "attempts": 1, "reason": "r"}
    for bad in ({}, {"process": "x" * 40}, {"process": "g", "queues": [{"component": "nothing"}]},
                {"process": "g", "queues": [negative]}, {"process": "g", "reconnects": [odd]}, "{"):
        assert report(weir, bad).status == 400
    wait_for(lambda: level(weir) == "normal", 20, "the report to be forgotten", weir)
    assert weir.metric("weir_pressure_ratio", component="outbound", partition="300") == 0
    assert transitions(weir, "outbound") == ["shed", "normal"]


def test_a_full_outbox_is_told_and_refuses_nothing(fresh_weir):
    """[TOP-072] [TOP-073] Deliveries that nobody makes, against webhooks.outbox_size: each level, its event,
    metrics, topology and readiness. Work of every class is taken all the same, since one client's dead
    receiver is nobody else's matter. Also after a restart; and all is normal once they are made."""
    weir = fresh_weir(settings={"webhooks.outbox_size": 10, "gateway.processes": 0, "runner.processes": 0,
                                "limits.requests_per_minute": 0})
    key = weir.new_client().api_key

    def outbox():
        return round(10 * weir.metric("weir_pressure_ratio", component="outbox", partition="0"))

    with Receiver() as receiver:
        for jobs, count in ((4, 8), (1, 10)):  # a job says that it was created and queued
            for _ in range(jobs):
                weir.submit(key, queue="o", callback=receiver.url)
            wait_for(lambda count=count: outbox() == count, 15, f"{count}, not {outbox()}", weir)
        wait_level(weir, "shed")
        assert transitions(weir, "outbox") == ["warn", "shed"]
        queues = weir.api("GET", "/ops/v1/topology").expect(200)["pressure"]
        shown = next(q for q in queues if q["component"] == "outbox")
        assert (shown["ratio"], shown["level"]) == (1, "shed")
        answer = weir.try_submit(key, queue="o", priority=0, callback=receiver.url)
        assert answer.expect(202) and "weir-pressure" not in answer.headers
        weir.restart()
        wait_for(lambda: outbox() == 12, 15, "those stored", weir)
        weir.restart({"gateway.processes": 1})
        receiver.wait(12)
        wait_for(lambda: outbox() == 0, 30, "all to be made", weir)
        wait_level(weir, "normal")


def test_service_levels_are_measured_and_told(fresh_weir):
    """[TOP-057] [TOP-061] [TOP-064] [TOP-067] Submits and deliveries are samples; each has its event with its
    dimensions; all is well and nobody is told otherwise."""
    weir = fresh_weir(settings={"log.level": "debug", "runner.time_scale": 0.01})
    key = weir.new_client().api_key
    with Receiver() as receiver:
        job_id = weir.submit(key, work_kind="WEBHOOK_SUCCESS", callback=receiver.url)["job_id"]
        weir.wait_final(key, job_id)
        receiver.wait(5)
        wait_for(lambda: weir.metric("weir_slo_samples", slo="outbound_delivery_reliability") == 5, 10,
                 "five results", weir)
    assert weir.metric("weir_slo_value", slo="outbound_delivery_reliability") == 1
    assert weir.metric("weir_slo_samples", slo="outbound_enqueue_latency") == 5
    assert weir.metric("weir_slo_samples", slo="ingest_decision_latency") == 1
    assert weir.metric("weir_slo_value", slo="ingest_decision_latency") > 0
    for event, dimensions in (("weir.ingest.completed", ("instance_id", "channel", "outcome")),
                              ("weir.outbound.enqueued", ("instance_id", "partition", "operation")),
                              ("weir.outbound.result", ("channel", "provider_code", "classification"))):
        line = weir.wait_log(event=event)
        assert all(name in line for name in dimensions), line


def test_an_slo_that_is_missed_is_told_once(fresh_weir):
    """[TOP-066] Deliveries that are given up: the ratio falls, the level is critical, one line in the log."""
    weir = fresh_weir(settings={"runner.time_scale": 0.01, "webhooks.max_attempts": 1})
    key = weir.new_client().api_key
    with Receiver() as receiver:
        receiver.answers = [500]
        weir.wait_final(key, weir.submit(key, work_kind="SUCCESS_FAST", callback=receiver.url)["job_id"])
        wait_for(lambda: weir.metric("weir_slo_level", slo="outbound_delivery_reliability") == 2, 20,
                 "critical", weir)
    time.sleep(2)
    lines = weir.logs(event="weir.slo.transition", slo="outbound_delivery_reliability")
    assert [line["level"] for line in lines] == ["critical"]
    assert lines[0]["telemetry_event"] == "outbound.result"
