/* store/client_tasks.h - the live tasks of a client, newest first, for listings by a live state; and how many
 * live tasks each of its queues has.
 *
 * The `tasks` table has no index for such listings. Live tasks are in memory anyway, and an index would cost
 * every job an insert, a delete and a page of each commit (docs/performance.md).
 *
 * Threads:  written by the commit thread after a commit is durable and before it is answered, read by any
 *           thread. So every task whose submit was answered is here. A task that has just moved on may still
 *           be here: a reader checks each id against its own snapshot.
 * Memory:   17 bytes a live task, and as many again for ended ones until the list is compacted; a queue costs
 *           its name and a few numbers while it has a live task.
 * Counts:   kept with each change, so a count is a look at each queue. The age of the oldest QUEUED job is
 *           not kept: a caller that needs it walks over the client's tasks, 2 ns each. */
#ifndef WEIR_STORE_CLIENT_TASKS_H
#define WEIR_STORE_CLIENT_TASKS_H

#include <stddef.h>
#include <stdint.h>

struct row_change;
struct list_query;
struct task_row;
struct client_tasks;
struct queue_sum;

struct client_tasks *client_tasks_new(void);
struct client_tasks *client_tasks_free(struct client_tasks *c); /* NULL is fine; always returns NULL */

/* A task as it is stored, at opening. */
void client_tasks_put(struct client_tasks *c, const struct task_row *row);
/* Follows the task rows of a committed change set; other tables are passed over. */
void client_tasks_apply(struct client_tasks *c, const struct row_change *rows, size_t row_count);

/* Ids of the query's client in [from_id, below_id), newest first, at most `limit`; of its queue, if it names
 * one. state < 0: any. */
size_t client_tasks_list(struct client_tasks *c, const struct list_query *q, int64_t state, int64_t *ret_ids);

/* Each queue of the client that has live tasks, in any order; client 0: of every client, a queue once for
 * each client that has it. The caller frees *ret_sums; the names stand behind them in the same block. */
size_t client_tasks_queues(struct client_tasks *c, int64_t client, struct queue_sum **ret_sums);

#endif
