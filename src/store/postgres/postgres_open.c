/* Opening and closing a handle, and the verbs it has. */
#include <stdlib.h>

#include "base/must.h"
#include "store/postgres/postgres_internal.h"
#include "store/table_sql.h"

#include "base/banned.h"

enum { SCRATCH_FIRST_BYTES = 1 << 14, SCRATCH_KEPT_BYTES = 1 << 20 };

/* The part of memory that is about all clients: the webhooks, and the number of clients. */
static enum err_code read_shared(struct postgres_store *s, struct err *err)
{
    struct pg_link *l = &s->link;
    link_params(l);
    size_t hooks = link_send(l, PG_HOOKS_VERSION), client = link_send(l, PG_LAST_CLIENT),
           tenant = link_send(l, PG_LAST_TENANT);
    if (link_run(l, "opening", err) != ERR_OK)
        return err->code;
    int64_t version = value_int(link_result(l, hooks), 0, 0), last = value_int(link_result(l, client), 0, 0);
    s->base.next_client = last < INT64_MAX ? last + 1 : last;
    s->base.next_tenant = value_int(link_result(l, tenant), 0, 0) + 1;
    link_clear(l);
    if (version != s->hooks_version && postgres_read_hooks(s, version, err) != ERR_OK)
        return err->code;
    s->shared_in_doubt = false;
    return ERR_OK;
}

enum err_code postgres_ready(struct postgres_store *s, struct err *err)
{
    if (s->link.in_transaction)
        return ERR_OK;
    if (link_open(&s->link, err) != ERR_OK)
        return err->code;
    bool is_new = s->lane_pid != s->link.pid || s->lane_started != s->link.started;
    if (is_new) {
        s->base.leads = false; /* the lock went with the connection */
        s->watched_ms = 0;
        atomic_store(&s->base.clock_minus_mono_us, pg_clock_minus_mono_us(&s->link.clock));
    }
    if ((is_new || s->lane_in_doubt) && postgres_lane_take(s, err) != ERR_OK)
        return err->code;
    return ERR_OK;
}

enum err_code postgres_ready_anew(struct postgres_store *s, struct err *err)
{
    if (postgres_ready(s, err) != ERR_OK)
        return err->code;
    return s->shared_in_doubt && !s->link.in_transaction ? read_shared(s, err) : ERR_OK;
}

/* A connection that broke before anything was written need not be reported: it is tried once more on
 * another. Not when the database took all the time there was. */
enum err_code postgres_failed(struct postgres_store *s, struct err *err)
{
    if (!link_is_open(&s->link) && !s->link.timed_out)
        err->conflict = true;
    link_clear(&s->link);
    link_rollback(&s->link);
    arena_reset(s->scratch);
    s->batch_broken = true;
    return err->code;
}

/* What the kernel asks of any store when it starts. */
static enum err_code read_numbers(struct postgres_store *s, struct err *err)
{
    struct store *b = &s->base;
    struct pg_link *l = &s->link;
    struct strbuf sql = {0};
    strbuf_add_text(&sql, "SELECT coalesce((SELECT min(g) FROM log),0),(");
    table_sql_last_id(&sql);
    strbuf_add_text(&sql, ")");
    link_params(l);
    size_t n = link_send_sql(l, sql.ptr);
    strbuf_free(&sql);
    size_t block = postgres_send_block(s);
    if (link_run(l, "opening", err) != ERR_OK)
        return err->code;
    const PGresult *r = link_result(l, n);
    b->last_id = value_int(r, 0, 1);
    postgres_take_block(s, block);
    b->first_chunk = value_int(r, 0, 0) ? value_int(r, 0, 0) : b->next_chunk;
    link_clear(l);
    return read_shared(s, err);
}

enum err_code store_open_postgres(const struct postgres_options *o, struct store **ret_store, struct err *err)
{
    struct postgres_store *s = must_alloc(sizeof *s);
    s->base.ops = &store_postgres_ops;
    s->base.shared = true;
    s->base.live = live_new();
    live_load_receivers(s->base.live);
    s->hooks_version = -1;
    s->scratch = arena_new(SCRATCH_FIRST_BYTES);
    arena_keep(s->scratch, SCRATCH_KEPT_BYTES);
    link_init(&s->link, o);
    s->link.by_key = true;
    if (link_open(&s->link, err) != ERR_OK || postgres_schema_make(&s->link, err) != ERR_OK ||
        postgres_ready(s, err) != ERR_OK || read_numbers(s, err) != ERR_OK) {
        if (s->link.remedy)
            err->code = ERR_CONFIG_INVALID;
        struct err first = *err; /* what closing runs into is of no interest */
        store_postgres_ops.close(&s->base);
        *err = first;
        return err->code;
    }
    *ret_store = &s->base;
    return ERR_OK;
}

static void postgres_close(struct store *base)
{
    struct postgres_store *s = (struct postgres_store *)base;
    link_rollback(&s->link);
    postgres_lane_leave(s);
    link_free(&s->link);
    live_free(base->live);
    idem_free(&base->idem);
    counts_free(&base->counts);
    hooks_free(&base->hooks);
    timers_free(&base->timers);
    queue_settings_free(&base->queues);
    arena_free(s->scratch);
    free(s->group);
    free(s);
}

/* The database does its own housekeeping. */
static enum err_code postgres_tend(struct store *base, bool idle, struct err *err)
{
    (void)base;
    (void)idle;
    (void)err;
    return ERR_OK;
}

static enum err_code postgres_probe(struct store *base, struct err *err)
{
    struct postgres_store *s = (struct postgres_store *)base;
    MUST(!s->link.in_transaction);
    if (postgres_ready(s, err) != ERR_OK)
        return err->code;
    struct pg_params *p = link_params(&s->link);
    params_int(p, base->id_slot);
    params_int(p, s->lane_token);
    link_send_sql(&s->link, "UPDATE lanes SET seen=now() WHERE slot=$1::bigint AND token=$2");
    enum err_code code = link_run(&s->link, "probing", err);
    link_clear(&s->link);
    return code;
}

const struct store_ops store_postgres_ops = {
    .name = "postgres",
    .fetch = postgres_fetch,
    .commit = postgres_commit,
    .tend = postgres_tend,
    .probe = postgres_probe,
    .close = postgres_close,
    .load = postgres_load,
    .abandon = postgres_abandon,
    .lead = postgres_lead,
    .hint = postgres_hint,
    .reader_open = postgres_reader_open,
    .reader_close = postgres_reader_close,
    .reader_begin = postgres_reader_begin,
    .reader_end = postgres_reader_end,
    .reader_row = postgres_reader_row,
    .reader_rows = postgres_reader_rows,
    .reader_chunk = postgres_reader_chunk,
    .reader_list = postgres_reader_list,
    .reader_live = postgres_reader_live,
    .reader_jobs = postgres_reader_jobs,
    .reader_queues = postgres_reader_queues,
    .reader_scan = postgres_reader_scan,
    .range = postgres_range,
    .reader_range = postgres_reader_range,
    .reader_scan_log = postgres_reader_scan_log,
    .reader_follow = postgres_reader_follow,
    .reader_of_client = postgres_reader_of_client,
    .reader_scan_list = postgres_reader_scan_list,
    .reader_scan_idem = postgres_reader_scan_idem,
    .reader_number = postgres_reader_number,
    .reader_others = postgres_reader_others,
    .reader_check = postgres_reader_check,
};
