/* store/sqlite/sqlite_internal.h - what the files of the SQLite backend share. Not for others. */
#ifndef WEIR_STORE_SQLITE_INTERNAL_H
#define WEIR_STORE_SQLITE_INTERNAL_H

#include <sqlite3.h>

#include "store/client_tasks.h"
#include "store/row_cache.h"
#include "store/sqlite/sqlite_block.h"
#include "store/sqlite/sqlite_deferred.h"
#include "store/sqlite/sqlite_deferred_rows.h"
#include "store/sqlite/sqlite_feed.h"
#include "store/sqlite/sqlite_id_blocks.h"
#include "store/sqlite/sqlite_known_index.h"
#include "store/sqlite/sqlite_listing_block.h"
#include "store/sqlite/sqlite_log.h"
#include "store/store.h"

/* Statements of one connection, prepared when first used. */
struct row_statements {
    sqlite3_stmt *select, *insert, *insert_fed, *update, *delete, *scan, *of_client, *range;
};

struct sqlite_connection {
    sqlite3 *db;
    struct row_statements rows[TABLES_MAX];
};

struct sqlite_file_id {
    uint64_t device, number;
};

enum { SQLITE_REPLACED = 3 }; /* tables whose updates are fed (sqlite_commit.c) */

struct sqlite_store {
    struct store base;
    struct sqlite_connection writer;
    struct sqlite_deferred deferred;
    struct sqlite_log log;
    struct deferred_rows deferred_rows[DEFERRED_KINDS];
    struct known_index known_index;
    struct client_tasks *client_tasks;
    struct row_cache *row_cache;       /* what the writer fetches again and again */
    struct checkpointer *checkpointer; /* NULL: the writer does it all */
    struct feed feed;
    const void **fed; /* room for the rows of one commit */
    size_t fed_capacity;
    int64_t pages_copied; /* of the WAL, by the last checkpoint of ours */
    enum checkpoint_control control;
    sqlite3_stmt *begin, *commit, *rollback, *idem_insert, *idem_drop, *number_put, *number_drop, *list_block,
        *list_next, *list_put, *list_drop, *replace[SQLITE_REPLACED];
    char *path, *vfs;
    int64_t timeout_ms;
    struct high_water position; /* of the last commit */
    int mark_fd;                /* -1: no mark is kept */
    struct sqlite_file_id database_file, wal_file;
    bool watches, is_gone; /* the files, or what was opened is no longer at its path */
};

struct sqlite_reader {
    struct reader base;
    struct sqlite_connection connection;
    bool in_snapshot;
    struct deferred_reader deferred[DEFERRED_KINDS];
    sqlite3_stmt *begin, *end, *chunk, *log_pieces, *list, *listing_blocks, *scan_log, *scan_list, *scan_idem,
        *number, *next_chunk, *check;
};

/* The one place SQLite's codes become ours. */
enum err_code sqlite_err(sqlite3 *db, int rc, const char *doing, struct err *err);
enum err_code sqlite_run(sqlite3 *db, const char *sql, struct err *err);
enum err_code sqlite_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **ret, struct err *err);
/* The first number of a query's first row; 0 when there is none. */
enum err_code sqlite_number(sqlite3 *db, const char *sql, int64_t *ret, struct err *err);
/* Steps a statement that gives no row, then resets it. */
enum err_code sqlite_step_done(sqlite3 *db, sqlite3_stmt *q, const char *doing, struct err *err);

enum err_code connection_open(struct sqlite_connection *c, const char *path, const char *vfs, bool writer,
                              int64_t timeout_ms, struct err *err);
void connection_close(struct sqlite_connection *c);

/* Generic rows (sqlite_rows.c). */
enum err_code rows_fetch(struct sqlite_connection *c, const struct table *t, void *row, struct arena *a,
                         bool *ret_found, struct err *err);
enum err_code rows_write(struct sqlite_connection *c, const struct row_change *change, struct err *err);
enum err_code rows_scan(struct sqlite_connection *c, const struct table *t, store_row_fn *fn, void *arg,
                        struct err *err);
