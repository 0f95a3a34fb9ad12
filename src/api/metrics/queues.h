/* api/metrics/queues.h - metrics with a label `queue`, over all clients.
 *
 * Bounded:  metrics.queues_max names have series of their own, the first ones that this process meets; all
 *           others are `other`. A name keeps its series until the process ends: a counter never goes back.
 * Cost:     a look into a hash table for each attempt that ends. The numbers of waiting and running jobs are
 *           read by the scrape; of a shared store, where that is a query, every QUEUE_GAUGES_MS at most.
 * Threads:  any; a lock, held for moments. */
#ifndef WEIR_API_METRICS_QUEUES_H
#define WEIR_API_METRICS_QUEUES_H

#include "api/queue_views.h"

enum { QUEUE_GAUGES_MS = 5000 };

struct queue_metrics;
struct queue_metrics *queue_metrics_new(size_t names_max);
struct queue_metrics *queue_metrics_free(struct queue_metrics *q); /* NULL is fine; always returns NULL */

void queue_metrics_committed(struct queue_metrics *q, const struct unit *u);
/* When it was last told what waits and runs; 0: never. */
int64_t queue_metrics_told_ms(struct queue_metrics *q);
void queue_metrics_tell(struct queue_metrics *q, const struct queue_views *views, int64_t now_ms);
void queue_metrics_write(struct queue_metrics *q, int64_t now_ms, struct strbuf *out);

#endif
