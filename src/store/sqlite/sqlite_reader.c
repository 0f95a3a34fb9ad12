/* Readers: one read-only connection each, snapshots by deferred transactions. */
#include <stdlib.h>

#include "base/must.h"
#include "store/sqlite/sqlite_internal.h"

#include "base/banned.h"

static const struct {
    size_t offset;
    const char *sql;
} statements[] = {
    {offsetof(struct sqlite_reader, begin), "BEGIN"},
    {offsetof(struct sqlite_reader, end), "COMMIT"},
    {offsetof(struct sqlite_reader, chunk), "SELECT data FROM log WHERE g=?"},
    {offsetof(struct sqlite_reader, list),
     "SELECT first,ids FROM list WHERE client=? AND bucket=? AND first<? ORDER BY first DESC"},
    {offsetof(struct sqlite_reader, log_pieces), LOG_PIECES_SQL},
    {offsetof(struct sqlite_reader, listing_blocks), LISTING_BLOCKS_SQL},
    {offsetof(struct sqlite_reader, scan_log), "SELECT g,data FROM log WHERE g>=? ORDER BY g"},
    {offsetof(struct sqlite_reader, scan_list),
     "SELECT client,bucket,first,ids FROM list ORDER BY client,bucket,first"},
    {offsetof(struct sqlite_reader, scan_idem), "SELECT id,h FROM idem ORDER BY id"},
    {offsetof(struct sqlite_reader, number), "SELECT value FROM marks WHERE name=?"},
    {offsetof(struct sqlite_reader, next_chunk), NEXT_CHUNK_SQL},
    {offsetof(struct sqlite_reader, check), "PRAGMA quick_check"},
};

static sqlite3_stmt **slot_of(struct sqlite_reader *r, size_t i)
{
    return (sqlite3_stmt **)(void *)((char *)r + statements[i].offset);
}

static void reader_close(struct reader *base)
{
    struct sqlite_reader *r = (struct sqlite_reader *)base;
    for (size_t i = 0; i < LENGTH_OF(statements); i++)
        sqlite3_finalize(*slot_of(r, i));
    deferred_reader_close(r);
    connection_close(&r->connection);
    free(r);
}

static enum err_code open_reader(const char *path, const char *vfs, int64_t timeout_ms,
                                 struct sqlite_reader **ret_reader, struct err *err)
{
    struct sqlite_reader *r = must_alloc(sizeof *r);
    r->base.ops = &store_sqlite_ops;
    enum err_code code = connection_open(&r->connection, path, vfs, false, timeout_ms, err);
    if (code == ERR_OK)
        code = sqlite_check_version(r->connection.db, err);
    for (size_t i = 0; code == ERR_OK && i < LENGTH_OF(statements); i++)
        code = sqlite_prepare(r->connection.db, statements[i].sql, slot_of(r, i), err);
    if (code == ERR_OK)
        code = deferred_reader_prepare(r, err);
    if (code != ERR_OK) {
        reader_close(&r->base);
        return code;
    }
    *ret_reader = r;
    return ERR_OK;
}

enum err_code sqlite_reader_open(struct store *base, struct reader **ret_reader, struct err *err)
{
    struct sqlite_store *s = (struct sqlite_store *)base;
    struct sqlite_reader *r;
    if (open_reader(s->path, s->vfs, s->timeout_ms, &r, err) != ERR_OK)
        return err->code;
    r->base.store = base;
    *ret_reader = &r->base;
    return ERR_OK;
}

enum err_code store_open_sqlite_reader(const struct sqlite_options *o, struct reader **ret_reader,
                                       struct err *err)
{
    struct sqlite_reader *r;
    if (open_reader(o->path, o->vfs, o->timeout_ms, &r, err) != ERR_OK)
        return err->code;
    *ret_reader = &r->base;
    return ERR_OK;
}

static enum err_code reader_begin(struct reader *base, struct err *err)
{
    struct sqlite_reader *r = (struct sqlite_reader *)base;
    if (sqlite_step_done(r->connection.db, r->begin, "read", err) != ERR_OK)
        return err->code;
    r->in_snapshot = true;
    return ERR_OK;
}

static void reader_end(struct reader *base)
{
    struct sqlite_reader *r = (struct sqlite_reader *)base;
    struct err ignored; /* ending a read cannot lose anything */
    (void)!sqlite_step_done(r->connection.db, r->end, "read", &ignored);
    deferred_reader_forget(r);
    r->in_snapshot = false;
}

/* Some rows lie in two places: in their table, and in what waits to be merged into it. They are read by two
 * statements, which must see the same state. */
static bool lies_in_two_places(const struct table *t)
{
    return t == &table_stats_row || deferred_kind_of(t) >= 0;
}

