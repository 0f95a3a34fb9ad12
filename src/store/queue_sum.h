/* store/queue_sum.h - queues of all clients, counted; a part of store/store.h. */
#ifndef WEIR_STORE_QUEUE_SUM_H
#define WEIR_STORE_QUEUE_SUM_H

#include "base/str.h"

/* A queue's unfinished jobs, counted. */
struct queue_sum {
    struct str queue;
    int64_t queued, running, scheduled; /* QUEUED; ASSIGNED or RUNNING; CREATED */
    int64_t oldest_us;                  /* since when the one that is QUEUED longest is; 0: none is */
};
typedef bool store_queue_fn(const struct queue_sum *q, void *arg);

/* What reader_queues reads, in words that both databases know. */
#define STORE_QUEUES_SQL                                                                                     \
    "SELECT queue,sum(CASE WHEN state=1 THEN 1 ELSE 0 END),sum(CASE WHEN state IN (2,3) THEN 1 ELSE 0 END)," \
    "sum(CASE WHEN state=0 THEN 1 ELSE 0 END),coalesce(min(CASE WHEN state=1 THEN last_us END),0) "          \
    "FROM tasks WHERE owner=0 GROUP BY queue ORDER BY queue"

#endif
