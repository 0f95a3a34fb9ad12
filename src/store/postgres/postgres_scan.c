/* Scans: a cursor, and so many rows at a time, so that memory stays bounded however large a table is. */
#include <stdio.h>

#include "base/must.h"
#include "store/postgres/postgres_internal.h"

#include "base/banned.h"

enum { PORTION = 1000, PORTION_OF_LARGE = 100, SCAN_ARENA_BYTES = 1 << 14, UNHURRIED_MS = 600000 };

struct scan {
    bool hurried; /* a caller waits for it: the usual timeout holds, as it does for all of a server's */
    bool (*take)(struct scan *s, const PGresult *r, int row); /* false ends the scan */
    const struct table *table;
    union {
        store_row_fn *row;
        store_chunk_fn *chunk;
        store_list_fn *list;
        store_idem_fn *idem;
        store_check_fn *check;
    } fn;
    void *arg;
    struct arena *arena; /* of one row */
};

/* The answer to what was sent last, kept while callbacks read other things through the same connection. */
static enum err_code keep_answer(struct pg_reader *r, size_t n, PGresult **ret, struct err *err)
{
    if (link_run(&r->link, "scanning", err) != ERR_OK)
        return err->code;
    (void)link_result(&r->link, n);
    *ret = r->link.results[n];
    r->link.results[n] = NULL;
    link_clear(&r->link);
    return ERR_OK;
}

static enum err_code next_portion(struct pg_reader *r, const char *fetch, PGresult **ret, struct err *err)
{
    link_params(&r->link);
    return keep_answer(r, link_send_sql(&r->link, fetch), ret, err);
}

static enum err_code run_scan(struct pg_reader *r, const char *sql, int portion, struct scan *s,
                              struct err *err)
{
    char fetch[64], close[48];
    unsigned cursor = ++r->cursors;
    snprintf(fetch, sizeof fetch, "FETCH %d FROM scan%u", portion, cursor);
    snprintf(close, sizeof close, "CLOSE scan%u", cursor);
    if (postgres_reader_ready(r, err) != ERR_OK)
        return err->code;
    int64_t timeout_ms = r->link.timeout_ms;
    if (!s->hurried && !r->is_served) {
        /* A whole table takes as long as it takes, and so does what is done with its rows (verify, copy). A
         * server that is gone is noticed all the same, by the connection. */
        link_take_time(&r->link);
        r->link.timeout_ms = UNHURRIED_MS;
    }
    struct strbuf declare = {0};
    strbuf_addf(&declare, "DECLARE scan%u NO SCROLL CURSOR FOR %s", cursor, sql);
    link_params(&r->link);
    link_send_sql(&r->link, declare.ptr);
    strbuf_free(&declare);
    s->arena = arena_new(SCAN_ARENA_BYTES);
    enum err_code code = ERR_OK;
    bool more = true;
    while (more && code == ERR_OK) {
        PGresult *rows = NULL;
        code = next_portion(r, fetch, &rows, err);
        int count = code == ERR_OK ? PQntuples(rows) : 0;
        more = count == portion;
        for (int i = 0; i < count; i++) {
            if (!s->take(s, rows, i)) {
                more = false;
                break;
            }
            arena_reset(s->arena);
        }
        PQclear(rows);
    }
    arena_free(s->arena);
    r->link.timeout_ms = timeout_ms;
    if (code == ERR_OK) {
        link_params(&r->link);
        link_forget(&r->link, close);
    }
    return code;
}

/* --- rows ------------------------------------------------------------------------------------------ */

static bool take_row(struct scan *s, const PGresult *r, int row)
{
    char buffer[512] __attribute__((aligned(16)));
    MUST(s->table->row_size <= sizeof buffer);
    value_row(r, row, 0, s->table, buffer, s->arena, false);
    return s->fn.row(buffer, s->arg);
}

/* A client's counters and its deltas come as rows one behind the other: each row of client_stats with each of
 * its deltas, or with none. */
struct counts_scan {
    store_row_fn *fn;
    void *arg;
    bool has, has_delta, stopped;
    int64_t client;
    struct strbuf stored;
    struct client_counts sum;
};

