/* Generic rows: SQL and binding come from the table descriptions, so a new table needs no code here. */
#include "store/sqlite/sqlite_internal.h"

#include "base/banned.h"

enum sql_kind { SQL_SELECT, SQL_INSERT, SQL_UPDATE, SQL_DELETE, SQL_SCAN, SQL_OF_CLIENT, SQL_RANGE };

static void add_names(struct strbuf *b, const struct table *t, unsigned from, unsigned to, const char *form,
                      const char *between)
{
    for (unsigned i = from; i < to; i++) {
        if (i > from)
            strbuf_add_text(b, between);
        strbuf_addf(b, "%s%s", t->columns[i].name, form);
    }
}

static void add_where_key(struct strbuf *b, const struct table *t)
{
    strbuf_add_text(b, " WHERE ");
    add_names(b, t, 0, t->key_count, "=?", " AND ");
}

static void add_order(struct strbuf *b, const struct table *t)
{
    strbuf_add_text(b, " ORDER BY ");
    add_names(b, t, 0, t->key_count, "", ",");
}

static void add_select(struct strbuf *b, const struct table *t)
{
    strbuf_add_text(b, "SELECT ");
    add_names(b, t, 0, t->column_count, "", ",");
    strbuf_addf(b, " FROM %s", t->name);
}

static void build_sql(struct strbuf *b, const struct table *t, enum sql_kind kind)
{
    switch (kind) {
    case SQL_SELECT:
        add_select(b, t);
        add_where_key(b, t);
        return;
    case SQL_SCAN:
        add_select(b, t);
        add_order(b, t);
        return;
    case SQL_OF_CLIENT:
        add_select(b, t);
        strbuf_add_text(b, " WHERE client=?");
        add_order(b, t);
        return;
    case SQL_RANGE:
        add_select(b, t);
        strbuf_addf(b, " WHERE %s=? AND %s>=?", t->columns[0].name, t->columns[1].name);
        add_order(b, t);
        strbuf_add_text(b, " LIMIT ?");
        return;
    case SQL_INSERT:
        strbuf_addf(b, "INSERT INTO %s(", t->name);
        add_names(b, t, 0, t->column_count, "", ",");
        strbuf_add_text(b, ") VALUES(?");
        for (unsigned i = 1; i < t->column_count; i++)
            strbuf_add_text(b, ",?");
        strbuf_add_text(b, ")");
        return;
    case SQL_UPDATE:
        strbuf_addf(b, "UPDATE %s SET ", t->name);
        add_names(b, t, t->fixed_count, t->column_count, "=?", ",");
        add_where_key(b, t);
        return;
    case SQL_DELETE:
        strbuf_addf(b, "DELETE FROM %s", t->name);
        add_where_key(b, t);
        return;
    }
}

static enum err_code statement(struct sqlite_connection *c, const struct table *t, enum sql_kind kind,
                               sqlite3_stmt **slot, struct err *err)
{
    if (*slot)
        return ERR_OK;
    struct strbuf sql = {0};
    build_sql(&sql, t, kind);
    enum err_code code = sqlite_prepare(c->db, sql.ptr, slot, err);
    strbuf_free(&sql);
    return code;
}

static void bind(sqlite3_stmt *q, int at, const struct column *c, const void *row)
{
    if (c->type == COLUMN_INT) {
        sqlite3_bind_int64(q, at, row_int(row, c));
        return;
    }
    struct str s = row_str(row, c);
    if (!s.ptr)
        sqlite3_bind_null(q, at);
    else if (c->type == COLUMN_TEXT)
        sqlite3_bind_text64(q, at, s.ptr, s.len, SQLITE_STATIC, SQLITE_UTF8);
    else
        sqlite3_bind_blob64(q, at, s.ptr, s.len, SQLITE_STATIC);
}

static int bind_columns(sqlite3_stmt *q, int at, const struct table *t, unsigned from, unsigned to,
                        const void *row)
{
    for (unsigned i = from; i < to; i++)
        bind(q, at++, &t->columns[i], row);
    return at;
}

/* `a` NULL: texts are borrowed from the statement until its next step. */
static void read_columns(sqlite3_stmt *q, const struct table *t, unsigned from, void *row, struct arena *a)
{
    for (unsigned i = from; i < t->column_count; i++) {
        const struct column *c = &t->columns[i];
        char *at = (char *)row + c->offset;
        int n = (int)i;
        if (c->type == COLUMN_INT) {
            *(int64_t *)(void *)at = sqlite3_column_int64(q, n);
            continue;
        }
        struct str s = STR_ABSENT;
        if (sqlite3_column_type(q, n) != SQLITE_NULL) {
            const void *bytes =
                c->type == COLUMN_TEXT ? (const void *)sqlite3_column_text(q, n) : sqlite3_column_blob(q, n);
            s = (struct str){bytes ? bytes : "", (size_t)sqlite3_column_bytes(q, n)};
        }
        *(struct str *)(void *)at = a ? arena_str(a, s) : s;
    }
}

