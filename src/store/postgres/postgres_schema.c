/* The schema, made from the tables of store/rows.h and the lists of the lifecycles: what is missing is made,
 * what is there is left. `marks` says which version it is and which statements made it (a checksum of them
 * all), so that a program that finds its own schema writes nothing. */
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/must.h"
#include "lifecycle/client_lifecycle.h"
#include "lifecycle/delivery_lifecycle.h"
#include "lifecycle/run_lifecycle.h"
#include "lifecycle/signals.h"
#include "store/postgres/postgres_internal.h"

#include "base/banned.h"

#define IN_THE_LOCK_OF_THE_SCHEMA "pg_advisory_xact_lock(1464158578,hashtext(current_schema()))"

/* Rows that come and go all the time: room on each page for new versions beside the old ones, and a vacuum
 * that comes soon and does not dawdle. */
#define HOT(fill)                                                                                            \
    " WITH (fillfactor=" fill ",autovacuum_vacuum_threshold=1000,autovacuum_vacuum_scale_factor=0.02,"       \
    "autovacuum_vacuum_cost_delay=0,autovacuum_analyze_scale_factor=0.2)"
#define GROWS " WITH (autovacuum_vacuum_insert_scale_factor=0.1,autovacuum_vacuum_cost_delay=1)"

static const struct {
    const struct table *table;
    const char *options;
} table_options[] = {
    {&table_task_row, HOT("60")},        {&table_job_row, GROWS},      {&table_end_row, GROWS},
    {&table_request_day_row, HOT("50")}, {&table_delivery_row, GROWS}, {&table_stats_row, HOT("50")},
};

/* Besides the tables of store/rows.h. */
static const char *const before[] = {
    "CREATE OR REPLACE FUNCTION weir_check(there bigint,wanted bigint,what text) RETURNS boolean "
    "LANGUAGE plpgsql AS $$ BEGIN IF there<>wanted THEN RAISE EXCEPTION '% of % rows of % are there',"
    "there,wanted,what USING ERRCODE='40001'; END IF; RETURN true; END $$",
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
    "CREATE TABLE IF NOT EXISTS client_deltas(client bigint NOT NULL,counts bytea NOT NULL)" HOT("100"),
    "CREATE INDEX IF NOT EXISTS client_deltas_client ON client_deltas(client)",
    "CREATE TABLE IF NOT EXISTS targets(target bigint PRIMARY KEY,slots bigint NOT NULL,"
    "failures bigint NOT NULL,open_again_ms bigint NOT NULL,seen_ms bigint NOT NULL)" HOT("50"),
    "CREATE TABLE IF NOT EXISTS lanes(slot smallint PRIMARY KEY,token bigint NOT NULL,node bigint NOT NULL,"
    "batch bigint NOT NULL,seen timestamptz NOT NULL,pid int NOT NULL,started timestamptz)" HOT("20"),
    "CREATE TABLE IF NOT EXISTS duties(name text PRIMARY KEY,pid int NOT NULL,started timestamptz,"
    "beat timestamptz NOT NULL)" HOT("20"),
};

