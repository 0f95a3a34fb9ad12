/* Readers: a connection each, a snapshot is a transaction. BEGIN goes out with the first read, and nobody
 * waits for its end. */
#include <stdlib.h>

#include "base/must.h"
#include "store/postgres/postgres_internal.h"

#include "base/banned.h"

/* A fault that a running server meets is an outage to its callers. */
static enum err_code open_reader(const struct postgres_options *o, const struct store *of,
                                 struct pg_reader **ret_reader, struct err *err)
{
    struct pg_reader *r = must_alloc(sizeof *r);
    r->base.ops = &store_postgres_ops;
    link_init(&r->link, o);
    r->is_served = r->link.follows = of && of->served;
    if (link_open(&r->link, err) != ERR_OK || postgres_schema_check(&r->link, err) != ERR_OK) {
        if (r->link.remedy && !of)
            err->code = ERR_CONFIG_INVALID;
        postgres_reader_close(&r->base);
        return err->code;
    }
    *ret_reader = r;
    return ERR_OK;
}

enum err_code postgres_reader_open(struct store *base, struct reader **ret_reader, struct err *err)
{
    const struct pg_link *l = &((struct postgres_store *)base)->link;
    struct postgres_options o = {.url = l->url, .timeout_ms = l->timeout_ms};
    struct pg_reader *r;
    if (open_reader(&o, base, &r, err) != ERR_OK)
        return err->code;
    r->base.store = base;
    *ret_reader = &r->base;
    return ERR_OK;
}

enum err_code store_open_postgres_reader(const struct postgres_options *o, struct reader **ret_reader,
                                         struct err *err)
{
    struct pg_reader *r;
    if (open_reader(o, NULL, &r, err) != ERR_OK)
        return err->code;
    *ret_reader = &r->base;
    return ERR_OK;
}

void postgres_reader_close(struct reader *base)
{
    struct pg_reader *r = (struct pg_reader *)base;
    link_free(&r->link);
    free(r);
}

enum err_code postgres_reader_begin(struct reader *base, struct err *err)
{
    struct pg_reader *r = (struct pg_reader *)base;
    MUST(!r->begun);
    if (link_open(&r->link, err) != ERR_OK)
        return err->code;
    r->begun = true;
    return ERR_OK;
}

void postgres_reader_end(struct reader *base)
{
    struct pg_reader *r = (struct pg_reader *)base;
    r->begun = false;
    link_rollback(&r->link);
}

enum err_code postgres_reader_ready(struct pg_reader *r, struct err *err)
{
    MUST(r->begun);
    if (!link_is_open(&r->link)) /* lost since the snapshot began */
        return link_lost(&r->link, "reading", err);
    if (r->link.in_transaction)
        return ERR_OK;
    link_params(&r->link);
    link_send(&r->link, PG_SNAPSHOT);
    r->link.in_transaction = true;
    return ERR_OK;
}

enum err_code postgres_reader_row(struct reader *base, const struct table *t, void *row, struct arena *a,
                                  bool *ret_found, struct err *err)
{
    struct pg_reader *r = (struct pg_reader *)base;
    if (postgres_reader_ready(r, err) != ERR_OK)
        return err->code;
    return postgres_row(&r->link, t, false, row, a, ret_found, err);
}

enum err_code postgres_reader_rows(struct reader *base, struct load_row *rows, size_t count, struct arena *a,
                                   struct err *err)
{
    struct pg_reader *r = (struct pg_reader *)base;
    if (postgres_reader_ready(r, err) != ERR_OK)
        return err->code;
    struct pg_row_groups g = {.locks = false};
    for (size_t i = 0; i < count; i++)
        MUST(rows[i].table != &table_stats_row); /* those come one by one, with their deltas */
    postgres_send_rows(&r->link, rows, count, &g, a);
    if (link_run(&r->link, "rows", err) != ERR_OK)
        return err->code;
    postgres_take_rows(&r->link, rows, count, &g, a);
    link_clear(&r->link);
    return ERR_OK;
}

enum err_code postgres_reader_range(struct reader *base, const struct table *t, const void *from, size_t max,
                                    store_row_fn *fn, void *arg, struct err *err)
{
    struct pg_reader *r = (struct pg_reader *)base;
    if (postgres_reader_ready(r, err) != ERR_OK)
        return err->code;
    return postgres_range_of(&r->link, t, from, max, fn, arg, err);
}

