"""One Weir server under test: started on a fresh data directory, called, stopped and judged.

    weir = Weir(settings={"jobs.queue_size": 5}).start()
    client_id, key = weir.new_client()
    job = weir.submit(key, work_kind="SUCCESS_FAST")
    weir.wait_state(key, job["job_id"], "SUCCEEDED")
    weir.stop()

stop() fails the test when the server does not end by itself, ends with another code than 0, leaves
a process behind, or when any of its processes wrote a sanitizer report; kill9() judges the reports.
"""
import functools
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections import namedtuple
from datetime import datetime, timedelta, timezone

from harness import contract_statuses, machine, postgres, processes, tls, wire
from harness.pace import Stopwatch

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
START_SECONDS_MAX = 30
STOP_SECONDS_MAX = 120
ORPHAN_SECONDS_MAX = 5  # from the end of the root to the end of its last child
POLL_SECONDS = 0.02
POLL_SECONDS_MAX = 0.1  # of a wait that has taken long: a look costs a call, or the reading of a log
FINAL_STATES = ("SUCCEEDED", "FAILED", "CANCELED")
SANITIZER_REPORT = re.compile(
    r"ERROR: AddressSanitizer|ERROR: LeakSanitizer|WARNING: ThreadSanitizer|runtime error:"
    r"|AddressSanitizer:DEADLYSIGNAL|broken promise:")

# What a test gets unless it says otherwise: no rate limits, catalog work a hundred times faster, one runner,
# and one client may fill its server (what the share of a client is, test_share.py says).
DEFAULT_SETTINGS = {"limits.requests_per_minute": 0, "server.unauthenticated_per_minute": 0,
                    "clients.per_address_minute": 0, "runner.processes": 1, "runner.time_scale": 0.01,
                    "jobs.max_active_per_client": 100000000}
# A database that stands beside a busy test run answers late, and is not away for that: a commit that took its
# two seconds of the defaults would be 503. They are to each other as the defaults are.
PATIENT_WITH_POSTGRES = {"store.timeout_ms": 8000, "server.request_timeout_ms": 20000}

Client = namedtuple("Client", "client_id api_key")


def binary():
    """The program under test: $WEIR_BIN, else the release build."""
    return os.environ.get("WEIR_BIN") or os.path.join(REPOSITORY, "build", "weir")


@functools.cache
def is_sanitized():
    """Whether the program under test was built with a sanitizer."""
    with open(binary(), "rb") as program:
        text = program.read()
    return b"__asan_init" in text or b"__tsan_init" in text


