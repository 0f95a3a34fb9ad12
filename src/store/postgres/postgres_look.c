#include "store/postgres/postgres_look.h"

#include <libpq-fe.h>
#include <stdio.h>

#include "base/clock.h"
#include "store/postgres/postgres_internal.h"
#include "store/postgres/postgres_url.h"

#include "base/banned.h"

/* One row, all texts, in the order of take_row(). */
static const char look_sql[] =
    "SELECT current_setting('server_version_num'), current_setting('server_version'),"
    " current_setting('synchronous_commit'), current_setting('fsync'), current_setting('full_page_writes'),"
    " pg_is_in_recovery(), (SELECT rolsuper FROM pg_roles WHERE rolname = current_user),"
    " coalesce(current_schema(), ''), coalesce(has_schema_privilege(current_schema(), 'CREATE'), false),"
    " to_regclass('tasks') IS NOT NULL AND to_regclass('marks') IS NOT NULL,"
    " (SELECT count(*) FROM pg_tables WHERE schemaname = current_schema() AND tablename IN"
    "   ('jobs', 'tasks', 'ends', 'log', 'marks', 'clients') AND NOT pg_has_role(tableowner, 'USAGE')),"
    " (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),"
    " current_setting('max_connections'),"
    " (extract(epoch FROM clock_timestamp()) * 1000000)::bigint";

static int64_t number_at(const PGresult *r, int column)
{
    int64_t n = 0;
    (void)!str_to_int(str_of(PQgetvalue(r, 0, column)), INT64_MIN, INT64_MAX, &n);
    return n;
}

static bool flag_at(const PGresult *r, int column)
{
    const char *text = PQgetvalue(r, 0, column);
    return strcmp(text, "t") == 0 || strcmp(text, "on") == 0;
}

static void take_row(const PGresult *r, struct postgres_look *l)
{
    l->version_number = number_at(r, 0);
    snprintf(l->version, sizeof l->version, "%s", PQgetvalue(r, 0, 1));
    snprintf(l->synchronous_commit, sizeof l->synchronous_commit, "%s", PQgetvalue(r, 0, 2));
    l->fsync = flag_at(r, 3);
    l->full_page_writes = flag_at(r, 4);
    l->is_standby = flag_at(r, 5);
    l->superuser = flag_at(r, 6);
    snprintf(l->schema, sizeof l->schema, "%s", PQgetvalue(r, 0, 7));
    l->may_create = flag_at(r, 8);
    l->has_tables = flag_at(r, 9);
    l->foreign_owned = number_at(r, 10);
    l->connections = number_at(r, 11);
    l->connections_max = number_at(r, 12);
}

static enum err_code refused(const char *text, struct err *err)
{
    return err_set(err, ERR_STORAGE_UNAVAILABLE, "%.*s", postgres_first_line(text), text);
}

static enum err_code ask(PGconn *conn, struct postgres_look *ret, struct err *err)
{
    int64_t before = clock_wall_us(&clock_system);
    PGresult *r = PQexec(conn, look_sql);
    int64_t after = clock_wall_us(&clock_system);
    enum err_code code = ERR_OK;
    if (PQresultStatus(r) == PGRES_TUPLES_OK && PQntuples(r) == 1) {
        take_row(r, ret);
        ret->clock_ahead_us = number_at(r, 13) - (before + after) / 2;
    } else {
        code = refused(PQresultErrorMessage(r), err);
    }
    PQclear(r);
    return code;
}

enum err_code postgres_look(const struct postgres_options *o, struct postgres_look *ret_look, struct err *err)
{
    if (postgres_url_check(o->url, err) != ERR_OK)
        return err->code;
    char connect_s[24], options[64];
    snprintf(connect_s, sizeof connect_s, "%lld", (long long)(o->timeout_ms + 999) / 1000);
    /* The URL comes later and wins. */
    snprintf(options, sizeof options, "-cstatement_timeout=%lld", (long long)o->timeout_ms);
    const char *const keys[] = {"connect_timeout", "application_name", "options", "dbname", NULL};
    const char *const values[] = {connect_s, "weir doctor", options, o->url, NULL};
    *ret_look = (struct postgres_look){0};
    PGconn *conn = PQconnectdbParams(keys, values, 1);
    enum err_code code =
        PQstatus(conn) == CONNECTION_OK ? ask(conn, ret_look, err) : refused(PQerrorMessage(conn), err);
    PQfinish(conn);
    return code;
}
