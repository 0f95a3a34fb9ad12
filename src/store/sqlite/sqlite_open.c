/* Opening: migrate, then read back what lives in memory: live tasks, idempotency hashes, counters. */
#include <stdio.h>
#include <stdlib.h>

#include "base/must.h"
#include "lifecycle/client_lifecycle.h"
#include "store/row_rules.h"
#include "store/sqlite/sqlite_internal.h"
#include "store/table_sql.h"

#include "base/banned.h"

enum { ROW_CACHE_BYTES = 8 << 20 };

struct loading {
    struct sqlite_store *store;
    int64_t wall_ms;
    const char *broken; /* rule that a row breaks: nothing is loaded beyond it */
    int64_t broken_id;
};

static bool load_task(const void *row, void *arg)
{
    struct loading *l = arg;
    const struct task_row *r = row;
    l->broken = task_broken_rule(r);
    l->broken_id = r->id;
    if (l->broken)
        return false;
    struct task *t = live_task_new(l->store->base.live, r);
    live_set_worker(l->store->base.live, t, r->worker, 0);
    t->run_until_ms = INT64_MAX; /* the kernel grants leases and limits anew at start */
    live_place(l->store->base.live, t, l->wall_ms);
    if (task_is_job(r))
        client_tasks_put(l->store->client_tasks, r);
    return true;
}

static bool load_hook(const void *row, void *arg)
{
    hooks_put(&((struct loading *)arg)->store->base.hooks, row);
    return true;
}

static bool load_timer(const void *row, void *arg)
{
    timers_put(&((struct loading *)arg)->store->base.timers, row);
    return true;
}

static bool load_state(const void *row, void *arg)
{
    const struct client_state_row *r = row;
    live_suspend(((struct loading *)arg)->store->base.live, r->client, r->state == CLIENT_SUSPENDED);
    return true;
}

static bool load_queue(const void *row, void *arg)
{
    struct store *s = &((struct loading *)arg)->store->base;
    const struct queue_row *r = row;
    queue_settings_put(&s->queues, r);
    live_pause(s->live, r->client, r->queue, r->paused != 0);
    return true;
}

static bool load_counts(const void *row, void *arg)
{
    struct loading *l = arg;
    const struct stats_row *r = row;
    if (r->client <= 0 || r->client >= CLIENT_NUMBER_MAX) {
        l->broken = "the client is a known number";
        l->broken_id = r->client;
        return false;
    }
    struct client_counts counts;
    counts_from_bytes(&counts, r->counts);
    if (counts_unfinished(&counts) && !counts_find(&l->store->base.counts, r->client))
        *counts_of(&l->store->base.counts, r->client) = counts;
    return true;
}

/* A later word than the table's: it lies beside the log. */
static void load_word(const struct listing_word *w, void *arg)
{
    if (w->counts.ptr)
        counts_from_bytes(counts_of(&((struct loading *)arg)->store->base.counts, w->entry.owner_key),
                          w->counts);
}

static enum err_code load_all_counts(struct loading *l, struct err *err)
{
    if (listing_blocks_each(l->store->writer.db, l->store->deferred.blocks, load_word, l, err) != ERR_OK)
        return err->code;
    return rows_scan(&l->store->writer, &table_stats_row, load_counts, l, err);
}

static enum err_code load_idem(struct sqlite_store *s, struct err *err)
{
    sqlite3_stmt *q = NULL;
    if (sqlite_prepare(s->writer.db, "SELECT id,h FROM idem", &q, err) != ERR_OK)
        return err->code;
    int rc;
    while ((rc = sqlite3_step(q)) == SQLITE_ROW)
        idem_put(&s->base.idem, (uint64_t)sqlite3_column_int64(q, 1), sqlite3_column_int64(q, 0));
    sqlite3_finalize(q);
    return rc == SQLITE_DONE ? ERR_OK : sqlite_err(s->writer.db, rc, "idem", err);
}

static enum err_code load_last_id(struct sqlite_store *s, struct err *err)
{
    struct strbuf sql = {0};
    table_sql_last_id(&sql);
    enum err_code code = sqlite_number(s->writer.db, sql.ptr, &s->base.last_id, err);
    strbuf_free(&sql);
    return code;
}

