"""A PostgreSQL of the test's own: a fresh cluster in a temporary directory, never somebody's database.

    with Postgres() as database:
        url = database.fresh_database()      # postgres://weir@127.0.0.1:PORT/w1
        database.stop_immediate(); database.start()
        database.kill_backends()

The binaries are those on PATH, else Debian's in /usr/lib/postgresql/*/bin. Run as root, everything of
PostgreSQL runs as `postgres` or `nobody`, since it refuses root. The server Weir talks to is the one a
careful operator would give it: role `weir` is no superuser, may create no databases, and owns those it
is given. Over TCP nobody else gets in; the superuser comes through a socket in a directory only its
owner can enter.

Nothing is left behind: the postmaster is a child that dies with the thread that called start(), also
when that is killed.
"""
import atexit
import contextlib
import glob
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

from harness import machine
from harness.together import Startable

START_SECONDS_MAX = 60
STOP_SECONDS_MAX = 60
SQL_SECONDS_MAX = 60
PORT_TRIES = 20
PORT_LOWEST = 15000
# Durable as in production; small, since a test machine runs several. syncfs: after a crash the file system is
# synced as a whole, not each of a thousand files, which takes seconds beside others that write.
SETTINGS = {"fsync": "on", "shared_buffers": "32MB", "max_connections": "200", "jit": "off",
            "max_wal_size": "256MB", "listen_addresses": "127.0.0.1", "logging_collector": "off",
            "timezone": "UTC", "recovery_init_sync_method": "syncfs"}
SESSION, SESSION_LOCK = [], threading.Lock()
ACCESS = ("local all all trust\nhost all weir 127.0.0.1/32 trust\n"
          "host all asked 127.0.0.1/32 scram-sha-256\n")  # a role that a test makes, with a password


class NoPostgres(Exception):
    """There are no binaries of PostgreSQL on this machine, or nobody who may run them."""


def find_binaries():
    """The directory that holds initdb, postgres and psql."""
    on_path = shutil.which("initdb")
    found = [os.path.dirname(os.path.realpath(on_path))] if on_path else []
    versions = glob.glob("/usr/lib/postgresql/*/bin")
    found += sorted(versions, key=lambda path: float(path.split("/")[4]), reverse=True)
    for folder in found:
        if all(os.access(os.path.join(folder, name), os.X_OK)
               for name in ("initdb", "postgres", "psql")):
            return folder
    raise NoPostgres("no PostgreSQL: neither on PATH nor in /usr/lib/postgresql/*/bin "
                     "(Debian package postgresql-15)")


def unprivileged():
    """Who runs PostgreSQL: Popen options; none when we are not root."""
    if os.geteuid() != 0:
        return {}
    if machine.cannot("second_user"):
        raise NoPostgres(machine.cannot("second_user"))
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    raise NoPostgres("PostgreSQL refuses to run as root, and there is no user postgres or nobody")


def free_port():
    """A port nobody listens on, below those the kernel gives to connections: while the server is
    down between a stop and a start no client of this machine can be sitting on it."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as file:
        above = min(int(file.read().split()[0]), 32768)
    for _ in range(1000):
        port = random.SystemRandom().randrange(PORT_LOWEST, max(above, PORT_LOWEST + 1000))
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise OSError("no free port")


def dying_with_us():
    """The start of a command line that gets an immediate shutdown when the thread that started it is
    gone, however it went. setpriv does it, since nothing of ours may run between fork and exec
    beside threads."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "QUIT"] if setpriv else []


def session():
    """The one PostgreSQL that the servers of a whole test run share, each with a database of its own.
    Started by the first call, which must be the main thread's; ends with the program."""
    with SESSION_LOCK:
        if not SESSION:
            SESSION.append(Postgres())
            atexit.register(SESSION[0].close)
            SESSION[0].start()
        return SESSION[0]


