/* The schema: made from the descriptions of the tables (store/table.h) where there is none; a database of a
 * former program gets the numbered files of store/migrations that it lacks. `marks` says which version it is.
 * What is code of ours in the database (functions, triggers, what the inbox needs) is made anew whenever its
 * text is another one: `marks` holds a checksum of it, so that a program that finds its own schema writes
 * nothing. */
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/must.h"
#include "store/migrations/migrations.h"
#include "store/postgres/postgres_internal.h"
#include "store/table_sql.h"

#include "base/banned.h"

#define IN_THE_LOCK_OF_THE_SCHEMA "pg_advisory_xact_lock(1464158578,hashtext(current_schema()))"

/* Rows that change all the time (table_sql.c). */
#define OFTEN_CHANGED(fill)                                                                                  \
    " WITH (fillfactor=" fill ",autovacuum_vacuum_threshold=1000,autovacuum_vacuum_scale_factor=0.02,"       \
    "autovacuum_vacuum_cost_delay=0,autovacuum_analyze_scale_factor=0.2)"

/* Besides the described tables. */
static const char *const beside[] = {
    "CREATE TABLE IF NOT EXISTS marks(name text PRIMARY KEY,value bigint NOT NULL)",
    /* Chunks of a transaction that commits late have small numbers: who follows the log goes by (xid, g) and
     * stops at the oldest transaction that still runs. A chunk fills half a page: it stays in its row. */
    "CREATE TABLE IF NOT EXISTS log(g bigint PRIMARY KEY,data bytea NOT NULL,"
    "xid xid8 NOT NULL DEFAULT pg_current_xact_id()) WITH (toast_tuple_target=8160,"
    "autovacuum_vacuum_insert_scale_factor=0.1,autovacuum_vacuum_cost_delay=1)",
    "ALTER TABLE log ALTER data SET STORAGE EXTERNAL",
    "CREATE INDEX IF NOT EXISTS log_xid ON log(xid,g) WHERE g>0",
    "CREATE SEQUENCE IF NOT EXISTS log_numbers INCREMENT 4096",
    "CREATE TABLE IF NOT EXISTS list(client bigint NOT NULL,bucket smallint NOT NULL,id bigint NOT NULL,"
    "PRIMARY KEY(client,bucket,id))",
    /* A counter that every commit updates would let them commit one after the other: changes are appended,
     * and summed up once a second by the holder of the duties. */
    "CREATE TABLE IF NOT EXISTS client_deltas(client bigint NOT NULL,counts bytea NOT NULL)" OFTEN_CHANGED(
        "100"),
    "CREATE INDEX IF NOT EXISTS client_deltas_client ON client_deltas(client)",
    "CREATE TABLE IF NOT EXISTS targets(target bigint PRIMARY KEY,slots bigint NOT NULL,"
    "failures bigint NOT NULL,open_again_ms bigint NOT NULL,seen_ms bigint NOT NULL)" OFTEN_CHANGED("50"),
    "CREATE TABLE IF NOT EXISTS lanes(slot smallint PRIMARY KEY,token bigint NOT NULL,node bigint NOT NULL,"
    "batch bigint NOT NULL,seen timestamptz NOT NULL,pid int NOT NULL,started timestamptz)" OFTEN_CHANGED(
        "20"),
    "CREATE TABLE IF NOT EXISTS duties(name text PRIMARY KEY,pid int NOT NULL,started timestamptz,"
    "beat timestamptz NOT NULL)" OFTEN_CHANGED("20"),
};

/* Rows that are there from the start. */
static const char *const first_rows[] = {
    "INSERT INTO marks(name,value) VALUES('hooks',0) ON CONFLICT DO NOTHING",
    /* The sum of all clients. */
    "INSERT INTO client_stats(client,counts) VALUES(0,'') ON CONFLICT DO NOTHING",
    "INSERT INTO lanes(slot,token,node,batch,seen,pid) SELECT n,0,0,0,'-infinity',0 FROM "
    "generate_series(0,63) n "
    "ON CONFLICT DO NOTHING",
};
_Static_assert(STORE_ID_SLOTS == 64, "the lanes of the statement above");