static void finish_client(struct counts_scan *c)
{
    struct stats_row row = {.client = c->client,
                            .counts = c->has_delta ? counts_bytes(&c->sum) : strbuf_str(&c->stored)};
    if (c->has && !c->stopped)
        c->stopped = !c->fn(&row, c->arg);
    c->has = false;
}

static bool take_counts(struct scan *s, const PGresult *r, int row)
{
    struct counts_scan *c = s->arg;
    if (c->has && c->client != value_int(r, row, 0))
        finish_client(c);
    if (!c->has) {
        c->has = true;
        c->has_delta = false;
        c->client = value_int(r, row, 0);
        strbuf_clear(&c->stored);
        strbuf_add_str(&c->stored, value_bytes(r, row, 1));
        counts_from_bytes(&c->sum, value_bytes(r, row, 1));
    }
    if (!PQgetisnull(r, row, 2)) {
        c->has_delta = true;
        counts_add(&c->sum, value_bytes(r, row, 2));
    }
    return !c->stopped;
}

static enum err_code scan_counts(struct reader *base, store_row_fn *fn, void *arg, struct err *err)
{
    struct counts_scan c = {.fn = fn, .arg = arg};
    struct scan s = {.take = take_counts, .arg = &c};
    enum err_code code =
        run_scan((struct pg_reader *)base,
                 "SELECT s.client,s.counts,d.counts FROM client_stats s LEFT JOIN client_deltas d "
                 "ON d.client=s.client WHERE s.client<>0 ORDER BY s.client",
                 PORTION, &s, err);
    if (code == ERR_OK)
        finish_client(&c);
    strbuf_free(&c.stored);
    return code;
}

static void add_order(const struct table *t, struct strbuf *sql)
{
    strbuf_add_text(sql, " ORDER BY ");
    for (unsigned i = 0; i < t->key_count; i++)
        strbuf_addf(sql, "%s%s", i ? "," : "", t->columns[i].name);
}

static enum err_code scan_rows(struct reader *base, const struct table *t, const int64_t *client,
                               store_row_fn *fn, void *arg, struct err *err)
{
    struct scan s = {.hurried = client != NULL, .take = take_row, .table = t, .fn.row = fn, .arg = arg};
    struct strbuf sql = {0};
    strbuf_add_text(&sql, "SELECT ");
    pg_column_list(t, "", 0, &sql);
    strbuf_addf(&sql, " FROM %s", t->name);
    if (client)
        strbuf_addf(&sql, " WHERE client=%lld", (long long)*client);
    add_order(t, &sql);
    enum err_code code = run_scan((struct pg_reader *)base, sql.ptr, PORTION_OF_LARGE, &s, err);
    strbuf_free(&sql);
    return code;
}

enum err_code postgres_reader_scan(struct reader *base, const struct table *t, store_row_fn *fn, void *arg,
                                   struct err *err)
{
    return t == &table_stats_row ? scan_counts(base, fn, arg, err) : scan_rows(base, t, NULL, fn, arg, err);
}

enum err_code postgres_reader_of_client(struct reader *base, const struct table *t, int64_t client,
                                        store_row_fn *fn, void *arg, struct err *err)
{
    return scan_rows(base, t, &client, fn, arg, err);
}

/* --- the rest -------------------------------------------------------------------------------------- */

static bool take_chunk(struct scan *s, const PGresult *r, int row)
{
    return s->fn.chunk(value_int(r, row, 0), value_bytes(r, row, 1), s->arg);
}

enum err_code postgres_reader_scan_log(struct reader *base, int64_t from, store_chunk_fn *fn, void *arg,
                                       struct err *err)
{
    struct scan s = {.take = take_chunk, .fn.chunk = fn, .arg = arg};
    char sql[96];
    snprintf(sql, sizeof sql, "SELECT g,data FROM log WHERE g>=%lld ORDER BY g", (long long)from);
    return run_scan((struct pg_reader *)base, sql, PORTION_OF_LARGE, &s, err);
}

/* A turn of another server (a dump restored elsewhere) lies ahead of all that is here. */
static enum err_code check_turn(struct pg_reader *r, int64_t turn, struct err *err)
{
    params_int(link_params(&r->link), turn);
    size_t n = link_send(&r->link, PG_TURN_IS_PAST);
    if (link_run(&r->link, "log", err) != ERR_OK)
        return err->code;
    bool past = value_int(link_result(&r->link, n), 0, 0) != 0;
    link_clear(&r->link);
    if (past)
        return ERR_OK;
    return err_set(err, ERR_CONFIG_INVALID, "this place is none of this database; begin without one");
}