enum err_code rows_of_client(struct sqlite_connection *c, const struct table *t, int64_t client,
                             store_row_fn *fn, void *arg, struct err *err);
enum err_code rows_range(struct sqlite_connection *c, const struct table *t, const void *from, size_t max,
                         store_row_fn *fn, void *arg, struct err *err);

/* Migrations (sqlite_migrate.c). */
enum err_code sqlite_migrate(sqlite3 *db, struct err *err);
enum err_code sqlite_schema_make(sqlite3 *db, struct err *err); /* sqlite_schema.c */
enum err_code sqlite_check_version(sqlite3 *db, struct err *err);

/* Commit (sqlite_commit.c). */
enum err_code sqlite_commit_prepare(struct sqlite_store *s, struct err *err);
enum err_code sqlite_commit_changes(struct store *base, const struct change_set *c, struct err *err);
/* One transaction from the first read of a batch to its commit: a read outside of one takes and returns
 * locks of the file, which costs more than to find a row. */
enum err_code sqlite_begin(struct sqlite_store *s, struct err *err); /* unless it has begun */
void sqlite_abandon(struct store *base);
enum err_code sqlite_probe(struct store *base, struct err *err);
void sqlite_commit_close(struct sqlite_store *s);
/* Room for so many pointers, good until the next call. */
const void **sqlite_fed_room(struct sqlite_store *s, size_t count);

/* Makes the WAL's file so long, where that can be done (sqlite_wal_ahead.c). Before the first commit. */
void wal_write_ahead(struct sqlite_store *s, int64_t bytes);

/* Frames of a commit are written to the WAL together (sqlite_wal_writes.c). For synchronous=FULL alone. */
enum err_code wal_gather_writes(sqlite3 *db, struct err *err);

/* Checkpoints (sqlite_checkpoint.c). The pragma sets `synchronous` as the writer has it. */
enum err_code checkpointer_start(struct sqlite_store *s, const char *sync_pragma, struct err *err);
void checkpointer_stop(struct sqlite_store *s); /* also when none was started */
enum err_code sqlite_tend(struct store *base, bool idle, struct err *err);
/* After each commit: how long the WAL is. */
void checkpoint_saw_commit(struct sqlite_store *s, int pages);

/* Number of the last commit, the mark outside, the files (sqlite_position.c). Before anything is opened for
 * writing: *ret_loss is what is missing and accepted. */
enum err_code position_check(const struct sqlite_options *o, struct err *ret_loss, struct err *err);
enum err_code position_open(struct sqlite_store *s, enum high_water_mode mode, struct err *err);
void position_committed(struct sqlite_store *s);
void position_close(struct sqlite_store *s);
enum err_code sqlite_watch(struct store *base, struct err *err);
enum err_code sqlite_is_gone(const struct sqlite_store *s, struct err *err); /* as the last watch saw it */

/* Listing (sqlite_list.c, sqlite_list_write.c). */
int list_entry_order(const struct list_entry *x, const struct list_entry *y); /* by client, bucket, id */
enum err_code list_damaged(int64_t first, struct err *err);
/* Words in their order, of each key one. */
enum err_code list_merge(struct sqlite_store *s, const struct listing_word *words, size_t count,
                         struct err *err);
enum err_code list_read(struct reader *r, const struct list_query *q, int64_t *ret_ids, size_t *ret_count,
                        struct err *err);
enum err_code list_scan(struct reader *r, store_list_fn *fn, void *arg, struct err *err);

/* Counters (sqlite_counts.c): rows of client_stats with the deferred words laid over them. */
enum err_code counts_fetch(struct sqlite_connection *c, sqlite3_stmt *blocks, struct stats_row *row,
                           struct arena *a, bool *ret_found, struct err *err);
enum err_code counts_scan(struct sqlite_connection *c, sqlite3_stmt *blocks, store_row_fn *fn, void *arg,
                          struct err *err);

/* Readers (sqlite_reader.c). */
enum err_code sqlite_reader_open(struct store *base, struct reader **ret_reader, struct err *err);
extern const struct store_ops store_sqlite_ops;

#endif
