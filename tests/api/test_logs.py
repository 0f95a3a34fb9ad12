"""The log of a busy server: complete, said once, without secrets, and in nobody's way."""
import base64
import json
import os
import pty
import re
import subprocess
import threading
import uuid

import pytest

from harness.pace import Stopwatch
from harness.weir_server import Weir, server_environment, wait_for

TOKEN = "operator-" + uuid.uuid4().hex
MARK = "payload-" + uuid.uuid4().hex


@pytest.fixture(scope="module")
def loud(module_weir):
    """Every line there is."""
    return module_weir(settings={"log.level": "debug", "operator.token": TOKEN,
                                 "jobs.retry_base_ms": 0})


def spellings(secret):
    """A secret as it might be written down."""
    return {secret, base64.b64encode(secret.encode()).decode(), secret.encode().hex()}


def keys_and_secrets(weir):
    """Uses every secret there is, rightly and wrongly; gives them all."""
    made = weir.api("POST", "/v1/clients").expect(201)
    path = f"/v1/clients/{made['client_id']}/keys"
    secrets = {made["webhook_secret"], TOKEN, MARK}
    first = weir.api("POST", path, {}).expect(201)
    renewed = weir.api("POST", path + "/renew", {}, first["api_key"]).expect(200)
    rotated = weir.api("POST", f"/v1/clients/{made['client_id']}/webhook-secret/rotate", {}, TOKEN)
    if rotated.status == 200:
        secrets.add(rotated.json["webhook_secret"])
    junk = "weir_00" + uuid.uuid4().hex
    for bad in (junk, first["api_key"], first["api_key"][:-1], TOKEN + "x"):
        weir.api("GET", "/v1/jobs", key=bad)
        weir.try_submit(bad, payload={"a": MARK})
    secrets |= {first["api_key"], renewed["api_key"], junk}
    hook = weir.api("POST", "/v1/webhooks", {"url": "http://127.0.0.1:9/hook", "events": ["job.failed"]},
                    renewed["api_key"])
    if hook.status == 201 and hook.json.get("secret"):
        secrets.add(hook.json["secret"])
    weir.api("POST", path + "/revoke", {"key_id": first["key_id"]}, TOKEN)
    return renewed["api_key"], secrets


def test_no_secret_and_no_payload_is_ever_logged(loud):
    """[JOB-280] Keys, operator token, webhook secrets, payloads, results: not in any spelling."""
    key, secrets = keys_and_secrets(loud)
    job_id = loud.submit(key, queue="s", payload={"deep": [MARK]},
                         headers={"Authorization-Info": MARK}, idempotency_key="k")["job_id"]
    loud.try_submit(key, payload=MARK)
    loud.api("GET", f"/v1/jobs?cursor={MARK}", key=key)
    loud.end_outside(key, job_id, "success", queue="s", result={"answer": MARK})
    loud.wait_final(key, loud.submit(key, work_kind="FAIL_IMMEDIATE", payload={"x": MARK})["job_id"])
    last = loud.api("GET", "/nowhere").headers["x-request-id"]
    loud.wait_log(request_id=last)
    text = loud.log_text()
    assert len(text) > 5000 and len(secrets) >= 6
    for secret in secrets - {MARK}:
        for spelling in spellings(secret):
            assert spelling not in text
        assert secret[-20:] not in text
    for line in text.splitlines():
        assert MARK not in line, line


def test_a_request_and_a_transition_are_logged_once(loud):
    key = loud.new_client().api_key
    answers = [loud.try_submit(key, queue="BAD"), loud.api("GET", f"/v1/jobs/{uuid.uuid4()}", key=key),
               loud.try_submit(key, queue="once", retry="manual"), loud.api("GET", "/v1/jobs", key=key)]
    job_id = answers[2].json["job_id"]
    loud.end_outside(key, job_id, queue="once")
    for answer in answers:
        loud.wait_log(request_id=answer.headers["x-request-id"])
    loud.wait_log(job_id=job_id, next_state="FAILED")
    for answer in answers:
        assert len(loud.logs(request_id=answer.headers["x-request-id"])) == 1
    moves = [(e["current_state"], e["next_state"]) for e in loud.logs(job_id=job_id)
             if "current_state" in e]
    assert len(moves) == len(set(moves)) == 4