/* All ids are above 0. The indexes that say so serve the statements that say so too, and no others. */
static const char *const behind[] = {
    "CREATE UNIQUE INDEX IF NOT EXISTS clients_num ON clients(num)",
    "CREATE UNIQUE INDEX IF NOT EXISTS tenants_num ON tenants(num)",
    "CREATE INDEX IF NOT EXISTS api_keys_client ON api_keys(client)",
    "CREATE INDEX IF NOT EXISTS webhooks_client ON webhooks(client)",
    "CREATE INDEX IF NOT EXISTS jobs_client ON jobs(client,id) WHERE id>0",
    "CREATE UNIQUE INDEX IF NOT EXISTS jobs_key ON jobs(client,idem_key) WHERE idem_key IS NOT NULL",
    "CREATE INDEX IF NOT EXISTS ends_client ON ends(client,state,id) WHERE id>0",
    /* No index names state, lease_ms, worker or refs: a start and a heartbeat change no index. */
    "CREATE INDEX IF NOT EXISTS tasks_ready ON tasks(queue,priority DESC,place) WHERE phase=1",
    "CREATE INDEX IF NOT EXISTS tasks_ready_client ON tasks(client,queue,priority DESC,place) "
    "WHERE phase>0 AND phase<2",
    "CREATE INDEX IF NOT EXISTS tasks_client ON tasks(client,id) WHERE id>0",
    "CREATE INDEX IF NOT EXISTS tasks_subject ON tasks(subject) WHERE subject<>0",
    "CREATE INDEX IF NOT EXISTS tasks_due ON tasks(due_ms) WHERE phase=0",
    "CREATE INDEX IF NOT EXISTS tasks_held ON tasks(id) WHERE phase=2",
    "CREATE INDEX IF NOT EXISTS tasks_expire ON tasks(expire_ms) WHERE phase=1 AND expire_ms>0",
    "CREATE INDEX IF NOT EXISTS tasks_target ON tasks(target,phase,place) WHERE target<>0 AND phase>1",
    "CREATE INDEX IF NOT EXISTS client_states_suspended ON client_states(client) WHERE state=1",
    "CREATE INDEX IF NOT EXISTS queues_paused ON queues(queue) WHERE paused=1",
    "INSERT INTO client_numbers(keyless,num,uuid) SELECT (NOT EXISTS(SELECT 1 FROM key_heads k "
    "WHERE k.client=c.num))::int,c.num,c.uuid FROM clients c WHERE NOT EXISTS(SELECT 1 FROM client_numbers n "
    "WHERE n.num=c.num AND n.keyless IN (0,1))",
    "INSERT INTO plan_versions(tenant,back,created_ms,step_count,plan,version) SELECT tenant,-num,created_ms,"
    "step_count,plan,version FROM plans ON CONFLICT DO NOTHING",
    "INSERT INTO marks(name,value) VALUES('hooks',0) ON CONFLICT DO NOTHING",
    /* The sum of all clients. */
    "INSERT INTO client_stats(client,counts) VALUES(0,'') ON CONFLICT DO NOTHING",
    "INSERT INTO lanes(slot,token,node,batch,seen,pid) SELECT n,0,0,0,'-infinity',0 FROM "
    "generate_series(0,63) n "
    "ON CONFLICT DO NOTHING",
};
_Static_assert(STORE_ID_SLOTS == 64, "the lanes of the statement above");

/* --- the statements --------------------------------------------------------------------------------- */

struct statement {
    const char *sql;
    bool updates; /* of no use in a new schema */
};

struct statements {
    struct arena *arena;
    struct statement *list;
    size_t count, capacity;
};

static void add(struct statements *s, const char *sql)
{
    MUST(s->count < s->capacity);
    s->list[s->count++] = (struct statement){.sql = sql};
}

static const char *options_of(const struct table *t)
{
    for (size_t i = 0; i < LENGTH_OF(table_options); i++)
        if (table_options[i].table == t)
            return table_options[i].options;
    return "";
}

static const char *column_type(const struct column *c)
{
    static const char *const types[] = {[COLUMN_INT] = "bigint NOT NULL DEFAULT 0",
                                        [COLUMN_TEXT] = "text COLLATE \"C\"",
                                        [COLUMN_BLOB] = "bytea"};
    return types[c->type];
}

static void add_table(struct statements *s, const struct table *t)
{
    struct strbuf sql = {0};
    strbuf_addf(&sql, "CREATE TABLE IF NOT EXISTS %s(", t->name);
    for (unsigned i = 0; i < t->column_count; i++)
        strbuf_addf(&sql, "%s %s,", t->columns[i].name, column_type(&t->columns[i]));
    /* What the live queue would compute of the row (store/live.h), for the indexes below. */
    if (t == &table_task_row)
        strbuf_add_text(&sql, "phase smallint NOT NULL,place bigint NOT NULL,");
    strbuf_add_text(&sql, "PRIMARY KEY(");
    for (unsigned i = 0; i < t->key_count; i++)
        strbuf_addf(&sql, "%s%s", i ? "," : "", t->columns[i].name);
    strbuf_addf(&sql, "))%s", options_of(t));
    add(s, arena_str(s->arena, strbuf_str(&sql)).ptr);
    strbuf_free(&sql);
    for (unsigned i = t->key_count; i < t->column_count; i++) {
        add(s, arena_printf(s->arena, "ALTER TABLE %s ADD COLUMN IF NOT EXISTS %s %s", t->name,
                            t->columns[i].name, column_type(&t->columns[i]))
                   .ptr);
        s->list[s->count - 1].updates = true;
    }
}

/* The states a row of the table may have, from the lifecycle's own list. */
static void add_check(struct statements *s, const struct table *t, bool (*may_be)(int state), int state_count)
{
    struct strbuf states = {0};
    for (int i = 0; i < state_count; i++)
        if (may_be(i))
            strbuf_addf(&states, "%s%d", states.len ? "," : "", i);
    add(s,
        arena_printf(s->arena, "ALTER TABLE %s DROP CONSTRAINT IF EXISTS %s_states", t->name, t->name).ptr);
    add(s, arena_printf(s->arena, "ALTER TABLE %s ADD CONSTRAINT %s_states CHECK(state IN (%s))", t->name,
                        t->name, states.ptr)
               .ptr);
    strbuf_free(&states);
}

