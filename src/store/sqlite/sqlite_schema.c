/* A new database: the tables of the descriptions (store/table.h), and what this backend keeps beside them. */
#include "store/sqlite/sqlite_internal.h"
#include "store/table_sql.h"

#include "base/banned.h"

static const char beside[] =
    /* The log: packed events, a page a row; a reference is (g << 16 | offset). Nothing writes `aside`. */
    "CREATE TABLE log(g INTEGER PRIMARY KEY, data BLOB NOT NULL, aside BLOB);"
    /* Numbers that must not start over when the rows they count are purged. */
    "CREATE TABLE marks(name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;"
    /* What waits for its place: a row for each commit, under its number (sqlite_deferred.h). */
    "CREATE TABLE deferred(n INTEGER PRIMARY KEY, listings BLOB, chunk INTEGER, start INTEGER, log BLOB);"
    "INSERT INTO deferred(n) VALUES(0);"
    /* Idempotency keys, append-only; the hash table is in memory. */
    "CREATE TABLE idem(id INTEGER PRIMARY KEY, h INTEGER NOT NULL);"
    /* Listings: a row holds up to 200 neighbouring ids (sqlite_id_blocks.h). */
    "CREATE TABLE list(client INTEGER NOT NULL, bucket INTEGER NOT NULL, first INTEGER NOT NULL,"
    " ids BLOB NOT NULL, PRIMARY KEY(client, bucket, first)) WITHOUT ROWID;"
    /* Index entries and events of runs that wait to be merged (sqlite_deferred_rows.h). */
    "CREATE TABLE deferred_run_index(n INTEGER PRIMARY KEY, block BLOB NOT NULL);"
    "CREATE TABLE deferred_run_events(n INTEGER PRIMARY KEY, block BLOB NOT NULL);"
    /* For people with the sqlite3 shell: one line per job, whatever its state. */
    "CREATE VIEW job_states AS"
    " SELECT j.id, j.client, j.queue, coalesce(e.state, t.job_state) AS state,"
    " coalesce(e.attempt, t.attempt) AS attempt, j.created_ms,"
    " coalesce(e.last_us, t.last_us) / 1000 AS updated_ms"
    " FROM jobs j LEFT JOIN tasks t ON t.id = j.id LEFT JOIN ends e ON e.id = j.id;";

static void add_table(struct strbuf *sql, const struct table *t)
{
    table_sql_create(sql, t, IN_SQLITE);
    strbuf_add_text(sql, ";");
    for (const struct table_index *i = t->indexes; i && i->name; i++)
        if (i->stores & IN_SQLITE) {
            table_sql_index(sql, t, i, IN_SQLITE);
            strbuf_add_text(sql, ";");
        }
}

enum err_code sqlite_schema_make(sqlite3 *db, struct err *err)
{
    struct strbuf sql = {0};
    for (unsigned i = 0; i < table_count; i++)
        add_table(&sql, tables[i]);
    strbuf_add_text(&sql, beside);
    enum err_code code = sqlite_run(db, sql.ptr, err);
    strbuf_free(&sql);
    return code;
}