static const char *const functions[] = {
    "CREATE OR REPLACE FUNCTION weir_check(there bigint,wanted bigint,what text) RETURNS boolean "
    "LANGUAGE plpgsql AS $$ BEGIN IF there<>wanted THEN RAISE EXCEPTION '% of % rows of % are there',"
    "there,wanted,what USING ERRCODE='40001'; END IF; RETURN true; END $$",
};

/* --- making ----------------------------------------------------------------------------------------- */

static void send_each(struct pg_link *l, const char *const *sql, size_t count)
{
    for (size_t i = 0; i < count; i++)
        link_send_sql(l, sql[i]);
}

static void send_table(struct pg_link *l, const struct table *t)
{
    struct strbuf sql = {0};
    table_sql_create(&sql, t, IN_POSTGRES);
    link_send_sql(l, sql.ptr);
    for (const struct table_index *i = t->indexes; i && i->name; i++)
        if (i->stores & IN_POSTGRES) {
            strbuf_clear(&sql);
            table_sql_index(&sql, t, i, IN_POSTGRES);
            link_send_sql(l, sql.ptr);
        }
    strbuf_free(&sql);
}

static void send_new(struct pg_link *l)
{
    send_each(l, beside, LENGTH_OF(beside));
    for (unsigned i = 0; i < table_count; i++)
        send_table(l, tables[i]);
    send_each(l, first_rows, LENGTH_OF(first_rows));
}

/* A file of migrations, statement by statement. */
static void send_file(struct pg_link *l, const char *file)
{
    struct strbuf sql = {0};
    for (const char *end; (end = strstr(file, ";\n")); file = end + 2) {
        strbuf_clear(&sql);
        strbuf_add(&sql, file, (size_t)(end - file));
        link_send_sql(l, sql.ptr);
    }
    strbuf_free(&sql);
}

static void send_migrations(struct pg_link *l, int64_t version)
{
    for (int64_t n = version; n < STORE_SCHEMA_VERSION; n++)
        if (store_migrations[n].postgres)
            send_file(l, store_migrations[n].postgres);
}

static uint64_t checksum_of(uint64_t h, const char *const *sql, size_t count)
{
    for (size_t i = 0; i < count; i++)
        h = hash_fnv1a(h, sql[i], strlen(sql[i]) + 1);
    return h;
}

/* Of our code in the database. */
static int64_t code_checksum(void)
{
    uint64_t h = checksum_of(HASH_FNV_START, functions, LENGTH_OF(functions));
    return (int64_t)checksum_of(h, postgres_inbox_sql, postgres_inbox_sql_count);
}

/* --- what is there ---------------------------------------------------------------------------------- */

struct store_numbers {
    int64_t version, shape; /* 0: none */
};

static enum err_code read_numbers(struct pg_link *l, struct store_numbers *ret, struct err *err)
{
    *ret = (struct store_numbers){0};
    link_params(l);
    size_t n = link_send_sql(l, "SELECT current_schema() IS NULL,EXISTS(SELECT 1 FROM pg_class "
                                "WHERE relname='marks' AND relnamespace=current_schema()::regnamespace)");
    if (link_run(l, "schema", err) != ERR_OK)
        return err->code;
    bool nowhere = value_int(link_result(l, n), 0, 0) != 0, there = value_int(link_result(l, n), 0, 1) != 0;
    link_clear(l);
    if (nowhere)
        return err_set(err, ERR_CONFIG_INVALID,
                       "no schema of the search_path of store.url exists; CREATE SCHEMA first");
    if (!there)
        return ERR_OK;
    n = link_send_sql(l, "SELECT coalesce((SELECT value FROM marks WHERE name='schema'),0),"
                         "coalesce((SELECT value FROM marks WHERE name='shape'),0)");
    if (link_run(l, "schema", err) != ERR_OK)
        return err->code;
    *ret = (struct store_numbers){value_int(link_result(l, n), 0, 0), value_int(link_result(l, n), 0, 1)};
    link_clear(l);
    if (ret->version <= STORE_SCHEMA_VERSION)
        return ERR_OK;
    return err_set(err, ERR_CONFIG_INVALID,
                   "the database has schema version %lld, this program knows up to %d; "
                   "run a newer weir, or restore a backup made before the upgrade",
                   (long long)ret->version, STORE_SCHEMA_VERSION);
}

