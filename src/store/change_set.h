/* store/change_set.h - everything a batch changes: what a backend writes in one transaction. */
#ifndef WEIR_STORE_CHANGE_SET_H
#define WEIR_STORE_CHANGE_SET_H

#include <stddef.h>

#include "store/rows.h"

enum row_op { ROW_INSERT, ROW_UPDATE, ROW_DELETE };

struct row_change {
    const struct table *table;
    enum row_op op;
    /* Key columns count for DELETE, all for INSERT, key and changing ones for UPDATE. A task always comes
     * whole. */
    const void *row;
};

/* A listing entry: job `id` of `client` is (or no longer is) in `bucket`. */
enum {
    LIST_ALL = 0,         /* every job of a client; a final state s is bucket 1 + s */
    LIST_DELIVERIES = 64, /* of a webhook, or of a job's callback: `client` is the id of that */
    LIST_OF_JOB = 65,     /* deliveries to webhooks about a job: `client` is the job's id; 0: about none */
    LIST_LATE = 66,       /* jobs past retention that still had something to deliver; `client` is 0 */
    LIST_EARLY = 67, /* jobs that leave before others do; `client` is the slot of time (jobs/purge_early.h) */
    LIST_EARLY_SLOTS = 68, /* ids are slots that have some; `client` is 0 */
    LIST_RUNS = 70,        /* every run of a tenant; one in status s is also in bucket LIST_RUNS_IN + s */
    LIST_RUNS_IN = 71,
    LIST_ALERTS = 80,        /* of a tenant */
    LIST_ALERTS_OF_RUN = 81, /* `client` is the run's number, as in what follows */
    LIST_DECISIONS = 82,
    LIST_DECISIONS_OPEN = 83, /* accepted, and not processed yet by the engine outside that has to */
};
struct list_entry {
    int64_t client, id;
    uint8_t bucket;
    bool removed;
};

struct idem_entry {
    uint64_t hash;
    int64_t job;
};

/* A number kept under a name, beside all tables; 0 takes it away. "next_chunk" is where the log's numbers go
 * on at least: it can be raised this way, and is always there to be read. */
struct store_mark {
    const char *name;
    int64_t value;
};
#define STORE_MARK_NEXT_CHUNK "next_chunk"

/* Everything a batch changes. Written together or not at all. A key of a table is named once, or twice as a
 * DELETE and then an INSERT: a backend may write all deletes and updates first. */
struct change_set {
    const struct row_change *rows;
    size_t row_count;
    const struct str *chunks; /* log chunks first_chunk, first_chunk + 1, ... */
    size_t chunk_count;
    int64_t first_chunk;
    int64_t drop_chunks_below; /* 0: none; else log chunks under this number are deleted */
    const struct list_entry *list;
    size_t list_count;
    const struct idem_entry *idem_add, *idem_drop;
    size_t idem_add_count, idem_drop_count;
    const struct store_mark *marks; /* of a copy (store/copy.h); commits of a kernel have none */
    size_t mark_count;
};

#endif
