#include "store/bench_former.h"

#include <sqlite3.h>
#include <stdio.h>
#include <unistd.h>

#include "store/migrations/migrations.h"
#include "store/sqlite/sqlite_id_blocks.h"

#include "base/banned.h"

enum { FIRST_POSTGRES = 7 };

int bench_first_version(const struct bench *b)
{
    return b->shared ? FIRST_POSTGRES : 1;
}

static void run_file_sql(sqlite3 *db, const char *sql)
{
    char *error = NULL;
    if (sqlite3_exec(db, sql, NULL, NULL, &error) != SQLITE_OK)
        fail_msg("%s: %s", sql, error);
}

static void make_file(struct bench *b, int version, const char *sql)
{
    char now[80], text[120];
    sqlite3 *db;
    struct err err;
    snprintf(now, sizeof now, "%s-now", b->path);
    assert_int_equal(rename(b->path, now), 0);
    assert_int_equal(sqlite3_open(b->path, &db), SQLITE_OK);
    assert_int_equal(id_blocks_register(db, &err), ERR_OK);
    for (int n = 0; n < version; n++)
        if (store_migrations[n].sqlite)
            run_file_sql(db, store_migrations[n].sqlite);
    snprintf(text, sizeof text, "PRAGMA user_version=%d; ATTACH '%s' AS now", version, now);
    run_file_sql(db, text);
    if (sql)
        run_file_sql(db, sql);
    sqlite3_close(db);
    unlink(now);
}

static void make_schema(struct bench *b, int version, const char *sql)
{
    char text[80];
    bench_schema_drop(&b->schema);
    bench_schema_make(&b->schema);
    PGconn *c = bench_session(&b->schema);
    for (int n = 0; n < version; n++)
        if (store_migrations[n].postgres)
            bench_sql(c, store_migrations[n].postgres);
    snprintf(text, sizeof text, "INSERT INTO marks(name,value) VALUES('schema',%d)", version);
    bench_sql(c, text);
    if (sql)
        bench_sql(c, sql);
    PQfinish(c);
}

void bench_from_version(struct bench *b, int version, const char *sql)
{
    bench_close(b);
    (b->shared ? make_schema : make_file)(b, version, sql);
    bench_open(b);
}

/* --- in words ------------------------------------------------------------------------------------------ */

/* Defaults are left out: what a column that came later had to be given, no INSERT leaves to chance. Of a
 * table's text only what the lists do not tell is of interest; blanks mean nothing. */
static const char file_words[] =
    "SELECT group_concat(word, char(10)) FROM (SELECT word FROM ("
    "SELECT 'column '||t.name||' '||c.cid||' '||c.name||' '||c.type||' '||c.\"notnull\"||' '||c.pk AS word"
    " FROM sqlite_master t JOIN pragma_table_xinfo(t.name) c WHERE t.type='table'"
    " UNION ALL SELECT 'table '||name||(sql LIKE '%WITHOUT ROWID')||"
    "coalesce(substr(sql,nullif(instr(sql,'CHECK('),0),instr(substr(sql,instr(sql,'CHECK(')),')')),'')"
    " FROM sqlite_master WHERE type='table'"
    " UNION ALL SELECT type||' '||name||' '||replace(replace(sql,' ',''),char(10),'')"
    " FROM sqlite_master WHERE type NOT IN ('table') AND sql IS NOT NULL"
    " UNION ALL SELECT 'row '||name||' '||value FROM marks WHERE name='merged'"
    " UNION ALL SELECT 'version '||user_version FROM pragma_user_version) ORDER BY word)";

static const char schema_words[] =
    "SELECT replace(string_agg(word,E'\\n' ORDER BY word),current_schema()||'.','') FROM ("
    "SELECT 'column '||table_name||' '||column_name||' '||data_type||' '||is_nullable||' '||"
    "coalesce(column_default,'')||' '||coalesce(collation_name,'') AS word "
    "FROM information_schema.columns WHERE table_schema=current_schema() "
    "UNION ALL SELECT 'constraint '||conrelid::regclass||' '||conname||' '||pg_get_constraintdef(oid) "
    "FROM pg_constraint WHERE connamespace=current_schema()::regnamespace "
    "UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname=current_schema() "
    "UNION ALL SELECT relkind::text||' '||relname||' '||coalesce(array_to_string(reloptions,','),'') "
    "FROM pg_class WHERE relnamespace=current_schema()::regnamespace "
    "UNION ALL SELECT 'storage '||attrelid::regclass||' '||attname||' '||attstorage::text FROM pg_attribute "
    "a "
    "JOIN pg_class c ON c.oid=attrelid WHERE relnamespace=current_schema()::regnamespace AND relkind='r' "
    "AND attnum>0 AND NOT attisdropped "
    "UNION ALL SELECT 'function '||proname||' '||md5(prosrc) FROM pg_proc "
    "WHERE pronamespace=current_schema()::regnamespace "
    "UNION ALL SELECT pg_get_triggerdef(t.oid) FROM pg_trigger t JOIN pg_class c ON c.oid=tgrelid "
    "WHERE relnamespace=current_schema()::regnamespace "
    "UNION ALL SELECT 'sequence '||sequencename||' '||increment_by FROM pg_sequences "
    "WHERE schemaname=current_schema() "
    "UNION ALL SELECT 'row '||name||' '||value FROM marks UNION ALL SELECT 'lane '||slot FROM lanes "
    "UNION ALL SELECT 'counters of '||client FROM client_stats) words";

const char *bench_schema_words(struct bench *b)
{
    const char *words;
    if (b->shared) {
        PGconn *c = bench_session(&b->schema);
        PGresult *r = PQexec(c, schema_words);
        if (PQresultStatus(r) != PGRES_TUPLES_OK)
            fail_msg("%s", PQerrorMessage(c));
        words = arena_str(b->arena, str_of(PQgetvalue(r, 0, 0))).ptr;
        PQclear(r);
        PQfinish(c);
        return words;
    }
    sqlite3 *db;
    sqlite3_stmt *q;
    assert_int_equal(sqlite3_open(b->path, &db), SQLITE_OK);
    if (sqlite3_prepare_v2(db, file_words, -1, &q, NULL) != SQLITE_OK)
        fail_msg("%s", sqlite3_errmsg(db));
    assert_int_equal(sqlite3_step(q), SQLITE_ROW);
    words = arena_str(b->arena, str_of((const char *)sqlite3_column_text(q, 0))).ptr;
    sqlite3_finalize(q);
    sqlite3_close(db);
    return words;
}