static enum err_code begin_unless_begun(struct reader *base, bool *ret_begun, struct err *err)
{
    *ret_begun = !((struct sqlite_reader *)base)->in_snapshot;
    return *ret_begun ? reader_begin(base, err) : ERR_OK;
}

static enum err_code begin_for(struct reader *base, const struct table *t, bool *ret_begun, struct err *err)
{
    *ret_begun = false;
    return lies_in_two_places(t) ? begin_unless_begun(base, ret_begun, err) : ERR_OK;
}

static enum err_code read_row(struct sqlite_reader *r, const struct table *t, void *row, struct arena *a,
                              bool *ret_found, struct err *err)
{
    if (t == &table_stats_row)
        return counts_fetch(&r->connection, r->listing_blocks, row, a, ret_found, err);
    int kind = deferred_kind_of(t);
    return kind >= 0 ? deferred_read(r, kind, row, a, ret_found, err)
                     : rows_fetch(&r->connection, t, row, a, ret_found, err);
}

static enum err_code reader_row(struct reader *base, const struct table *t, void *row, struct arena *a,
                                bool *ret_found, struct err *err)
{
    bool begun;
    if (begin_for(base, t, &begun, err) != ERR_OK)
        return err->code;
    enum err_code code = read_row((struct sqlite_reader *)base, t, row, a, ret_found, err);
    if (begun)
        reader_end(base);
    return code;
}

static enum err_code read_range(struct sqlite_reader *r, const struct table *t, const void *from, size_t max,
                                store_row_fn *fn, void *arg, struct err *err)
{
    int kind = deferred_kind_of(t);
    return kind >= 0 ? deferred_read_range(r, kind, from, max, fn, arg, err)
                     : rows_range(&r->connection, t, from, max, fn, arg, err);
}

static enum err_code reader_range(struct reader *base, const struct table *t, const void *from, size_t max,
                                  store_row_fn *fn, void *arg, struct err *err)
{
    bool begun;
    if (begin_for(base, t, &begun, err) != ERR_OK)
        return err->code;
    enum err_code code = read_range((struct sqlite_reader *)base, t, from, max, fn, arg, err);
    if (begun)
        reader_end(base);
    return code;
}

static enum err_code sqlite_range(struct store *base, const struct table *t, const void *from, size_t max,
                                  store_row_fn *fn, void *arg, struct err *err)
{
    struct sqlite_store *s = (struct sqlite_store *)base;
    if (sqlite_begin(s, err) != ERR_OK)
        return err->code;
    int kind = deferred_kind_of(t);
    return kind >= 0 ? deferred_find_range(s, kind, from, max, fn, arg, err)
                     : rows_range(&s->writer, t, from, max, fn, arg, err);
}

/* --- the log: whole chunks are rows of `log`, the open one lies in pieces (sqlite_log.h) ------------ */

static enum err_code read_chunk(struct sqlite_reader *r, int64_t number, struct arena *a,
                                struct str *ret_chunk, struct err *err)
{
    struct open_chunk open;
    sqlite3_bind_int64(r->chunk, 1, number);
    int rc = sqlite3_step(r->chunk);
    *ret_chunk = STR_ABSENT;
    if (rc == SQLITE_ROW) {
        struct str data = {sqlite3_column_blob(r->chunk, 0), (size_t)sqlite3_column_bytes(r->chunk, 0)};
        *ret_chunk = arena_str(a, data);
    }
    sqlite3_reset(r->chunk);
    if (rc != SQLITE_DONE)
        return rc == SQLITE_ROW ? ERR_OK : sqlite_err(r->connection.db, rc, "log", err);
    if (open_chunk_read(r->connection.db, r->log_pieces, &open, err) != ERR_OK)
        return err->code;
    if (open.is_open && open.number == number)
        *ret_chunk = arena_str(a, (struct str){open.bytes, open.len});
    return ERR_OK;
}

static enum err_code reader_chunk(struct reader *base, int64_t number, struct arena *a, struct str *ret_chunk,
                                  struct err *err)
{
    bool begun;
    if (begin_unless_begun(base, &begun, err) != ERR_OK)
        return err->code;
    enum err_code code = read_chunk((struct sqlite_reader *)base, number, a, ret_chunk, err);
    if (begun)
        reader_end(base);
    return code;
}

static enum err_code scan_chunks(struct sqlite_reader *r, int64_t from, store_chunk_fn *fn, void *arg,
                                 struct err *err)
{
    struct open_chunk open;
    int rc;
    bool more = true;
    sqlite3_bind_int64(r->scan_log, 1, from);
    while (more && (rc = sqlite3_step(r->scan_log)) == SQLITE_ROW) {
        struct str data = {sqlite3_column_blob(r->scan_log, 1), (size_t)sqlite3_column_bytes(r->scan_log, 1)};
        more = fn(sqlite3_column_int64(r->scan_log, 0), data, arg);
    }
    sqlite3_reset(r->scan_log);
    if (!more)
        return ERR_OK;
    if (rc != SQLITE_DONE)
        return sqlite_err(r->connection.db, rc, "log", err);
    if (open_chunk_read(r->connection.db, r->log_pieces, &open, err) != ERR_OK)
        return err->code;
    if (open.is_open && open.number >= from)
        (void)fn(open.number, (struct str){open.bytes, open.len}, arg);
    return ERR_OK;
}

