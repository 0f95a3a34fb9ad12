"""The workers of docs/write-a-worker.md, each as it stands in docs/workers, against a real server."""
import contextlib
import os
import signal
import subprocess

import pytest

from harness.weir_server import REPOSITORY, binary, wait_for

WORKERS = os.path.join(REPOSITORY, "docs", "workers")
QUEUE = "mail"
LONG_SECONDS = 3600  # a pause that only a stop can end
# The first failures are tried again until the folder is there, however slow the machine is. No lease ends, so
# nothing is repaired by the end of a lease.
SETTINGS = {"jobs.retry_max": 1000, "jobs.retry_base_ms": 300, "jobs.retry_cap_ms": 300,
            "queue.lease_ms": 3600000}
COMPILE_SECONDS_MAX = 120
# What node and go do on a signal comes a moment after it, beside the claim that waits: they say so.
TOLD_LATER, TOLD = ("node", "go"), "was told to end"
END_SECONDS_MAX = 60


def build_go():
    """The Go worker, compiled once for each build directory."""
    source = os.path.join(WORKERS, "worker.go")
    program = os.path.join(os.path.dirname(os.path.abspath(binary())), "docs-worker-go")
    if not os.path.exists(program) or os.path.getmtime(program) < os.path.getmtime(source):
        made = f"{program}.{os.getpid()}"
        subprocess.run(["gccgo", "-o", made, source], check=True, timeout=COMPILE_SECONDS_MAX)
        os.rename(made, program)
    return [program]


COMMANDS = {
    "python": lambda: ["/usr/bin/python3", os.path.join(WORKERS, "worker.py")],
    "node": lambda: ["node", os.path.join(WORKERS, "worker.mjs")],
    "go": build_go,
    "shell": lambda: [os.path.join(WORKERS, "worker.sh")],
}


class Bench:
    """A server, a client of it, and the worker of one language that serves the client's queue."""

    def __init__(self, weir, language, folder):
        self.weir, self.language, self.command, self.folder = weir, language, COMMANDS[language](), folder
        self.key = weir.new_client().api_key
        self.process = None

    @property
    def mailbox(self):
        """Where the worker writes its mails; not there at first."""
        return os.path.join(self.folder, "mailbox")

    def log(self):
        """What workers have printed so far."""
        with open(os.path.join(self.folder, "log"), encoding="utf-8") as file:
            return file.read()

    def start(self):
        """Starts a worker."""
        env = {**os.environ, "WEIR_URL": self.weir.url, "WEIR_API_KEY": self.key, "WEIR_QUEUE": QUEUE,
               "MAILBOX": self.mailbox, "HEARTBEAT_SECONDS": "0.2"}
        with open(os.path.join(self.folder, "log"), "ab") as log:
            self.process = subprocess.Popen(self.command, env=env, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=subprocess.STDOUT, start_new_session=True)

    def tell_to_end(self):
        """SIGTERM. Once: an interpreter that is about to end has no handler any more."""
        self.process.send_signal(signal.SIGTERM)

    def wait_for_its_end(self):
        """The worker ends by itself, and well."""
        assert self.process.wait(timeout=END_SECONDS_MAX) == 0, self.log()
        self.process = None

    def kill(self):
        """With what the shell has started, which may be there when the shell itself is not."""
        if not self.process:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self):
        """Tells the worker to end, and waits until it has."""
        self.tell_to_end()
        self.wait_for_its_end()

    def submit(self, **payload):
        """A mail to be sent; the id of its job."""
        return self.weir.submit(self.key, queue=QUEUE, kind="send-mail", payload=payload)["job_id"]

    def job(self, job_id):
        """As GET shows it."""
        return self.weir.job(self.key, job_id)

    def wait(self, job_id, state):
        """Until the job is in a state."""
        return self.weir.wait_state(self.key, job_id, state, timeout=60)


@pytest.fixture(name="bench", params=sorted(COMMANDS))
def bench_of_one_language(request, module_weir, tmp_path):
    """With a worker that runs."""
    bench = Bench(module_weir(settings=SETTINGS), request.param, str(tmp_path))
    bench.start()
    yield bench
    bench.kill()


def test_a_failed_attempt_is_tried_again_by_the_server_and_succeeds(bench):
    """The folder of the mails is missing at first. A failure that is not retryable ends its job."""
    undeliverable = bench.submit(text="to nobody")
    job_id = bench.submit(to=["ada", "bob"], text="hello")
    wait_for(lambda: "job.failed" in bench.weir.event_names(bench.key, job_id), 60, "a failure", bench.weir)
    os.mkdir(bench.mailbox)
    job = bench.wait(job_id, "SUCCEEDED")
    assert job["attempt"] > 1 and job["result"] == {"sent": 2}, job
    assert sorted(os.listdir(bench.mailbox)) == [f"{job_id}-ada", f"{job_id}-bob"]
    failed = bench.wait(undeliverable, "FAILED")
    assert failed["attempt"] == 1 and failed["error"]["retryable"] is False, failed


def test_heartbeats_tell_the_progress_and_hear_of_a_cancel(bench):
    """The worker goes on with the next job after a cancel."""
    os.mkdir(bench.mailbox)
    job_id = bench.submit(to=["ada", "bob"], pause_seconds=LONG_SECONDS)
    wait_for(lambda: (bench.job(job_id)["progress"] or {}).get("percent") == 50, 60, "progress", bench.weir)
    assert bench.job(job_id)["progress"]["note"] == "sent to ada"
    bench.weir.cancel(bench.key, job_id).expect(200)
    bench.wait(bench.submit(to=["eve"]), "SUCCEEDED")


def test_a_worker_that_is_told_to_end_gives_its_task_back(bench):
    """Neither a running task nor one that comes during the stop costs an attempt."""
    os.mkdir(bench.mailbox)
    running = bench.submit(to=["ada", "bob"], pause_seconds=LONG_SECONDS)
    wait_for(lambda: bench.job(running)["progress"], 60, "progress", bench.weir)
    bench.stop()
    job = bench.job(running)
    assert (job["state"], job["attempt"]) == ("QUEUED", 1), job
    bench.weir.cancel(bench.key, running).expect(200)
    bench.start()
    bench.wait(bench.submit(to=["ada"]), "SUCCEEDED")  # now it waits in its next claim
    told = bench.log().count(TOLD)
    bench.tell_to_end()
    if bench.language in TOLD_LATER:
        wait_for(lambda: bench.log().count(TOLD) > told, 60, "the signal to be taken", bench.weir)
    waiting = bench.submit(to=["bob"])
    bench.wait_for_its_end()
    job = bench.job(waiting)
    assert (job["state"], job["attempt"]) == ("QUEUED", 1), job
