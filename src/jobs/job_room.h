/* jobs/job_room.h - room for one more job of a client: below the limits of all, and within its own share of
 * them, so that one client never has the last quarter (jobs.max_active, jobs.queue_size,
 * jobs.max_active_per_client).
 *
 * Exact where one node writes. On a shared store the limits of all are as kernel/census.h says; a client's
 * own jobs are those committed when the batch asks, with what the batch adds, so batches that are decided at
 * the same moment may pass the share by what they bring. Counting a client costs nothing while all together
 * have fewer jobs than one may have. */
#ifndef WEIR_JOBS_JOB_ROOM_H
#define WEIR_JOBS_JOB_ROOM_H

#include "kernel/unit.h"

struct job_room {
    int64_t client;
    bool is_new;       /* it counts among the unfinished from now on */
    int64_t queue_max; /* of all clients; negative: it does not join the queue now */
};

/* REQUEST_RATE_LIMITED, EXEC_QUEUE_FULL or EXEC_CLIENT_LIMIT, with Retry-After: nothing is taken. */
MUST_CHECK enum err_code job_room_take(struct unit *u, const struct job_room *wanted, struct err *err);

#endif
