/* jobs/purge_early.h - jobs of a queue that has a retention of its own (`retention_seconds`).
 *
 * Such a job is listed when it ends, under the slot of time in which it may leave; the purge looks only at
 * slots that are over. A job leaves with its rows, report, listing entries and idempotency key; its events
 * leave the log with their chunk, after jobs.retention_seconds, and cannot be read meanwhile. The setting of
 * the queue when the job ends counts. When the slot is over the setting is looked at again: a job whose queue
 * has none any more, or a longer one, stays accordingly. */
#ifndef WEIR_JOBS_PURGE_EARLY_H
#define WEIR_JOBS_PURGE_EARLY_H

#include "kernel/unit.h"

enum { EARLY_SLOT_MS = 10000 };

/* A job ends: lists it, if its queue has a retention. */
void purge_list_early(struct unit *u, const struct task_row *t, int64_t finished_ms);

#endif
