/* store/queue_sum.h - unfinished jobs of queues, counted; a part of store/store.h.
 *
 * reader_queues tells of each queue of a client, in any order; client 0: of every client, a queue once for
 * each client that has jobs in it. From memory; a shared store looks at every unfinished job (of the
 * client). */
#ifndef WEIR_STORE_QUEUE_SUM_H
#define WEIR_STORE_QUEUE_SUM_H

#include "base/str.h"
#include "store/queue_flow.h"
#include "store/queue_settings.h"

/* A client's unfinished jobs in a queue. */
struct queue_sum {
    int64_t client;
    struct str queue;
    int64_t queued, running, scheduled; /* QUEUED; ASSIGNED or RUNNING; CREATED */
    int64_t oldest_us;                  /* since when the one that is QUEUED longest is; 0: none is */
};
typedef bool store_queue_fn(const struct queue_sum *q, void *arg);

#endif
