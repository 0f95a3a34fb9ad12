/* api/worker/recent_jobs.h - the rows of jobs submitted a moment ago, for the claim that follows.
 *
 * An idle worker gets a job in the same commit that stores it. Its answer needs the job's row, which is not
 * yet in any reader's cache; remembered here it costs a copy instead of a cold read.
 *
 * Filled:    by the commit thread after the durable commit, while few jobs are ready (jobs_committed.c). Read
 *            by HTTP threads. One lock, held for one row's copy.
 * Bounded:   so many bytes, so many rows; the oldest go first. A row larger than 1/64 of the bytes is not
 *            kept. A missing row is read from the store: nothing depends on this cache.
 * Never old: a job's row never changes, and its id is never given again. A purge deletes rows of finished
 *            jobs only, and only live tasks are claimed: a claim that still asks for one was committed
 *            before the purge, and its worker hears of the lost lease when it starts. So nothing is ever
 *            taken out.
 * Sorted:    ids only grow, so rows in the order they came are sorted by id and found by halving. */
#ifndef WEIR_API_WORKER_RECENT_JOBS_H
#define WEIR_API_WORKER_RECENT_JOBS_H

#include "base/arena.h"
#include "store/rows.h"

enum { RECENT_JOBS_BYTES = 4 << 20, RECENT_JOBS_MAX = 4096, RECENT_JOBS_ROW_PART = 64 };

struct recent_jobs;

struct recent_jobs *recent_jobs_new(size_t bytes, size_t rows_max);
struct recent_jobs *recent_jobs_free(struct recent_jobs *r); /* NULL is fine; always returns NULL */

void recent_jobs_add(struct recent_jobs *r, const struct job_row *job); /* copies; takes no memory */
/* The row with texts in the arena; false when it is not here. */
bool recent_jobs_find(struct recent_jobs *r, int64_t id, struct arena *a, struct job_row *ret_job);

#endif
