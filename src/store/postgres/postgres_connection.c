/* A connection: opened and watched with a deadline, so that a database that hangs costs no caller more than
 * the timeout; and the one place where PostgreSQL's errors become ours. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/heart.h"
#include "base/must.h"
#include "store/postgres/postgres_internal.h"
#include "store/postgres/postgres_reach.h"
#include "store/postgres/postgres_url.h"

#include "base/banned.h"

enum { BACKOFF_FIRST_MS = 100, BACKOFF_MAX_MS = 2000, IDLE_TRANSACTION_EXTRA_MS = 2000, END_LOOKS = 3 };

void link_init(struct pg_link *l, const struct postgres_options *o)
{
    *l = (struct pg_link){.url = must_strdup(o->url),
                          .url_hash = hash_fnv1a(HASH_FNV_START, o->url, strlen(o->url)),
                          .timeout_ms = o->timeout_ms};
}

void link_close(struct pg_link *l)
{
    link_clear(l);
    PQfinish(l->conn);
    l->conn = NULL;
    l->in_transaction = l->unsent = false;
    l->forgotten = 0;
    memset(l->prepared, 0, sizeof l->prepared);
}

void link_free(struct pg_link *l)
{
    link_close(l);
    strbuf_free(&l->params.bytes);
    free(l->awaited);
    free(l->results);
    free(l->url);
}

bool link_is_open(const struct pg_link *l)
{
    return l->conn != NULL;
}

int64_t link_until(const struct pg_link *l)
{
    int64_t until_ms = pg_mono_ms() + l->timeout_ms;
    return l->until_ms && l->until_ms < until_ms ? l->until_ms : until_ms;
}

bool link_wait(const struct pg_link *l, short events, int64_t until_ms)
{
    for (;;) {
        int64_t left = until_ms - pg_mono_ms();
        if (left <= 0)
            return false;
        struct pollfd p = {.fd = PQsocket(l->conn), .events = events};
        int n = poll(&p, 1, left > 1000 ? 1000 : (int)left);
        if (n > 0 || (n < 0 && errno != EINTR))
            return true; /* a broken socket is reported by the next read */
    }
}

/* --- errors --------------------------------------------------------------------------------------- */

#define WAIT_FOR_IT "see that PostgreSQL runs and that store.url names it, the rest comes by itself"

/* libpq's texts end in a newline and may have several lines; none holds the password. Of a long one there is
 * room for the advice behind it. */
int postgres_first_line(const char *text)
{
    enum { SHOWN_MAX = 155 };
    size_t n = strcspn(text, "\n");
    return n > SHOWN_MAX ? SHOWN_MAX : (int)n;
}

/* The texts name hosts and users: they are for the log. */
static enum err_code unavailable(struct err *err, const char *doing, const char *why, const char *advice)
{
    err_set(err, ERR_STORAGE_UNAVAILABLE, "%s: %.*s; %s", doing, postgres_first_line(why), why, advice);
    err->retry_after_s = 1;
    err->for_log = true;
    return err->code;
}

enum err_code link_lost(struct pg_link *l, const char *doing, struct err *err)
{
    const char *why = l->conn ? PQerrorMessage(l->conn) : "";
    unavailable(err, doing, *why ? why : "no answer from the database in time",
                l->remedy ? l->remedy : WAIT_FOR_IT);
    link_close(l);
    return err->code;
}

enum err_code err_conflict(struct err *err, const char *why)
{
    err_set(err, ERR_STORAGE_DB_ERROR, "others were faster: %.*s", postgres_first_line(why), why);
    err->conflict = true;
    return err->code;
}

static bool is_one_of(const char *state, const char *const *states)
{
    for (; *states; states++)
        if (strncmp(state, *states, strlen(*states)) == 0)
            return true;
    return false;
}

const char *link_remedy(const char *state)
{
    static const struct {
        const char *state, *advice;
    } refusals[] = {
        {"28P01", "give the role's password: PGPASSWORD, ~/.pgpass or store.url"},
        {"28", "see the user that store.url names, and the server's pg_hba.conf"},
        {"3D000", "create the database, or name another in store.url"},
        {"3F000", "create the schema of the search_path"},
        {"42501", "give the role its rights: docs/operations/postgres.md"},
        {"42704", "take out of store.url what this server does not know"},
        {"22023", "take out of store.url what this server does not take"},
    };
    for (size_t i = 0; i < LENGTH_OF(refusals); i++)
        if (strncmp(state, refusals[i].state, strlen(refusals[i].state)) == 0)
            return refusals[i].advice;
    return NULL;
}

