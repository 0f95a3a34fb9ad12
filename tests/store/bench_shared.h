/* store/bench_shared.h - several handles of one store: the common steps of their tests. Fails: each function
 * ends the test when the store refuses, unless it gives the code back. */
#ifndef WEIR_TESTS_BENCH_SHARED_H
#define WEIR_TESTS_BENCH_SHARED_H

#include "store/bench_store.h"

enum { SHARED_TIMEOUT_MS = 3000, SHARED_PATIENCE_MS = 60000, SHARED_LOOK_MS = 20 };
extern const struct str shared_queue;

int64_t shared_now_ms(void); /* monotonic */
struct store *shared_open_other(struct bench *b);

enum err_code bench_load_shared(struct store *s, struct load_set *l, struct arena *a);
void shared_abandon(struct store *s);
/* One commit of one row. */
enum err_code shared_change(struct store *s, const struct table *t, enum row_op op, const void *row,
                            struct err *err);
enum err_code shared_insert_job(struct store *s, int64_t id, struct err *err);
bool shared_job_is_there(struct bench *b, int64_t id); /* as another handle sees it */
/* The store answers again, sooner or later, and what it writes is there. */
void shared_expect_recovery(struct bench *b, struct store *s, int64_t id);
/* A sound row that can be claimed in shared_queue; of client 1 or 2. */
struct task_row shared_ready_task(int64_t id, int64_t priority);
/* Waits until `sql` gives a number of at least `least`. */
void shared_wait_until(PGconn *c, const char *sql, int64_t least);

#endif
