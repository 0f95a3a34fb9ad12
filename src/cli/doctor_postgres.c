/* Checks of a PostgreSQL server. Without one they say nothing. */
#include <inttypes.h>

#include "cli/doctor.h"

#include "base/banned.h"

enum { CLOCK_WARN_US = 500000, CONNECTIONS_SPARE = 20 };

static const struct finding not_asked = {.level = FINDING_OK, .advice = ""};

static bool not_there(const struct doctor *d)
{
    return !d->on_postgres || d->look_err.code != ERR_OK;
}

struct finding doctor_postgres(const struct doctor *d)
{
    const struct postgres_look *l = &d->look;
    if (!d->on_postgres)
        return not_asked;
    if (d->look_err.code != ERR_OK)
        return finding(FINDING_FAIL, "check store.url, the password (PGPASSWORD, ~/.pgpass) and pg_hba.conf",
                       "%s", d->look_err.detail);
    if (l->version_number < POSTGRES_VERSION_MIN)
        return finding(FINDING_FAIL, "use PostgreSQL 15 or newer", "version %s", l->version);
    if (l->is_standby)
        return finding(FINDING_FAIL, "name the primary, or target_session_attrs=read-write in store.url",
                       "version %s, a standby: it takes no writes", l->version);
    return finding(FINDING_OK, "", "version %s", l->version);
}

struct finding doctor_postgres_durability(const struct doctor *d)
{
    const struct postgres_look *l = &d->look;
    if (not_there(d))
        return not_asked;
    if (!l->fsync || !l->full_page_writes)
        return finding(FINDING_FAIL, "turn them on: what is accepted is lost with the power",
                       "fsync %s, full_page_writes %s", l->fsync ? "on" : "off",
                       l->full_page_writes ? "on" : "off");
    bool off = strcmp(l->synchronous_commit, "off") == 0 || strcmp(l->synchronous_commit, "local") == 0;
    return finding(off ? FINDING_WARN : FINDING_OK,
                   "Weir sets it on for its own sessions; for others of this role it stays as it is",
                   "fsync on, full_page_writes on, synchronous_commit %s", l->synchronous_commit);
}

struct finding doctor_postgres_role(const struct doctor *d)
{
    const struct postgres_look *l = &d->look;
    if (not_there(d))
        return not_asked;
    if (!*l->schema)
        return finding(FINDING_FAIL, "create the schema, or set search_path of the role",
                       "no schema of the search path exists");
    if (!l->may_create)
        return finding(l->has_tables ? FINDING_WARN : FINDING_FAIL,
                       "GRANT CREATE ON SCHEMA: the schema is made and brought up to date by the server",
                       "the role may not create tables in schema %s", l->schema);
    if (l->foreign_owned)
        return finding(FINDING_FAIL,
                       "ALTER TABLE ... OWNER TO the role: only an owner can bring tables up to date",
                       "%" PRId64 " tables of schema %s belong to another role", l->foreign_owned, l->schema);
    if (l->superuser)
        return finding(FINDING_WARN, "give Weir a role of its own (docs/operations/postgres.md)",
                       "schema %s, but the role is a superuser", l->schema);
    return finding(FINDING_OK, "", "schema %s, may create tables", l->schema);
}

struct finding doctor_postgres_connections(const struct doctor *d)
{
    const struct postgres_look *l = &d->look;
    if (not_there(d))
        return not_asked;
    return finding(l->connections + CONNECTIONS_SPARE > l->connections_max ? FINDING_WARN : FINDING_OK,
                   "raise max_connections: a node needs store.lanes + server.threads + 2",
                   "%" PRId64 " of %" PRId64 " in use", l->connections, l->connections_max);
}

struct finding doctor_postgres_clock(const struct doctor *d)
{
    if (not_there(d))
        return not_asked;
    int64_t us = d->look.clock_ahead_us;
    bool far = us > CLOCK_WARN_US || us < -CLOCK_WARN_US;
    return finding(far ? FINDING_WARN : FINDING_OK,
                   "set both by NTP: times people see come from the database", "%+.3f s against this machine",
                   (double)us / 1e6);
}
