/* store/store.h - what a backend can do, and nothing about what it means.
 *
 * A backend knows rows, not rules: it fetches rows by key, writes a batch's change set in one durable
 * transaction, and answers a short list of reads on snapshots. The rules live in the deciders.
 *
 * Writer side (in the kernel's turn): store->live, ->idem, ->counts, ->hooks are memory; fetch and commit
 * are disk. Reader side (any thread, one reader each): key reads that another write path could answer
 * from memory, list reads that may wait for a barrier.
 * Backends: sqlite (one machine, default), memory (tests and simulation). One conformance suite:
 * tests/store.
 * Fails: STORAGE_DB_ERROR (nothing was written, retry), STORE_FSYNC (result unknown: stop the process and
 * recover), STORE_CORRUPT, STORAGE_UNAVAILABLE. */
#ifndef WEIR_STORE_STORE_H
#define WEIR_STORE_STORE_H

#include <stdatomic.h>

#include "base/arena.h"
#include "base/err.h"
#include "store/counts.h"
#include "store/hooks.h"
#include "store/idem_index.h"
#include "store/live.h"
#include "store/log.h"
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
};

struct store;
struct reader;

/* Called for each row of a scan; false stops it. The row is borrowed for the call. */
typedef bool store_row_fn(const void *row, void *arg);
typedef bool store_chunk_fn(int64_t number, struct str chunk, void *arg);
typedef bool store_list_fn(const struct list_entry *entry, void *arg);
typedef bool store_idem_fn(const struct idem_entry *entry, void *arg);
typedef bool store_check_fn(const char *line, void *arg);

struct list_query {
    int64_t client;
    uint8_t bucket;
    int64_t below_id, from_id; /* ids in [from_id, below_id), newest first */
    size_t limit;
};

struct store_ops {
    const char *name;
    /* Row by key: the key columns of `row` are set; fills the rest, texts into `a`. */
    enum err_code (*fetch)(struct store *s, const struct table *t, void *row, struct arena *a,
                           bool *ret_found, struct err *err);
    enum err_code (*commit)(struct store *s, const struct change_set *c, struct err *err);
    /* Between batches: housekeeping that would delay a commit (checkpoints). `idle`: nobody waits. */
    enum err_code (*tend)(struct store *s, bool idle, struct err *err);
    /* A durable write that changes nothing: can the store write (again)? */
    enum err_code (*probe)(struct store *s, struct err *err);
    void (*close)(struct store *s);

    enum err_code (*reader_open)(struct store *s, struct reader **ret_reader, struct err *err);
    void (*reader_close)(struct reader *r);
    /* A snapshot: every read until reader_end sees one committed state. */
    enum err_code (*reader_begin)(struct reader *r, struct err *err);
    void (*reader_end)(struct reader *r);
    enum err_code (*reader_row)(struct reader *r, const struct table *t, void *row, struct arena *a,
                                bool *ret_found, struct err *err);
    enum err_code (*reader_chunk)(struct reader *r, int64_t number, struct arena *a, struct str *ret_chunk,
                                  struct err *err); /* absent when purged */
    enum err_code (*reader_list)(struct reader *r, const struct list_query *q, int64_t *ret_ids,
                                 size_t *ret_count, struct err *err);
    /* Live tasks of a client, newest first. state < 0: any. May name one that is no longer in that state in
     * this snapshot: look before you tell. Not for readers beside a server. */
    enum err_code (*reader_live)(struct reader *r, const struct list_query *q, int64_t state,
                                 int64_t *ret_ids, size_t *ret_count, struct err *err);
    /* All rows of a table in key order; all chunks from `from` on. */
    enum err_code (*reader_scan)(struct reader *r, const struct table *t, store_row_fn *fn, void *arg,
                                 struct err *err);
    enum err_code (*reader_scan_log)(struct reader *r, int64_t from, store_chunk_fn *fn, void *arg,
                                     struct err *err);
    /* Rows whose `client` column is this one, in key order: webhooks and keys (small tables). */
    enum err_code (*reader_of_client)(struct reader *r, const struct table *t, int64_t client,
                                      store_row_fn *fn, void *arg, struct err *err);
    /* Every listing entry by (client, bucket, id); every idempotency entry by job. */
    enum err_code (*reader_scan_list)(struct reader *r, store_list_fn *fn, void *arg, struct err *err);
    enum err_code (*reader_scan_idem)(struct reader *r, store_idem_fn *fn, void *arg, struct err *err);
    /* The backend's own check of its file: one line per fault. NULL where there is no file. */
    enum err_code (*reader_check)(struct reader *r, store_check_fn *fn, void *arg, struct err *err);
};

struct store {
    const struct store_ops *ops;
    struct live *live;
    struct idem_index idem;
    struct counts_table counts;
    struct hooks hooks;
    int64_t next_chunk;  /* number of the next log chunk */
    int64_t first_chunk; /* oldest chunk still there; next_chunk when the log is empty */
    int64_t last_id;     /* largest id ever given */
    int64_t next_client; /* number of the next client */
    int64_t wal_pages;   /* for metrics */
    /* Durable writes so far; raised by the kernel before anybody hears of one. Readable from any thread:
     * a snapshot begun at this number is the newest state anybody knows of (api/reads.h). */
    _Atomic uint64_t commits;
};

struct reader {
    struct store *store;
    const struct store_ops *ops;
};

struct sqlite_options {
    const char *path;
    const char *vfs;         /* NULL: the default; tests put a simulated disk here */
    int64_t timeout_ms;      /* longest wait for a lock */
    const char *synchronous; /* NULL: FULL. Anything else only as a negative control in tests */
    int64_t wall_ms;         /* now, to place timers of the tasks read back */
    int64_t wal_ahead_bytes; /* how long the WAL's file is made before it is used; 0 leaves it */
    bool checkpoint_thread;  /* most of a checkpoint beside the commits; a server wants it */
};
enum { STORE_SCHEMA_VERSION = 6 };

MUST_CHECK enum err_code store_open_sqlite(const struct sqlite_options *options, struct store **ret_store,
                                           struct err *err);
/* Opens without taking part in writing: for `weir verify`, `backup`, `doctor` beside a running server. */
MUST_CHECK enum err_code store_open_sqlite_reader(const struct sqlite_options *options,
                                                  struct reader **ret_reader, struct err *err);
/* A consistent copy of a database file, also beside a running server. */
MUST_CHECK enum err_code store_backup_sqlite(const char *from_path, const char *to_path, struct err *err);
struct store *store_open_memory(void);
struct store *store_close(struct store *s); /* NULL is fine; always returns NULL */

#endif
