/* store/client_tasks.h - which tasks of a client are alive, newest first, for listings by a live state.
 *
 * The `tasks` table needs no index for that question: what is alive is in memory anyway, and an index
 * costs every job an insert, a delete and a page of each commit (docs/performance.md).
 *
 * Threads:  written by the commit thread after a commit is durable and before it is answered, read by any
 *           thread. So it never lacks a task whose submit was answered; it may still name one that has just
 *           moved on, so a reader checks each id against its own snapshot.
 * Memory:   9 bytes a live task, and as many again for those that ended until the list is packed. */
#ifndef WEIR_STORE_CLIENT_TASKS_H
#define WEIR_STORE_CLIENT_TASKS_H

#include <stddef.h>
#include <stdint.h>

struct row_change;
struct list_query;
struct task_row;
struct client_tasks;

struct client_tasks *client_tasks_new(void);
struct client_tasks *client_tasks_free(struct client_tasks *c); /* NULL is fine; always returns NULL */

/* A task as it is stored, at opening. */
void client_tasks_put(struct client_tasks *c, const struct task_row *row);
/* Follows the task rows of a committed change set; other tables are passed over. */
void client_tasks_apply(struct client_tasks *c, const struct row_change *rows, size_t row_count);

/* Ids of the query's client in [from_id, below_id), newest first, at most `limit`. state < 0: any. */
size_t client_tasks_list(struct client_tasks *c, const struct list_query *q, int64_t state, int64_t *ret_ids);

#endif
