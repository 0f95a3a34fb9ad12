/* store/store.h - what a backend can do, and nothing about what it means.
 *
 * A backend knows rows, not rules: it fetches rows by key, writes a batch's change set in one durable
 * transaction, and answers a short list of reads on snapshots. The rules live in the deciders.
 *
 * Writer side (in the kernel's turn): store->live, ->idem, ->counts, ->hooks, ->queues are memory; fetch
 * and commit are disk. Reader side (any thread, one reader each): key reads that another write path could
 * answer from memory, list reads that may wait for a barrier.
 *
 * A store has one writer, or it is shared: then many handles (`struct store`) write to it at once, from this
 * process and from others, each in a lane of a kernel. What a shared handle has in memory is what the batch
 * under way has asked for (`load`, `fetch`), locked by its transaction and forgotten at its end
 * (store_forget). Most deciders need not know which kind it is; those that do look at `shared`.
 *
 * Backends: sqlite (one machine, default), postgres (shared), memory (tests and simulation). One conformance
 * suite: tests/store.
 * Fails: STORAGE_DB_ERROR (nothing was written, retry), STORE_FSYNC (result unknown: stop the process and
 * recover), STORE_CORRUPT, STORE_LOST (commits are missing, or the files are no longer those that were
 * opened), STORAGE_UNAVAILABLE (of a commit on a shared one: perhaps written). err.conflict of a shared one:
 * nothing was written, others were faster; load and decide again. */
#ifndef WEIR_STORE_STORE_H
#define WEIR_STORE_STORE_H

#include <stdatomic.h>

#include "base/arena.h"
#include "base/err.h"
#include "store/change_set.h"
#include "store/counts.h"
#include "store/high_water.h"
#include "store/hooks.h"
#include "store/idem_index.h"
#include "store/live.h"
#include "store/load.h"
#include "store/log.h"
#include "store/queue_sum.h"
#include "store/timers.h"

struct store;
struct reader;

/* Called for each row of a scan; false stops it. The row is borrowed for the call. */
typedef bool store_row_fn(const void *row, void *arg);
typedef bool store_chunk_fn(int64_t number, struct str chunk, void *arg);
typedef bool store_list_fn(const struct list_entry *entry, void *arg);
typedef bool store_idem_fn(const struct idem_entry *entry, void *arg);
typedef bool store_check_fn(const char *line, void *arg);

/* How far the log was followed: all chunks before `chunk`, and of this one before `offset`; {0}: none.
 * `turn` is the transaction that wrote the chunk in a shared store, 0 in others. */
struct log_place {
    int64_t turn, chunk;
    size_t offset;
};
typedef bool store_follow_fn(struct log_place at, struct str chunk, void *arg);

struct list_query {
    int64_t owner_key;
    uint8_t bucket;
    int64_t below_id, from_id; /* ids in [from_id, below_id), newest first */
    size_t limit;
    struct str queue; /* reader_live: of this queue only; absent: of any */
};

struct store_ops {
    const char *name;
    /* Row by key: the key columns of `row` are set; fills the rest, texts into `a`. */
    enum err_code (*fetch)(struct store *s, const struct table *t, void *row, struct arena *a,
                           bool *ret_found, struct err *err);
    /* Of a table with two numbers as its key: at most `max` rows that begin as `from` does, from its second
     * number on, in order. What is open in this batch does not show. */
    enum err_code (*range)(struct store *s, const struct table *t, const void *from, size_t max,
                           store_row_fn *fn, void *arg, struct err *err);
    enum err_code (*commit)(struct store *s, const struct change_set *c, struct err *err);
    /* Between batches: housekeeping that would delay a commit (checkpoints). `idle`: nobody waits. */
    enum err_code (*tend)(struct store *s, bool idle, struct err *err);
    /* A durable write that changes nothing: can the store write (again)? */
    enum err_code (*probe)(struct store *s, struct err *err);
    /* Asked about once a second: are the files still those that were opened? STORE_LOST, and refused commits,
     * from then on until they are again. NULL where there is no file. */
    enum err_code (*watch)(struct store *s, struct err *err);
    void (*close)(struct store *s);

    /* NULL where there is nothing to end. What a batch reads first begins the transaction that commit or
     * abandon ends; nothing is to be written, or it was refused. */
    void (*abandon)(struct store *s);

    /* Shared stores only, else NULL. Begins the transaction. */
    enum err_code (*load)(struct store *s, struct load_set *l, struct arena *a, struct err *err);
    /* Asked about once a second; takes the duties over when nobody has them or their holder has been silent
     * for seconds. While nobody looked, perhaps nobody could beat either, the store being away: leases that
     * ended meanwhile are given anew, once (store->lease_ms from now), before they can be seen to have ended;
     * those that still last get the time back, up to as much. */
    enum err_code (*lead)(struct store *s, struct store_duties *ret_duties, struct err *err);
    /* Tells other nodes what a commit made, after it: sometimes a hint is lost, so everybody also looks now
     * and then. `what` is one of enum store_hint, several or'ed. */
    void (*hint)(struct store *s, unsigned what);

