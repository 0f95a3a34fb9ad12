/* A pipeline: everything is sent, then one sync, then every answer is read, reading and writing in turns so
 * that neither side waits for the other with full buffers. */
#include <poll.h>
#include <stdio.h>

#include "base/heart.h"
#include "base/must.h"
#include "store/postgres/postgres_internal.h"
#include "store/postgres/postgres_reach.h"

#include "base/banned.h"

enum { AWAITED_RESULT = -1, EMPTY_ANSWERS_MAX = 3, PREPARED = 2, PREPARING = 1, BINARY = 1 };

struct pg_params *link_params(struct pg_link *l)
{
    params_clear(&l->params);
    return &l->params;
}

static size_t await(struct pg_link *l, int what)
{
    if (l->count == l->capacity) {
        l->capacity = l->capacity ? l->capacity * 2 : 64;
        l->awaited = must_realloc(l->awaited, l->capacity * sizeof *l->awaited);
        l->results = must_realloc(l->results, l->capacity * sizeof *l->results);
    }
    l->awaited[l->count] = what;
    l->results[l->count] = NULL;
    return l->count++;
}

/* Where libpq wants them: pointers, lengths, and that all are binary. */
struct wire_params {
    const char *values[PG_PARAMS_MAX];
    int lengths[PG_PARAMS_MAX], formats[PG_PARAMS_MAX];
};

static void to_wire(const struct pg_params *p, struct wire_params *w)
{
    for (unsigned i = 0; i < p->count; i++) {
        w->values[i] = p->bytes.ptr + p->at[i];
        MUST(p->length[i] < INT32_MAX);
        w->lengths[i] = (int)p->length[i];
        w->formats[i] = BINARY;
    }
}

static void statement_name(enum pg_statement statement, char name[16])
{
    snprintf(name, 16, "w%u", (unsigned)statement);
}

static void prepare(struct pg_link *l, enum pg_statement statement, const char *name)
{
    struct strbuf sql = {0};
    pg_statement_sql(statement, &sql);
    if (!PQsendPrepare(l->conn, name, sql.ptr, 0, NULL))
        l->unsent = true;
    strbuf_free(&sql);
    await(l, (int)statement);
    l->prepared[statement] = PREPARING;
}

size_t link_send(struct pg_link *l, enum pg_statement statement)
{
    char name[16];
    statement_name(statement, name);
    if (l->conn && !l->prepared[statement])
        prepare(l, statement, name);
    struct wire_params w;
    to_wire(&l->params, &w);
    if (!l->conn ||
        !PQsendQueryPrepared(l->conn, name, (int)l->params.count, w.values, w.lengths, w.formats, BINARY))
        l->unsent = true;
    params_clear(&l->params);
    return await(l, AWAITED_RESULT);
}

static bool send_sql(struct pg_link *l, const char *sql)
{
    struct wire_params w;
    to_wire(&l->params, &w);
    bool sent = l->conn && PQsendQueryParams(l->conn, sql, (int)l->params.count, NULL, w.values, w.lengths,
                                             w.formats, BINARY);
    params_clear(&l->params);
    return sent;
}

size_t link_send_sql(struct pg_link *l, const char *sql)
{
    if (!send_sql(l, sql))
        l->unsent = true;
    return await(l, AWAITED_RESULT);
}

void link_begin(struct pg_link *l)
{
    if (l->in_transaction)
        return;
    link_params(l);
    link_send(l, PG_BEGIN);
    l->in_transaction = true;
}

void link_take_time(struct pg_link *l)
{
    link_params(l);
    link_send_sql(l, "SELECT set_config('statement_timeout','0',true),set_config('lock_timeout','0',true),"
                     "set_config('idle_in_transaction_session_timeout','0',true)");
}

/* --- reading -------------------------------------------------------------------------------------- */

/* The next thing libpq has to say, NULLs between results included. False: nothing came in time, or the
 * connection is broken. */
static bool next_result(struct pg_link *l, int64_t until_ms, PGresult **ret)
{
    for (;;) {
        int unsent = PQflush(l->conn);
        if (unsent < 0)
            return false;
        if (!PQisBusy(l->conn))
            break;
        if (!link_wait(l, (short)(unsent ? POLLIN | POLLOUT : POLLIN), until_ms)) {
            l->timed_out = true;
            return false;
        }
        if (!PQconsumeInput(l->conn))
            return false;
    }
    *ret = PQgetResult(l->conn);
    return true;
}

