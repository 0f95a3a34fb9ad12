"""Weir itself, driven by weir-load."""
import json
import os
import subprocess
import time
import urllib.request

from subjects import server

# Off: limits that exist to stop exactly this kind of use. No runner: "bench" is not its.
MEASURED = {"limits.requests_per_minute": 0, "jobs.max_active": 100000000,
            "jobs.queue_size": 100000000, "runner.processes": 0, "log.level": "warn"}

RUN_ROWS = ("append_batch_one", "append_batch_many", "append_single_one", "append_single_64",
            "append_single", "run_10")
TENANT = "bench"  # as weir-load spells it in its events


class Weir:
    """One server process tree and the load generator beside it."""
    name, title = "weir", "Weir, SQLite"
    settings = "synchronous=FULL; rate and queue limits off, the built-in runner at rest; " \
               "submits over HTTP/1.1, 4 claim loops in a drain"
    durable, peer, keeps_finished, database = True, False, True, None
    rows = {"start", "rest", "null", "submit_1", "submit_64", "submit_keyed", "batch", "drain",
            "lifecycle", "pickup", "get", "get_any", "deliver", "memory", "written", "disk_alone",
            *RUN_ROWS, "rebuild", "tls"}
    quick_rows = None
    growth_rows = rows - set(RUN_ROWS)  # what is stored there are jobs
    window = None  # of weir-load's modes only append has something to do before

    def __init__(self, build):
        self.program = os.path.join(build, "weir")
        self.load_program = os.path.join(build, "bench", "load", "weir-load")
        for path in (self.program, self.load_program):
            if not os.access(path, os.X_OK):
                raise SystemExit(f"bench: {path} is not there; run `make bench`")
        self.server = self.url = self.tls_url = self.data = self.key = self.token = None

    def version(self):
        """The program's own line: version, schema, SQLite, compiler."""
        return subprocess.run([self.program, "version"], check=True, capture_output=True,
                              text=True).stdout.strip()

    def start(self, folder, **settings):
        """Starts on DIR/data; returns the seconds until /readyz says yes."""
        self.data = os.path.join(folder, "data")
        port = server.free_port()
        self.url = f"http://127.0.0.1:{port}"
        command = [self.program, "serve", "--listen", f"127.0.0.1:{port}", "--data", self.data,
                   *self.store()]
        if settings.pop("tls", False):
            settings |= self.tls_settings(folder)
        for key, value in (MEASURED | settings).items():
            command += ["--set", f"{key}={value}"]
        self.server = server.Server(command, os.path.join(folder, "server.log"), self.is_ready)
        self.take_key(folder)
        return self.server.start_s

    def tls_settings(self, folder):
        """A TLS listener beside the plain one, with a certificate of its own authority: P-256."""
        cert, key = (os.path.join(folder, name) for name in ("tls.pem", "tls.key"))
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                        "-nodes", "-days", "2", "-subj", "/CN=bench", "-keyout", key, "-out", cert],
                       check=True, capture_output=True)
        address = f"127.0.0.1:{server.free_port()}"
        self.tls_url = f"https://{address}"
        return {"server.tls_listen": address, "server.tls_cert": cert, "server.tls_key": key}

    def store(self):
        """Where the jobs are, for the command line: in a file in the data folder."""
        return []

    def take_key(self, folder):
        """The API key of this store; made on its first start."""
        key_file = os.path.join(folder, "key")
        if os.path.exists(key_file):
            with open(key_file, encoding="utf-8") as file:
                self.key = file.read()
        else:
            self.key = self.run_load("key").strip()
            with open(key_file, "w", encoding="utf-8") as file:
                file.write(self.key)

    def take_token(self):
        """A token for everything an engine and its workers do, of the keys in the data folder."""
        command = [self.program, "token", "mint", "--data", self.data, "--sub", "load", "--tenant", TENANT,
                   "--role", "Engineer,Engine,Worker", "--ttl", "4h"]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def is_ready(self):
        """True once requests are served."""
        try:
            with urllib.request.urlopen(self.url + "/readyz", timeout=1) as answer:
                return answer.status == 200
        except OSError:
            return False

    def stop(self):
        """SIGTERM and wait; returns the seconds it took."""
        running, self.server, self.token = self.server, None, None
        return running.stop()

    @property
    def root_pids(self):
        """The supervisor's pid; its children belong to the server too."""
        return [self.server.process.pid]

    def commits(self):
        """Durable commits so far."""
        with urllib.request.urlopen(self.url + "/metrics", timeout=5) as answer:
            for line in answer.read().decode().splitlines():
                if line.startswith("weir_commit_batches_total "):
                    return int(line.split()[1])
        return None

    def stored_bytes(self):
        """Size of the data folder."""
        return server.folder_bytes(self.data)

    def settle(self):
        """Nothing waits to be written but what a checkpoint moves."""

    # --- steps: each is one run of weir-load ------------------------------------------------------

    def run_load(self, mode, *options, url=None):
        """Runs the load generator; its errors end the benchmark."""
        command = [self.load_program, mode, "--url", url or self.url, *map(str, options)]
        if mode in ("append", "run"):
            self.token = self.token or self.take_token()
            command += ["--key", self.token]
        elif self.key and mode not in ("key", "null", "connect"):
            command += ["--key", self.key]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as load:
            if mode == "append" and load.stdout.readline() == "ready\n" and self.window:
                self.window.open()
            said, errors = load.communicate()
        if load.returncode != 0:
            raise SystemExit(f"bench: weir-load {mode} failed: {errors}{said}")
        return said

    def step(self, mode, *options, url=None):
        """The line weir-load prints, read."""
        return json.loads(self.run_load(mode, *options, url=url))

    def null(self, seconds):
        """The load generator's own ceiling: GET /healthz."""
        return self.step("null", "-c", 64, "-s", seconds)

    def submit(self, connections, seconds=0, count=0, keyed=False):
        """Single submits, one in flight on each connection."""
        return self.step("submit", "-c", connections, "-s", seconds, "-n", count,
                         *(["-I"] if keyed else []))

    def submit_tls(self, connections, seconds):
        """The same over TLS."""
        return self.step("submit", "-c", connections, "-s", seconds, url=self.tls_url)

    def connect(self, connections, seconds, secure, resume):
        """A connection for each GET /healthz, so many at a time."""
        return self.step("connect", "-c", connections, "-s", seconds, *(["-R"] if resume else []),
                         url=self.tls_url if secure else self.url)

    def batch_jobs(self, plan):
        """Jobs of one batch row."""
        return plan.batch_jobs

    def batch(self, jobs, ids=None, execution_at=None):
        """1000 jobs a call on 4 connections; with a time they wait as timers."""
        return self.step("batch", "-c", 4, "-n", jobs, *(["-i", ids] if ids else []),
                         *(["-t", execution_at] if execution_at else []))

    def drain(self):
        """4 worker loops, 256 tasks a call, until nothing is left."""
        return self.step("drain", "-w", 4)

    def lifecycle(self, jobs):
        """2 batch submitters and 4 worker loops at once."""
        return self.step("lifecycle", "-c", 2, "-w", 4, "-n", jobs)

    def pickup(self, jobs):
        """One idle worker in a long poll, one job at a time; a queue of its own."""
        return self.step("pickup", "-n", jobs, "-q", "pickup")

    def one_by_one(self, jobs):
        """The same without a rest between jobs; returns how many lived, each from submit to end."""
        return self.step("pickup", "-n", jobs, "-q", "pickup", "-g", 0)["jobs"]

    def deliver(self, webhooks, jobs):
        """Jobs in batches on 2 connections, each told to all webhooks; all of them are weir-load's own."""
        return self.step("deliver", "-c", 2, "-w", webhooks, "-n", jobs)

    def get(self, seconds, ids):
        """Reads of known jobs in random order, 16 in flight."""
        return self.step("get", "-c", 16, "-s", seconds, "-i", ids)

    def append(self, runs, events, connections, seconds=0, count=0):
        """Events of engines outside, so many a call; one call in flight on each connection."""
        return self.step("append", "-r", runs, "-b", events, "-c", connections, "-s", seconds, "-n", count,
                         "-p", 100)

    def whole_runs(self, steps, count):
        """Runs of a plan, one at a time; two workers, so that one waits when the other finishes."""
        return self.step("run", "-S", steps, "-w", 2, "-n", count, "-q", "steps")

    def verify(self):
        """What `weir verify` finds in the folder of a server that was stopped."""
        ran = subprocess.run([self.program, "verify", "--data", self.data, "-o", "json"], check=False,
                             capture_output=True, text=True)
        if ran.returncode != 0:
            raise SystemExit(f"bench: weir verify: {ran.stderr}{ran.stdout}")
        return json.loads(ran.stdout)

    def with_stored(self, jobs, look):
        """What look() sees with jobs stored and the load gone."""
        self.submit(64, count=jobs)
        time.sleep(1)
        return look()

    def whole_lives(self, jobs):
        """Takes jobs from submit to end; returns how many."""
        return self.lifecycle(jobs)["jobs"]