    enum err_code (*reader_open)(struct store *s, struct reader **ret_reader, struct err *err);
    void (*reader_close)(struct reader *r);
    /* A snapshot: every read until reader_end sees one committed state. */
    enum err_code (*reader_begin)(struct reader *r, struct err *err);
    void (*reader_end)(struct reader *r);
    enum err_code (*reader_row)(struct reader *r, const struct table *t, void *row, struct arena *a,
                                bool *ret_found, struct err *err);
    /* Many rows of a table at once, where that costs less than one by one; else NULL (store_read_rows). */
    enum err_code (*reader_rows)(struct reader *r, struct load_row *rows, size_t count, struct arena *a,
                                 struct err *err);
    /* As `range`. */
    enum err_code (*reader_range)(struct reader *r, const struct table *t, const void *from, size_t max,
                                  store_row_fn *fn, void *arg, struct err *err);
    enum err_code (*reader_chunk)(struct reader *r, int64_t number, struct arena *a, struct str *ret_chunk,
                                  struct err *err); /* absent when purged */
    enum err_code (*reader_list)(struct reader *r, const struct list_query *q, int64_t *ret_ids,
                                 size_t *ret_count, struct err *err);
    /* Live tasks of a client, newest first. state < 0: any. May name one that is no longer in that state in
     * this snapshot: look before you tell. Not for readers beside a server. */
    enum err_code (*reader_live)(struct reader *r, const struct list_query *q, int64_t state,
                                 int64_t *ret_ids, size_t *ret_count, struct err *err);
    /* Jobs of all clients (q->owner_key is not used), newest first. state >= 0: unfinished ones in it. */
    enum err_code (*reader_jobs)(struct reader *r, const struct list_query *q, int64_t state,
                                 int64_t *ret_ids, size_t *ret_count, struct err *err);
    /* Queues that have unfinished jobs (store/queue_sum.h). Not beside a server; NULL of the memory store. */
    enum err_code (*reader_queues)(struct reader *r, int64_t client, store_queue_fn *fn, void *arg,
                                   struct err *err);
    /* All rows of a table in key order; all chunks from `from` on. */
    enum err_code (*reader_scan)(struct reader *r, const struct table *t, store_row_fn *fn, void *arg,
                                 struct err *err);
    enum err_code (*reader_scan_log)(struct reader *r, int64_t from, store_chunk_fn *fn, void *arg,
                                     struct err *err);
    /* See store_follow. NULL where chunks come to light in the order of their numbers. */
    enum err_code (*reader_follow)(struct reader *r, struct log_place *place, size_t max, store_follow_fn *fn,
                                   void *arg, struct err *err);
    /* Rows whose `client` column is this one, in key order: webhooks and keys (small tables). */
    enum err_code (*reader_of_client)(struct reader *r, const struct table *t, int64_t client,
                                      store_row_fn *fn, void *arg, struct err *err);
    /* Every listing entry by (client, bucket, id); every idempotency entry by job. */
    enum err_code (*reader_scan_list)(struct reader *r, store_list_fn *fn, void *arg, struct err *err);
    enum err_code (*reader_scan_idem)(struct reader *r, store_idem_fn *fn, void *arg, struct err *err);
    /* A store number by its name; 0 when there is none. */
    enum err_code (*reader_number)(struct reader *r, const char *name, int64_t *ret_value, struct err *err);
    /* Handles that other processes have on a shared store. NULL where there is one writer. */
    enum err_code (*reader_others)(struct reader *r, int64_t *ret_count, struct err *err);
    /* The backend's own check of its file: one line per fault. NULL where there is no file. */
    enum err_code (*reader_check)(struct reader *r, store_check_fn *fn, void *arg, struct err *err);
};

enum { STORE_ID_SLOTS = 64 }; /* lanes that give ids at the same time, in all nodes together */

struct store {
    const struct store_ops *ops;
    bool shared;
    bool leads;       /* shared: this handle has the duties, unless its connection is gone */
    bool served;      /* set by a kernel: lanes look for a store that is away, readers wait briefly */
    int64_t lease_ms; /* shared: how long a lease lasts, the kernel's to set; 0: `lead` gives none anew */
    /* Shared: jobs of all nodes, as counted a moment ago; `live` counts only what is loaded. */
    int64_t jobs_by_state[JOB_STATE_COUNT];
    int64_t deliveries;     /* shared: not yet made, of all nodes, as `lead` saw them last */
    int64_t deliveries_max; /* shared: so many streams it looks at; the kernel's to set, 0: none */
    bool look_again;        /* shared, after a commit: others may be claimed than those the batch has had */
    int64_t id_slot;        /* shared: ids of this handle are this modulo STORE_ID_SLOTS */
    _Atomic int64_t clock_minus_mono_us; /* shared: the database's clock, by which all nodes count */
    _Atomic int64_t clock_last_us;       /* the latest that was told of it */
    struct live *live;
    struct idem_index idem;
    struct counts_table counts;
    struct hooks hooks;
    struct queue_settings queues;
    struct timers timers;
    int64_t next_chunk, first_chunk; /* of the log: next number; the oldest there is, or next_chunk */
    size_t open_bytes;   /* length of the last chunk when events can still be added to it, else 0 */
    int64_t last_id;     /* largest id ever given */
    int64_t next_client; /* number of the next client */
    int64_t next_tenant; /* and of the next tenant that is none, TENANT_NUMBER_FIRST at least */
    int64_t wal_pages;   /* for metrics */
    /* Durable writes so far; raised by the kernel before anybody hears of one. Readable from any thread:
     * a snapshot begun at this number is the newest state anybody knows of (api/reads.h). */
    _Atomic uint64_t commits;
    bool mark_missing; /* when it was opened, so nobody can tell (store/high_water.h) */
    struct err loss;   /* what was found missing and accepted when it was opened; code ERR_OK: nothing */
};

