"""Failures of section 14 that no other file causes, and the table of all of them
(docs/conformance/failures.md): each case with the tests that cause it for real."""
import os
import re
import socket
import struct
import threading
import time

import pytest
import yaml

from harness.receiver import Receiver, is_signed
from harness.webhook_calls import QUICK_ATTEMPTS, job_deliveries, new_webhook, webhooks
from harness.weir_server import REPOSITORY, wait_for
from harness.worker_calls import Worker, names

FAST = {**QUICK_ATTEMPTS, "webhooks.timeout_ms": 5000, "webhooks.max_attempts": 3}
TABLE = os.path.join(REPOSITORY, "docs", "conformance", "failures.md")


@pytest.fixture(scope="module")
def weir(module_weir):
    """Short pauses between attempts."""
    return module_weir(settings=FAST)


# --- the table ---------------------------------------------------------------------------------------

def table_rows():
    """The rows of the table as lists of cells."""
    with open(TABLE, encoding="utf-8") as file:
        lines = [line.strip() for line in file if line.startswith("| JOB-")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def named_tests(cell):
    """(file, test) of every test a cell names."""
    found = re.findall(r"`([\w/]+\.(?:py|c)):(\w+)`", cell)
    assert found, cell
    return found


def test_every_failure_of_section_14_has_a_test_that_is_there():
    """[JOB-301] One row for each of the requirements of the section, and no test in it is invented."""
    rows = table_rows()
    assert [row[0] for row in rows] == [f"JOB-{n}" for n in range(154, 199)]
    for requirement, case, must, must_not, cell in rows:
        assert case and must and must_not, requirement
        marked = False
        for path, name in named_tests(cell):
            with open(os.path.join(REPOSITORY, "tests", path), encoding="utf-8") as file:
                text = file.read()
            is_there = re.search(rf"^(?:def |[A-Z_]*TEST[A-Z_]*\(){name}\b", text, re.M)
            assert is_there, f"tests/{path} has no {name}"
            marked = marked or requirement in text
        assert marked, f"no test of {requirement} names it"


# --- Authorization -----------------------------------------------------------------------------------

def test_no_operation_that_needs_a_key_answers_without_one(weir, client):
    """[JOB-154] [JOB-155] All of the contract, those of later days too: 401 without a key and with one of
    nobody, and nothing has happened."""
    contract = yaml.safe_load(weir.api("GET", "/openapi/jobs.yaml").text)
    tried = 0
    before = weir.metric("jobs_submitted_total")
    for path, operations in contract["paths"].items():
        for method, operation in operations.items():
            if method == "parameters" or operation.get("security") == []:
                continue
            if operation["operationId"] == "createClient":  # open in dev (AJ-07)
                continue
            concrete = path.replace("{client_id}", client.client_id)
            concrete = re.sub(r"{\w+}", "0190163d-8694-739b-aea5-966c26f8ad91", concrete)
            for key in (None, client.api_key[:-2] + "AA"):
                weir.api(method.upper(), concrete, {} if method == "post" else None,
                         key).expect_problem(401, "RFA_AUTH_INVALID_CREDENTIALS")
                tried += 1
    assert tried >= 2 * 20
    assert weir.metric("jobs_submitted_total") == before and webhooks(weir, client.api_key) == {}


# --- Execution ---------------------------------------------------------------------------------------

def test_an_output_that_cannot_be_read_is_no_success(weir, client):
    """[JOB-180] No outcome, an unknown one, a result that is no object, half a body: refused, the job is
    not finished by it; the worker that stays silent then loses it."""
    key = client.api_key
    job_id = weir.submit(key, queue="outside", max_runtime_ms=2000, retry="manual")["job_id"]
    with Worker(weir, key) as worker:
        task, = worker.claim()
        worker.start([task])
        for said in ({}, {"outcome": "SUCCESS"}, {"outcome": "success", "result": "all well"},
                     {"outcome": "success", "result": []}, {"outcome": "success", "error": 7}):
            answer = weir.api("POST", "/worker/v1/finish", {"tasks": [names(task, **said)]}, key).expect(200)
            assert [(item["ok"], item["code"]) for item in answer["results"]] == [(False, "malformed")]
        weir.api("POST", "/worker/v1/finish", '{"tasks":[{"task_id":', key).expect_problem(
            400, "RFA_REQUEST_MALFORMED")
        assert weir.job(key, job_id)["state"] == "RUNNING"
        weir.api("GET", f"/v1/jobs/{job_id}/report", key=key).expect_problem(404, "RFA_JOB_REPORT_NOT_FOUND")
    job = weir.wait_final(key, job_id, timeout=30)
    assert (job["state"], job["outcome"]) == ("FAILED", "FAILED")
    assert weir.event_names(key, job_id)[-1] == "job.timed_out"


# --- Notification ------------------------------------------------------------------------------------

class Rude:
    """Takes connections and ends each with a reset, or with bytes that are no HTTP."""

    def __init__(self, says):
        self.says = says
        self.taken = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self.serve, daemon=True)

    def serve(self):
        """Until it is closed."""
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.taken += 1
            with connection:
                connection.recv(65536)
                if self.says is None:  # linger 0: a reset
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                else:
                    connection.sendall(self.says)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.listener.close()