/* The next result that is one. In a pipeline every query's is followed by a NULL. */
static bool next_real_result(struct pg_link *l, int64_t until_ms, PGresult **ret)
{
    for (int empty = 0; empty <= EMPTY_ANSWERS_MAX; empty++) {
        if (!next_result(l, until_ms, ret))
            return false;
        if (*ret)
            return true;
    }
    return false;
}

static bool skip_forgotten(struct pg_link *l, int64_t until_ms)
{
    while (l->forgotten) {
        PGresult *r;
        if (!next_real_result(l, until_ms, &r))
            return false;
        l->forgotten -= PQresultStatus(r) == PGRES_PIPELINE_SYNC;
        PQclear(r);
        if (PQstatus(l->conn) == CONNECTION_BAD)
            return false;
    }
    return true;
}

static enum err_code refused(struct pg_link *l, const PGresult *r, const char *doing, struct err *err)
{
    const char *state = PQresultErrorField(r, PG_DIAG_SQLSTATE);
    l->remedy = state ? link_remedy(state) : NULL;
    return link_refused(r, doing, err);
}

static bool is_good(const PGresult *r)
{
    return PQresultStatus(r) == PGRES_COMMAND_OK || PQresultStatus(r) == PGRES_TUPLES_OK;
}

/* Every answer and the sync behind them; the first refusal into *ret_refusal. */
static bool read_all(struct pg_link *l, int64_t until_ms, const PGresult **ret_refusal)
{
    for (size_t i = 0; i < l->count; i++) {
        if (!next_real_result(l, until_ms, &l->results[i]))
            return false;
        bool good = is_good(l->results[i]);
        if (PQresultStatus(l->results[i]) == PGRES_PIPELINE_SYNC)
            return false; /* an answer is missing: we have lost count */
        if (l->awaited[i] != AWAITED_RESULT)
            l->prepared[l->awaited[i]] = good ? PREPARED : 0;
        if (!good && !*ret_refusal)
            *ret_refusal = l->results[i];
    }
    PGresult *sync;
    if (!next_real_result(l, until_ms, &sync))
        return false;
    bool synced = PQresultStatus(sync) == PGRES_PIPELINE_SYNC;
    PQclear(sync);
    return synced && PQstatus(l->conn) == CONNECTION_OK;
}

/* Everything is sent and every answer is read. The wait does not count as time of the calling loop. */
static bool exchange(struct pg_link *l, const PGresult **ret_refusal)
{
    int64_t since_ms = pg_mono_ms(), until_ms = link_until(l);
    bool was_waiting = heart_waits_here(true);
    l->timed_out = false;
    bool is_done = l->conn && !l->unsent && PQpipelineSync(l->conn) && skip_forgotten(l, until_ms) &&
                   read_all(l, until_ms, ret_refusal);
    heart_waits_here(was_waiting);
    if (is_done)
        reach_answered(l->url_hash);
    else if (l->timed_out)
        link_note_silence(l, since_ms);
    return is_done;
}

enum err_code link_run(struct pg_link *l, const char *doing, struct err *err)
{
    const PGresult *refusal = NULL;
    if (!exchange(l, &refusal)) {
        if (refusal) { /* the last message of the server says more than the lost connection */
            refused(l, refusal, doing, err);
            err->conflict = false;
            link_close(l);
            return err->code;
        }
        return link_lost(l, doing, err);
    }
    if (!refusal)
        return ERR_OK;
    enum err_code code = refused(l, refusal, doing, err);
    link_clear(l);
    return code;
}

const PGresult *link_result(const struct pg_link *l, size_t number)
{
    MUST(number < l->count && l->results[number]);
    return l->results[number];
}

void link_clear(struct pg_link *l)
{
    for (size_t i = 0; i < l->count; i++)
        PQclear(l->results[i]);
    l->count = 0;
}

/* --- without waiting ------------------------------------------------------------------------------- */

void link_forget(struct pg_link *l, const char *sql)
{
    if (!l->conn)
        return;
    if (send_sql(l, sql) && PQpipelineSync(l->conn))
        l->forgotten++;
    else
        l->unsent = true; /* the next run will find the connection broken */
    (void)!PQflush(l->conn);
}

void link_rollback(struct pg_link *l)
{
    if (!l->in_transaction)
        return;
    l->in_transaction = false;
    link_clear(l);
    params_clear(&l->params);
    link_forget(l, "ROLLBACK");
}
