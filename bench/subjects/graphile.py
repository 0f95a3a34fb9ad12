"""graphile-worker on PostgreSQL."""
from subjects.postgres import PostgresPeer


class Graphile(PostgresPeer):
    """Deletes finished jobs."""
    name, title = "graphile", "graphile-worker, PostgreSQL"
    settings = "initdb defaults (fsync and synchronous_commit on); pool 32; drain: 24 " \
               "concurrent jobs, local queue of 500, batched completion, after VACUUM ANALYZE; " \
               "finished jobs are deleted"
    program_name = "graphile"
    needs_packages = ["graphile-worker", "pg"]
