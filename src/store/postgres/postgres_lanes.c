/* Lanes: a handle that writes has one of STORE_ID_SLOTS slots to itself, which makes its ids different from
 * all others', and a row in `lanes` that says which of its batches was the last to commit.
 *
 * The token fences: each commit updates the row of slot and token, and one that finds another token there is
 * refused as a whole. So a handle that was asleep for so long that its slot was given away does no harm. Nor
 * does a COMMIT that was under way for so long that later ones of its lane have passed it: the number only
 * rises. */
#include <pthread.h>
#include <stdio.h>

#include "base/must.h"
#include "base/random.h"
#include "store/postgres/postgres_internal.h"

#include "base/banned.h"

static pthread_once_t node_once = PTHREAD_ONCE_INIT;
static int64_t node;

static void draw_node(void)
{
    node = (int64_t)(random_u64() >> 1) | 1;
}

int64_t postgres_node(void)
{
    pthread_once(&node_once, draw_node);
    return node;
}

/* A lane asks now and then whether there are other nodes (postgres_take_block), so it may not know for a
 * second or two that one has joined. */
enum { MET_MS = 30000 };
static _Atomic int64_t met_ms;

void postgres_met_node(void)
{
    atomic_store(&met_ms, pg_mono_ms());
}

bool postgres_met_node_lately(void)
{
    int64_t at = atomic_load(&met_ms);
    return at && pg_mono_ms() - at < MET_MS;
}

void postgres_hint_text(unsigned what, char out[POSTGRES_HINT_BYTES])
{
    snprintf(out, POSTGRES_HINT_BYTES, "%u:%lld", what, (long long)postgres_node());
}

/* The lane it had, if it still has it: a connection was lost, nothing else. */
static size_t send_keep(struct postgres_store *s)
{
    struct pg_params *p = link_params(&s->link);
    params_int(p, s->base.id_slot);
    params_int(p, s->lane_token);
    params_int(p, s->link.pid);
    params_int(p, s->link.started);
    return link_send_sql(&s->link, "UPDATE lanes SET seen=now(),pid=$3::bigint,started=$4::timestamptz "
                                   "WHERE slot=$1::bigint AND token=$2 RETURNING slot");
}

/* One that was unused for long enough; one whose connection is gone is free sooner, but not so soon that
 * its holder could not find out about its last commit (postgres_unknown.c). */
static size_t send_take(struct postgres_store *s, int64_t token)
{
    struct pg_params *p = link_params(&s->link);
    params_int(p, token);
    params_int(p, postgres_node());
    params_int(p, s->link.pid);
    params_int(p, s->link.started);
    return link_send_sql(
        &s->link,
        "UPDATE lanes SET token=$1,node=$2,batch=0,seen=now(),pid=$3::bigint,started=$4::timestamptz "
        "WHERE slot=(SELECT slot FROM lanes l WHERE seen<now()-interval '30 s' OR "
        "(seen<now()-interval '10 s' AND NOT EXISTS(SELECT 1 FROM pg_stat_activity a "
        "WHERE a.pid=l.pid AND a.backend_start=l.started)) ORDER BY seen,slot LIMIT 1 FOR UPDATE SKIP "
        "LOCKED) "
        "RETURNING slot");
}

static enum err_code keep(struct postgres_store *s, bool *ret_kept, struct err *err)
{
    size_t kept = send_keep(s);
    if (link_run(&s->link, "lane", err) != ERR_OK)
        return err->code;
    *ret_kept = PQntuples(link_result(&s->link, kept)) == 1;
    link_clear(&s->link);
    return ERR_OK;
}

static enum err_code take(struct postgres_store *s, struct err *err)
{
    struct pg_link *l = &s->link;
    int64_t token = (int64_t)(random_u64() >> 1) | 1;
    size_t taken = send_take(s, token);
    if (link_run(l, "lane", err) != ERR_OK)
        return err->code;
    const PGresult *r = link_result(l, taken);
    bool found = PQntuples(r) == 1;
    if (found)
        s->base.id_slot = value_int(r, 0, 0);
    link_clear(l);
    if (!found)
        return err_set(
            err, ERR_STORAGE_UNAVAILABLE,
            "all %d lanes of the database are taken; run fewer nodes or lanes, or wait half a minute "
            "for those of nodes that are gone",
            STORE_ID_SLOTS);
    s->lane_token = token;
    s->batch = 0;
    return ERR_OK;
}

enum err_code postgres_lane_take(struct postgres_store *s, struct err *err)
{
    bool kept = false;
    if (s->lane_token && keep(s, &kept, err) != ERR_OK)
        return err->code;
    if (!kept && take(s, err) != ERR_OK)
        return err->code;
    s->lane_in_doubt = false;
    s->lane_pid = s->link.pid;
    s->lane_started = s->link.started;
    return ERR_OK;
}

void postgres_lane_leave(struct postgres_store *s)
{
    struct err ignored; /* it would be free by itself, later */
    if (!s->lane_token || !link_is_open(&s->link))
        return;
    struct pg_params *p = link_params(&s->link);
    params_int(p, s->base.id_slot);
    params_int(p, s->lane_token);
    link_send_sql(&s->link, "UPDATE lanes SET seen='-infinity' WHERE slot=$1::bigint AND token=$2");
    (void)!link_run(&s->link, "lane", &ignored);
    link_clear(&s->link);
}

void postgres_send_lane_batch(struct postgres_store *s)
{
    struct pg_params *p = link_params(&s->link);
    params_int(p, s->base.id_slot);
    params_int(p, s->lane_token);
    params_int(p, ++s->batch);
    link_send(&s->link, PG_LANE_BATCH);
}
