/* kernel/notice.h - what happened in a batch, told after its commit: to logs, metrics, traces and streams.
 *
 * A notice is a kind and a row. The code that makes something happen defines the kind and the struct of its
 * rows (jobs/job_notices.h, engine/run_notices.h); a watcher takes the notices of the kinds that it knows.
 * The kernel knows no kind: it keeps the notices of the batch in their order.
 *
 * Lifetime: a row is the batch's; it is gone with the next unit_start(). */
#ifndef WEIR_KERNEL_NOTICE_H
#define WEIR_KERNEL_NOTICE_H

#include "base/arena.h"
#include "store/load.h"

struct notice_kind {
    const char *name;
    unsigned hints; /* the hint for other nodes (enum store_hint) */
    /* The job or run that the row is about: its streams look for news. NULL: no stream shows it. */
    int64_t (*subject)(const void *row);
};

struct notice {
    const struct notice_kind *kind;
    const void *row;
};

/* The row, when the notice is of this kind; else NULL. */
static inline const void *notice_row(const struct notice *n, const struct notice_kind *kind)
{
    return n->kind == kind ? n->row : NULL;
}

/* The notices of one batch. All zero: none. */
struct notices {
    struct notice *list;
    size_t count, capacity;
    unsigned hints; /* of all of them */
    /* Kinds that cost rows to tell are told only when they stand here; NULL ends the list. May be NULL. */
    const struct notice_kind *const *costly;
};

/* Whether a costly kind is to be told. */
static inline bool notices_include(const struct notices *n, const struct notice_kind *costly)
{
    for (size_t i = 0; n->costly && n->costly[i]; i++)
        if (n->costly[i] == costly)
            return true;
    return false;
}

#endif
