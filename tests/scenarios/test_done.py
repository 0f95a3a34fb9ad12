"""What "done" means (section 19): the six actions work together, failures have tests, everything shows."""
from harness.otlp_receiver import OtlpReceiver
from harness.receiver import Receiver, is_signed
from harness.weir_server import wait_for

RUN = ["job.created", "job.queued", "job.assigned", "job.running", "job.succeeded"]
FAST = {"webhooks.base_ms": 20, "webhooks.cap_ms": 100, "jobs.retry_base_ms": 0}


def test_the_six_actions_from_end_to_end(fresh_weir):
    """[JOB-299] Submit, get, report, cancel, retry, and webhooks that tell of all of it, in order."""
    weir = fresh_weir(settings=FAST)
    made = weir.api("POST", "/v1/clients").expect(201)
    key = weir.api("POST", f"/v1/clients/{made['client_id']}/keys", {}).expect(201)["api_key"]
    with Receiver() as callbacks, Receiver() as webhooks:
        secret = weir.api("POST", "/v1/webhooks", {"url": webhooks.url, "events": ["job.*"]},
                          key).expect(201)["secret"]

        good = weir.submit(key, work_kind="SUCCESS_FAST", callback=callbacks.url)["job_id"]
        assert weir.wait_final(key, good)["outcome"] == "SUCCESS"
        got = weir.job(key, good)
        assert (got["job_id"], got["state"], got["definition"]["work_kind"]) == (
            good, "SUCCEEDED", "SUCCESS_FAST")
        report = weir.report(key, good)
        assert report["outcome"] == "SUCCESS" and [e["event_name"] for e in report["events"]] == RUN

        stopped = weir.submit(key, queue="nobody")["job_id"]
        weir.cancel(key, stopped).expect(200)
        assert weir.job(key, stopped)["state"] == "CANCELED"
        assert weir.report(key, stopped)["outcome"] == "CANCELED"

        again = weir.submit(key, work_kind="RETRY_ON_FAIL")["job_id"]
        assert weir.wait_final(key, again)["state"] == "FAILED"
        weir.retry(key, again).expect(200)
        assert weir.wait_state(key, again, "SUCCEEDED")["attempt"] == 2

        wanted = {job: weir.event_names(key, job) for job in (good, stopped, again)}
        calls = webhooks.wait(sum(map(len, wanted.values())), 60)
        assert all(is_signed(call, secret) for call in calls)
        for job, names in wanted.items():
            assert [c.json["type"] for c in calls if c.event["job_id"] == job] == names
        assert [c.json["type"] for c in callbacks.wait(5, 60)] == RUN
        assert all(is_signed(call, made["webhook_secret"]) for call in callbacks.calls)


def test_submits_runs_failures_and_webhooks_can_be_watched(fresh_weir):
    """[JOB-302] Each of the four in the metrics, in the log and in the traces."""
    with OtlpReceiver() as collector, Receiver() as receiver:
        weir = fresh_weir(settings={**FAST, "log.level": "debug"},
                          env={"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url})
        key = weir.new_client().api_key
        receiver.answers = [500, 200]
        answer = weir.try_submit(key, work_kind="FAIL_IMMEDIATE", callback=receiver.url)
        job = answer.expect(202)["job_id"]
        weir.wait_state(key, job, "FAILED")
        receiver.wait(6, 60)

        counts = {"jobs_submitted_total": 1, "jobs_running_total": 1, "jobs_failed_total": 1,
                  "webhook_deliveries_total": 5, "webhook_failures_total": 1}
        wait_for(lambda: {name: weir.metric(name) for name in counts} == counts, 30, f"{counts}", weir)

        request_id = answer.headers["x-request-id"]
        assert weir.wait_log(event="request", request_id=request_id)["status"] == 202
        assert weir.wait_log(event="job.running", job_id=job)["worker_id"]
        assert weir.wait_log(event="job.failed", job_id=job)["next_state"] == "FAILED"
        lines = wait_for(lambda: (lambda seen: seen if len(seen) == 6 else None)(
            weir.logs(event="weir.outbound.result", job_id=job)), 30, "six lines", weir)
        assert [line["status"] for line in lines] == [500, 200, 200, 200, 200, 200]

        def all_spans(spans):
            trace = {s.trace for s in spans if s["weir.request_id"] == request_id}
            mine = [s for s in spans if s.trace in trace and s["weir.job_id"] == job]
            return mine if len(mine) == 13 else None

        spans = collector.wait(all_spans, "submit, attempt, four states, report and six deliveries", 30)
        names = [s.name for s in spans]
        assert names.count("POST /v1/jobs") == names.count("job RUNNING") == 1
        failed = sorted(s.name for s in spans if s.failed)
        assert failed == ["POST callback", "job RUNNING", "job attempt"]
        assert names.count("POST callback") == 6
