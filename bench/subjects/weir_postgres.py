"""Weir on a PostgreSQL cluster of its own: the same program and load, another store."""
import os

from subjects import server
from subjects.postgres import DATABASE, DEFAULTS, LOGGED, Cluster, logged_statements
from subjects.weir import Weir


class WeirPostgres(Weir):
    """One node. What it costs is what both use, Weir and PostgreSQL."""
    name, title = "weir_postgres", "Weir, PostgreSQL"
    settings = f"{DEFAULTS}, one node; else as on SQLite. CPU, memory and bytes written are those of Weir " \
               "and of PostgreSQL together; its start is Weir's, which makes its tables"
    database = DATABASE
    rows = {"start", "rest", "submit_1", "submit_64", "submit_keyed", "batch", "drain", "lifecycle", "pickup",
            "get", "memory", "written", "idle", "append_batch_many", "append_single", "run_10"}
    quick_rows = {"start", "rest", "submit_64", "batch", "drain", "pickup"}
    growth_rows = {"submit_64", "batch", "drain", "get"}

    def __init__(self, build):
        super().__init__(build)
        self.cluster = Cluster()
        self.postmaster = None

    def version(self):
        """The program's line and the server's."""
        return f"{super().version()}, {self.cluster.version()}"

    def start(self, folder, statements_counted=False, **settings):
        """PostgreSQL first; returns the seconds that Weir took on it."""
        cluster, more = self.cluster, LOGGED if statements_counted else ()
        cluster.make(os.path.join(folder, "cluster"))
        log = os.path.join(folder, "postgres.log")
        self.postmaster = server.Server(cluster.command(server.free_port(), *more), log, cluster.is_ready,
                                        **cluster.popen())
        try:
            seconds = super().start(folder, **settings)
        except BaseException:
            if self.server:
                super().stop()
            self.postmaster.stop(cluster.stop_signal)
            raise
        cluster.begin_growth()
        return seconds

    def store(self):
        """The cluster instead of a file."""
        return ["--store", self.cluster.url()]

    def stop(self):
        """Weir, then its store; returns the seconds Weir took."""
        try:
            return super().stop()
        finally:
            self.postmaster.stop(self.cluster.stop_signal)

    @property
    def root_pids(self):
        """Weir's and PostgreSQL's."""
        return [*super().root_pids, self.postmaster.process.pid]

    def statements(self):
        """{statement: how often PostgreSQL got it from Weir}; only when start() was told to count them."""
        return logged_statements(self.postmaster.log_path)

    def batch_jobs(self, plan):
        """Half as many: PostgreSQL takes them more slowly."""
        return plan.batch_jobs // 2

    def lifecycle(self, jobs):
        """Likewise."""
        return super().lifecycle(jobs // 2)

    def stored_bytes(self):
        """What the tables grew by; to be asked after stop()."""
        return self.cluster.grown_bytes()

    def settle(self):
        """A checkpoint: pages are written now, not minutes later."""
        self.cluster.checkpoint()
