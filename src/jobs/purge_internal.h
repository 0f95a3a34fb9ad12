/* jobs/purge_internal.h - what the files of the purge share. */
#ifndef WEIR_JOBS_PURGE_INTERNAL_H
#define WEIR_JOBS_PURGE_INTERNAL_H

#include "jobs/purge.h"

/* How far the purge of something came. */
enum purged {
    PURGED,
    PURGE_KEEPS, /* it lives on */
    PURGE_WAITS, /* could not be read, or there is more of it: look again */
};

/* Deletes a job that ended by the cutoff, with all that belongs to it but its events in the log. PURGED: it
 * is gone. *ret_late: it is kept only because of deliveries that are still to be made. */
enum purged purge_one(struct unit *u, int64_t id, int64_t cutoff_ms, bool *ret_late);

/* purge_early.c: jobs of queues with a retention of their own; true when there are more. */
bool purge_early(struct unit *u);
/* Flows of queues (api/queue_flows.h) that nothing was added to for an hour; true when there are more. */
bool purge_flows(struct unit *u);

#endif
