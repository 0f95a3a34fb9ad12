/* Duties that one node has for all nodes, and news that every node reads once a second.
 *
 * The holder of the advisory lock has the duties. The lock ends with the connection, so a holder that dies is
 * replaced at once. A holder that hangs is replaced when its beat is some seconds old: its server process is
 * ended, which frees the lock and rolls back its open transaction. Should two nodes both act as the holder,
 * nothing bad happens: the writes of a holder are locked and checked like any other write. */
#include <stdio.h>

#include "base/must.h"
#include "store/postgres/postgres_internal.h"

#include "base/banned.h"

#define THE_LOCK "pg_try_advisory_lock(1464158577,hashtext(current_schema()))"
#define HELD_LOCK                                                                                            \
    "k.locktype='advisory' AND k.classid=1464158577 AND k.objid=hashtext(current_schema())::oid "            \
    "AND k.objsubid=2 AND k.granted AND k.database=(SELECT oid FROM pg_database WHERE "                      \
    "datname=current_database())"
#define SILENT "<clock_timestamp()-interval '3 s'"
#define BEAT                                                                                                 \
    "INSERT INTO duties(name,pid,started,beat) VALUES('lead',$1::bigint,$2::timestamptz,clock_timestamp()) " \
    "ON CONFLICT(name) DO UPDATE SET pid=excluded.pid,started=excluded.started,beat=excluded.beat"

enum {
    DELTAS_READ = 20000,
    LANES_SEEN_MS = 5000,
    END_HOLDER_MS = 1000,
    UNWATCHED_MS = 2000,
    OUTBOX_MS = 10000
};

/* The queries of every call, and the numbers of their results. */
struct look {
    size_t counts, duties;
};

enum { LOOK_CLOCK, LOOK_FIRST_CHUNK, LOOK_LEADS, LOOK_DUE, LOOK_LAPSE, LOOK_INBOX };
#define LOOK "(extract(epoch FROM clock_timestamp())*1000000)::bigint,(SELECT min(g) FROM log),"
/* One statement for all, since an idle server asks it too. A beat shows that the holder lives. */
#define LOOK_OF_HOLDER                                                                                       \
    "WITH beat AS (" BEAT " RETURNING 1) SELECT " LOOK                                                       \
    "true,least((SELECT min(due_ms) FROM tasks WHERE phase=0),(SELECT min(due_ms) FROM "                     \
    "timers)),least((SELECT min(CASE state WHEN 3 THEN "                                                     \
    "least(lease_ms,started_ms+max_runtime_ms) ELSE lease_ms END) FROM tasks WHERE phase=2),"                \
    "(SELECT min(expire_ms) FROM tasks WHERE phase=1 AND expire_ms>0)),"                                     \
    "EXISTS(SELECT 1 FROM weir_inbox WHERE failed_ms=0)"

/* Lanes of this node that have nothing to commit still are in use. */
static void send_lanes_seen(struct postgres_store *s)
{
    if (pg_mono_ms() - s->lanes_seen_ms < LANES_SEEN_MS)
        return;
    s->lanes_seen_ms = pg_mono_ms();
    params_int(link_params(&s->link), postgres_node());
    link_send_sql(&s->link,
                  "UPDATE lanes SET seen=now() WHERE slot IN (SELECT slot FROM lanes WHERE node=$1::bigint "
                  "AND seen>'-infinity' AND seen<now()-interval '4 s' FOR UPDATE SKIP LOCKED)");
}

static size_t send_beat(struct postgres_store *s, const char *sql)
{
    struct pg_params *p = link_params(&s->link);
    params_int(p, s->link.pid);
    params_int(p, s->link.started);
    return link_send_sql(&s->link, sql);
}

static struct look send_look(struct postgres_store *s)
{
    struct look look;
    send_lanes_seen(s);
    params_int(link_params(&s->link), DELTAS_READ);
    look.counts = link_send_sql(&s->link, "SELECT counts FROM client_stats WHERE client=0 UNION ALL "
                                          "(SELECT counts FROM client_deltas LIMIT $1::bigint)");
    link_params(&s->link);
    look.duties =
        s->base.leads ? send_beat(s, LOOK_OF_HOLDER) : link_send_sql(&s->link, "SELECT " LOOK THE_LOCK);
    return look;
}

