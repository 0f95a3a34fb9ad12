"""graphile-worker on PostgreSQL."""
from subjects.postgres import DEFAULTS, PostgresPeer


class Graphile(PostgresPeer):
    """Deletes finished jobs."""
    name, title = "graphile", "graphile-worker, PostgreSQL"
    settings = f"{DEFAULTS}; pool 32; drain: 24 " \
               "concurrent jobs, local queue of 500, batched completion, after VACUUM ANALYZE; " \
               "finished jobs are deleted"
    program_name = "graphile"
    needs_packages = ["graphile-worker", "pg"]
