"""What all peers share: a server on the measured disk and a Node program of bench/peers as load."""
import glob
import json
import os
import select
import shutil
import signal
import subprocess
import time

from subjects import server

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = os.path.join(os.path.dirname(HERE), "peers")
STEP_MAX_S = 300  # for a part of a step: far more than any takes
REST_S = 1


class LeftOut(Exception):
    """The peer cannot be measured here; the text says why."""


class Peer:
    """A queue server that is not ours. Subclasses say how it starts and what it can do."""
    name = title = settings = program_name = None
    durable, peer, keeps_finished, database = True, True, False, None
    rows = {"start", "rest", "submit_1", "submit_64", "batch", "drain", "pickup", "memory",
            "written"}
    quick_rows = None
    needs_binaries, needs_packages = [], []
    bulk_share = 1.0  # of plan.peer_jobs
    stop_signal = signal.SIGTERM

    def __init__(self, build):
        self.installed = os.path.join(build, "bench", "peers")
        self.node = self.found(os.path.join(self.installed, "node_modules", "node-linux-*", "bin",
                                            "node"), "Node")
        for binary in self.needs_binaries:
            if not shutil.which(binary):
                raise LeftOut(f"{binary} is not installed")
        for package in self.needs_packages:
            self.package_version(package)
        # Node looks for packages beside the program, and they are not in the source tree.
        for path in glob.glob(os.path.join(PROGRAMS, "*.mjs")):
            shutil.copy(path, self.installed)
        self.server = self.folder = self.port = None
        self.window, self.waiting = None, 0
        self.look, self.seen = None, None
        self.cold = False  # no warm-up: its jobs would count in rows about bytes

    @staticmethod
    def found(pattern, what):
        """The file that matches, or LeftOut."""
        paths = glob.glob(pattern)
        if not paths:
            raise LeftOut(f"{what} is not installed")
        return paths[0]

    def package_version(self, package):
        """'name 1.2.3' of an installed npm package."""
        path = os.path.join(self.installed, "node_modules", package, "package.json")
        try:
            with open(path, encoding="utf-8") as file:
                return f"{package.rpartition('/')[2]} {json.load(file)['version']}"
        except OSError as error:
            raise LeftOut(f"the npm package {package} is not installed") from error

    def node_version(self):
        """'node 22.1.2'."""
        told = subprocess.run([self.node, "--version"], check=True, capture_output=True, text=True)
        return "node " + told.stdout.strip().lstrip("v")

    # --- the server -------------------------------------------------------------------------------

    def command(self):
        """The server's command line, for self.port and the empty folder self.folder."""
        raise NotImplementedError

    def is_ready(self):
        """Whether it serves."""
        raise NotImplementedError

    def popen(self):
        """Further arguments of Popen."""
        return {}

    def start(self, folder):
        """Starts on DIR/data; returns the seconds until it serves."""
        self.folder, self.port = os.path.join(folder, "data"), server.free_port()
        self.waiting = 0
        os.makedirs(self.folder, exist_ok=True)
        self.server = server.Server(self.command(), os.path.join(folder, "server.log"),
                                    self.is_ready, **self.popen())
        return self.server.start_s

    def stop(self):
        """Ends the server; returns the seconds it took."""
        running, self.server = self.server, None
        return running.stop(self.stop_signal)

    @property
    def root_pids(self):
        """The server's pid; its children belong to it."""
        return [self.server.process.pid]

    def commits(self):
        """Peers do not tell how many commits they made."""
        return None

    def stored_bytes(self):
        """Size of what keeps the jobs."""
        return server.folder_bytes(self.folder)

    def settle(self):
        """Brings to disk what would be written there later anyway."""

    # --- steps: each is one run of the Node program -----------------------------------------------

    def options(self):
        """Where the program finds the server."""
        return ["--port", self.port]

    def step(self, mode, **options):
        """Runs one command of the program; whatever goes wrong ends the benchmark."""
        command = [self.node, os.path.join(self.installed, self.program_name + ".mjs"), mode,
                   *map(str, self.options())]
        for key, value in options.items():
            command += [f"--{key}", str(value)]
        command += ["--cold"] if self.cold else []
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as load:
            try:
                return self.conversation(load, mode)
            finally:
                if load.poll() is None:
                    load.kill()

    def conversation(self, load, mode):
        """ready, go, the figures, bye; the window is open between go and the figures."""
        self.expect(load, mode, b"ready")
        if self.window:
            self.window.open()
        self.say(load)
        found = json.loads(self.expect(load, mode, b"{"))
        if self.window:
            self.window.close()
        if self.look:
            time.sleep(REST_S)
            self.seen = self.look()
        self.say(load)
        try:
            code = load.wait(timeout=STEP_MAX_S)
        except subprocess.TimeoutExpired:
            code = None
        if code != 0 or found["errors"]:
            self.give_up(load, mode)
        return found

    @staticmethod
    def say(load):
        """Tells the program to go on."""
        try:
            load.stdin.write(b"\n")
            load.stdin.flush()
        except BrokenPipeError:
            pass  # it ended; the next read says why

    def expect(self, load, mode, start):
        """The next line, which has to begin so."""
        readable, _, _ = select.select([load.stdout], [], [], STEP_MAX_S)
        line = load.stdout.readline() if readable else b""
        if not line.startswith(start):
            self.give_up(load, mode)
        return line

    def give_up(self, load, mode):
        """Ends the benchmark and says what the program and the server wrote last."""
        load.kill()
        said = load.stderr.read().decode("utf-8", "replace").strip()
        state = "runs" if self.server.process.poll() is None else "ENDED"
        raise SystemExit(f"bench: {self.title}: {mode} failed: {said or 'no answer in time'}\n"
                         f"The server {state}; its log ends with:\n{self.server.log_tail()}")

    def prepare(self):
        """Runs the program's `prepare` command: schemas and queues."""
        command = [self.node, os.path.join(self.installed, self.program_name + ".mjs"), "prepare",
                   *map(str, self.options())]
        ran = subprocess.run(command, check=False, capture_output=True, text=True,
                             timeout=STEP_MAX_S)
        if ran.returncode != 0:
            raise SystemExit(f"bench: {self.title}: prepare failed: {ran.stderr}")

    def submit(self, connections, seconds=0, count=0):
        """Single submits, so many in flight."""
        return self.step("submit", inflight=connections, seconds=seconds, count=count)

    def batch_jobs(self, plan):
        """Jobs of one bulk row."""
        return int(plan.peer_jobs * self.bulk_share)

    def batch(self, jobs, _ids=None):
        """1000 jobs a call, 4 calls in flight, as Weir's 4 connections."""
        found = self.step("bulk", count=jobs, inflight=4)
        self.waiting += found["jobs"]
        return found

    def drain(self):
        """One worker process, until what batch() left is done."""
        if not self.waiting:
            raise SystemExit(f"bench: {self.title}: the row drain needs the row batch before it")
        found = self.step("drain", count=self.waiting)
        self.waiting = 0
        return found

    def pickup(self, jobs):
        """One idle worker, one job at a time."""
        return self.step("pickup", count=jobs)

    def fill(self, jobs):
        """Leaves so many jobs in the store, the quick way."""
        self.batch(jobs)

    def with_stored(self, jobs, look):
        """What look() sees with jobs stored and the load at rest but connected: once the processes
        that serve it are gone, PostgreSQL's cache belongs to nobody."""
        self.look, self.cold = look, True
        self.fill(jobs)
        self.look, self.cold = None, False
        return self.seen

    def whole_lives(self, jobs):
        """Takes jobs from submit to end and nothing else; returns how many."""
        self.cold = True
        done = self.live(jobs)
        self.cold = False
        return done

    def live(self, jobs):
        """Submit and drain; returns how many."""
        done = self.batch(jobs)["jobs"]
        self.drain()
        return done
