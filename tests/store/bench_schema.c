#include "store/bench_schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/banned.h"

enum { SKIPPED = 77 };

static const char *server_url(void)
{
    return getenv("WEIR_TEST_POSTGRES");
}

bool store_is_wanted(const char *store)
{
    const char *only = getenv("WEIR_TEST_STORE");
    if (only && strcmp(only, store) != 0)
        return false;
    if (strcmp(store, "postgres") != 0 || server_url())
        return true;
    printf("left out: postgres: WEIR_TEST_POSTGRES is not set (tools/with_postgres sets it)\n");
    if (only)
        exit(SKIPPED);
    return false;
}

int store_run(const char *store, CMFixtureFunction setup)
{
    return store_is_wanted(store) ? test_run(store, setup, NULL) : 0;
}

static PGconn *session(const char *url)
{
    PGconn *c = PQconnectdb(url);
    if (PQstatus(c) != CONNECTION_OK)
        fail_msg("%s", PQerrorMessage(c));
    bench_sql(c, "SET client_min_messages = warning");
    return c;
}

static PGresult *result_of(PGconn *c, const char *sql)
{
    PGresult *r = PQexec(c, sql);
    ExecStatusType status = PQresultStatus(r);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        fail_msg("%s: %s", sql, PQerrorMessage(c));
    return r;
}

void bench_sql(PGconn *c, const char *sql)
{
    PQclear(result_of(c, sql));
}

int64_t bench_number(PGconn *c, const char *sql)
{
    PGresult *r = result_of(c, sql);
    assert_int_equal(PQntuples(r), 1);
    assert_int_equal(PQnfields(r), 1);
    int64_t number = strtoll(PQgetvalue(r, 0, 0), NULL, 10);
    PQclear(r);
    return number;
}

/* Names differ between programs that run at the same time, and between the tests of one. */
void bench_schema_make(struct bench_schema *s)
{
    static int made;
    char sql[80];
    snprintf(s->name, sizeof s->name, "t_%d_%d", (int)getpid(), ++made);
    snprintf(s->url, sizeof s->url, "%s?options=-csearch_path%%3D%s", server_url(), s->name);
    snprintf(sql, sizeof sql, "CREATE SCHEMA %s", s->name);
    PGconn *c = session(server_url());
    bench_sql(c, sql);
    PQfinish(c);
}

void bench_schema_drop(struct bench_schema *s)
{
    char sql[80];
    snprintf(sql, sizeof sql, "DROP SCHEMA %s CASCADE", s->name);
    PGconn *c = session(server_url());
    bench_sql(c, sql);
    PQfinish(c);
}

/* --- one after the other ------------------------------------------------------------------------- */

static struct bench_schema spare; /* no name: there is none */

static void drop_spare(void)
{
    if (spare.name[0])
        bench_schema_drop(&spare);
}

void bench_schema_borrow(struct bench_schema *s)
{
    static bool drops;
    if (!drops)
        drops = atexit(drop_spare) == 0;
    if (!spare.name[0]) {
        bench_schema_make(s);
        return;
    }
    *s = spare;
    spare.name[0] = '\0';
}

void bench_schema_give_back(struct bench_schema *s)
{
    PGconn *c = bench_session(s);
    bench_sql(c, "DO $$ DECLARE t record; BEGIN FOR t IN SELECT relname,relkind FROM pg_class "
                 "WHERE relnamespace=current_schema()::regnamespace AND relkind IN ('r','S') LOOP "
                 "IF t.relkind='r' THEN EXECUTE format('DELETE FROM %I',t.relname); "
                 "ELSE EXECUTE format('ALTER SEQUENCE %I RESTART',t.relname); END IF; END LOOP; END $$");
    PQfinish(c);
    spare = *s;
}

PGconn *bench_session(const struct bench_schema *s)
{
    return session(s->url);
}