static bool is_live(int state)
{
    return !job_state_is_final((enum job_state)state);
}

static bool is_final(int state)
{
    return job_state_is_final((enum job_state)state);
}

static bool is_any(int state)
{
    return state >= 0;
}

static const struct {
    const struct table *table;
    bool (*may_be)(int state);
    int state_count;
} checks[] = {
    {&table_task_row, is_live, JOB_STATE_COUNT},
    {&table_end_row, is_final, JOB_STATE_COUNT},
    {&table_delivery_row, is_any, DELIVERY_STATE_COUNT},
    {&table_run_row, is_any, RUN_STATUS_COUNT},
    {&table_run_step_row, is_any, STEP_STATUS_COUNT},
    {&table_decision_row, is_any, SIGNAL_DECISION_COUNT},
    {&table_client_state_row, is_any, CLIENT_STATE_COUNT},
};

static void collect(struct statements *s)
{
    s->capacity = LENGTH_OF(before) + LENGTH_OF(behind) + 2 * LENGTH_OF(checks) + postgres_inbox_sql_count;
    for (size_t i = 0; i < TABLE_COUNT; i++)
        s->capacity += tables[i]->column_count;
    s->capacity += TABLE_COUNT;
    s->list = ARENA_ARRAY(s->arena, struct statement, s->capacity);
    for (size_t i = 0; i < LENGTH_OF(before); i++)
        add(s, before[i]);
    for (size_t i = 0; i < TABLE_COUNT; i++)
        add_table(s, tables[i]);
    for (size_t i = 0; i < LENGTH_OF(checks); i++)
        add_check(s, checks[i].table, checks[i].may_be, checks[i].state_count);
    for (size_t i = 0; i < LENGTH_OF(behind); i++)
        add(s, behind[i]);
    for (size_t i = 0; i < postgres_inbox_sql_count; i++)
        add(s, postgres_inbox_sql[i]);
}

static int64_t checksum(const struct statements *s)
{
    uint64_t h = HASH_FNV_START;
    for (size_t i = 0; i < s->count; i++)
        h = hash_fnv1a(h, s->list[i].sql, strlen(s->list[i].sql) + 1);
    return (int64_t)h;
}

/* --- what is there ---------------------------------------------------------------------------------- */

struct marks {
    int64_t version, shape; /* 0: none */
};

static enum err_code read_marks(struct pg_link *l, struct marks *ret, struct err *err)
{
    *ret = (struct marks){0};
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
    *ret = (struct marks){value_int(link_result(l, n), 0, 0), value_int(link_result(l, n), 0, 1)};
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
    struct marks m;
    if (read_marks(l, &m, err) != ERR_OK)
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

/* When two nodes do it at once, the second one waits and finds everything there. */
static enum err_code make(struct pg_link *l, const struct statements *s, bool is_new, int64_t shape,
                          struct err *err)
{
    link_begin(l);
    link_take_time(l);
    link_params(l);
    link_send_sql(l, "SELECT " IN_THE_LOCK_OF_THE_SCHEMA);
    for (size_t i = 0; i < s->count; i++)
        if (!is_new || !s->list[i].updates)
            link_send_sql(l, s->list[i].sql);
    struct pg_params *p = link_params(l);
    params_int(p, STORE_SCHEMA_VERSION);
    params_int(p, shape);
    link_send_sql(l, "INSERT INTO marks(name,value) VALUES('schema',$1::bigint),('shape',$2::bigint) "
                     "ON CONFLICT(name) DO UPDATE SET value=CASE excluded.name "
                     "WHEN 'schema' THEN greatest(marks.value,excluded.value) ELSE excluded.value END");
    return finish(l, "making the schema", err);
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
    struct marks m;
    if (read_marks(l, &m, err) != ERR_OK)
        return err->code;
    struct statements s = {.arena = arena_new(1 << 16)};
    collect(&s);
    enum err_code code = ERR_OK;
    int64_t shape = checksum(&s), timeout_ms = l->timeout_ms;
    l->timeout_ms = timeout_ms * MAKING_TIMES;
    if (m.version < STORE_SCHEMA_VERSION || m.shape != shape)
        code = make(l, &s, m.version == 0, shape, err);
    if (code == ERR_OK)
        code = take_over_log(l, err);
    l->timeout_ms = timeout_ms;
    arena_free(s.arena);
    return code;
}