@pytest.mark.parametrize("scheme, host, says, error", [
    ("http", "127.0.0.1", None, {"closed"}),
    ("http", "127.0.0.1", b"* OK IMAP4 ready\r\n", {"protocol", "closed"}),
    ("http", "nobody.invalid", b"", {"dns"}),
], ids=["reset", "not-http", "no-such-name"])
def test_an_unreachable_receiver_is_recorded_and_tried_again_and_blocks_nothing(
        weir, client, scheme, host, says, error):
    """[JOB-186] Whatever way it is unreachable: the job SUCCEEDS, each delivery has all its attempts with
    the reason, and is given up."""
    key = client.api_key
    with Rude(says) as rude:
        url = f"{scheme}://{host}:{rude.port}/"
        job_id = weir.submit(key, work_kind="SUCCESS_FAST", callback=url)["job_id"]
        assert weir.wait_final(key, job_id)["state"] == "SUCCEEDED"
        done = wait_for(lambda: [d for d in job_deliveries(weir, key, job_id)
                                 if d["state"] == "exhausted"][4:]
                        and job_deliveries(weir, key, job_id), 60, "five given up", weir)
    assert [len(d["attempts"]) for d in done] == [3] * 5
    assert {a["error"] for d in done for a in d["attempts"]} <= error
    assert {a["status"] for d in done for a in d["attempts"]} == {None}
    assert weir.job(key, job_id)["outcome"] == "SUCCESS"


@pytest.mark.parametrize("form", [
    "http://user:secret@127.0.0.1:{port}/", "http://2130706433:{port}/", "ftp://127.0.0.1:{port}/"])
def test_a_url_that_is_refused_is_never_called(weir, client, receiver, form):
    """[JOB-187] [JOB-165] Each would lead to this receiver if somebody tried; the good one does."""
    key = client.api_key
    url = form.format(port=receiver.server.server_address[1])
    problem = weir.api("POST", "/v1/webhooks", {"url": url, "events": ["*"]}, key).expect_problem(
        400, "RFA_JOB_VALIDATION_FAILED")
    assert problem["detail"].startswith("url ")
    problem = weir.try_submit(key, queue="o", callback=url).expect_problem(400, "RFA_JOB_VALIDATION_FAILED")
    assert problem["detail"].startswith("callback ")
    batch = weir.api("POST", "/v1/jobs:batch", {"jobs": [{"type": "EXECUTE", "callback": url}]}, key)
    assert batch.expect(202)["results"][0]["error"]["code"] == "RFA_JOB_VALIDATION_FAILED"
    assert weir.total(key) == 0 and webhooks(weir, key) == {}
    weir.submit(key, queue="o", callback=receiver.url)
    receiver.wait(2)
    assert {call.path for call in receiver.calls} == {"/"} and len(receiver.calls) == 2


def test_no_callback_is_no_delivery(weir, client):
    """[JOB-187] A job without one is not delivered anywhere."""
    before = weir.metric("webhook_deliveries_total"), weir.metric("webhook_failures_total")
    job_id = weir.submit(client.api_key, work_kind="SUCCESS_FAST")["job_id"]
    weir.wait_final(client.api_key, job_id)
    assert job_deliveries(weir, client.api_key, job_id) == []
    assert before == (weir.metric("webhook_deliveries_total"), weir.metric("webhook_failures_total"))


def seconds_ago(text):
    """How long ago a time on the wire is."""
    from datetime import datetime
    return time.time() - datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def test_a_webhook_that_is_gone_is_disabled_and_everybody_is_told(weir, client, receiver):
    """[JOB-190] 410: the list says when and why, the client's other webhook hears of it, the log has a line
    and the counter one more; enabled again it looks like new."""
    key = client.api_key
    disabled = weir.metric("weir_webhooks_disabled_total", reason="gone")
    with Receiver() as other:
        other.answers = [410, 200]
        bad, _ = new_webhook(weir, key, other.url, ["job.queued"])
        told, secret = new_webhook(weir, key, receiver.url, ["webhook.disabled"])
        assert webhooks(weir, key)[bad]["disabled_at"] is None
        weir.submit(key, queue="o")
        call, = receiver.wait(1)
        now = webhooks(weir, key)[bad]
        assert (now["enabled"], now["disabled_reason"]) == (False, "gone")
        assert 0 <= seconds_ago(now["disabled_at"]) + 1 < 100 and now["failing_since"]
        assert call.json["type"] == "webhook.disabled" and is_signed(call, secret)
        assert call.json["data"] == {"webhook_id": bad, "url": other.url, "reason": "gone",
                                     "disabled_at": now["disabled_at"]}
        kept, = weir.api("GET", f"/v1/webhooks/{told}/deliveries", key=key).expect(200)["items"]
        assert (kept["event_name"], kept["job_id"], kept["event_id"]) == ("webhook.disabled", None, None)
        line = weir.wait_log(event="webhook_disabled", webhook_id=bad)
        assert (line["reason"], line["client_id"], line["level"]) == ("gone", client.client_id, "warn")
        assert weir.metric("weir_webhooks_disabled_total", reason="gone") == disabled + 1
        weir.api("POST", f"/v1/webhooks/{bad}:test", {}, key).expect_problem(409, "RFA_WEBHOOK_CONFLICT")
        weir.api("POST", f"/v1/webhooks/{bad}:enable", {}, key).expect(200)
        now = webhooks(weir, key)[bad]
        assert now["enabled"] and not (now["disabled_at"] or now["disabled_reason"] or now["failing_since"])
        weir.submit(key, queue="o")
        other.wait(2)


# --- the six actions ---------------------------------------------------------------------------------
