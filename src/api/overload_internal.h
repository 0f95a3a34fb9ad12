/* api/overload_internal.h - what overload.c and overload_report.c share. */
#ifndef WEIR_API_OVERLOAD_INTERNAL_H
#define WEIR_API_OVERLOAD_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "api/overload.h"
#include "runtime/partition.h"

struct overload {
    const struct settings *settings;
    const struct clock *clock;
    struct metrics *metrics;
    struct slo_bounds bounds[SLO_COUNT];
    struct partition_counts partitions;
    _Atomic int level; /* governing; enum pressure_level */

    pthread_mutex_t lock; /* guards what follows */
    struct pressure_board *board;
    struct slo_board *slos;
    struct slo_tally cascades; /* those of the last window, when this process began, and since */
    struct slo_tally looks;    /* at the queues */
    int64_t cascades_seen, slos_at_ms;
    int64_t store_lost_ms; /* 0: the store is there */
    uint64_t store_errors; /* when it was last there */
};

/* With the lock held, after the board has changed. */
void overload_settle(struct overload *o);

#endif
