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

/* "unnest($1::bigint[],...)" of the keys. */
static void add_keys(const struct table *t, struct strbuf *out)
{
    strbuf_add_text(out, "unnest(");
    for (unsigned i = 0; i < t->key_count; i++)
        strbuf_addf(out, "%s$%u::%s", i ? "," : "", i + 1, array_types[t->columns[i].type]);
    strbuf_add_text(out, ")");
}

static void add_key_names(const struct table *t, struct strbuf *out)
{
    for (unsigned i = 0; i < t->key_count; i++)
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
    add_keys(t, out);
    strbuf_add_text(out, " WITH ORDINALITY AS u(");
    add_key_names(t, out);
    strbuf_addf(out, ",n) JOIN %s t ON ", t->name);
    add_key_match(t, out);
    strbuf_add_text(out, " ORDER BY ");
    for (unsigned i = 0; i < t->key_count; i++)
        strbuf_addf(out, "%st.%s", i ? "," : "", t->columns[i].name);
    if (locked)
        strbuf_add_text(out, " FOR UPDATE OF t");
}

/* "SELECT unnest($1::bigint[]) AS id,...": keys, then the columns from `from` on, then where a task stands.
 * Several arrays in FROM would each be put into a store of its own and read from there: five times the
 * work. */
static unsigned add_rows(const struct table *t, unsigned from, struct strbuf *out)
{
    unsigned n = 0;
    for (unsigned i = 0; i < t->column_count; i++)
        if (i < t->key_count || i >= from) {
            n++;
            strbuf_addf(out, "%s unnest($%u::%s) AS %s", n > 1 ? "," : "SELECT", n,
                        array_types[t->columns[i].type], t->columns[i].name);
        }
    if (is_tasks(t)) {
        strbuf_addf(out, ",unnest($%u::bigint[]) AS phase,unnest($%u::bigint[]) AS place", n + 1, n + 2);
        n += 2;
    }
    return n;
}

/* The bytes of what can be large. The texts themselves are not read for it. */
static void add_size(const struct table *t, struct strbuf *out)
{
    strbuf_add_text(out, "(0");
    for (unsigned i = t->key_count; i < t->column_count; i++)
        if (t->columns[i].type != COLUMN_INT)
            strbuf_addf(out, "+coalesce(octet_length(t.%s),0)", t->columns[i].name);
    strbuf_add_text(out, ")");
}

/* In the order in which they are asked for. Of a row that those before it leave no room for there is only the
 * word that it is there. */
static void add_select_some(const struct table *t, struct strbuf *out)
{
    strbuf_add_text(out, "SELECT n,whole");
    for (unsigned i = 0; i < t->column_count; i++)
        strbuf_addf(out, t->columns[i].type == COLUMN_INT ? ",%s" : ",CASE WHEN whole THEN %s END",
                    t->columns[i].name);
    strbuf_add_text(out, " FROM (SELECT u.n,");
    pg_column_list(t, "t.", 0, out);
    strbuf_add_text(out, ",sum");
    add_size(t, out);
    strbuf_add_text(out, " OVER (ORDER BY u.n ROWS UNBOUNDED PRECEDING)-");
    add_size(t, out);
    strbuf_addf(out, "<$%u::bigint AS whole FROM ", t->key_count + 1);
    add_keys(t, out);
    strbuf_add_text(out, " WITH ORDINALITY AS u(");
    add_key_names(t, out);
    strbuf_addf(out, ",n) JOIN %s t ON ", t->name);
    add_key_match(t, out);
    strbuf_add_text(out, ") x");
}

static void add_range(const struct table *t, struct strbuf *out)
{
    strbuf_add_text(out, "SELECT ");
    pg_column_list(t, "t.", 0, out);
    strbuf_addf(out,
                " FROM %s t WHERE t.%s=$1::bigint AND t.%s>=$2::bigint ORDER BY t.%s,t.%s LIMIT $3::bigint",
                t->name, t->columns[0].name, t->columns[1].name, t->columns[0].name, t->columns[1].name);
}

static void add_insert(const struct table *t, struct strbuf *out)
{
    strbuf_addf(out, "INSERT INTO %s(", t->name);
    pg_column_list(t, "", 0, out);
    strbuf_addf(out, "%s) ", is_tasks(t) ? ",phase,place" : "");
    add_rows(t, t->key_count, out);
}

/* A row that is not there any more is a conflict: another node was faster. */
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
    strbuf_add_text(out, " FROM (");
    unsigned params = add_rows(t, t->fixed_count, out);
    strbuf_add_text(out, ") AS u WHERE ");
    add_key_match(t, out);
    add_check(t, params, out);
}

static void add_delete(const struct table *t, struct strbuf *out)
{
    strbuf_addf(out, "WITH x AS (DELETE FROM %s t USING ", t->name);
    add_keys(t, out);
    strbuf_add_text(out, " AS u(");
    add_key_names(t, out);
    strbuf_add_text(out, ") WHERE ");
    add_key_match(t, out);
    add_check(t, t->key_count, out);
}

void pg_statement_sql(enum pg_statement statement, struct strbuf *out)
{
    if (statement < PG_FIXED_COUNT) {
        add_fixed(fixed[statement], out);
        return;
    }
    unsigned n = (unsigned)statement - PG_FIXED_COUNT;
    MUST(n < table_count * PG_ROW_STATEMENTS);
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
    case PG_RANGE:
        add_range(t, out);
        break;
    case PG_ROWS_SOME:
        add_select_some(t, out);
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
