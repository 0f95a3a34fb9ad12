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

/* A listing entry: job `id` of `owner_key` is (or no longer is) in `bucket`. */
enum {
    LIST_ALL = 0,         /* every job of a client; a final state s is bucket 1 + s */
    LIST_DELIVERIES = 64, /* of a webhook, or of a job's callback: `owner_key` is the id of that */
    LIST_OF_JOB = 65,     /* deliveries to webhooks about a job: `owner_key` is the job's id; 0: about none */
    LIST_LATE = 66,       /* jobs past retention that still had something to deliver; `owner_key` is 0 */
    LIST_EARLY =
        67, /* jobs that leave before others do; `owner_key` is the slot of time (jobs/purge_early.h) */
    LIST_EARLY_SLOTS = 68, /* ids are slots that have some; `owner_key` is 0 */
    LIST_RUNS = 70,        /* every run of a tenant; one in status s is also in bucket LIST_RUNS_IN + s */
    LIST_RUNS_IN = 71,
    LIST_ALERTS = 80,        /* of a tenant */
    LIST_ALERTS_OF_RUN = 81, /* `owner_key` is the run's number, as in what follows */
    LIST_DECISIONS = 82,
    LIST_DECISIONS_OPEN = 83, /* accepted, and not processed yet by the engine outside that has to */
};
struct list_entry {
    int64_t owner_key, id; /* the client, or what LIST_... says */
    uint8_t bucket;
    bool removed;
};

struct idem_entry {
    uint64_t hash;
    int64_t job;
};

/* A number that the store keeps under a name; writing 0 deletes it. "next_chunk" is the least number of the
 * next
 * log chunk: it can be raised this way, and it can always be read. */
struct store_number {
    const char *name;
    int64_t value;
};
#define STORE_NUMBER_NEXT_CHUNK "next_chunk"

/* Everything a batch changes. Written together or not at all. A key of a table is named once, or twice as a
 * DELETE and then an INSERT: a backend may write all deletes and updates first. */
struct change_set {
    const struct row_change *rows;
    size_t row_count;
    const struct str *chunks; /* log chunks first_chunk, first_chunk + 1, ... */
    size_t chunk_count;
    int64_t first_chunk;
    size_t first_offset; /* 0; or the first chunk is the store's open one, and chunks[0] is what comes behind
                          * the bytes that it has. Such a commit does not drop that chunk. */
    int64_t drop_chunks_below; /* 0: none; else log chunks under this number are deleted */
    const struct list_entry *list;
    size_t list_count;
    const struct idem_entry *idem_add, *idem_drop;
    size_t idem_add_count, idem_drop_count;
    const struct store_number *numbers; /* of a copy (store/copy.h); commits of a kernel have none */
    size_t number_count;
};

#endif
