/* Rows by key, for writers and readers; and what memory holds that is not the batch's own: webhooks,
 * which clients are suspended, settings of queues. */
#include "base/must.h"
#include "store/postgres/postgres_internal.h"

#include "base/banned.h"

enum { RANGE_ARENA_BYTES = 1 << 12 };

/* Rows [first, end) of a result are one row of client_stats, once per delta (absent: none). Without any it is
 * given as it is stored. */
struct str postgres_counts_sum(const PGresult *r, int counts_column, int delta_column, int first, int end,
                               struct arena *a)
{
    struct str stored = value_bytes(r, first, counts_column);
    if (PQgetisnull(r, first, delta_column))
        return arena_str(a, stored);
    struct client_counts *sum = ARENA_NEW(a, struct client_counts);
    counts_from_bytes(sum, stored);
    for (int i = first; i < end; i++)
        counts_add(sum, value_bytes(r, i, delta_column));
    return counts_bytes(sum);
}

enum err_code postgres_row(struct pg_link *l, const struct table *t, bool locks, void *row, struct arena *a,
                           bool *ret_found, struct err *err)
{
    struct pg_params *p = link_params(l);
    for (unsigned i = 0; i < t->key_count; i++)
        params_column(p, &t->columns[i], row);
    bool is_counts = t == &table_stats_row;
    size_t n = link_send(l, is_counts ? PG_COUNTS : pg_of_table(t, locks ? PG_ROW_LOCKED : PG_ROW));
    if (link_run(l, t->name, err) != ERR_OK)
        return err->code;
    const PGresult *r = link_result(l, n);
    *ret_found = PQntuples(r) > 0;
    if (*ret_found && is_counts)
        ((struct stats_row *)row)->counts = postgres_counts_sum(r, 1, 2, 0, PQntuples(r), a);
    else if (*ret_found)
        value_row(r, 0, 0, t, row, a, true);
    link_clear(l);
    return ERR_OK;
}

enum err_code postgres_fetch(struct store *base, const struct table *t, void *row, struct arena *a,
                             bool *ret_found, struct err *err)
{
    struct postgres_store *s = (struct postgres_store *)base;
    if (s->batch_broken)
        return err_conflict(err, "the batch's transaction is gone");
    if (postgres_ready(s, err) != ERR_OK)
        return err->code;
    link_begin(&s->link);
    if (postgres_row(&s->link, t, pg_is_locked(t), row, a, ret_found, err) != ERR_OK)
        return postgres_failed(s, err);
    return ERR_OK;
}

/* The answer is kept while the callback reads other things through the same connection. */
enum err_code postgres_range_of(struct pg_link *l, const struct table *t, const void *from, size_t max,
                                store_row_fn *fn, void *arg, struct err *err)
{
    char row[512] __attribute__((aligned(16)));
    struct pg_params *p = link_params(l);
    MUST(t->row_size <= sizeof row && t->key_count == 2 && t->columns[0].type == COLUMN_INT);
    params_column(p, &t->columns[0], from);
    params_column(p, &t->columns[1], from);
    params_int(p, (int64_t)max);
    size_t n = link_send(l, pg_of_table(t, PG_RANGE));
    if (link_run(l, t->name, err) != ERR_OK)
        return err->code;
    PGresult *found = l->results[n];
    (void)link_result(l, n);
    l->results[n] = NULL;
    link_clear(l);
    struct arena *a = arena_new(RANGE_ARENA_BYTES);
    for (int i = 0; i < PQntuples(found); i++) {
        value_row(found, i, 0, t, row, a, false);
        if (!fn(row, arg))
            break;
        arena_reset(a);
    }
    arena_free(a);
    PQclear(found);
    return ERR_OK;
}

enum err_code postgres_range(struct store *base, const struct table *t, const void *from, size_t max,
                             store_row_fn *fn, void *arg, struct err *err)
{
    struct postgres_store *s = (struct postgres_store *)base;
    if (s->batch_broken)
        return err_conflict(err, "the batch's transaction is gone");
    if (postgres_ready(s, err) != ERR_OK)
        return err->code;
    link_begin(&s->link);
    if (postgres_range_of(&s->link, t, from, max, fn, arg, err) != ERR_OK)
        return postgres_failed(s, err);
    return ERR_OK;
}

void postgres_abandon(struct store *base)
{
    struct postgres_store *s = (struct postgres_store *)base;
    link_rollback(&s->link);
    s->batch_broken = false;
    s->load_now_ms = 0;
}

static enum err_code read_suspended(struct postgres_store *s, struct err *err)
{
    link_params(&s->link);
    size_t n = link_send_sql(&s->link, "SELECT client FROM client_states WHERE state=1");
    if (link_run(&s->link, "client_states", err) != ERR_OK)
        return err->code;
    const PGresult *r = link_result(&s->link, n);
    live_resume_all(s->base.live);
    for (int i = 0; i < PQntuples(r); i++)
        live_suspend(s->base.live, value_int(r, i, 0), true);
    link_clear(&s->link);
    return ERR_OK;
}

/* After the suspended ones, which let every queue go on. */
static enum err_code read_queues(struct postgres_store *s, struct err *err)
{
    struct strbuf sql = {0};
    strbuf_add_text(&sql, "SELECT ");
    pg_column_list(&table_queue_row, "", 0, &sql);
    strbuf_add_text(&sql, " FROM queues");
    link_params(&s->link);
    size_t n = link_send_sql(&s->link, sql.ptr);
    strbuf_free(&sql);
    if (link_run(&s->link, "queues", err) != ERR_OK)
        return err->code;
    const PGresult *r = link_result(&s->link, n);
    queue_settings_free(&s->base.queues);
    for (int i = 0; i < PQntuples(r); i++) {
        struct queue_row row;
        value_row(r, i, 0, &table_queue_row, &row, s->scratch, false);
        queue_settings_put(&s->base.queues, &row);
        if (row.paused)
            live_pause(s->base.live, row.client, row.queue, true);
    }
    link_clear(&s->link);
    return ERR_OK;
}

/* Webhooks are few and every batch needs them: all are in memory, and a number that every change of one
 * raises tells when to read them again. So it is with suspended clients and settings of queues. */
enum err_code postgres_read_hooks(struct postgres_store *s, int64_t version, struct err *err)
{
    struct strbuf sql = {0};
    strbuf_add_text(&sql, "SELECT ");
    pg_column_list(&table_webhook_row, "", 0, &sql);
    strbuf_add_text(&sql, " FROM webhooks ORDER BY id");
    link_params(&s->link);
    size_t n = link_send_sql(&s->link, sql.ptr);
    strbuf_free(&sql);
    if (link_run(&s->link, "webhooks", err) != ERR_OK)
        return err->code;
    const PGresult *r = link_result(&s->link, n);
    hooks_free(&s->base.hooks);
    for (int i = 0; i < PQntuples(r); i++) {
        struct webhook_row row;
        value_row(r, i, 0, &table_webhook_row, &row, s->scratch, false);
        hooks_put(&s->base.hooks, &row);
    }
    link_clear(&s->link);
    if (read_suspended(s, err) != ERR_OK || read_queues(s, err) != ERR_OK)
        return err->code;
    s->hooks_version = version;
    return ERR_OK;
}
