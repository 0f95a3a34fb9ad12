/* kernel/census.h - the number of jobs by state, on a store that other nodes write to as well.
 *
 * The store counts all jobs once a second; jobs that this node commits meanwhile are added here at once. The
 * limits (jobs.max_active, jobs.queue_size) are therefore exact for the jobs that one node accepts, however
 * many lanes it has: a batch that finds room takes it, and the batches beside it see that before it is
 * committed. The jobs of other nodes are known as of the last count.
 *
 * A count that runs beside commits of this node does not tell which of them it includes. The estimate for
 * other nodes is therefore changed only as far as the count proves it wrong: a node that is alone on its
 * store is exact for ever.
 *
 * Owner: the kernel; all lanes call. Each batch: census_take while it decides, census_begin before its
 *        commit, census_end once after it, or instead of it. */
#ifndef WEIR_KERNEL_CENSUS_H
#define WEIR_KERNEL_CENSUS_H

#include <pthread.h>
#include <stdbool.h>

#include "lifecycle/job_lifecycle.h"

struct census_state {
    int64_t others;       /* counted by the store, less `own` */
    int64_t own;          /* committed by this node: came less went */
    int64_t coming, came; /* into this state: of commits begun, and ended whatever their result */
    int64_t going, went;  /* the same, out of it */
};

struct census {
    pthread_mutex_t lock; /* guards what follows */
    struct census_state states[JOB_STATE_COUNT];
    int64_t taken_live, taken_ready; /* by batches under way */
};

/* Room for one more job; negative: this limit is not asked about. */
struct room {
    int64_t live_max, ready_max;
    int64_t live, ready; /* how many there are, room taken included; written in any case */
};

/* One batch's part; all 0 at its start. */
struct census_part {
    int64_t moved[JOB_STATE_COUNT];
    int64_t taken_live, taken_ready;
    bool begun;
};

/* The numbers of this node when the store began to count. */
struct census_count {
    int64_t own[JOB_STATE_COUNT], came[JOB_STATE_COUNT], went[JOB_STATE_COUNT];
};

void census_init(struct census *c);
void census_free(struct census *c);

/* False: there is no room, nothing is taken. */
bool census_take(struct census *c, struct census_part *p, struct room *r);
void census_give_back(struct census *c, struct census_part *p,
                      const struct room *r); /* the room that was taken for r */
void census_begin(struct census *c, struct census_part *p);
void census_end(struct census *c, struct census_part *p, bool committed);

void census_count_start(struct census *c, struct census_count *ret);
void census_counted(struct census *c, const struct census_count *start,
                    const int64_t by_state[JOB_STATE_COUNT]);

int64_t census_jobs(struct census *c, enum job_state state); /* committed ones; never below 0 */

#endif