enum err_code link_refused(const PGresult *r, const char *doing, struct err *err)
{
    /* A key that is taken, a row that is gone (weir_check), a serialization failure, a deadlock, a lock that
     * was not had in time. */
    static const char *const conflicts[] = {"23505", "40", "55P03", NULL};
    /* No connection, no resources, a statement that took too long, a server that stops or starts, a
     * transaction that was idle for too long, a standby. */
    static const char *const passing[] = {"08", "53", "57", "25P03", "25006", NULL};
    static const char *const damage[] = {"XX001", "XX002", NULL};
    const char *state = PQresultErrorField(r, PG_DIAG_SQLSTATE),
               *text = PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY);
    if (!text)
        text = PQresultErrorMessage(r);
    if (!state || is_one_of(state, passing))
        return unavailable(err, doing, text, WAIT_FOR_IT);
    if (is_one_of(state, conflicts))
        return err_conflict(err, text);
    if (is_one_of(state, damage))
        return err_set(err, ERR_STORE_CORRUPT, "%s: %.*s; restore a backup", doing, postgres_first_line(text),
                       text);
    const char *advice = link_remedy(state);
    err_set(err, ERR_STORAGE_DB_ERROR, "%s: %.*s (SQLSTATE %s)%s%s", doing, postgres_first_line(text), text,
            state, advice ? "; " : "", advice ? advice : "");
    err->for_log = true;
    return err->code;
}

/* --- connecting ----------------------------------------------------------------------------------- */

/* Library code logs nothing: faults are returned as errors. */
static void drop_notice(void *self, const char *text)
{
    (void)self;
    (void)text;
}

/* The last SQLSTATE in what libpq says of a connection that failed, "...:  28P01: password ..."; libpq has no
 * other way to tell it. With several hosts it goes on to the next one only where one does not answer or is
 * not ready, so a refusal stands last. False: there is none; no host has answered. */
