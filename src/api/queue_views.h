/* api/queue_views.h - queues as readers see them, merged by name: waiting and running jobs, attempts that
 * ended in the last minute, settings.
 *
 * A queue is there when it has unfinished jobs, an attempt in it ended within a minute, or it has settings.
 * Cost: of one client its queues; of all clients every queue of each. On a shared store also a look at every
 *       unfinished job (of the client). */
#ifndef WEIR_API_QUEUE_VIEWS_H
#define WEIR_API_QUEUE_VIEWS_H

#include "api/queue_flows.h"
#include "jobs/queue_commands.h"

struct queue_view {
    struct map_node node;
    struct queue_sum sum;           /* its `client` says nothing */
    struct queue_flow flow;         /* attempts of the last minute */
    struct queue_defaults defaults; /* of one client */
    bool paused;                    /* of many clients: by one of them */
    bool is_set;                    /* the queue is paused or has defaults */
    int64_t completed_per_minute, failed_per_minute;
};

struct queue_views {
    struct queue_view **list; /* by name */
    size_t count;
};

/* Inside a snapshot, into the arena. client 0: of all clients. `queues`: a key's limit
 * (lifecycle/key_power.h);
 * absent: all. */
MUST_CHECK enum err_code queue_views_read(struct queue_flows *flows, struct reader *r, struct arena *a,
                                          int64_t client, struct str queues, int64_t now_ms,
                                          struct queue_views *ret, struct err *err);
/* NULL: nothing is known of it. */
const struct queue_view *queue_views_find(const struct queue_views *v, struct str queue);

#endif