static enum err_code reader_scan_log(struct reader *base, int64_t from, store_chunk_fn *fn, void *arg,
                                     struct err *err)
{
    bool begun;
    if (begin_unless_begun(base, &begun, err) != ERR_OK)
        return err->code;
    enum err_code code = scan_chunks((struct sqlite_reader *)base, from, fn, arg, err);
    if (begun)
        reader_end(base);
    return code;
}

static enum err_code reader_live(struct reader *base, const struct list_query *q, int64_t state,
                                 int64_t *ret_ids, size_t *ret_count, struct err *err)
{
    (void)err;
    MUST(base->store);
    *ret_count = client_tasks_list(((struct sqlite_store *)base->store)->client_tasks, q, state, ret_ids);
    return ERR_OK;
}

static enum err_code reader_jobs(struct reader *base, const struct list_query *q, int64_t state,
                                 int64_t *ret_ids, size_t *ret_count, struct err *err)
{
    sqlite3 *db = ((struct sqlite_reader *)base)->connection.db;
    sqlite3_stmt *s = NULL;
    const char *sql = state < 0 ? "SELECT id FROM jobs WHERE id<?1 AND id>=?2 ORDER BY id DESC LIMIT ?3"
                                : "SELECT id FROM tasks WHERE id<?1 AND id>=?2 AND job_state=?4 "
                                  " ORDER BY id DESC LIMIT ?3";
    int rc;
    if (sqlite_prepare(db, sql, &s, err) != ERR_OK)
        return err->code;
    sqlite3_bind_int64(s, 1, q->below_id);
    sqlite3_bind_int64(s, 2, q->from_id);
    sqlite3_bind_int64(s, 3, (int64_t)q->limit);
    if (state >= 0)
        sqlite3_bind_int64(s, 4, state);
    for (*ret_count = 0; (rc = sqlite3_step(s)) == SQLITE_ROW && *ret_count < q->limit;)
        ret_ids[(*ret_count)++] = sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    return rc == SQLITE_DONE ? ERR_OK : sqlite_err(db, rc, "jobs", err);
}

static enum err_code reader_queues(struct reader *base, int64_t client, store_queue_fn *fn, void *arg,
                                   struct err *err)
{
    (void)err;
    MUST(base->store);
    struct queue_sum *sums;
    size_t count = client_tasks_queues(((struct sqlite_store *)base->store)->client_tasks, client, &sums);
    for (size_t i = 0; i < count && fn(&sums[i], arg); i++) {
    }
    free(sums);
    return ERR_OK;
}

static enum err_code read_all(struct sqlite_reader *r, const struct table *t, store_row_fn *fn, void *arg,
                              struct err *err)
{
    if (t == &table_stats_row)
        return counts_scan(&r->connection, r->listing_blocks, fn, arg, err);
    int kind = deferred_kind_of(t);
    return kind >= 0 ? deferred_read_all(r, kind, fn, arg, err) : rows_scan(&r->connection, t, fn, arg, err);
}

static enum err_code reader_scan(struct reader *base, const struct table *t, store_row_fn *fn, void *arg,
                                 struct err *err)
{
    bool begun;
    if (begin_for(base, t, &begun, err) != ERR_OK)
        return err->code;
    enum err_code code = read_all((struct sqlite_reader *)base, t, fn, arg, err);
    if (begun)
        reader_end(base);
    return code;
}

static enum err_code reader_of_client(struct reader *base, const struct table *t, int64_t client,
                                      store_row_fn *fn, void *arg, struct err *err)
{
    return rows_of_client(&((struct sqlite_reader *)base)->connection, t, client, fn, arg, err);
}

static enum err_code reader_scan_idem(struct reader *base, store_idem_fn *fn, void *arg, struct err *err)
{
    struct sqlite_reader *r = (struct sqlite_reader *)base;
    int rc;
    while ((rc = sqlite3_step(r->scan_idem)) == SQLITE_ROW) {
        struct idem_entry e = {.hash = (uint64_t)sqlite3_column_int64(r->scan_idem, 1),
                               .job = sqlite3_column_int64(r->scan_idem, 0)};
        if (!fn(&e, arg)) {
            rc = SQLITE_DONE;
            break;
        }
    }
    sqlite3_reset(r->scan_idem);
    return rc == SQLITE_DONE ? ERR_OK : sqlite_err(r->connection.db, rc, "idem", err);
}