enum err_code rows_fetch(struct sqlite_connection *c, const struct table *t, void *row, struct arena *a,
                         bool *ret_found, struct err *err)
{
    sqlite3_stmt **slot = &c->rows[t->number].select;
    if (statement(c, t, SQL_SELECT, slot, err) != ERR_OK)
        return err->code;
    bind_columns(*slot, 1, t, 0, t->key_count, row);
    int rc = sqlite3_step(*slot);
    *ret_found = rc == SQLITE_ROW;
    if (*ret_found)
        read_columns(*slot, t, t->key_count, row, a);
    sqlite3_reset(*slot);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? ERR_OK : sqlite_err(c->db, rc, t->name, err);
}

enum err_code rows_write(struct sqlite_connection *c, const struct row_change *change, struct err *err)
{
    const struct table *t = change->table;
    struct row_statements *st = &c->rows[t->number];
    sqlite3_stmt **slot = &st->insert;
    enum sql_kind kind = SQL_INSERT;
    if (change->op == ROW_UPDATE) {
        slot = &st->update;
        kind = SQL_UPDATE;
    } else if (change->op == ROW_DELETE) {
        slot = &st->delete;
        kind = SQL_DELETE;
    }
    if (statement(c, t, kind, slot, err) != ERR_OK)
        return err->code;
    int at = 1;
    if (change->op == ROW_INSERT)
        at = bind_columns(*slot, at, t, 0, t->column_count, change->row);
    else if (change->op == ROW_UPDATE)
        at = bind_columns(*slot, at, t, t->fixed_count, t->column_count, change->row);
    if (change->op != ROW_INSERT)
        bind_columns(*slot, at, t, 0, t->key_count, change->row);
    if (sqlite_step_done(c->db, *slot, t->name, err) != ERR_OK)
        return err->code;
    if (change->op != ROW_INSERT && sqlite3_changes(c->db) != 1)
        return err_set(err, ERR_STORE_CORRUPT, "a row of %s that must exist does not", t->name);
    return ERR_OK;
}

static enum err_code each_row(struct sqlite_connection *c, const struct table *t, sqlite3_stmt *q,
                              store_row_fn *fn, void *arg, struct err *err)
{
    char row[TABLE_ROW_BYTES_MAX] __attribute__((aligned(16)));
    int rc;
    while ((rc = sqlite3_step(q)) == SQLITE_ROW) {
        read_columns(q, t, 0, row, NULL);
        if (!fn(row, arg)) {
            rc = SQLITE_DONE;
            break;
        }
    }
    sqlite3_reset(q);
    return rc == SQLITE_DONE ? ERR_OK : sqlite_err(c->db, rc, t->name, err);
}

enum err_code rows_scan(struct sqlite_connection *c, const struct table *t, store_row_fn *fn, void *arg,
                        struct err *err)
{
    sqlite3_stmt **slot = &c->rows[t->number].scan;
    if (statement(c, t, SQL_SCAN, slot, err) != ERR_OK)
        return err->code;
    return each_row(c, t, *slot, fn, arg, err);
}

enum err_code rows_of_client(struct sqlite_connection *c, const struct table *t, int64_t client,
                             store_row_fn *fn, void *arg, struct err *err)
{
    sqlite3_stmt **slot = &c->rows[t->number].of_client;
    if (statement(c, t, SQL_OF_CLIENT, slot, err) != ERR_OK)
        return err->code;
    sqlite3_bind_int64(*slot, 1, client);
    return each_row(c, t, *slot, fn, arg, err);
}

enum err_code rows_range(struct sqlite_connection *c, const struct table *t, const void *from, size_t max,
                         store_row_fn *fn, void *arg, struct err *err)
{
    sqlite3_stmt **slot = &c->rows[t->number].range;
    if (statement(c, t, SQL_RANGE, slot, err) != ERR_OK)
        return err->code;
    int at = bind_columns(*slot, 1, t, 0, 2, from);
    sqlite3_bind_int64(*slot, at, (sqlite3_int64)max);
    return each_row(c, t, *slot, fn, arg, err);
}
