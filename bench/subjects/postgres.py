"""A PostgreSQL cluster of its own, and what the peers share that store their jobs there."""
import collections
import glob
import os
import pwd
import re
import signal
import subprocess

from subjects import server
from subjects.peer import LeftOut, Peer

BINARIES = "/usr/lib/postgresql/*/bin"
USERS = ("postgres", "nobody")  # the server refuses to run as root
DATABASE = "PostgreSQL"
DEFAULTS = "initdb defaults (fsync and synchronous_commit on)"
# Every statement a client sends in the server's log, one line each that begins with the database's name.
LOGGED = ("log_statement=all", "log_line_prefix=@%d@", "log_parameter_max_length=0")
STATEMENT = re.compile("@postgres@LOG:  (?:statement|execute [^:]*): (.*)")


def newest_binaries():
    """The folder with initdb and postgres in it."""
    folders = sorted(glob.glob(BINARIES), key=lambda path: int(path.split("/")[-2]))
    if not folders:
        raise LeftOut("PostgreSQL is not installed")
    return folders[-1]


def plain_user():
    """Arguments for Popen to leave root behind; {} when we are not root."""
    if os.geteuid() != 0:
        return {}
    for name in USERS:
        try:
            user = pwd.getpwnam(name)
            return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        except KeyError:
            continue
    raise LeftOut("PostgreSQL does not run as root, and there is no user " + " or ".join(USERS))


def can_reach(folder):
    """Whether the server's user may pass through a folder."""
    return subprocess.run(["/usr/bin/test", "-x", folder], check=False, **plain_user()).returncode == 0


def logged_statements(log_path):
    """Counter of the statements in the log of a server that runs with LOGGED; of a long one its first line.
    pg_stat_statements 15 counts a BEGIN or COMMIT that is prepared only the first time."""
    with open(log_path, encoding="utf-8", errors="replace") as log:
        return collections.Counter(found[1] for found in map(STATEMENT.match, log) if found)


class Cluster:
    """initdb's defaults: fsync and synchronous_commit are on. Made once, or found as it was left."""
    stop_signal = signal.SIGINT  # fast: connections are cut, a checkpoint is made

    def __init__(self):
        self.binaries, self.user = newest_binaries(), plain_user()
        self.folder = self.port = None
        self.base_bytes = 0

    def version(self):
        """'PostgreSQL 15.1'."""
        told = subprocess.run([f"{self.binaries}/postgres", "--version"], check=True, capture_output=True,
                              text=True).stdout
        return f"{DATABASE} {told.split()[2]}"

    def make(self, folder):
        """initdb, with nothing but who may connect, unless the folder holds a cluster already."""
        self.folder = folder
        if os.path.exists(os.path.join(folder, "PG_VERSION")):
            return
        os.makedirs(folder, exist_ok=True)
        if self.user:
            os.chown(folder, self.user["user"], self.user["group"])
        made = subprocess.run([f"{self.binaries}/initdb", "-D", folder, "-A", "trust", "-U", "postgres"],
                              check=False, capture_output=True, text=True, cwd="/", **self.user)
        if made.returncode != 0:
            raise SystemExit(f"bench: initdb failed: {made.stderr}")
        os.sync()

    def command(self, port, *settings):
        """TCP only: the path of a Unix socket may not be long, that of the folder may."""
        self.port = port
        command = [f"{self.binaries}/postgres", "-D", self.folder, "-p", str(port)]
        for setting in ("listen_addresses=127.0.0.1", "unix_socket_directories=", *settings):
            command += ["-c", setting]
        return command

    def popen(self):
        """Another user; and a folder that user may stand in."""
        return self.user | {"cwd": "/"}

    def is_ready(self):
        """The server says so on the eighth line of its pid file."""
        try:
            with open(os.path.join(self.folder, "postmaster.pid"), encoding="utf-8") as file:
                lines = file.read().splitlines()
        except OSError:
            return False
        return len(lines) > 7 and lines[7].strip() == "ready"

    def url(self):
        """For libpq."""
        return f"postgres://postgres@127.0.0.1:{self.port}/postgres"

    def ask(self, statement):
        """What psql prints for a statement."""
        ran = subprocess.run([f"{self.binaries}/psql", "-XqAt", "-h", "127.0.0.1", "-p", str(self.port), "-U",
                              "postgres", "-c", statement], check=False, capture_output=True, text=True,
                             cwd="/")
        if ran.returncode != 0:
            raise SystemExit(f"bench: psql failed: {ran.stderr}")
        return ran.stdout.strip()

    def checkpoint(self):
        """Pages are written now, not minutes later."""
        self.ask("checkpoint")

    # The write-ahead log is recycled and tells nothing of a job, so the tables and indexes count.

    def begin_growth(self):
        """Remembers what the tables take before any job."""
        self.base_bytes = self.table_bytes()

    def table_bytes(self):
        """Tables and indexes."""
        return server.folder_bytes(os.path.join(self.folder, "base"))

    def grown_bytes(self):
        """What they grew by; exact once the server has stopped."""
        return self.table_bytes() - self.base_bytes


class PostgresPeer(Peer):
    """A library whose server is PostgreSQL."""
    database = DATABASE
    stop_signal = Cluster.stop_signal

    def __init__(self, build):
        super().__init__(build)
        self.cluster = Cluster()

    def version(self):
        """Library, server and client."""
        return ", ".join([self.package_version(self.needs_packages[0]), self.cluster.version(),
                          self.node_version()])

    def start(self, folder):
        """A new cluster, the server, the peer's tables in it; returns the server's start time."""
        self.cluster.make(os.path.join(folder, "data"))
        seconds = super().start(folder)
        try:
            self.prepare()
        except BaseException:
            self.stop()
            raise
        self.cluster.begin_growth()
        return seconds

    def command(self):
        """The server on its cluster."""
        return self.cluster.command(self.port)

    def popen(self):
        """As the cluster's user."""
        return self.cluster.popen()

    def is_ready(self):
        """The cluster's own word."""
        return self.cluster.is_ready()

    def stored_bytes(self):
        """What the tables grew by; to be asked after stop()."""
        return self.cluster.grown_bytes()

    def settle(self):
        """A checkpoint."""
        self.cluster.checkpoint()
