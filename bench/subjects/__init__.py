"""What is measured. One file per subject, all with the same methods.

A subject starts from nothing in a given folder, takes the same 300-byte jobs, and answers each step
with a dict like the line weir-load prints: seconds, jobs, requests, calls {name: p50_us, p99_us,
p999_us, max_us}, cpu_user_s and cpu_system_s of the load's own process.

    name title settings durable peer     what the report says of it
    database                             its store where others here have the same kind, or None
    rows                                 keys of the rows it can run
    quick_rows growth_rows               those of a short run, of a full store; None: all
    keeps_finished                       whether finished jobs stay in its store
    start(folder, **settings) -> seconds until it serves     stop() -> seconds    root_pids
    version() -> text      stored_bytes() -> int             commits() -> int or None
    batch_jobs(plan) -> jobs of one bulk row                 with_stored(jobs, look) -> look()
    settle(), whole_lives(jobs) -> jobs
    statements() -> {text: count}        what its store was asked so far, for the row `idle`
    null submit batch drain cycle lifecycle pickup get       those that `rows` names
    window                               set by rows.measured(): a subject whose load warms up
                                         first opens it anew when the measured part begins
"""
from subjects import beanstalkd, bullmq, graphile, pgboss, restate, weir, weir_postgres

OURS = {"sqlite": weir.Weir, "postgres": weir_postgres.WeirPostgres}
PEERS = [beanstalkd.Durable, beanstalkd.Default, bullmq.BullMq, pgboss.PgBoss, graphile.Graphile,
         restate.Restate]