def test_transitions_name_the_client(loud):
    """[JOB-249] Also those that no request of the client causes."""
    client = loud.new_client()
    job_id = loud.submit(client.api_key, work_kind="FAIL_IMMEDIATE")["job_id"]
    loud.wait_log(job_id=job_id, next_state="FAILED")
    moves = [e for e in loud.logs(job_id=job_id) if "next_state" in e]
    assert len(moves) >= 5 and {e["client_id"] for e in moves} == {client.client_id}


def test_a_started_job_says_what_it_will_do_in_one_line(loud):
    key = loud.new_client().api_key
    job_id = loud.submit(key, work_kind="FAIL_IMMEDIATE")["job_id"]
    line = loud.wait_log(event="job_started", job_id=job_id)
    assert (line["scenario"], line["expected_outcome"]) == ("FAIL_IMMEDIATE", "FAILED")
    assert isinstance(line["duration_ms"], int)


def test_every_line_has_time_level_process_and_event(loud):
    loud.api("GET", "/healthz")
    for line in loud.log_text().splitlines()[:-1]:
        entry = json.loads(line)
        assert {"at", "level", "process", "event"} <= set(entry), line


class Piped(Weir):
    """Its stderr is a pipe that is read only when a test says so."""

    def spawn(self):
        self.reading, writing = os.pipe()
        with open(self.out_path, "ab") as out:
            self.process = subprocess.Popen(self.command(), stdout=out, stderr=writing,
                                            stdin=subprocess.DEVNULL,
                                            env=server_environment(self.env))
        os.close(writing)
        return self

    def read_on(self):
        """From now on everything goes to the log file."""
        def copy():
            with open(self.log_path, "ab", buffering=0) as log:
                while piece := os.read(self.reading, 65536):
                    log.write(piece)
            os.close(self.reading)

        thread = threading.Thread(target=copy)
        thread.start()
        return thread


@pytest.fixture
def piped():
    """One such server."""
    server = Piped(settings={"log.level": "debug"})
    server.start()
    yield server
    server.close()


@pytest.mark.limit(120)
def test_a_stuck_stderr_holds_nobody_up(piped):
    """Nobody reads the log: jobs are still taken, run and ended; what found no room is counted,
    and told once somebody reads again. The server also ends."""
    key = piped.new_client().api_key
    slowest = 0.0
    while piped.metric("weir_log_dropped_total") == 0:  # ended by the limit of the test
        for _ in range(200):
            watch = Stopwatch()
            piped.api("GET", f"/v1/jobs/{'x' * 3000}", key=key)
            slowest = max(slowest, watch.quiet())
    job_id = piped.submit(key, work_kind="SUCCESS_FAST")["job_id"]
    piped.wait_state(key, job_id, "SUCCEEDED")
    assert slowest < 2
    dropped = piped.metric("weir_log_dropped_total")
    reader = piped.read_on()
    line = wait_for(lambda: piped.logs(event="log_dropped", process="core"), 10, "what was dropped")[0]
    assert line["lines"] >= dropped
    answer = piped.api("GET", "/nowhere")
    piped.wait_log(request_id=answer.headers["x-request-id"])
    piped.stop()
    reader.join()
    for text in piped.log_text().splitlines():
        assert isinstance(json.loads(text), dict)


@pytest.mark.limit(60)
def test_a_stuck_stderr_does_not_keep_the_server_from_ending(piped):
    key = piped.new_client().api_key
    for _ in range(100):
        piped.api("GET", f"/v1/jobs/{'x' * 3000}", key=key)
    piped.stop()
    os.close(piped.reading)


# ---- for people