class Postgres(Startable):
    """See the module's text. Not started by the constructor; close() frees everything."""

    def __init__(self, settings=None):
        self.folder = find_binaries()
        self.runner = unprivileged()
        self.settings = {**SETTINGS, **(settings or {})}
        self.home = tempfile.mkdtemp(prefix="weir-pg-")
        self.data = os.path.join(self.home, "data")
        self.log_path = os.path.join(self.home, "log")
        self.port = None
        self.process = None
        self.made = 0
        self.lock = threading.Lock()
        if self.runner:
            os.chown(self.home, self.runner["user"], self.runner["group"])

    # ---- starting and ending

    def command(self, name, *args):
        """A program of PostgreSQL, run to its end as the unprivileged user; fails with its output."""
        done = subprocess.run([os.path.join(self.folder, name), *args], cwd=self.home, check=False,
                              env=self.environment(), stdin=subprocess.DEVNULL, text=True,
                              capture_output=True, timeout=START_SECONDS_MAX, **self.runner)
        if done.returncode:
            raise RuntimeError(f"{name} ended with {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout

    def environment(self):
        """Ours without PG*: a PGHOST of the user's must not lead us to another database."""
        env = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        return {**env, "HOME": self.home, "LC_ALL": "C.UTF-8"}

    def make_cluster(self):
        """initdb, access rules, settings."""
        self.command("initdb", "-D", self.data, "-U", "postgres", "-E", "UTF8", "--locale=C.UTF-8",
                     "--auth=trust", "--no-sync", "--no-instructions")
        with open(os.path.join(self.data, "pg_hba.conf"), "w", encoding="ascii") as file:
            file.write(ACCESS)

    def start(self):
        """Starts it (the first time: makes it) and waits until it answers."""
        assert self.process is None, "already running"
        fresh = self.port is None
        if fresh:
            self.make_cluster()
        for _ in range(PORT_TRIES):
            self.port = free_port() if fresh else self.port
            self.spawn()
            if self.wait_ready():
                break
            if not fresh:
                time.sleep(0.2)
        else:
            raise RuntimeError(f"PostgreSQL does not start:\n{self.log_tail()}")
        if fresh:
            self.sql("CREATE ROLE weir LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE;")
            self.sql("CREATE DATABASE weir OWNER weir;")
        return self

    def spawn(self):
        """The postmaster as a child, in a session of its own: Ctrl-C is for the tests."""
        settings = [f"-c{name}={value}" for name, value in self.settings.items()]
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [*dying_with_us(), os.path.join(self.folder, "postgres"), "-D", self.data,
                 "-p", str(self.port), "-k", self.home, *settings],
                cwd=self.home, env=self.environment(), stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, start_new_session=True, **self.runner)

    def wait_ready(self):
        """True when it answers, False when it ended (the port was taken meanwhile)."""
        deadline = time.monotonic() + START_SECONDS_MAX
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                self.process = None
                return False
            try:
                self.sql("SELECT 1;")
                return True
            except RuntimeError:
                time.sleep(0.02)
        raise RuntimeError(f"not ready after {START_SECONDS_MAX} s:\n{self.log_tail()}")

    def end(self, how):
        """A signal to the postmaster, and its end."""
        if self.process is None:
            return
        self.signal_all(signal.SIGCONT)
        self.process.send_signal(how)
        try:
            self.process.wait(timeout=STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        finally:
            self.process = None

    def stop(self):
        """The orderly way: sessions are cut, everything is written."""
        self.end(signal.SIGINT)

    def stop_immediate(self):
        """As `pg_ctl stop -m immediate`: the next start recovers as after a crash."""
        self.end(signal.SIGQUIT)

    def restart(self, immediate=True):
        """Down and up again."""
        self.end(signal.SIGQUIT if immediate else signal.SIGINT)
        return self.start()

    def close(self):
        """Ends it and removes every file."""
        try:
            self.stop_immediate()
        finally:
            shutil.rmtree(self.home, ignore_errors=True)

    # ---- databases

    def url(self, name="weir", port=None):
        """Where Weir connects to; `port` is a proxy's."""
        return f"postgres://weir@127.0.0.1:{port or self.port}/{name}"

    def psql(self, database="postgres", user="postgres"):
        """The command line of a session over the socket."""
        return [os.path.join(self.folder, "psql"), "-XqAt", "-v", "ON_ERROR_STOP=1",
                "-h", self.home, "-p", str(self.port), "-U", user, "-d", database]

    def sql(self, text, database="postgres", user="postgres"):
        """Statements, as the superuser unless said otherwise; the rows as lines of text."""
        done = subprocess.run(self.psql(database, user), input=text, text=True, check=False,
                              env=self.environment(), capture_output=True, timeout=SQL_SECONDS_MAX)
        if done.returncode:
            raise RuntimeError(f"{text[:200]}: {done.stderr.strip()}")
        return done.stdout.splitlines()

    def fresh_database(self):
        """An empty database that weir owns; its name."""
        with self.lock:
            self.made += 1
            name = f"w{self.made}"
        self.sql(f"CREATE DATABASE {name} OWNER weir TEMPLATE template0;")
        return name

    def drop_database(self, name):
        """Whoever is still connected is cut off."""
        self.sql(f"DROP DATABASE IF EXISTS {name} WITH (FORCE);")

    # ---- faults

    def kill_backends(self, share=1.0):
        """pg_terminate_backend for that share of weir's sessions; how many were hit."""
        rows = self.sql("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
                        f"WHERE usename = 'weir' AND random() < {share:.3f};")
        return int(rows[0])

    def signal_all(self, how):
        """A signal to the postmaster, then to all its processes."""
        os.kill(self.process.pid, how)
        for path in glob.glob("/proc/[0-9]*/stat"):
            try:
                with open(path, encoding="utf-8", errors="replace") as file:
                    parent = int(file.read().rpartition(")")[2].split()[1])
                if parent == self.process.pid:
                    os.kill(int(path.split("/")[2]), how)
            except (OSError, ValueError):
                pass  # it has ended

    @contextlib.contextmanager
    def hanging(self):
        """Meanwhile everything of it stands still: connections are open, and nobody answers."""
        self.signal_all(signal.SIGSTOP)
        try:
            yield
        finally:
            self.signal_all(signal.SIGCONT)

    def log_tail(self, lines=30):
        """The end of its log."""
        try:
            with open(self.log_path, encoding="utf-8", errors="replace") as file:
                return "\n".join(file.read().splitlines()[-lines:])
        except OSError:
            return ""
