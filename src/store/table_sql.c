#include "store/table_sql.h"

#include <inttypes.h>

#include "base/banned.h"

/* --- SQLite ------------------------------------------------------------------------------------------- */

/* A table whose key is one number is kept in the order of SQLite's own row numbers, which the key then is;
 * the others are kept in the order of their keys. */
static bool key_is_row_number(const struct table *t)
{
    return t->key_count == 1 && t->columns[0].type == COLUMN_INT;
}

static void add_sqlite_column(struct strbuf *out, const struct table *t, const struct column *c)
{
    static const char *const types[] = {
        [COLUMN_INT] = "INTEGER", [COLUMN_TEXT] = "TEXT", [COLUMN_BLOB] = "BLOB"};
    strbuf_addf(out, "%s %s", c->name, types[c->type]);
    if (c->role == COLUMN_KEY && key_is_row_number(t))
        strbuf_add_text(out, " PRIMARY KEY");
    else if (!c->may_be_null)
        strbuf_add_text(out, " NOT NULL");
    if (c->is_state)
        strbuf_addf(out, " CHECK(%s BETWEEN %" PRId64 " AND %" PRId64 ")", c->name, c->least, c->most);
}

/* --- PostgreSQL --------------------------------------------------------------------------------------- */

static void add_postgres_column(struct strbuf *out, const struct table *t, const struct column *c)
{
    static const char *const types[] = {[COLUMN_INT] = "bigint NOT NULL DEFAULT 0",
                                        [COLUMN_TEXT] = "text COLLATE \"C\"",
                                        [COLUMN_BLOB] = "bytea"};
    strbuf_addf(out, "%s %s", c->name, types[c->type]);
    if (c->type != COLUMN_INT && !c->may_be_null)
        strbuf_add_text(out, " NOT NULL");
    if (!c->is_state)
        return;
    strbuf_addf(out, " CONSTRAINT %s_states CHECK(%s IN (", t->name, c->name);
    for (int64_t state = c->least; state <= c->most; state++)
        strbuf_addf(out, "%s%" PRId64, state > c->least ? "," : "", state);
    strbuf_add_text(out, "))");
}

/* Room on each page for new versions beside the old ones; a vacuum that comes soon and does not dawdle. */
static void add_postgres_options(struct strbuf *out, const struct table *t)
{
    if (t->grows)
        strbuf_add_text(out,
                        " WITH (autovacuum_vacuum_insert_scale_factor=0.1,autovacuum_vacuum_cost_delay=1)");
    if (t->fill_percent)
        strbuf_addf(out,
                    " WITH (fillfactor=%u,autovacuum_vacuum_threshold=1000,"
                    "autovacuum_vacuum_scale_factor=0.02,autovacuum_vacuum_cost_delay=0,"
                    "autovacuum_analyze_scale_factor=0.2)",
                    t->fill_percent);
}

/* --- both --------------------------------------------------------------------------------------------- */

static void add_key(struct strbuf *out, const struct table *t)
{
    strbuf_add_text(out, ",PRIMARY KEY(");
    for (unsigned i = 0; i < t->key_count; i++)
        strbuf_addf(out, "%s%s", i ? "," : "", t->columns[i].name);
    strbuf_add_text(out, ")");
}

static const char *unless_there(enum table_stores dialect)
{
    return dialect == IN_POSTGRES ? "IF NOT EXISTS " : "";
}

void table_sql_create(struct strbuf *out, const struct table *t, enum table_stores dialect)
{
    bool is_sqlite = dialect == IN_SQLITE;
    strbuf_addf(out, "CREATE TABLE %s%s(", unless_there(dialect), t->name);
    for (unsigned i = 0; i < t->column_count; i++) {
        strbuf_add_text(out, i ? "," : "");
        (is_sqlite ? add_sqlite_column : add_postgres_column)(out, t, &t->columns[i]);
    }
    if (!is_sqlite && t->postgres_columns)
        strbuf_addf(out, ",%s", t->postgres_columns);
    if (!is_sqlite || !key_is_row_number(t))
        add_key(out, t);
    strbuf_add_text(out, ")");
    if (!is_sqlite)
        add_postgres_options(out, t);
    else if (!key_is_row_number(t))
        strbuf_add_text(out, " WITHOUT ROWID");
}

void table_sql_index(struct strbuf *out, const struct table *t, const struct table_index *index,
                     enum table_stores dialect)
{
    strbuf_addf(out, "CREATE %sINDEX %s%s_%s ON %s(%s)", index->is_unique ? "UNIQUE " : "",
                unless_there(dialect), t->name, index->name, t->name, index->columns);
    if (index->only)
        strbuf_addf(out, " WHERE %s", index->only);
}

void table_sql_last_id(struct strbuf *out)
{
    strbuf_add_text(out, "SELECT max(n) FROM (SELECT 0 AS n");
    for (unsigned t = 0; t < table_count; t++)
        for (unsigned i = 0; i < tables[t]->column_count; i++) {
            const struct column *c = &tables[t]->columns[i];
            if (c->is_id)
                strbuf_addf(out, " UNION ALL SELECT max(%s) FROM %s%s%s", c->ids_as ? c->ids_as : c->name,
                            tables[t]->name, c->ids_only ? " WHERE " : "", c->ids_only ? c->ids_only : "");
        }
    strbuf_add_text(out, ") AS largest");
}
