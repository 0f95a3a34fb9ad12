/* Leases that ended while nobody could look for them.
 *
 * While the database is away no worker can beat, so a lease that ends meanwhile says nothing about its
 * worker. The database stores, by its own clock, the last beat of the holder of the duties: nobody has looked
 * since then. A lease that had ended before that beat gets nothing. A lease that ended between two beats is
 * given anew once; a worker that stays silent gets nothing more. Tokens stay, so a worker that lost its task
 * meanwhile gains nothing. A run that lasts too long is found by its start, whatever its lease is. */
#include "store/postgres/postgres_internal.h"

#include "base/banned.h"

size_t postgres_send_leases_anew(struct postgres_store *s)
{
    params_int(link_params(&s->link), s->base.lease_ms);
    return link_send_sql(
        &s->link,
        "WITH gap AS (SELECT (extract(epoch FROM beat)*1000)::bigint AS since,"
        "(extract(epoch FROM clock_timestamp())*1000)::bigint AS now,$1::bigint AS lease "
        "FROM duties WHERE name='lead' AND $1::bigint>0),"
        "held AS (SELECT t.id FROM tasks t,gap WHERE t.phase=2 AND t.lease_ms>gap.since "
        "AND t.lease_ms<gap.now+gap.lease ORDER BY t.id FOR UPDATE OF t),"
        "given AS (UPDATE tasks t SET lease_ms=CASE WHEN t.lease_ms<=gap.now THEN gap.now+gap.lease "
        "ELSE least(t.lease_ms+gap.now-gap.since,gap.now+gap.lease) END FROM held,gap WHERE t.id=held.id "
        "RETURNING 1) SELECT count(*) FROM given");
}
