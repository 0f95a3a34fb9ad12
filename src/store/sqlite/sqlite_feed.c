#include "store/sqlite/sqlite_feed.h"

#include <stdlib.h>

#include "base/must.h"
#include "store/sqlite/sqlite_internal.h"

#include "base/banned.h"

struct feed_table {
    sqlite3_vtab base;
    const struct feed *feed;
};

struct feed_cursor {
    sqlite3_vtab_cursor base;
    size_t at;
};

static const struct feed *feed_of(const sqlite3_vtab_cursor *c)
{
    return ((const struct feed_table *)(const void *)c->pVtab)->feed;
}

static void add_columns(struct strbuf *sql, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        strbuf_addf(sql, "%sc%u", i ? "," : "", i);
}

static int connect_table(sqlite3 *db, void *feed, int argc, const char *const *argv, sqlite3_vtab **ret,
                         char **ret_error)
{
    (void)argc;
    (void)argv;
    (void)ret_error;
    struct strbuf sql = {0};
    strbuf_add_text(&sql, "CREATE TABLE feed(");
    add_columns(&sql, FEED_COLUMNS);
    strbuf_add_text(&sql, ")");
    int rc = sqlite3_declare_vtab(db, sql.ptr);
    strbuf_free(&sql);
    if (rc != SQLITE_OK)
        return rc;
    struct feed_table *t = must_alloc(sizeof *t);
    t->feed = feed;
    *ret = &t->base;
    return SQLITE_OK;
}

static int disconnect_table(sqlite3_vtab *t)
{
    free(t);
    return SQLITE_OK;
}

/* There is one way to read it: from the first row to the last. */
static int best_index(sqlite3_vtab *t, sqlite3_index_info *info)
{
    (void)t;
    info->estimatedCost = 1000;
    info->estimatedRows = 1000;
    return SQLITE_OK;
}

static int open_cursor(sqlite3_vtab *t, sqlite3_vtab_cursor **ret)
{
    (void)t;
    struct feed_cursor *c = must_alloc(sizeof *c);
    *ret = &c->base;
    return SQLITE_OK;
}

static int close_cursor(sqlite3_vtab_cursor *c)
{
    free(c);
    return SQLITE_OK;
}

static int first_row(sqlite3_vtab_cursor *c, int number, const char *name, int argc, sqlite3_value **argv)
{
    (void)number;
    (void)name;
    (void)argc;
    (void)argv;
    ((struct feed_cursor *)(void *)c)->at = 0;
    return SQLITE_OK;
}

static int next_row(sqlite3_vtab_cursor *c)
{
    ((struct feed_cursor *)(void *)c)->at++;
    return SQLITE_OK;
}

static int is_over(sqlite3_vtab_cursor *c)
{
    return ((struct feed_cursor *)(void *)c)->at >= feed_of(c)->count;
}

static int column(sqlite3_vtab_cursor *c, sqlite3_context *result, int n)
{
    const struct feed *feed = feed_of(c);
    const void *row = feed->rows[((struct feed_cursor *)(void *)c)->at];
    MUST(n < feed->table->column_count);
    const struct column *wanted = &feed->table->columns[n];
    if (wanted->type == COLUMN_INT) {
        sqlite3_result_int64(result, row_int(row, wanted));
        return SQLITE_OK;
    }
    struct str s = row_str(row, wanted); /* lives until the statement is over: no copy */
    if (!s.ptr)
        sqlite3_result_null(result);
    else if (wanted->type == COLUMN_TEXT)
        sqlite3_result_text64(result, s.ptr, s.len, SQLITE_STATIC, SQLITE_UTF8);
    else
        sqlite3_result_blob64(result, s.ptr, s.len, SQLITE_STATIC);
    return SQLITE_OK;
}

static int row_id(sqlite3_vtab_cursor *c, sqlite3_int64 *ret)
{
    *ret = (sqlite3_int64)((struct feed_cursor *)(void *)c)->at;
    return SQLITE_OK;
}

/* Without xCreate it is there by itself under its name, in this connection only. */
static const sqlite3_module module = {
    .xConnect = connect_table,
    .xBestIndex = best_index,
    .xDisconnect = disconnect_table,
    .xOpen = open_cursor,
    .xClose = close_cursor,
    .xFilter = first_row,
    .xNext = next_row,
    .xEof = is_over,
    .xColumn = column,
    .xRowid = row_id,
};

enum err_code feed_connect(sqlite3 *db, struct feed *feed, struct err *err)
{
    int rc = sqlite3_create_module(db, "feed", &module, feed);
    return rc == SQLITE_OK ? ERR_OK : sqlite_err(db, rc, "feed", err);
}

enum err_code feed_prepare(sqlite3 *db, const char *verb, const struct table *t, sqlite3_stmt **ret,
                           struct err *err)
{
    MUST(t->column_count <= FEED_COLUMNS);
    struct strbuf sql = {0};
    strbuf_addf(&sql, "%s INTO %s(", verb, t->name);
    for (unsigned i = 0; i < t->column_count; i++)
        strbuf_addf(&sql, "%s%s", i ? "," : "", t->columns[i].name);
    strbuf_add_text(&sql, ") SELECT ");
    add_columns(&sql, t->column_count);
    strbuf_add_text(&sql, " FROM feed");
    enum err_code code = sqlite_prepare(db, sql.ptr, ret, err);
    strbuf_free(&sql);
    return code;
}

enum err_code feed_write(sqlite3 *db, struct feed *feed, sqlite3_stmt *q, const struct table *t,
                         const void *const *rows, size_t count, struct err *err)
{
    *feed = (struct feed){t, rows, count};
    enum err_code code = sqlite_step_done(db, q, t->name, err);
    *feed = (struct feed){0};
    return code;
}