enum err_code postgres_reader_follow(struct reader *base, struct log_place *place, size_t max,
                                     store_follow_fn *fn, void *arg, struct err *err)
{
    struct pg_reader *r = (struct pg_reader *)base;
    PGresult *rows = NULL;
    size_t told = 0;
    if (postgres_reader_ready(r, err) != ERR_OK || check_turn(r, place->turn, err) != ERR_OK)
        return err->code;
    struct pg_params *p = link_params(&r->link);
    params_int(p, place->turn);
    params_int(p, place->chunk - 1); /* a place may be in the middle of a chunk */
    params_int(p, (int64_t)max + 1);
    if (keep_answer(r, link_send(&r->link, PG_FOLLOW), &rows, err) != ERR_OK)
        return err->code;
    for (int i = 0; i < PQntuples(rows); i++) {
        struct log_place at = {
            .turn = value_int(rows, i, 0), .chunk = value_int(rows, i, 1), .offset = LOG_FIRST_OFFSET};
        struct str chunk = value_bytes(rows, i, 2);
        bool is_known = at.turn == place->turn && at.chunk == place->chunk;
        if (is_known && chunk.len <= place->offset)
            continue;
        if (is_known)
            at.offset = place->offset;
        if (told++ == max || !fn(at, chunk, arg))
            break;
        *place = (struct log_place){at.turn, at.chunk, chunk.len};
    }
    PQclear(rows);
    return ERR_OK;
}

static bool take_listed(struct scan *s, const PGresult *r, int row)
{
    struct list_entry e = {.owner_key = value_int(r, row, 0),
                           .bucket = (uint8_t)value_int(r, row, 1),
                           .id = value_int(r, row, 2)};
    return s->fn.list(&e, s->arg);
}

enum err_code postgres_reader_scan_list(struct reader *base, store_list_fn *fn, void *arg, struct err *err)
{
    struct scan s = {.take = take_listed, .fn.list = fn, .arg = arg};
    return run_scan(
        (struct pg_reader *)base,
        "SELECT client,0::bigint AS bucket,id FROM jobs UNION ALL SELECT client,1+state,id FROM ends "
        "UNION ALL SELECT client,bucket,id FROM list ORDER BY client,bucket,id",
        PORTION, &s, err);
}

static bool take_idem(struct scan *s, const PGresult *r, int row)
{
    struct idem_entry e = {.hash = idem_hash(value_int(r, row, 1), value_text(r, row, 2, s->arena)),
                           .job = value_int(r, row, 0)};
    return s->fn.idem(&e, s->arg);
}

enum err_code postgres_reader_scan_idem(struct reader *base, store_idem_fn *fn, void *arg, struct err *err)
{
    struct scan s = {.take = take_idem, .fn.idem = fn, .arg = arg};
    return run_scan((struct pg_reader *)base,
                    "SELECT id,client,idem_key FROM jobs WHERE idem_key IS NOT NULL ORDER BY id", PORTION, &s,
                    err);
}

static bool take_check(struct scan *s, const PGresult *r, int row)
{
    struct str line = value_bytes(r, row, 0);
    return s->fn.check(arena_str(s->arena, line).ptr, s->arg);
}

/* What the server can say of its own files, and what the queue's indexes rest on. */
enum err_code postgres_reader_check(struct reader *base, store_check_fn *fn, void *arg, struct err *err)
{
    struct scan s = {.take = take_check, .fn.check = fn, .arg = arg};
    return run_scan(
        (struct pg_reader *)base,
        "SELECT 'index '||c.relname||' is not valid: REINDEX it' FROM pg_index i "
        "JOIN pg_class c ON c.oid=i.indexrelid WHERE c.relnamespace=current_schema()::regnamespace "
        "AND NOT (i.indisvalid AND i.indisready) UNION ALL "
        "SELECT 'task '||id||' has phase '||phase||' and state '||state FROM tasks "
        "WHERE phase<>least(state,2) AND NOT (phase=0 AND state=1) "
        "AND NOT (phase=3 AND state=1 AND target<>0)",
        PORTION, &s, err);
}
