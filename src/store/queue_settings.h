/* store/queue_settings.h - what clients have set for their queues, in memory: the deciders ask at each
 * submit.
 *
 * Owner:   the holder of the kernel's turn. Follows the `queues` rows: read at start, changed after the
 *          commit that changed a row; of a shared store read again when a node has changed one
 *          (postgres_fetch.c). Which queues are paused is in store/live.h as well, for claims.
 * Memory:  a row each; QUEUES_SET_MAX of a client. */
#ifndef WEIR_STORE_QUEUE_SETTINGS_H
#define WEIR_STORE_QUEUE_SETTINGS_H

#include "base/map.h"
#include "store/rows.h"

enum { QUEUES_SET_MAX = 1000 }; /* of one client */

struct queue_settings {
    struct map rows;
};

/* NULL: nothing is set. One look at a number while no client has set anything. */
const struct queue_row *queue_settings_find(const struct queue_settings *q, int64_t client, struct str queue);
void queue_settings_put(struct queue_settings *q, const struct queue_row *row);
void queue_settings_remove(struct queue_settings *q, const struct queue_row *row); /* it may be absent */
/* Calls fn for each row of the client. A walk over all rows: for what is done seldom. */
void queue_settings_each(const struct queue_settings *q, int64_t client,
                         void (*fn)(const struct queue_row *row, void *arg), void *arg);
void queue_settings_free(struct queue_settings *q);

#endif
