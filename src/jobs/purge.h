/* jobs/purge.h - retention: finished jobs leave jobs.retention_seconds after their end, with their events,
 * report, listing entries and idempotency key; revoked and expired API keys leave after their audit time;
 * clients that never got a key leave after clients.keyless_ttl_seconds; idempotency keys of clients, keys and
 * webhooks (creates.h) leave jobs.retention_seconds after their use. A queue may have a shorter retention
 * (purge_early.h).
 *
 * The log is in commit order, so the purge walks it from its oldest chunk and looks at nothing else: a chunk
 * whose events are all past retention is dropped; jobs in it that ended long enough ago are deleted; events
 * of jobs that live on are copied to `kept` first. Unfinished jobs are never touched. A job that has
 * something to deliver lives on too, and is put down for later (LIST_LATE), so that a receiver that is away
 * holds up its own jobs and not the log. Deliveries of no job (tests) leave by their own age. While the wall
 * clock is in doubt nothing leaves (kernel/wall_guard.h). */
#ifndef WEIR_JOBS_PURGE_H
#define WEIR_JOBS_PURGE_H

#include <stdatomic.h>

#include "kernel/unit.h"

struct purge {
    int64_t keys_checked_ms, rest_checked_ms, late_checked_ms, clients_checked_ms, creates_checked_ms;
    int64_t early_checked_ms, flows_checked_ms;
    int64_t late_below; /* how far the look through LIST_LATE is; 0: it begins */
    /* Active API keys that expire within KEY_WARN_SECONDS, as of the last look through them all, an hour ago
     * at most; -1: this node has not looked, or another has the duties. Any thread may read it. */
    _Atomic int64_t keys_expiring;
};

/* kernel_config.housekeep: a bounded part of the work; true when there is more. */
bool purge_housekeep(void *self, struct unit *u);

#endif