enum err_code postgres_reader_chunk(struct reader *base, int64_t number, struct arena *a,
                                    struct str *ret_chunk, struct err *err)
{
    struct pg_reader *r = (struct pg_reader *)base;
    if (postgres_reader_ready(r, err) != ERR_OK)
        return err->code;
    params_int(link_params(&r->link), number);
    size_t n = link_send(&r->link, PG_CHUNK);
    if (link_run(&r->link, "log", err) != ERR_OK)
        return err->code;
    const PGresult *found = link_result(&r->link, n);
    *ret_chunk = PQntuples(found) ? arena_str(a, value_bytes(found, 0, 0)) : STR_ABSENT;
    link_clear(&r->link);
    return ERR_OK;
}

/* --- listings -------------------------------------------------------------------------------------- */

static enum err_code list_ids(struct pg_reader *r, enum pg_statement statement, const struct list_query *q,
                              const int64_t *which, int64_t *ret_ids, size_t *ret_count, struct err *err)
{
    if (postgres_reader_ready(r, err) != ERR_OK)
        return err->code;
    struct pg_params *p = link_params(&r->link);
    params_int(p, q->owner_key);
    params_int(p, q->below_id);
    params_int(p, q->from_id);
    params_int(p, (int64_t)q->limit);
    if (which)
        params_int(p, *which);
    if (statement == PG_LIVE_IN_QUEUE)
        params_text(p, q->queue);
    size_t n = link_send(&r->link, statement);
    if (link_run(&r->link, "listing", err) != ERR_OK)
        return err->code;
    const PGresult *found = link_result(&r->link, n);
    size_t count = (size_t)PQntuples(found);
    MUST(count <= q->limit);
    for (size_t i = 0; i < count; i++)
        ret_ids[i] = value_int(found, (int)i, 0);
    *ret_count = count;
    link_clear(&r->link);
    return ERR_OK;
}

enum err_code postgres_reader_list(struct reader *base, const struct list_query *q, int64_t *ret_ids,
                                   size_t *ret_count, struct err *err)
{
    struct pg_reader *r = (struct pg_reader *)base;
    int64_t bucket = q->bucket, state = bucket - 1;
    if (bucket == LIST_ALL)
        return list_ids(r, PG_LIST_JOBS, q, NULL, ret_ids, ret_count, err);
    if (bucket < LIST_DELIVERIES)
        return list_ids(r, PG_LIST_ENDS, q, &state, ret_ids, ret_count, err);
    return list_ids(r, PG_LIST_OTHER, q, &bucket, ret_ids, ret_count, err);
}

enum err_code postgres_reader_live(struct reader *base, const struct list_query *q, int64_t state,
                                   int64_t *ret_ids, size_t *ret_count, struct err *err)
{
    struct pg_reader *r = (struct pg_reader *)base;
    if (q->queue.ptr)
        return list_ids(r, PG_LIVE_IN_QUEUE, q, &state, ret_ids, ret_count, err);
    return list_ids(r, state < 0 ? PG_LIVE : PG_LIVE_IN_STATE, q, state < 0 ? NULL : &state, ret_ids,
                    ret_count, err);
}

enum err_code postgres_reader_jobs(struct reader *base, const struct list_query *q, int64_t state,
                                   int64_t *ret_ids, size_t *ret_count, struct err *err)
{
    struct pg_reader *r = (struct pg_reader *)base;
    return list_ids(r, state < 0 ? PG_ALL_JOBS : PG_ALL_LIVE, q, state < 0 ? NULL : &state, ret_ids,
                    ret_count, err);
}

enum err_code postgres_reader_queues(struct reader *base, int64_t client, store_queue_fn *fn, void *arg,
                                     struct err *err)
{
    struct pg_reader *r = (struct pg_reader *)base;
    if (postgres_reader_ready(r, err) != ERR_OK)
        return err->code;
    struct pg_params *p = link_params(&r->link);
    if (client)
        params_int(p, client);
    size_t n = link_send(&r->link, client ? PG_QUEUES_OF_CLIENT : PG_QUEUES);
    if (link_run(&r->link, "queues", err) != ERR_OK)
        return err->code;
    const PGresult *found = link_result(&r->link, n);
    for (int i = 0; i < PQntuples(found); i++) {
        struct queue_sum sum = {.client = value_int(found, i, 0),
                                .queue = value_bytes(found, i, 1),
                                .queued = value_int(found, i, 2),
                                .running = value_int(found, i, 3),
                                .scheduled = value_int(found, i, 4),
                                .oldest_us = value_int(found, i, 5)};
        if (!fn(&sum, arg))
            break;
    }
    link_clear(&r->link);
    return ERR_OK;
}