enum err_code postgres_schema_check(struct pg_link *l, struct err *err)
{
    struct store_numbers m;
    if (read_numbers(l, &m, err) != ERR_OK)
        return err->code;
    if (m.version < STORE_SCHEMA_VERSION)
        return err_set(err, ERR_CONFIG_INVALID,
                       "the database has schema version %lld, this program needs %d; start `weir serve` once",
                       (long long)m.version, STORE_SCHEMA_VERSION);
    return ERR_OK;
}

static enum err_code finish(struct pg_link *l, const char *doing, struct err *err)
{
    link_send(l, PG_COMMIT);
    enum err_code code = link_run(l, doing, err);
    if (code == ERR_OK)
        l->in_transaction = false;
    else
        link_rollback(l);
    link_clear(l);
    return code;
}

static void send_marks(struct pg_link *l)
{
    struct pg_params *p = link_params(l);
    params_int(p, STORE_SCHEMA_VERSION);
    params_int(p, code_checksum());
    link_send_sql(l, "INSERT INTO marks(name,value) VALUES('schema',$1::bigint),('shape',$2::bigint) "
                     "ON CONFLICT(name) DO UPDATE SET value=excluded.value");
}

/* When several nodes do it at once, the others wait and find everything there. */
static enum err_code make(struct pg_link *l, struct err *err)
{
    struct store_numbers m;
    link_begin(l);
    link_take_time(l);
    link_params(l);
    link_send_sql(l, "SELECT " IN_THE_LOCK_OF_THE_SCHEMA);
    if (link_run(l, "making the schema", err) == ERR_OK) {
        link_clear(l);
        if (read_numbers(l, &m, err) == ERR_OK) {
            link_params(l);
            if (m.version)
                send_migrations(l, m.version);
            else
                send_new(l);
            send_each(l, functions, LENGTH_OF(functions));
            send_each(l, postgres_inbox_sql, postgres_inbox_sql_count);
            send_marks(l);
            return finish(l, "making the schema", err);
        }
    }
    link_clear(l);
    link_rollback(l);
    return err->code;
}

/* A dump that was restored into another server has that server's transactions ahead of this one's; who
 * follows the log would wait until this one has had as many. They count as one transaction of now. */
static enum err_code take_over_log(struct pg_link *l, struct err *err)
{
#define FROM_ELSEWHERE " WHERE g>0 AND xid>=pg_snapshot_xmax(pg_current_snapshot())"
    link_params(l);
    size_t n =
        link_send_sql(l, "SELECT (count(*))::bigint FROM (SELECT 1 FROM log" FROM_ELSEWHERE " LIMIT 1) x");
    if (link_run(l, "log", err) != ERR_OK)
        return err->code;
    bool restored = value_int(link_result(l, n), 0, 0) != 0;
    link_clear(l);
    if (!restored)
        return ERR_OK;
    link_begin(l);
    link_take_time(l);
    link_params(l);
    link_send_sql(l, "UPDATE log SET xid=DEFAULT" FROM_ELSEWHERE);
    return finish(l, "taking over a restored log", err);
#undef FROM_ELSEWHERE
}

enum err_code postgres_schema_make(struct pg_link *l, struct err *err)
{
    enum { MAKING_TIMES = 20 }; /* the timeout: others may be at it, or rows may have to be looked at */
    struct store_numbers m;
    if (read_numbers(l, &m, err) != ERR_OK)
        return err->code;
    enum err_code code = ERR_OK;
    int64_t timeout_ms = l->timeout_ms;
    l->timeout_ms = timeout_ms * MAKING_TIMES;
    if (m.version < STORE_SCHEMA_VERSION || m.shape != code_checksum())
        code = make(l, err);
    if (code == ERR_OK)
        code = take_over_log(l, err);
    l->timeout_ms = timeout_ms;
    return code;
}