class OnTerminal(Piped):
    """Its stderr is a terminal."""

    def spawn(self):
        self.reading, terminal = pty.openpty()
        with open(self.out_path, "ab") as out:
            self.process = subprocess.Popen(self.command(), stdout=out, stderr=terminal,
                                            stdin=subprocess.DEVNULL,
                                            env=server_environment(self.env))
        os.close(terminal)
        self.reader = self.read_on()
        return self

    def read_on(self):
        """As of a pipe; a terminal that is closed is an error to its reader."""
        def copy():
            with open(self.log_path, "ab", buffering=0) as log:
                try:
                    while piece := os.read(self.reading, 65536):
                        log.write(piece)
                except OSError:
                    os.close(self.reading)

        thread = threading.Thread(target=copy)
        thread.start()
        return thread


FOR_PEOPLE = re.compile(r'^\d\d:\d\d:\d\d\.\d{3}Z (DEBUG|INFO |WARN |ERROR) \S+(?: \d+)? +\S+'
                        r'( \w+=("(?:[^"\\]|\\.)*"|{.*}|\S+))*$')
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def lines_for_people(server):
    """The lines of all processes so far, without colours; each has the form."""
    text = server.log_text().replace("\r\n", "\n")
    lines = [COLOUR.sub("", line) for line in text.split("\n")[:-1] if not line.startswith("weir")]
    for line in lines:
        assert FOR_PEOPLE.match(line), line
    return text, lines


@pytest.mark.parametrize("variables, coloured", [({}, True), ({"NO_COLOR": "1"}, False)])
def test_on_a_terminal_lines_are_for_people(variables, coloured):
    """Time, level, process, event, key=value of every process; colours unless NO_COLOR is set."""
    server = OnTerminal(settings={"log.transitions": "on"}, env=variables)
    server.start()
    try:
        key = server.new_client().api_key
        job_id = server.submit(key, work_kind="FAIL_IMMEDIATE")["job_id"]
        server.api("GET", "/nowhere%1b%5b31m", key=key)  # a caller does not colour our terminal
        server.wait_final(key, job_id)
        wait_for(lambda: "nowhere" in server.log_text(), 20, "the line of the request")
        wait_for(lambda: "job.failed" in server.log_text(), 20, "the line of the job")
        server.stop()
        server.reader.join()
        text, lines = lines_for_people(server)
    finally:
        server.close()
    assert bool(COLOUR.search(text)) is coloured and "\x1b[31mnot" not in text
    assert any(" core " in line and f"job_id={job_id}" in line and " job.failed " in line for line in lines)
    assert any(" root " in line for line in lines) and any(" runner" in line for line in lines)


def test_the_format_can_be_chosen_whatever_stderr_is(fresh_weir):
    """log.format text in a file: the same lines, without colours."""
    server = fresh_weir(settings={"log.format": "text", "log.level": "debug"})
    server.api("GET", "/nowhere")
    wait_for(lambda: "/nowhere" in server.log_text(), 20, "the line")
    text, lines = lines_for_people(server)
    assert not COLOUR.search(text)
    assert any("status=404" in line and "error_code=RFA_REQUEST_ROUTE_NOT_FOUND" in line for line in lines)


def test_transitions_are_logged_at_info_when_asked_for(fresh_weir):
    """log.transitions: every move of a job, at level info; off, failures alone."""
    moves = {}
    for value in ("on", "off"):
        server = fresh_weir(settings={"log.transitions": value})
        key = server.new_client().api_key
        good = server.submit(key, work_kind="SUCCESS_FAST")["job_id"]
        server.wait_final(key, good)
        bad = server.submit(key, work_kind="FAIL_IMMEDIATE")["job_id"]
        server.wait_log(job_id=bad, next_state="FAILED")
        moves[value] = [e["next_state"] for e in server.logs(level="info") if "next_state" in e]
    assert moves["off"] == ["FAILED"]
    assert len(moves["on"]) == 10 and moves["on"][4:6] == ["SUCCEEDED", "CREATED"]