static enum err_code load(struct sqlite_store *s, int64_t wall_ms, struct err *err)
{
    struct loading l = {.store = s, .wall_ms = wall_ms};
    struct store *b = &s->base;
    b->live = live_new();
    s->client_tasks = client_tasks_new();
    s->row_cache = row_cache_new(ROW_CACHE_BYTES);
    if (log_load(s, err) != ERR_OK || load_last_id(s, err) != ERR_OK ||
        sqlite_number(s->writer.db, "SELECT coalesce(max(num),0)+1 FROM clients", &b->next_client, err) !=
            ERR_OK ||
        sqlite_number(s->writer.db, "SELECT max(coalesce(max(num),0)+1,1073741824) FROM tenants",
                      &b->next_tenant, err) != ERR_OK ||
        rows_scan(&s->writer, &table_client_state_row, load_state, &l, err) != ERR_OK ||
        rows_scan(&s->writer, &table_queue_row, load_queue, &l, err) != ERR_OK ||
        rows_scan(&s->writer, &table_task_row, load_task, &l, err) != ERR_OK ||
        rows_scan(&s->writer, &table_webhook_row, load_hook, &l, err) != ERR_OK ||
        rows_scan(&s->writer, &table_timer_row, load_timer, &l, err) != ERR_OK ||
        load_all_counts(&l, err) != ERR_OK || load_idem(s, err) != ERR_OK ||
        deferred_load(s, err) != ERR_OK || deferred_rows_load(s, err) != ERR_OK ||
        known_index_tend(s, err) != ERR_OK)
        return err->code;
    if (l.broken)
        return err_set(err, ERR_STORE_CORRUPT,
                       "row %lld of tasks or client_stats is damaged (broken rule: %s); restore a backup",
                       (long long)l.broken_id, l.broken);
    return ERR_OK;
}

static int wal_grew(void *arg, sqlite3 *db, const char *name, int pages)
{
    (void)db;
    (void)name;
    checkpoint_saw_commit(arg, pages);
    return SQLITE_OK;
}

static enum err_code open_writer(struct sqlite_store *s, const struct sqlite_options *o, struct err *err)
{
    char sync[48];
    snprintf(sync, sizeof sync, "PRAGMA synchronous=%s", o->synchronous ? o->synchronous : "FULL");
    if (connection_open(&s->writer, o->path, o->vfs, true, o->timeout_ms, err) != ERR_OK ||
        sqlite_run(s->writer.db, sync, err) != ERR_OK || sqlite_migrate(s->writer.db, err) != ERR_OK ||
        sqlite_commit_prepare(s, err) != ERR_OK)
        return err->code;
    wal_write_ahead(s, o->wal_ahead_bytes);
    if (!o->synchronous && wal_gather_writes(s->writer.db, err) != ERR_OK)
        return err->code;
    sqlite3_wal_hook(s->writer.db, wal_grew, s);
    if (o->checkpoint_thread && checkpointer_start(s, sync, err) != ERR_OK)
        return err->code;
    if (load(s, o->wall_ms, err) != ERR_OK)
        return err->code;
    return position_open(s, o->high_water, err);
}

enum err_code store_open_sqlite(const struct sqlite_options *o, struct store **ret_store, struct err *err)
{
    /* Without it every allocation inside SQLite takes one lock of the whole process. Refused, and no
     * harm done, once SQLite has been used. */
    (void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    struct err loss;
    if (position_check(o, &loss, err) != ERR_OK)
        return err->code;
    struct sqlite_store *s = must_alloc(sizeof *s);
    s->base.ops = &store_sqlite_ops;
    s->base.loss = loss;
    s->mark_fd = -1;
    s->path = must_strdup(o->path);
    s->vfs = o->vfs ? must_strdup(o->vfs) : NULL;
    s->timeout_ms = o->timeout_ms;
    s->control = o->control;
    deferred_rows_init(s, o);
    if (open_writer(s, o, err) != ERR_OK) {
        store_sqlite_ops.close(&s->base);
        return err->code;
    }
    *ret_store = &s->base;
    return ERR_OK;
}

enum err_code store_backup_sqlite(const char *from_path, const char *to_path, struct err *err)
{
    struct sqlite_connection from;
    if (connection_open(&from, from_path, NULL, false, 10000, err) != ERR_OK)
        return err->code;
    enum err_code code = sqlite_check_version(from.db, err);
    if (code == ERR_OK)
        code = sqlite_run(from.db, "PRAGMA query_only=0", err); /* VACUUM INTO writes the other file only */
    sqlite3_stmt *q = NULL;
    if (code == ERR_OK)
        code = sqlite_prepare(from.db, "VACUUM INTO ?", &q, err);
    if (code == ERR_OK) {
        sqlite3_bind_text(q, 1, to_path, -1, SQLITE_STATIC);
        code = sqlite_step_done(from.db, q, "backup", err);
    }
    sqlite3_finalize(q);
    connection_close(&from);
    return code;
}
