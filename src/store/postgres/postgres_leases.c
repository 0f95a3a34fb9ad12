/* Leases that ended while nobody could look for them.
 *
 * A database that is away lets no worker beat: what ended then says nothing about the worker. How long nobody
 * looked stands in the database, by its own clock: since the last beat of whoever had the duties. What had
 * ended before that was seen in its time and gets nothing; nor does who is silent on: a lease is given anew
 * only for having ended between two beats. Tokens stay, so a worker that lost its task meanwhile gains
 * nothing. A run that lasts too long is found by when it started, whatever its lease is. */
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
