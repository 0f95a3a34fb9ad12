"""pg-boss on PostgreSQL."""
from subjects.postgres import DEFAULTS, PostgresPeer


class PgBoss(PostgresPeer):
    """Keeps finished jobs for a while, as Weir does."""
    name, title = "pgboss", "pg-boss, PostgreSQL"
    settings = f"{DEFAULTS}; LISTEN/NOTIFY, pool 10; " \
               "drain: 2 loops of fetch and complete, 1000 each, after VACUUM ANALYZE"
    program_name = "pgboss"
    keeps_finished = True
    needs_packages = ["pg-boss"]