static void take_counts(struct postgres_store *s, const PGresult *r)
{
    struct client_counts sum = {0};
    for (int i = 0; i < PQntuples(r); i++)
        counts_add(&sum, value_bytes(r, i, 0));
    memcpy(s->base.jobs_by_state, sum.by_state, sizeof sum.by_state);
}

/* The holder has been silent: its server process is ended, whatever it is doing. A holder without any beat
 * (its node died in between) is recognized by its server process: it does nothing, while a holder that has
 * just got the lock does something. */
static enum err_code end_silent_holder(struct postgres_store *s, bool *ret_ended, struct err *err)
{
    struct pg_link *l = &s->link;
    params_int(link_params(l), END_HOLDER_MS);
    size_t n = link_send_sql(
        l, "SELECT pg_terminate_backend(a.pid,$1::bigint) FROM pg_locks k JOIN pg_stat_activity a "
           "ON a.pid=k.pid LEFT JOIN duties d ON d.name='lead' WHERE " HELD_LOCK
           " AND (d.beat IS NULL OR d.beat" SILENT ") AND ((a.pid=d.pid AND a.backend_start=d.started) "
           "OR coalesce(a.state_change,a.backend_start)" SILENT ")");
    if (link_run(l, "duties", err) != ERR_OK)
        return err->code;
    *ret_ended = PQntuples(link_result(l, n)) > 0;
    link_clear(l);
    return ERR_OK;
}

static enum err_code try_lock(struct postgres_store *s, struct err *err)
{
    link_params(&s->link);
    size_t n = link_send_sql(&s->link, "SELECT " THE_LOCK);
    if (link_run(&s->link, "duties", err) != ERR_OK)
        return err->code;
    s->base.leads = value_int(link_result(&s->link, n), 0, 0) != 0;
    link_clear(&s->link);
    return ERR_OK;
}

/* Since the last beat, whoever's it was, nobody has looked. The pipeline is one transaction: with the beat
 * the leases are given anew, or neither. */
static enum err_code watch_anew(struct postgres_store *s, int64_t *ret_given_anew, struct err *err)
{
    s->watched_ms = 0;
    size_t leases = postgres_send_leases_anew(s);
    send_beat(s, BEAT);
    if (link_run(&s->link, "duties", err) != ERR_OK)
        return err->code;
    *ret_given_anew = value_int(link_result(&s->link, leases), 0, 0);
    link_clear(&s->link);
    s->watched_ms = pg_mono_ms();
    return ERR_OK;
}

/* This node leads, but stood still, or failed in its first steps. */
static bool is_unwatched(const struct postgres_store *s)
{
    return s->base.leads && (!s->watched_ms || pg_mono_ms() - s->watched_ms > UNWATCHED_MS);
}

static enum err_code take_over(struct postgres_store *s, struct store_duties *ret, struct err *err)
{
    if (!s->base.leads) {
        bool ended = false;
        if (end_silent_holder(s, &ended, err) != ERR_OK || (ended && try_lock(s, err) != ERR_OK))
            return err->code;
    }
    return s->base.leads ? watch_anew(s, &ret->given_anew, err) : ERR_OK;
}

static int64_t time_or_never(const PGresult *r, int column)
{
    return PQgetisnull(r, 0, column) ? INT64_MAX : value_int(r, 0, column);
}

/* A new holder does not know what there is to do: it looks at everything. */
static void take_duties(struct postgres_store *s, const PGresult *r, struct store_duties *ret)
{
    *ret = (struct store_duties){.leads = true, .inbox = true};
    if (!s->base.leads)
        return;
    ret->inbox = value_int(r, 0, LOOK_INBOX) != 0;
    ret->next_due_ms = time_or_never(r, LOOK_DUE);
    ret->next_lapse_ms = time_or_never(r, LOOK_LAPSE);
}

#define TO_MAKE "SELECT octet_length(refs)/8-done AS n FROM "
#define QUEUES  "ARRAY(SELECT q||n FROM unnest(ARRAY['~deliver.','~replay.']) q,generate_series(0,127) n)"
/* Among those that wait for a time are a million jobs of next year: a retry is one of the nearest. */
#define NEAREST "(SELECT refs,done,state,target FROM tasks WHERE phase=0 ORDER BY due_ms LIMIT 10000) nearest"

/* Deliveries that are not yet made: of streams that are ready, claimed or wait for a slot, or will be tried
 * again. A count kept by every commit would be a row that all of them write; this is read by indexes, now and
 * then, and what it reads is bounded. */
