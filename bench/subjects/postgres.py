"""A PostgreSQL cluster of its own for the peers that store their jobs there."""
import glob
import os
import pwd
import shutil
import signal
import subprocess
import tempfile

from subjects import server
from subjects.peer import LeftOut, Peer

BINARIES = "/usr/lib/postgresql/*/bin"
USERS = ("postgres", "nobody")  # the server refuses to run as root


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


class PostgresPeer(Peer):
    """initdb's defaults: fsync and synchronous_commit are on."""
    stop_signal = signal.SIGINT  # fast: connections are cut, a checkpoint is made

    def __init__(self, build):
        super().__init__(build)
        self.binaries, self.user = newest_binaries(), plain_user()
        self.cluster = self.elsewhere = None
        self.base_bytes = 0

    def version(self):
        """Library, server and client."""
        told = subprocess.run([f"{self.binaries}/postgres", "--version"], check=True,
                              capture_output=True, text=True).stdout
        return f"{self.package_version(self.needs_packages[0])}, PostgreSQL " \
               f"{told.split()[2]}, {self.node_version()}"

    def cluster_folder(self):
        """A folder on the measured disk that the server's user can reach."""
        probe = subprocess.run(["/usr/bin/test", "-x", self.folder], check=False, **self.user)
        if probe.returncode == 0:
            return self.folder
        for path in ("/var/tmp", "/tmp"):
            if os.stat(path).st_dev == os.stat(self.folder).st_dev:
                self.elsewhere = tempfile.mkdtemp(prefix="weir-bench.", dir=path)
                return self.elsewhere
        raise SystemExit(f"bench: {self.folder} cannot be reached by PostgreSQL's user; give "
                         "--work a folder every user may pass, or PEERS without PostgreSQL")

    def start(self, folder):
        """A new cluster, the server, the peer's tables in it; returns the server's start time."""
        self.folder = os.path.join(folder, "data")
        os.makedirs(self.folder)
        try:
            self.make_cluster()
            seconds = super().start(folder)
            self.prepare()
        except BaseException:
            if self.server:
                super().stop()
            self.clear_elsewhere()
            raise
        self.base_bytes = self.table_bytes()
        return seconds

    def make_cluster(self):
        """initdb, with nothing but who may connect."""
        self.cluster = self.cluster_folder()
        if self.user:
            os.chown(self.cluster, self.user["user"], self.user["group"])
        made = subprocess.run([f"{self.binaries}/initdb", "-D", self.cluster, "-A", "trust", "-U",
                               "postgres"], check=False, capture_output=True, text=True, cwd="/",
                              **self.user)
        if made.returncode != 0:
            raise SystemExit(f"bench: initdb failed: {made.stderr}")
        os.sync()

    def command(self):
        """TCP only: the path of a Unix socket may not be long, that of the folder may."""
        return [f"{self.binaries}/postgres", "-D", self.cluster, "-p", str(self.port),
                "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="]

    def popen(self):
        """Another user; and a folder that user may stand in."""
        return self.user | {"cwd": "/"}

    def is_ready(self):
        """The server says so on the eighth line of its pid file."""
        try:
            with open(os.path.join(self.cluster, "postmaster.pid"), encoding="utf-8") as file:
                lines = file.read().splitlines()
        except OSError:
            return False
        return len(lines) > 7 and lines[7].strip() == "ready"

    def stop(self):
        """Ends the server and looks at what its tables hold."""
        seconds = super().stop()
        self.base_bytes = self.table_bytes() - self.base_bytes
        self.clear_elsewhere()
        return seconds

    def clear_elsewhere(self):
        """Removes a cluster that had to lie outside of the work folder."""
        if self.elsewhere:
            shutil.rmtree(self.elsewhere, ignore_errors=True)
            self.elsewhere = None

    def table_bytes(self):
        """Tables and indexes; the write-ahead log is recycled and tells nothing of a job."""
        return server.folder_bytes(os.path.join(self.cluster, "base"))

    def stored_bytes(self):
        """What the tables grew by; to be asked after stop()."""
        return self.base_bytes

    def settle(self):
        """A checkpoint: pages are written now, not minutes later."""
        subprocess.run([f"{self.binaries}/psql", "-h", "127.0.0.1", "-p", str(self.port), "-U",
                        "postgres", "-qc", "checkpoint"], check=True, cwd="/")
