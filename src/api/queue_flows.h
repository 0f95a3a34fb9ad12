/* api/queue_flows.h - attempts that ended in the last minute, by client and queue.
 *
 * Counted by the commit thread when a batch is durable. With one writer they are in memory alone and begin
 * anew with the process. Nodes of a shared store add what they have counted to a row for each queue
 * (`queue_flows`) every few seconds; a rate is that row and what this node has not added yet.
 * Memory:  a queue in which something ended within a minute; FLOWS_MAX at most, others are not counted.
 * Threads: any; a lock, held for moments. */
#ifndef WEIR_API_QUEUE_FLOWS_H
#define WEIR_API_QUEUE_FLOWS_H

#include "kernel/unit.h"
#include "store/queue_flow.h"

enum { FLOWS_MAX = 10000 };

struct queue_flows;
struct queue_flows *queue_flows_new(void);
struct queue_flows *queue_flows_free(struct queue_flows *f); /* NULL is fine; always returns NULL */

void queue_flows_committed(struct queue_flows *f, const struct unit *u);
/* As rate_limit_save and rate_limit_saved; also lets idle queues go. */
bool queue_flows_save(struct queue_flows *f, struct unit *u);
void queue_flows_saved(struct queue_flows *f, bool stored);

/* The flows in memory, of one client or of all (0). `fn` is called with the lock held. */
typedef void queue_flow_fn(int64_t client, struct str queue, const struct queue_flow *flow, void *arg);
void queue_flows_each(struct queue_flows *f, int64_t client, queue_flow_fn *fn, void *arg);

#endif
