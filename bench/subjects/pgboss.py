"""pg-boss on PostgreSQL."""
from subjects.postgres import PostgresPeer


class PgBoss(PostgresPeer):
    """Keeps finished jobs for a while, as Weir does."""
    name, title = "pgboss", "pg-boss, PostgreSQL"
    settings = "initdb defaults (fsync and synchronous_commit on); LISTEN/NOTIFY, pool 10; " \
               "drain: 2 loops of fetch and complete, 1000 each, after VACUUM ANALYZE"
    program_name = "pgboss"
    keeps_finished = True
    needs_packages = ["pg-boss"]