static enum err_code reader_number(struct reader *base, const char *name, int64_t *ret_value, struct err *err)
{
    struct sqlite_reader *r = (struct sqlite_reader *)base;
    bool is_next = strcmp(name, STORE_NUMBER_NEXT_CHUNK) == 0;
    sqlite3_stmt *q = is_next ? r->next_chunk : r->number;
    if (!is_next)
        sqlite3_bind_text(q, 1, name, -1, SQLITE_STATIC);
    int rc = sqlite3_step(q);
    *ret_value = rc == SQLITE_ROW ? sqlite3_column_int64(q, 0) : 0;
    sqlite3_reset(q);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? ERR_OK : sqlite_err(r->connection.db, rc, "marks", err);
}

static enum err_code reader_check(struct reader *base, store_check_fn *fn, void *arg, struct err *err)
{
    struct sqlite_reader *r = (struct sqlite_reader *)base;
    int rc;
    while ((rc = sqlite3_step(r->check)) == SQLITE_ROW) {
        const char *line = (const char *)sqlite3_column_text(r->check, 0);
        if (line && !str_is(str_of(line), "ok") && !fn(line, arg)) {
            rc = SQLITE_DONE;
            break;
        }
    }
    sqlite3_reset(r->check);
    return rc == SQLITE_DONE ? ERR_OK : sqlite_err(r->connection.db, rc, "check", err);
}

/* What memory has is the latest word; a client that is not there has its counters in the table. */
static enum err_code counts_of_writer(struct sqlite_store *s, struct stats_row *row, struct arena *a,
                                      bool *ret_found, struct err *err)
{
    const struct client_counts *known = counts_find(&s->base.counts, row->client);
    if (!known)
        return rows_fetch(&s->writer, &table_stats_row, row, a, ret_found, err);
    row->counts = arena_str(a, counts_bytes(known));
    *ret_found = true;
    return ERR_OK;
}

static enum err_code store_fetch(struct store *base, const struct table *t, void *row, struct arena *a,
                                 bool *ret_found, struct err *err)
{
    struct sqlite_store *s = (struct sqlite_store *)base;
    *ret_found = row_cache_find(s->row_cache, t, row, a);
    if (*ret_found)
        return ERR_OK;
    if (sqlite_begin(s, err) != ERR_OK)
        return err->code;
    if (t == &table_stats_row)
        return counts_of_writer(s, row, a, ret_found, err);
    int kind = deferred_kind_of(t);
    if (kind >= 0)
        return deferred_find(s, kind, row, a, ret_found, err);
    enum err_code code = rows_fetch(&s->writer, t, row, a, ret_found, err);
    if (code == ERR_OK && *ret_found)
        row_cache_keep(s->row_cache, t, row);
    return code;
}

static void store_sqlite_close(struct store *base)
{
    struct sqlite_store *s = (struct sqlite_store *)base;
    checkpointer_stop(s);
    sqlite_commit_close(s);
    if (s->is_gone) /* what is at the path now is not ours to copy into, or to delete */
        sqlite3_db_config(s->writer.db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    else if (s->writer.db && s->base.live) /* the only place the WAL is ever truncated: a clean stop */
        sqlite3_wal_checkpoint_v2(s->writer.db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    connection_close(&s->writer);
    position_close(s);
    live_free(base->live);
    client_tasks_free(s->client_tasks);
    row_cache_free(s->row_cache);
    idem_free(&base->idem);
    counts_free(&base->counts);
    hooks_free(&base->hooks);
    timers_free(&base->timers);
    queue_settings_free(&base->queues);
    free(s->path);
    free(s->vfs);
    free(s);
}

const struct store_ops store_sqlite_ops = {
    .name = "sqlite",
    .fetch = store_fetch,
    .commit = sqlite_commit_changes,
    .abandon = sqlite_abandon,
    .tend = sqlite_tend,
    .probe = sqlite_probe,
    .watch = sqlite_watch,
    .close = store_sqlite_close,
    .reader_open = sqlite_reader_open,
    .reader_close = reader_close,
    .reader_begin = reader_begin,
    .reader_end = reader_end,
    .reader_row = reader_row,
    .reader_chunk = reader_chunk,
    .reader_list = list_read,
    .reader_live = reader_live,
    .reader_jobs = reader_jobs,
    .reader_queues = reader_queues,
    .reader_scan = reader_scan,
    .range = sqlite_range,
    .reader_range = reader_range,
    .reader_scan_log = reader_scan_log,
    .reader_of_client = reader_of_client,
    .reader_scan_list = list_scan,
    .reader_scan_idem = reader_scan_idem,
    .reader_number = reader_number,
    .reader_check = reader_check,
};
