/* store/verify_rules.h - what `weir verify` checks of one contract, beyond the rules of its single rows.
 *
 * Rows fit their descriptions (store/row_rules.h) without a line here. Rules say what must be true between
 * rows, and between rows and the log. They are called in this order, all in one snapshot:
 *
 *   first     what others refer to: each contract in turn
 *   task      each live task, until a contract says that it is one of its own
 *   rows      everything else that is read
 *   timer     each timer, until a contract says that it is one of its own
 *   listed    each entry of a listing, until a contract says that the list is its own
 *   last      what must have been met by now
 *
 * A program's list stands beside its tables (store/rows.c). */
#ifndef WEIR_STORE_VERIFY_RULES_H
#define WEIR_STORE_VERIFY_RULES_H

#include "store/store.h"

struct verify;

/* NULL: there is nothing to do. */
struct verify_rules {
    const char *name;
    size_t bytes; /* of memory of its own, zero at first: verify_self() */
    enum err_code (*first)(struct verify *v, struct err *err);
    bool (*task)(struct verify *v, const struct task_row *t);
    enum err_code (*rows)(struct verify *v, struct err *err);
    bool (*timer)(struct verify *v, const struct timer_row *t);
    bool (*listed)(struct verify *v, const struct list_entry *e);
    enum err_code (*last)(struct verify *v, struct err *err);
    void (*end)(void *self); /* frees what the arena does not hold */
};

/* Of the program. Ends with NULL. */
extern const struct verify_rules *const verify_rules[];
extern const struct verify_rules verify_jobs, verify_runs;

/* --- for rules ---------------------------------------------------------------------------------- */

void *verify_self(const struct verify *v, const struct verify_rules *rules);
struct reader *verify_reader(const struct verify *v);
struct arena *verify_arena(const struct verify *v); /* lives as long as the check */
/* Every row of a table, looked at by what its description says of any row and then told to `fn` (NULL:
 * nobody). */
enum err_code verify_scan(struct verify *v, const struct table *t, store_row_fn *fn, void *arg,
                          struct err *err);
/* The same look at one row, for rules that read a table's rows with what they belong to. */
void verify_row(struct verify *v, const struct table *t, const void *row);
void verify_seen(struct verify *v); /* counts a row for progress */
/* A difference, in one line that says of what. */
void verify_say(struct verify *v, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
