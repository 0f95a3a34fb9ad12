/* store/sqlite/sqlite_deferred_rows.h - rows of runs on their way into a table of their own order.
 *
 * A table that is ordered by run and key has the next row of each of a thousand runs, or of each of a
 * thousand digests, on a page of its own, and a page that is written for one row goes to the WAL and from
 * there to the file as a whole. So the rows of a commit go, packed, into one block at the end of the kind's
 * append area (sqlite_block.h), and stay in memory (sqlite_waiting.h), where the writer finds them. When a
 * group of rows has gathered it is merged into the table in its order, a slice with each commit that follows,
 * so that one page takes many rows and no commit waits for the whole merge. Then the blocks of the group are
 * dropped, a few with each commit. Meanwhile the next group gathers.
 *
 * A kind is a description: what goes where, how a block says it, and what is to be known of it.
 *
 *   kind          table         area                  is
 *   index entries `run_index`   `deferred_run_index`  sqlite_run_index.c
 *   events        `run_events`  `deferred_run_events` sqlite_run_events.c
 *
 * Rows of a kind are inserted and never change. So after a crash all blocks that are left are one group, and
 * merging some of it again makes no difference: no progress is stored. A commit that changes or deletes a row
 * (none of Weir's own does) merges everything first.
 *
 * Readers find the rows of the table with those that wait laid over it, both in one snapshot.
 *
 * Threads:  the writer changes the sets; readers of the same store copy what they need out of them, under
 *           the lock. Which blocks a reader may see its snapshot says. A snapshot older than what is in
 *           memory, and a reader without a store (weir verify), read the blocks themselves. */
#ifndef WEIR_STORE_SQLITE_DEFERRED_ROWS_H
#define WEIR_STORE_SQLITE_DEFERRED_ROWS_H

#include <pthread.h>
#include <sqlite3.h>

#include "store/sqlite/sqlite_waiting.h"
#include "store/store.h"

struct sqlite_store;
struct sqlite_reader;
struct sqlite_connection;

struct deferred_kind {
    const struct table *table;       /* its key: a run, and a number */
    const char *area, *what;         /* table of the blocks (n, block); in words */
    size_t group_bytes;              /* so many in memory are merged together */
    int64_t group_blocks;            /* or as many as come in so many blocks */
    bool has_bytes, rises;           /* as waiting_set has it */
    size_t (*size)(const void *row); /* NULL: all wait; else a commit waits that has few bytes for each run */
    void (*encode)(struct strbuf *block, const void *const *rows, size_t count);
    bool (*decode)(struct str content, struct waiting_set *into); /* false: damaged */
    bool (*unpack)(const struct waiting_row *r, void *row);       /* false: damaged */
    void (*to_table)(struct sqlite_store *s, const void *row);    /* NULL; it gets there now */
    bool (*lacks)(const struct sqlite_store *s, const void *row); /* NULL; the table does, certainly */
};

enum { DEFERRED_RUN_INDEX, DEFERRED_RUN_EVENTS, DEFERRED_KINDS };
extern const struct deferred_kind deferred_run_index, deferred_run_events;
extern const struct deferred_kind *const deferred_kinds[DEFERRED_KINDS];
int deferred_kind_of(const struct table *t); /* -1: its rows are not deferred */

/* The writer's, of each kind. */
struct deferred_rows {
    const struct deferred_kind *kind;
    size_t group;                    /* bytes */
    struct waiting_set young, old;   /* the group that gathers; the one that is being merged */
    int64_t held_from;               /* what came in this block and later is in memory */
    pthread_mutex_t lock;            /* guards the three above; only the writer changes them */
    struct waiting_sort sort;        /* of the old ones */
    size_t merged;                   /* of `sort`, from its beginning on */
    int64_t first_block, next_block; /* blocks in [first_block, next_block) are there */
    int64_t old_below;               /* those under it are of the old ones */
    /* The commit under way: does it add a block, or merge everything; its slice; which blocks it drops. */
    bool waits, all_at_once;
    struct strbuf block;
    size_t slice;
    int64_t drop_below;
    char *rows; /* room for a slice, in rows of the table */
    size_t row_capacity;
    sqlite3_stmt *blocks, *put, *drop, *merge;
};

/* A reader's, of each kind. */
struct deferred_reader {
    sqlite3_stmt *blocks, *span;
    struct waiting_set own; /* the blocks of this snapshot, when it has read them itself */
    bool has_own;
};

void deferred_rows_init(struct sqlite_store *s, const struct sqlite_options *o);
enum err_code deferred_rows_prepare(struct sqlite_store *s, struct err *err);
void deferred_rows_close(struct sqlite_store *s);
enum err_code deferred_rows_load(struct sqlite_store *s, struct err *err); /* at open */

/* In a commit, before its rows; those that wait are then no rows to be written. */
enum err_code deferred_rows_write(struct sqlite_store *s, const struct change_set *c, struct err *err);
bool deferred_rows_wait(const struct sqlite_store *s, const struct row_change *r);
/* Exactly one of them follows. */
void deferred_rows_committed(struct sqlite_store *s);
void deferred_rows_failed(struct sqlite_store *s);

/* One block into a set, checked. False: damaged. */
bool deferred_block_take(const struct deferred_kind *k, struct waiting_set *into, int64_t number,
                         struct str block);
/* A statement: each @ in `form` is the kind's append area. */
enum err_code deferred_sql(sqlite3 *db, const struct deferred_kind *k, const char *form, sqlite3_stmt **ret,
                           struct err *err);
#define DEFERRED_BLOCKS_SQL "SELECT n,block FROM @ ORDER BY n"

/* The writer's reads (sqlite_deferred_read.c): one row, or at most `max` of a run from a key on. */
enum err_code deferred_find(struct sqlite_store *s, int kind, void *row, struct arena *a, bool *ret_found,
                            struct err *err);
enum err_code deferred_find_range(struct sqlite_store *s, int kind, const void *from, size_t max,
                                  store_row_fn *fn, void *arg, struct err *err);
/* A reader's, of what its snapshot has; and all of them. */
enum err_code deferred_reader_prepare(struct sqlite_reader *r, struct err *err);
void deferred_reader_forget(struct sqlite_reader *r); /* its snapshot is over */
void deferred_reader_close(struct sqlite_reader *r);
enum err_code deferred_read(struct sqlite_reader *r, int kind, void *row, struct arena *a, bool *ret_found,
                            struct err *err);
enum err_code deferred_read_range(struct sqlite_reader *r, int kind, const void *from, size_t max,
                                  store_row_fn *fn, void *arg, struct err *err);
enum err_code deferred_read_all(struct sqlite_reader *r, int kind, store_row_fn *fn, void *arg,
                                struct err *err);

#endif