static enum err_code look_at_deliveries(struct postgres_store *s, struct err *err)
{
    struct pg_link *l = &s->link;
    if (!s->base.deliveries_max ||
        (s->deliveries_seen_ms && pg_mono_ms() - s->deliveries_seen_ms < OUTBOX_MS))
        return ERR_OK;
    s->deliveries_seen_ms = pg_mono_ms();
    params_int(link_params(l), s->base.deliveries_max);
    size_t n = link_send_sql(
        l, "SELECT coalesce(sum(n),0)::bigint FROM ((" TO_MAKE "tasks WHERE phase=1 AND queue=ANY(" QUEUES
           ") LIMIT $1::bigint) UNION ALL (" TO_MAKE "tasks WHERE target<>0 AND phase>1 LIMIT $1::bigint) "
           "UNION ALL (" TO_MAKE NEAREST " WHERE state=1 AND target<>0)) streams");
    if (link_run(l, "deliveries", err) != ERR_OK)
        return err->code;
    s->base.deliveries = value_int(link_result(l, n), 0, 0);
    link_clear(l);
    return ERR_OK;
}

static enum err_code look_around(struct postgres_store *s, struct store_duties *ret, int *ret_deltas,
                                 struct err *err)
{
    struct pg_link *l = &s->link;
    int64_t before_us = pg_mono_us();
    struct look look = send_look(s);
    if (link_run(l, "duties", err) != ERR_OK)
        return err->code;
    const PGresult *r = link_result(l, look.duties);
    pg_clock_learn(&l->clock, value_int(r, 0, LOOK_CLOCK), before_us, pg_mono_us());
    atomic_store(&s->base.clock_minus_mono_us, pg_clock_minus_mono_us(&l->clock));
    s->base.first_chunk =
        PQgetisnull(r, 0, LOOK_FIRST_CHUNK) ? s->base.next_chunk : value_int(r, 0, LOOK_FIRST_CHUNK);
    take_counts(s, link_result(l, look.counts));
    *ret_deltas = PQntuples(link_result(l, look.counts)) - 1;
    take_duties(s, r, ret);
    bool led = s->base.leads;
    s->base.leads = value_int(r, 0, LOOK_LEADS) != 0;
    link_clear(l);
    if (!led)
        return take_over(s, ret, err);
    s->watched_ms = pg_mono_ms();
    return ERR_OK;
}

enum err_code postgres_lead(struct store *base, struct store_duties *ret_duties, struct err *err)
{
    struct postgres_store *s = (struct postgres_store *)base;
    MUST(!s->link.in_transaction);
    if (postgres_ready(s, err) != ERR_OK)
        return err->code;
    int deltas = 0;
    int64_t given_anew = 0;
    enum err_code code = is_unwatched(s) ? watch_anew(s, &given_anew, err) : ERR_OK;
    if (code == ERR_OK)
        code = look_around(s, ret_duties, &deltas, err);
    if (code == ERR_OK)
        code = look_at_deliveries(s, err);
    if (code == ERR_OK && s->base.leads && deltas > 0)
        code = postgres_fold_counts(s, err);
    if (code == ERR_OK && s->base.leads)
        code = postgres_tend_targets(s, err);
    if (code != ERR_OK) {
        link_clear(&s->link);
        link_rollback(&s->link);
        return code;
    }
    ret_duties->leads = s->base.leads;
    ret_duties->given_anew += given_anew;
    return ERR_OK;
}

/* In a transaction of its own: a NOTIFY in the transaction of a batch would make all batches commit one after
 * the other. It is only a hint, so its commit waits for no disk. A change of keys is announced even where no
 * other node is known: a node whose listener is away would go on with the keys it remembers. */
void postgres_hint(struct store *base, unsigned what)
{
    struct postgres_store *s = (struct postgres_store *)base;
    bool others = s->others || postgres_met_node_lately();
    if ((!others && !(what & HINT_KEYS)) || s->link.in_transaction || !link_is_open(&s->link))
        return;
    char payload[POSTGRES_HINT_BYTES];
    postgres_hint_text(what, payload);
    params_text(link_params(&s->link), str_of(payload));
    link_forget(&s->link, "SELECT set_config('synchronous_commit','off',true),pg_notify('weir',$1)");
}