struct reader {
    struct store *store;
    const struct store_ops *ops;
};

/* Negative controls of tests; a server is CHECKPOINT_SAFE. Careless: the writer checkpoints while the thread
 * does, and nothing keeps the WAL from starting over meanwhile. Unchecked: and no assertion sees it. */
enum checkpoint_control { CHECKPOINT_SAFE, CHECKPOINT_CARELESS, CHECKPOINT_UNCHECKED };

/* store/high_water.h. Checked: a store behind its mark is refused. Reset: it is opened all the same, and the
 * mark says what it has. None: tests on disks that are none. */
enum high_water_mode { HIGH_WATER_NONE, HIGH_WATER_CHECKED, HIGH_WATER_RESET };

struct sqlite_options {
    const char *path;
    const char *vfs;         /* NULL: the default; tests put a simulated disk here */
    int64_t timeout_ms;      /* longest wait for a lock */
    const char *synchronous; /* NULL: FULL. Anything else only as a negative control in tests */
    int64_t wall_ms;         /* now, to place timers of the tasks read back */
    int64_t wal_ahead_bytes; /* how long the WAL's file is made before it is used; 0 leaves it */
    bool checkpoint_thread;  /* most of a checkpoint beside the commits; a server wants it */
    size_t index_group;      /* index entries of runs that are merged together; 0: the default */
    size_t event_group;      /* and bytes of their events */
    enum checkpoint_control control;
    enum high_water_mode high_water;
};
enum { STORE_SCHEMA_VERSION = 23 };

MUST_CHECK enum err_code store_open_sqlite(const struct sqlite_options *options, struct store **ret_store,
                                           struct err *err);
/* Opens without taking part in writing: for `weir verify`, `backup`, `doctor` beside a running server. */
MUST_CHECK enum err_code store_open_sqlite_reader(const struct sqlite_options *options,
                                                  struct reader **ret_reader, struct err *err);
/* Which database it is and how many commits it has had; {0, 0} when there is none. Read-only. */
MUST_CHECK enum err_code store_position_sqlite(const char *path, struct high_water *ret_position,
                                               struct err *err);
/* A consistent copy of a database file, also beside a running server. */
MUST_CHECK enum err_code store_backup_sqlite(const char *from_path, const char *to_path, struct err *err);
struct postgres_options {
    const char *url;    /* postgres://user@host:port/name, or a libpq connection string */
    int64_t timeout_ms; /* longest wait for a lock, and for an answer */
};
/* One handle: one connection that writes. Makes or updates the schema first, if it has to.
 * STORAGE_UNAVAILABLE: the database is away, try again. CONFIG_INVALID: no time heals it (a wrong URL,
 * password, database or right, a schema of a newer program). */
MUST_CHECK enum err_code store_open_postgres(const struct postgres_options *options, struct store **ret_store,
                                             struct err *err);
MUST_CHECK enum err_code store_open_postgres_reader(const struct postgres_options *options,
                                                    struct reader **ret_reader, struct err *err);
struct store *store_open_memory(void);
/* Rows by key inside a snapshot, texts into `a`. */
MUST_CHECK enum err_code store_read_rows(struct reader *r, struct load_row *rows, size_t count,
                                         struct arena *a, struct err *err);
/* At most `max` chunks behind `place`, inside a snapshot; `place` goes along with each that `fn` takes. An
 * open chunk comes again when it has grown: a follower with a new snapshot each time sees every event once.
 * In a shared store a chunk may become visible after one with a larger number: the order is that of
 * transactions, up to the oldest that runs (one of an application, too). It delays no job's own events. */
MUST_CHECK enum err_code store_follow(struct reader *r, struct log_place *place, size_t max,
                                      store_follow_fn *fn, void *arg, struct err *err);
/* A shared store's memory after a batch: no tasks, receivers, keys, counters. */
void store_forget(struct store *s);
/* The clock of a shared store when this machine's monotonic one says `mono_us`. A correction never lets it go
 * back: it stands still meanwhile, so that what happens later is not earlier. */
int64_t store_clock_us(struct store *s, int64_t mono_us);
struct store *store_close(struct store *s); /* NULL is fine; always returns NULL */

#endif
