#include "store/postgres/postgres_statements.h"

#include "base/must.h"

#include "base/banned.h"

#define X(name, sql) sql,
static const char *const fixed[] = {PG_STATEMENTS(X)};
#undef X

static const char *const array_types[] = {
    [COLUMN_INT] = "bigint[]", [COLUMN_TEXT] = "text[]", [COLUMN_BLOB] = "bytea[]"};

/* Those whose rows only ever come and go are read without a lock: what deciders learn from them stays true,
 * or the job they are about is locked. */
bool pg_is_locked(const struct table *t)
{
    return t->fixed_count < t->column_count;
}

void pg_column_list(const struct table *t, const char *alias, unsigned from, struct strbuf *out)
{
    for (unsigned i = from; i < t->column_count; i++)
        strbuf_addf(out, "%s%s%s", i > from ? "," : "", alias, t->columns[i].name);
}

static void add_fixed(const char *sql, struct strbuf *out)
{
    for (const char *p = sql; *p; p++) {
        if (*p == '@')
            pg_column_list(&table_task_row, "t.", 0, out);
        else
            strbuf_add_char(out, *p);
    }
}

/* "t.a=u.a AND t.b=u.b" */
static void add_key_match(const struct table *t, struct strbuf *out)
{
    for (unsigned i = 0; i < t->key_count; i++)
        strbuf_addf(out, "%st.%s=u.%s", i ? " AND " : "", t->columns[i].name, t->columns[i].name);
}

/* "unnest($1::bigint[],...)" of the columns given: keys first, then those from `from` on. */
static unsigned add_arrays(const struct table *t, unsigned from, unsigned extra, struct strbuf *out)
{
    unsigned n = 0;
    strbuf_add_text(out, "unnest(");
    for (unsigned i = 0; i < t->column_count; i++)
        if (i < t->key_count || i >= from) {
            n++;
            strbuf_addf(out, "%s$%u::%s", n > 1 ? "," : "", n, array_types[t->columns[i].type]);
        }
    for (; extra; extra--)
        strbuf_addf(out, ",$%u::bigint[]", ++n);
    strbuf_add_text(out, ")");
    return n;
}

static void add_names(const struct table *t, unsigned from, struct strbuf *out)
{
    for (unsigned i = 0; i < t->column_count; i++)
        if (i < t->key_count || i >= from)
            strbuf_addf(out, "%s%s", i ? "," : "", t->columns[i].name);
}

static bool is_tasks(const struct table *t)
{
    return t == &table_task_row;
}

static void add_select(const struct table *t, bool locked, struct strbuf *out)
{
    static const char *const types[] = {
        [COLUMN_INT] = "bigint", [COLUMN_TEXT] = "text", [COLUMN_BLOB] = "bytea"};
    strbuf_add_text(out, "SELECT ");
    pg_column_list(t, "t.", 0, out);
    strbuf_addf(out, " FROM %s t WHERE ", t->name);
    for (unsigned i = 0; i < t->key_count; i++)
        strbuf_addf(out, "%st.%s=$%u::%s", i ? " AND " : "", t->columns[i].name, i + 1,
                    types[t->columns[i].type]);
    if (locked)
        strbuf_add_text(out, " FOR UPDATE");
}

static void add_select_many(const struct table *t, bool locked, struct strbuf *out)
{
    strbuf_add_text(out, "SELECT u.n,");
    pg_column_list(t, "t.", 0, out);
    strbuf_add_text(out, " FROM ");
    add_arrays(t, t->column_count, 0, out);
    strbuf_add_text(out, " WITH ORDINALITY AS u(");
    add_names(t, t->column_count, out);
    strbuf_addf(out, ",n) JOIN %s t ON ", t->name);
    add_key_match(t, out);
    strbuf_add_text(out, " ORDER BY ");
    for (unsigned i = 0; i < t->key_count; i++)
        strbuf_addf(out, "%st.%s", i ? "," : "", t->columns[i].name);
    if (locked)
        strbuf_add_text(out, " FOR UPDATE OF t");
}

static void add_insert(const struct table *t, struct strbuf *out)
{
    strbuf_addf(out, "INSERT INTO %s(", t->name);
    pg_column_list(t, "", 0, out);
    strbuf_addf(out, "%s) SELECT * FROM ", is_tasks(t) ? ",phase,place" : "");
    add_arrays(t, t->key_count, is_tasks(t) ? 2 : 0, out);
}

/* A row that is not there any more is a conflict: somebody was faster. */
static void add_check(const struct table *t, unsigned params, struct strbuf *out)
{
    strbuf_addf(out, " RETURNING 1) SELECT weir_check(count(*),$%u,'%s') FROM x", params + 1, t->name);
}

static void add_update(const struct table *t, struct strbuf *out)
{
    strbuf_addf(out, "WITH x AS (UPDATE %s t SET ", t->name);
    for (unsigned i = t->fixed_count; i < t->column_count; i++)
        strbuf_addf(out, "%s%s=u.%s", i > t->fixed_count ? "," : "", t->columns[i].name, t->columns[i].name);
    if (is_tasks(t))
        strbuf_add_text(out, ",phase=u.phase,place=u.place");
    strbuf_add_text(out, " FROM ");
    unsigned params = add_arrays(t, t->fixed_count, is_tasks(t) ? 2 : 0, out);
    strbuf_add_text(out, " AS u(");
    add_names(t, t->fixed_count, out);
    strbuf_addf(out, "%s) WHERE ", is_tasks(t) ? ",phase,place" : "");
    add_key_match(t, out);
    add_check(t, params, out);
}

static void add_delete(const struct table *t, struct strbuf *out)
{
    strbuf_addf(out, "WITH x AS (DELETE FROM %s t USING ", t->name);
    unsigned params = add_arrays(t, t->column_count, 0, out);
    strbuf_add_text(out, " AS u(");
    add_names(t, t->column_count, out);
    strbuf_add_text(out, ") WHERE ");
    add_key_match(t, out);
    add_check(t, params, out);
}

void pg_statement_sql(enum pg_statement statement, struct strbuf *out)
{
    if (statement < PG_FIXED_COUNT) {
        add_fixed(fixed[statement], out);
        return;
    }
    unsigned n = (unsigned)statement - PG_FIXED_COUNT;
    MUST(n < TABLE_COUNT * PG_ROW_STATEMENTS);
    const struct table *t = tables[n / PG_ROW_STATEMENTS];
    switch ((enum pg_row_statement)(n % PG_ROW_STATEMENTS)) {
    case PG_ROW:
        add_select(t, false, out);
        break;
    case PG_ROW_LOCKED:
        add_select(t, true, out);
        break;
    case PG_ROWS:
        add_select_many(t, false, out);
        break;
    case PG_ROWS_LOCKED:
        add_select_many(t, true, out);
        break;
    case PG_INSERT:
        add_insert(t, out);
        break;
    case PG_UPDATE:
        add_update(t, out);
        break;
    case PG_DELETE:
        add_delete(t, out);
        break;
    case PG_ROW_STATEMENTS:
        break;
    }
}