def server_environment(extra=None):
    """Our environment without WEIR_* (those are settings to the server); strict sanitizers."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("WEIR_")}
    env.setdefault("ASAN_OPTIONS", "detect_stack_use_after_return=1:strict_string_checks=1")
    env.setdefault("UBSAN_OPTIONS", "print_stacktrace=1:halt_on_error=1")
    env.setdefault("TSAN_OPTIONS", "halt_on_error=1")
    env.update(extra or {})
    env["ASAN_OPTIONS"] = machine.without_leaks(env["ASAN_OPTIONS"])
    return env


class PortReservation:
    """Holds a free port of 127.0.0.1 without listening, so that nobody else is given it.

    The server opens its listeners with SO_REUSEPORT, so it may bind beside this socket."""

    def __init__(self):
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        # The server first binds alone, to see whether anybody listens: that needs this option.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]

    def close(self):
        """Gives the port back."""
        self.socket.close()


class Weir:
    """See the module's text. Not started by the constructor."""

    def __init__(self, settings=None, args=(), env=None, data=None, program=None, store_url=None,
                 authority=None):
        wanted = {**DEFAULT_SETTINGS, **(settings or {})}  # None: the program's own default
        self.settings = {key: value for key, value in wanted.items() if value is not None}
        self.database = None  # of the session's PostgreSQL, dropped at the end
        if store_url:
            self.settings["store.url"] = store_url
        elif os.environ.get("WEIR_TEST_STORE") == "postgres" and not program \
                and "store.url" not in self.settings:
            self.database = postgres.session().fresh_database()
            self.settings = {**PATIENT_WITH_POSTGRES, **self.settings,
                             "store.url": postgres.session().url(self.database)}
        self.args = list(args)
        self.env = env or {}
        self.program = [program] if isinstance(program, str) else program or [binary()]
        # Short on purpose: a Unix socket's path inside it may have 107 bytes.
        self.home = tempfile.mkdtemp(prefix="weir-")
        self.data = data or os.path.join(self.home, "data")
        self.log_path = os.path.join(self.home, "stderr.log")
        self.out_path = os.path.join(self.home, "stdout.log")
        self.reservation = PortReservation()
        self.port = self.reservation.port
        self.context = None  # a client's side of TLS, when that is all it serves
        if authority:
            self.context = authority.context()
            self.settings.update(authority.settings(self.port))
        self.process = None
        self.first_token = None  # of its own issuer: engine_calls.mint()

    # ---- starting and ending

    @property
    def address(self):
        """(host, port)"""
        if self.context:
            return tls.SecureAddress("127.0.0.1", self.port, self.context)
        return "127.0.0.1", self.port

    @property
    def url(self):
        """http://host:port, or https"""
        return f"http{'s' if self.context else ''}://127.0.0.1:{self.port}"

    def command(self):
        """The command line that starts it."""
        listen = "off" if self.context else f"127.0.0.1:{self.port}"
        line = self.program + ["serve", "--listen", listen, "--data", self.data]
        for key, value in self.settings.items():
            text = str(value).lower() if isinstance(value, bool) else str(value)
            line += ["--set", f"{key}={text}"]
        return line + self.args

    def spawn(self):
        """Starts the process without waiting for it to be ready."""
        assert self.process is None, "already running"
        assert os.access(self.program[0], os.X_OK), \
            f"{self.program[0]} is missing; run `make build` or set WEIR_BIN"
        with open(self.log_path, "ab") as log, open(self.out_path, "ab") as out:
            self.process = subprocess.Popen(self.command(), stdout=out, stderr=log,
                                            stdin=subprocess.DEVNULL,
                                            env=server_environment(self.env))
        return self

    def start(self):
        """Starts and waits until /readyz answers 200."""
        self.spawn()
        try:
            self.wait_ready()
        except BaseException:
            self.destroy()
            raise
        return self

    def wait_ready(self, timeout=START_SECONDS_MAX):
        """Waits for /readyz; fails with the log when the server ends or takes too long."""
        watch = Stopwatch()
        while not watch.is_over(timeout):
            code = self.process.poll()
            assert code is None, f"the server ended with {code} at start:\n{self.log_tail()}"
            try:
                if self.api("GET", "/readyz").status == 200:
                    return
            except OSError:
                pass  # not listening yet
            pause(watch)
        raise AssertionError(f"not ready after {timeout} s:\n{self.log_tail()}")

    def stop(self):
        """SIGTERM; asserts a clean end of the whole tree."""
        if self.process is None:
            return
        family = processes.descendants(self.process.pid)
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(timeout=STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.destroy()
            raise AssertionError(
                f"still running {STOP_SECONDS_MAX} s after SIGTERM:\n{self.log_tail()}") from None
        self.process = None
        left = processes.wait_gone(family, ORPHAN_SECONDS_MAX)
        names = [processes.title(pid) for pid in left]
        self.kill_pids(left)
        self.assert_no_sanitizer_report()
        assert code == 0, f"ended with {code} after SIGTERM:\n{self.log_tail()}"
        assert not left, f"processes left behind: {names}"

    def kill9(self):
        """SIGKILL to the root and everything below it, as a power cut would for processes."""
        assert self.process is not None, "not running"
        self.destroy()
        self.assert_no_sanitizer_report()

    def restart(self, settings=None):
        """stop() if it runs, then start again on the same data directory and port."""
        self.stop()
        self.settings.update(settings or {})
        return self.start()

    def destroy(self):
        """Ends every process without judging. Safe to call twice."""
        if self.process is None:
            return
        # A stopped root starts nobody. Killed before its children it would leave them time for an orderly
        # end, because they see it go.
        self.kill_pids([self.process.pid], signal.SIGSTOP)
        family = processes.descendants(self.process.pid) + [self.process.pid]
        self.kill_pids(family)
        self.process.wait()
        self.process = None
        processes.wait_gone(family, 10)

    @staticmethod
    def kill_pids(pids, how=signal.SIGKILL):
        """A signal to processes of this server, those that are gone left out."""
        for pid in pids:
            try:
                os.kill(pid, how)
            except ProcessLookupError:
                pass

    def close(self, keep=False):
        """End of the test: no process, no port, and no files unless they are to be kept."""
        self.destroy()
        self.reservation.close()
        if self.database and not keep:
            postgres.session().drop_database(self.database)
            self.database = None
        if not keep:
            shutil.rmtree(self.home, ignore_errors=True)

    # ---- looking inside

    def pids(self, kind=None):
        """Pids below the root whose title holds `weir: KIND`; all of them without a kind."""
        found = processes.descendants(self.process.pid)
        if kind is None:
            return found
        return [pid for pid in found if f"weir: {kind}" in processes.title(pid)]

    def wait_pids(self, kind, count, other_than=(), timeout=10):
        """Waits for `count` processes of a kind that are not in `other_than`; gives their pids."""
        return wait_for(
            lambda: (lambda new: new if len(new) == count else None)(
                [pid for pid in self.pids(kind) if pid not in other_than]),
            timeout, f"{count} processes `weir: {kind}`", self)

    def kill9_kind(self, kind, signal_number=signal.SIGKILL):
        """Sends a signal to every process of a kind; gives their pids."""
        pids = self.pids(kind)
        assert pids, f"no process `weir: {kind}`"
        for pid in pids:
            os.kill(pid, signal_number)
        return pids

    def data_files(self):
        """Every file of the data directory."""
        return [os.path.join(folder, name) for folder, _, names in os.walk(self.data)
                for name in names]

    def log_text(self):
        """Everything the processes wrote to stderr."""
        return processes.read_text(self.log_path)

    def log_tail(self, lines=40):
        """The end of it, for messages."""
        return "\n".join(self.log_text().splitlines()[-lines:])

    def logs(self, at_least=0, **fields):
        """Log lines as dicts, those whose fields have these values. A process writes its lines a moment after
        what they tell: whoever knows that there are some waits for `at_least` so many."""
        if at_least:
            wait_for(lambda: len(self.logs(**fields)) >= at_least, 30, f"{at_least} log lines {fields}", self)
        found = []
        for line in self.log_text().split("\n"):
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            if isinstance(entry, dict) and all(entry.get(k) == v for k, v in fields.items()):
                found.append(entry)
        return found

    def wait_log(self, timeout=10, **fields):
        """Waits for a log line with these fields; gives the first."""
        return wait_for(lambda: self.logs(**fields), timeout, f"log line {fields}", self)[0]

    def assert_no_sanitizer_report(self):
        """Fails when any process of this server reported memory, thread or promise errors."""
        log = self.log_text()
        found = SANITIZER_REPORT.search(log)
        assert not found, f"sanitizer report in {self.log_path}:\n" + log[found.start():][:8000]

    def metrics(self):
        """/metrics as {'name{label="value"}': number}."""
        values = {}
        for line in self.api("GET", "/metrics").text.splitlines():
            if line and not line.startswith("#"):
                name, _, value = line.rpartition(" ")
                values[name] = float(value)
        return values

    def metric(self, name, **labels):
        """Sum of the series of this name that carry these labels; 0 when there is none."""
        total = 0.0
        for series, value in self.metrics().items():
            base, _, rest = series.partition("{")
            if base == name and all(f'{k}="{v}"' in rest for k, v in labels.items()):
                total += value
        return total

    def topology(self):
        """What root last wrote about its processes and domains."""
        with open(os.path.join(self.data, "topology.json"), encoding="utf-8") as file:
            return json.load(file)

    # ---- the command line

    def cli_environment(self, key=None):
        """What `weir` needs to find this server, its data directory and its store."""
        env = server_environment({"WEIR_URL": self.url, "WEIR_DATA": self.data})
        if "store.url" in self.settings:
            env["WEIR_STORE_URL"] = self.settings["store.url"]
        if key:
            env["WEIR_API_KEY"] = key
        return env

    def cli(self, *args, key=None, timeout=60):
        """Runs `weir ARGS` against this server and data directory; gives the CompletedProcess."""
        done = subprocess.run(self.program + list(args), env=self.cli_environment(key), timeout=timeout,
                              check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        assert not SANITIZER_REPORT.search(done.stderr), done.stderr
        return done

    # ---- the Jobs API

    def api(self, method, path, body=None, key=None, headers=None, **options):
        """One call; see wire.call. An answer that its contract does not list fails the test."""
        answer = wire.call(self.address, method, path, body, key, headers, **options)
        contract_statuses.check(method, path, answer.status)
        return answer

    def new_client(self):
        """A client and its first key, as (client_id, api_key)."""
        client_id = self.api("POST", "/v1/clients").expect(201)["client_id"]
        key = self.api("POST", f"/v1/clients/{client_id}/keys", {}).expect(201)["api_key"]
        return Client(client_id, key)

    def submit(self, key, headers=None, **fields):
        """Submits, EXECUTE unless given, and asserts 202; gives job_id, state, created_at."""
        return self.try_submit(key, headers, **fields).expect(202)

    @staticmethod
    def soon(seconds):
        """The time in `seconds` from now, as execution_at wants it."""
        at = datetime.now(timezone.utc) + timedelta(seconds=seconds)
        return at.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"

    def total(self, key):
        """How many jobs the client has."""
        return self.api("GET", "/v1/reports/summary", key=key).expect(200)["total"]

    def try_submit(self, key, headers=None, **fields):
        """Submits and gives the answer, whatever it is."""
        return self.api("POST", "/v1/jobs", {"type": "EXECUTE", **fields}, key, headers)

    def job(self, key, job_id):
        """GET the job."""
        return self.api("GET", f"/v1/jobs/{job_id}", key=key).expect(200)

    def report(self, key, job_id):
        """GET its report."""
        return self.api("GET", f"/v1/jobs/{job_id}/report", key=key).expect(200)

    def events(self, key, job_id):
        """All its events, in order."""
        items, query = [], ""
        while True:
            page = self.api("GET", f"/v1/jobs/{job_id}/events{query}", key=key).expect(200)
            items += page["items"]
            if not page.get("next_cursor"):
                return items
            query = "?cursor=" + page["next_cursor"]

    def event_names(self, key, job_id):
        """Their names."""
        return [event["event_name"] for event in self.events(key, job_id)]

    def cancel(self, key, job_id):
        """POST cancel; the answer."""
        return self.api("POST", f"/v1/jobs/{job_id}/cancel", key=key)

    def retry(self, key, job_id):
        """POST retry; the answer."""
        return self.api("POST", f"/v1/jobs/{job_id}/retry", key=key)

    def wait_state(self, key, job_id, states, timeout=20):
        """Polls until the job is in one of `states` (a name or several); gives the job."""
        wanted = (states,) if isinstance(states, str) else tuple(states)
        last = {}

        def reached():
            last.update(self.job(key, job_id))
            return dict(last) if last["state"] in wanted else None

        try:
            return wait_for(reached, timeout, f"job {job_id} in {wanted}", self)
        except AssertionError as late:
            raise AssertionError(f"{late}\nlast seen: {last}\nevents: "
                                 f"{self.event_names(key, job_id)}") from None

    def wait_final(self, key, job_id, timeout=20):
        """Polls until the job is final; gives it."""
        return self.wait_state(key, job_id, FINAL_STATES, timeout)

    # ---- the worker API, as an outside worker speaks it

    def worker_call(self, verb, key, body):
        """One call of /worker/v1, asserted 200."""
        return self.api("POST", f"/worker/v1/{verb}", body, key).expect(200)

    def greeting(self, text):
        """What the server prints for people when all its processes run, which may be after its first answers;
        waits for a text in it."""
        def printed():
            with open(self.out_path, encoding="utf-8") as file:
                said = file.read()
            return said if text in said else None
        return wait_for(printed, 60, f"{text} on standard output", self)

    def claim(self, key, queue="outside", most=1, wait_ms=0, worker_id="test-worker"):
        """Claims tasks of a queue; a list."""
        return self.worker_call("claim", key, {"worker_id": worker_id, "queues": [queue],
                                               "max": most, "wait_ms": wait_ms})["tasks"]

    def tell(self, verb, key, task, **fields):
        """start, heartbeat, finish or release for one claimed task; its result item."""
        item = {"task_id": task["task_id"], "token": task["token"], **fields}
        return self.worker_call(verb, key, {"tasks": [item]})["results"][0]

    def end_outside(self, key, job_id, outcome="failure", queue="outside", **fields):
        """Claims, starts and finishes a job that waits alone in its queue; gives its task."""
        task = self.claim(key, queue)[0]
        assert task["job_id"] == job_id, f"expected {job_id} in the queue, got {task}"
        for verb, said in (("start", {}), ("finish", {"outcome": outcome, **fields})):
            result = self.tell(verb, key, task, **said)
            assert result["ok"], f"{verb}: {result}"
        return task

    def failed_job(self, key, **fields):
        """A job in FAILED, by the hand of an outside worker; its id. It is not retried by itself."""
        job_id = self.submit(key, queue="outside", retry="manual", **fields)["job_id"]
        self.end_outside(key, job_id)
        return job_id


def wait_for(condition, timeout, what, weir=None):
    """Polls until condition() gives something true, and gives that; fails after `timeout` s, as a quiet
    machine has them."""
    watch = Stopwatch()
    while True:
        value = condition()
        if value:
            return value
        if watch.is_over(timeout):
            tail = "\n" + weir.log_tail(20) if weir else ""
            raise AssertionError(f"waited {watch.seconds():.1f} s for {what}{tail}")
        pause(watch)


def pause(watch):
    """Between two looks at something awaited: the longer the wait so far, the longer."""
    time.sleep(min(max(POLL_SECONDS, watch.seconds() / 20), POLL_SECONDS_MAX))