static bool last_state(const char *text, char ret_state[6])
{
    bool found = false;
    for (const char *at = text; (at = strstr(at, ":  ")); at += 3) {
        if (strspn(at + 3, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") != 5 || strncmp(at + 8, ": ", 2) != 0)
            continue;
        memcpy(ret_state, at + 3, 5);
        ret_state[5] = 0;
        found = true;
    }
    return found;
}

/* Why no time heals what went wrong, if that is so. Options that libpq does not take look like any other
 * failure: only its ping tells, which is asked where no host has ever answered at this URL. */
static const char *find_remedy(const struct pg_link *l, const char *const *names, const char *const *values)
{
    char state[6];
    if (!l->conn)
        return NULL;
    if (last_state(PQerrorMessage(l->conn), state))
        return link_remedy(state);
    if (PQconnectionNeedsPassword(l->conn))
        return link_remedy("28P01");
    if (l->by_key && !l->pid && PQstatus(l->conn) == CONNECTION_BAD &&
        PQpingParams(names, values, 1) == PQPING_NO_ATTEMPT)
        return "set store.url right";
    return NULL;
}

static bool finish_connecting(struct pg_link *l, int64_t until_ms)
{
    if (!l->conn || PQstatus(l->conn) == CONNECTION_BAD)
        return false;
    PQsetNoticeProcessor(l->conn, drop_notice, NULL);
    PQsetErrorVerbosity(l->conn, PQERRORS_VERBOSE); /* with the SQLSTATE */
    PostgresPollingStatusType step = PGRES_POLLING_WRITING;
    while (step != PGRES_POLLING_OK) {
        if (step == PGRES_POLLING_FAILED)
            return false;
        l->timed_out = !link_wait(l, step == PGRES_POLLING_READING ? POLLIN : POLLOUT, until_ms);
        if (l->timed_out)
            return false;
        step = PQconnectPoll(l->conn);
    }
    PQsetErrorVerbosity(l->conn, PQERRORS_DEFAULT);
    return PQsetnonblocking(l->conn, 1) == 0 && PQenterPipelineMode(l->conn) == 1;
}

/* Looking up the host's name is the one step that waits as long as the system's resolver likes. */
static bool connect_by(struct pg_link *l, int64_t until_ms)
{
    char user_timeout[24];
    struct reach_hosts hosts;
    reach_hosts(l->url_hash, &hosts);
    snprintf(user_timeout, sizeof user_timeout, "%lld", (long long)l->timeout_ms);
    /* libpq obeys connect_timeout where it waits itself: in a ping. Values that are NULL come from the URL.
     * */
    const char *const names[] = {"dbname",
                                 "application_name",
                                 "client_encoding",
                                 "keepalives",
                                 "keepalives_idle",
                                 "keepalives_interval",
                                 "connect_timeout",
                                 "tcp_user_timeout",
                                 "host",
                                 "hostaddr",
                                 "port",
                                 NULL};
    const char *const values[] = {l->url,       "weir",     "UTF8",         "1",        "5", "2", "2",
                                  user_timeout, hosts.host, hosts.hostaddr, hosts.port, NULL};
    l->conn = PQconnectStartParams(names, values, 1);
    bool is_done = finish_connecting(l, until_ms);
    if (!is_done && l->timed_out)
        reach_hosts_hang(l->url_hash, &hosts, l->conn);
    if (!is_done)
        l->remedy = find_remedy(l, names, values);
    reach_hosts_free(&hosts);
    return is_done;
}

/* The server ends a statement before we stop waiting for it, and also the transaction of a client that
 * vanished. */
static void send_settings(struct pg_link *l)
{
    struct pg_params *p = link_params(l);
    const int64_t values[] = {l->timeout_ms * 3 / 4 + 1, l->timeout_ms / 2 + 1,
                              l->timeout_ms + IDLE_TRANSACTION_EXTRA_MS};
    for (size_t i = 0; i < LENGTH_OF(values); i++) {
        char text[24];
        snprintf(text, sizeof text, "%lld", (long long)values[i]);
        params_text(p, str_of(text));
    }
    link_send_sql(l, "SELECT set_config('statement_timeout',$1,false),set_config('lock_timeout',$2,false),"
                     "set_config('idle_in_transaction_session_timeout',$3,false),"
                     "set_config('synchronous_commit','on',false),set_config('TimeZone','UTC',false),"
                     "set_config('default_transaction_isolation','read committed',false),"
                     "set_config('client_min_messages','error',false)");
    link_params(l);
    link_send_sql(l, "SELECT pid,backend_start,(extract(epoch FROM clock_timestamp())*1000000)::bigint "
                     "FROM pg_stat_activity WHERE pid=pg_backend_pid()");
}

/* The queries of a lane always use an index, and a plan that is good for a full queue is good for an empty
 * one. The planner goes by the table as it last saw it, which is no guide for a queue: without these settings
 * it would read a whole table that it has seen empty. */
static void send_planning(struct pg_link *l)
{
    if (!l->by_key)
        return;
    link_params(l);
    link_send_sql(l, "SELECT set_config('plan_cache_mode','force_generic_plan',false),"
                     "set_config('enable_seqscan','off',false),set_config('enable_bitmapscan','off',false),"
                     "set_config('enable_hashjoin','off',false),set_config('enable_mergejoin','off',false),"
                     "set_config('jit','off',false)");
}

static enum err_code set_up(struct pg_link *l, struct err *err)
{
    int64_t before_us = pg_mono_us();
    send_settings(l);
    send_planning(l);
    if (link_run(l, "connecting", err) != ERR_OK)
        return err->code;
    const PGresult *r = link_result(l, 1);
    if (PQntuples(r) == 1) {
        l->pid = value_int(r, 0, 0);
        l->started = value_int(r, 0, 1);
        pg_clock_learn(&l->clock, value_int(r, 0, 2), before_us, pg_mono_us());
    }
    link_clear(l);
    return ERR_OK;
}

static void count_failure(struct pg_link *l)
{
    int64_t next = l->backoff_ms ? l->backoff_ms * 2 : BACKOFF_FIRST_MS;
    l->backoff_ms = next > BACKOFF_MAX_MS ? BACKOFF_MAX_MS : next;
    l->retry_at_ms = pg_mono_ms() + l->backoff_ms;
}

/* A try that was cut short, because there was little time left, says nothing about the database. */
void link_note_silence(struct pg_link *l, int64_t since_ms)
{
    if (pg_mono_ms() - since_ms < l->timeout_ms / 2)
        return;
    reach_not_answered(l->url_hash);
    if (!l->backoff_ms)
        count_failure(l);
}

/* A link that failed before another connection of this process succeeded need not wait any longer. Otherwise
 * readers would go on refusing for up to two seconds after the lanes have reported that the database is back.
 * */
static bool has_to_wait(const struct pg_link *l)
{
    return (l->follows && reach_is_silent(l->url_hash)) ||
           (pg_mono_ms() < l->retry_at_ms && reach_connected_ms() < l->retry_at_ms - l->backoff_ms);
}

/* A server that has gone says so on an idle connection: better learnt now than half way through a batch. */
static bool has_ended(struct pg_link *l)
{
    for (int i = 0; i < END_LOOKS; i++) {
        struct pollfd p = {.fd = PQsocket(l->conn), .events = POLLIN};
        if (poll(&p, 1, 0) <= 0)
            return false;
        if (!PQconsumeInput(l->conn) || PQstatus(l->conn) != CONNECTION_OK)
            return true;
    }
    return false;
}

static enum err_code connect_anew(struct pg_link *l, struct err *err)
{
    int64_t since_ms = pg_mono_ms(), outer_ms = l->until_ms;
    bool was_waiting = heart_waits_here(true);
    l->remedy = NULL;
    l->timed_out = false;
    l->until_ms = link_until(l); /* for both steps */
    enum err_code code = connect_by(l, l->until_ms) ? set_up(l, err) : link_lost(l, "connecting", err);
    l->until_ms = outer_ms;
    heart_waits_here(was_waiting);
    if (code == ERR_OK) {
        l->backoff_ms = l->retry_at_ms = 0;
        reach_connected(l->url_hash);
        return ERR_OK;
    }
    link_close(l);
    count_failure(l);
    link_note_silence(l, since_ms);
    return code;
}

enum err_code link_open(struct pg_link *l, struct err *err)
{
    bool is_open = l->conn && (l->in_transaction || !has_ended(l));
    if (is_open && (l->in_transaction || !l->follows || !reach_is_silent(l->url_hash)))
        return ERR_OK;
    if (!is_open)
        link_close(l);
    if (postgres_url_check(l->url, err) != ERR_OK)
        return err->code;
    if (has_to_wait(l))
        return unavailable(err, "connecting", "the database did not answer a moment ago", WAIT_FOR_IT);
    return is_open ? ERR_OK : connect_anew(l, err);
}
