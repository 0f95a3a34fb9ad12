"""Weir itself, driven by weir-load."""
import json
import os
import signal
import socket
import subprocess
import time
import urllib.request

START_MAX_S = 120

# Off: limits that exist to stop exactly this kind of use. The runner rests: queue "bench" is not its.
MEASURED = {"limits.requests_per_minute": 0, "jobs.max_active": 100000000,
            "jobs.queue_size": 100000000, "runner.processes": 0, "log.level": "warn"}


def free_port():
    """A port nobody listens on right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Weir:
    """One server process tree and the load generator beside it."""
    name = "weir"

    def __init__(self, build):
        self.program = os.path.join(build, "weir")
        self.load_program = os.path.join(build, "bench", "load", "weir-load")
        for path in (self.program, self.load_program):
            if not os.access(path, os.X_OK):
                raise SystemExit(f"bench: {path} is not there; run `make bench`")
        self.server = self.url = self.data = self.key = None

    def version(self):
        """The program's own line: version, schema, SQLite, compiler."""
        return subprocess.run([self.program, "version"], check=True, capture_output=True,
                              text=True).stdout.strip()

    def start(self, folder, **settings):
        """Starts on DIR/data; returns the seconds until /readyz says yes."""
        self.data = os.path.join(folder, "data")
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        command = [self.program, "serve", "--listen", f"127.0.0.1:{port}", "--data", self.data]
        for key, value in (MEASURED | settings).items():
            command += ["--set", f"{key}={value}"]
        began = time.monotonic()
        with open(os.path.join(folder, "server.log"), "ab") as log:
            self.server = subprocess.Popen(command, stdout=log, stderr=log)
        while not self.is_ready():
            if self.server.poll() is not None or time.monotonic() - began > START_MAX_S:
                raise SystemExit(f"bench: the server did not start; see {folder}/server.log")
            time.sleep(0.002)
        seconds = time.monotonic() - began
        key_file = os.path.join(folder, "key")
        if os.path.exists(key_file):
            with open(key_file, encoding="utf-8") as file:
                self.key = file.read()
        else:
            self.key = self.run_load("key").strip()
            with open(key_file, "w", encoding="utf-8") as file:
                file.write(self.key)
        return seconds

    def is_ready(self):
        """True once requests are served."""
        try:
            with urllib.request.urlopen(self.url + "/readyz", timeout=1) as answer:
                return answer.status == 200
        except OSError:
            return False

    def stop(self):
        """SIGTERM and wait; returns the seconds it took."""
        began = time.monotonic()
        self.server.send_signal(signal.SIGTERM)
        self.server.wait(timeout=60)
        self.server = None
        return time.monotonic() - began

    @property
    def root_pid(self):
        """The supervisor's pid; its children belong to the server too."""
        return self.server.pid

    def commits(self):
        """Durable commits so far."""
        with urllib.request.urlopen(self.url + "/metrics", timeout=5) as answer:
            for line in answer.read().decode().splitlines():
                if line.startswith("weir_commit_batches_total "):
                    return int(line.split()[1])
        return None

    def stored_bytes(self):
        """Size of the data folder."""
        return sum(entry.stat().st_size for entry in os.scandir(self.data))

    # --- steps: each is one run of weir-load ------------------------------------------------------

    def run_load(self, mode, *options):
        """Runs the load generator; its errors end the benchmark."""
        command = [self.load_program, mode, "--url", self.url, *map(str, options)]
        if self.key and mode not in ("key", "null"):
            command += ["--key", self.key]
        ran = subprocess.run(command, check=False, capture_output=True, text=True)
        if ran.returncode != 0:
            raise SystemExit(f"bench: weir-load {mode} failed: {ran.stderr}{ran.stdout}")
        return ran.stdout

    def step(self, mode, *options):
        """The line weir-load prints, read."""
        return json.loads(self.run_load(mode, *options))

    def null(self, seconds):
        """The load generator's own ceiling: GET /healthz."""
        return self.step("null", "-c", 64, "-s", seconds)

    def submit(self, connections, seconds=0, count=0, keyed=False):
        """Single submits, one in flight on each connection."""
        return self.step("submit", "-c", connections, "-s", seconds, "-n", count,
                         *(["-I"] if keyed else []))

    def batch(self, jobs, ids=None):
        """1000 jobs a call on 4 connections."""
        return self.step("batch", "-c", 4, "-n", jobs, *(["-i", ids] if ids else []))

    def drain(self):
        """4 worker loops, 256 tasks a call, until nothing is left."""
        return self.step("drain", "-w", 4)

    def lifecycle(self, jobs):
        """2 batch submitters and 4 worker loops at once."""
        return self.step("lifecycle", "-c", 2, "-w", 4, "-n", jobs)

    def pickup(self, jobs):
        """One idle worker in a long poll, one job at a time; a queue of its own, whatever other rows left."""
        return self.step("pickup", "-n", jobs, "-q", "pickup")

    def get(self, seconds, ids):
        """Reads of known jobs in random order, 16 in flight."""
        return self.step("get", "-c", 16, "-s", seconds, "-i", ids)
