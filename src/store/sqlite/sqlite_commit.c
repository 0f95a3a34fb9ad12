/* One batch, one transaction, one fsync. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "store/sqlite/sqlite_internal.h"

#include "base/banned.h"

static const struct {
    size_t offset;
    const char *sql;
} statements[] = {
    {offsetof(struct sqlite_store, begin), "BEGIN IMMEDIATE"},
    {offsetof(struct sqlite_store, commit), "COMMIT"},
    {offsetof(struct sqlite_store, rollback), "ROLLBACK"},
    {offsetof(struct sqlite_store, idem_drop), "DELETE FROM idem WHERE id=?"},
    {offsetof(struct sqlite_store, number_put), "INSERT OR REPLACE INTO marks(name,value) VALUES(?,?)"},
    {offsetof(struct sqlite_store, number_drop), "DELETE FROM marks WHERE name=?"},
    {offsetof(struct sqlite_store, list_block),
     "SELECT first,ids FROM list WHERE client=? AND bucket=? AND first<=? ORDER BY first DESC LIMIT 1"},
    {offsetof(struct sqlite_store, list_next),
     "SELECT first FROM list WHERE client=? AND bucket=? AND first>? ORDER BY first LIMIT 1"},
    {offsetof(struct sqlite_store, list_put),
     "INSERT OR REPLACE INTO list(client,bucket,first,ids) VALUES(?,?,?,?)"},
    {offsetof(struct sqlite_store, list_drop), "DELETE FROM list WHERE client=? AND bucket=? AND first=?"},
};

static const struct column idem_columns[] = {
    {.name = "id", .type = COLUMN_INT, .offset = offsetof(struct idem_entry, job)},
    {.name = "h", .type = COLUMN_INT, .offset = offsetof(struct idem_entry, hash)}};
static const struct table idem_table = {.name = "idem", .columns = idem_columns, .column_count = 2};

/* Tables whose updates replace the row as a whole, which costs half of an UPDATE: its columns need not be
 * read first. None has an index or a trigger that would notice. */
static const struct table *const replaced[SQLITE_REPLACED] = {&table_task_row, &table_run_row,
                                                              &table_run_step_row};

static sqlite3_stmt **slot_of(struct sqlite_store *s, size_t i)
{
    return (sqlite3_stmt **)(void *)((char *)s + statements[i].offset);
}

enum err_code sqlite_commit_prepare(struct sqlite_store *s, struct err *err)
{
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++)
        if (sqlite_prepare(s->writer.db, statements[i].sql, slot_of(s, i), err) != ERR_OK)
            return err->code;
    if (feed_connect(s->writer.db, &s->feed, err) != ERR_OK ||
        feed_prepare(s->writer.db, "INSERT", &idem_table, &s->idem_insert, err) != ERR_OK)
        return err->code;
    for (size_t i = 0; i < SQLITE_REPLACED; i++)
        if (feed_prepare(s->writer.db, "REPLACE", replaced[i], &s->replace[i], err) != ERR_OK)
            return err->code;
    if (log_prepare(s, err) != ERR_OK || deferred_prepare(s, err) != ERR_OK ||
        deferred_rows_prepare(s, err) != ERR_OK)
        return err->code;
    return known_index_prepare(s, err);
}

void sqlite_commit_close(struct sqlite_store *s)
{
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++)
        sqlite3_finalize(*slot_of(s, i));
    sqlite3_finalize(s->idem_insert);
    for (size_t i = 0; i < SQLITE_REPLACED; i++)
        sqlite3_finalize(s->replace[i]);
    log_close(s);
    deferred_close(s);
    deferred_rows_close(s);
    known_index_free(&s->known_index);
    free(s->fed);
}

static enum err_code write_idem(struct sqlite_store *s, const struct change_set *c, struct err *err)
{
    if (c->idem_add_count) {
        const void **rows = sqlite_fed_room(s, c->idem_add_count);
        for (size_t i = 0; i < c->idem_add_count; i++)
            rows[i] = &c->idem_add[i];
        if (feed_write(s->writer.db, &s->feed, s->idem_insert, &idem_table, rows, c->idem_add_count, err) !=
            ERR_OK)
            return err->code;
    }
    for (size_t i = 0; i < c->idem_drop_count; i++) {
        sqlite3_bind_int64(s->idem_drop, 1, c->idem_drop[i].job);
        if (sqlite_step_done(s->writer.db, s->idem_drop, "idem", err) != ERR_OK)
            return err->code;
    }
    return ERR_OK;
}

static enum err_code write_numbers(struct sqlite_store *s, const struct change_set *c, struct err *err)
{
    for (size_t i = 0; i < c->number_count; i++) {
        const struct store_number *m = &c->numbers[i];
        sqlite3_stmt *q = m->value ? s->number_put : s->number_drop;
        sqlite3_bind_text(q, 1, m->name, -1, SQLITE_STATIC);
        if (m->value)
            sqlite3_bind_int64(q, 2, m->value);
        if (sqlite_step_done(s->writer.db, q, "marks", err) != ERR_OK)
            return err->code;
    }
    return ERR_OK;
}

/* The number on disk may say less than the log does: the larger one counts. */
static int64_t next_chunk_after(const struct change_set *c)
{
    int64_t next = c->first_chunk + (int64_t)c->chunk_count;
    for (size_t i = 0; i < c->number_count; i++)
        if (strcmp(c->numbers[i].name, STORE_NUMBER_NEXT_CHUNK) == 0 && c->numbers[i].value > next)
            next = c->numbers[i].value;
    return next;
}

/* --- rows ---------------------------------------------------------------------------------------- */

const void **sqlite_fed_room(struct sqlite_store *s, size_t count)
{
    if (count > s->fed_capacity) {
        s->fed_capacity = count * 2;
        s->fed = must_realloc(s->fed, s->fed_capacity * sizeof *s->fed);
    }
    return s->fed;
}

/* Rows of a commit that go in together: the updates of tables that are replaced, and the inserts of each
 * table. */
enum { GROUP_INSERTS = SQLITE_REPLACED, GROUPS_MAX = GROUP_INSERTS + TABLES_MAX, GROUP_NONE, GROUP_DEFERRED };

static unsigned group_of(const struct sqlite_store *s, const struct row_change *r)
{
    if (deferred_rows_wait(s, r))
        return GROUP_DEFERRED;
    if (r->op == ROW_INSERT)
        return GROUP_INSERTS + r->table->number;
    if (counter_is_deferred(r))
        return GROUP_DEFERRED;
    for (unsigned i = 0; i < SQLITE_REPLACED && r->op == ROW_UPDATE; i++)
        if (r->table == replaced[i])
            return i;
    return GROUP_NONE;
}

static enum err_code write_group(struct sqlite_store *s, unsigned group, const void *const *rows,
                                 size_t count, struct err *err)
{
    bool updates = group < GROUP_INSERTS;
    const struct table *t = updates ? replaced[group] : tables[group - GROUP_INSERTS];
    sqlite3_stmt **slot = updates ? &s->replace[group] : &s->writer.rows[t->number].insert_fed;
    if (count >= FEED_ROWS_MIN) {
        if (!*slot && feed_prepare(s->writer.db, "INSERT", t, slot, err) != ERR_OK)
            return err->code;
        return feed_write(s->writer.db, &s->feed, *slot, t, rows, count, err);
    }
    for (size_t i = 0; i < count; i++) {
        struct row_change change = {t, updates ? ROW_UPDATE : ROW_INSERT, rows[i]};
        if (rows_write(&s->writer, &change, err) != ERR_OK)
            return err->code;
    }
    return ERR_OK;
}

/* Deletes and other updates in their order, then the groups. */
static enum err_code write_rows(struct sqlite_store *s, const struct change_set *c, struct err *err)
{
    const unsigned groups = GROUP_INSERTS + table_count;
    size_t begins[GROUPS_MAX], ends[GROUPS_MAX] = {0}; /* in `fed`; first `ends` counts */
    for (size_t i = 0; i < c->row_count; i++) {
        unsigned group = group_of(s, &c->rows[i]);
        if (group < GROUPS_MAX)
            ends[group]++;
        else if (group == GROUP_NONE && rows_write(&s->writer, &c->rows[i], err) != ERR_OK)
            return err->code;
    }
    for (size_t g = 0, at = 0; g < groups; g++) {
        begins[g] = at;
        at += ends[g];
        ends[g] = begins[g];
    }
    const void **fed = sqlite_fed_room(s, c->row_count);
    for (size_t i = 0; i < c->row_count; i++)
        if (group_of(s, &c->rows[i]) < GROUPS_MAX)
            fed[ends[group_of(s, &c->rows[i])]++] = c->rows[i].row;
    for (unsigned g = 0; g < groups; g++)
        if (write_group(s, g, fed + begins[g], ends[g] - begins[g], err) != ERR_OK)
            return err->code;
    return ERR_OK;
}

static enum err_code write_all(struct sqlite_store *s, const struct change_set *c, struct err *err)
{
    if (deferred_rows_write(s, c, err) != ERR_OK || deferred_write(s, c, err) != ERR_OK ||
        write_rows(s, c, err) != ERR_OK || write_idem(s, c, err) != ERR_OK)
        return err->code;
    return write_numbers(s, c, err);
}

enum err_code sqlite_begin(struct sqlite_store *s, struct err *err)
{
    if (!sqlite3_get_autocommit(s->writer.db))
        return ERR_OK;
    return sqlite_step_done(s->writer.db, s->begin, "begin", err);
}

void sqlite_abandon(struct store *base)
{
    struct sqlite_store *s = (struct sqlite_store *)base;
    struct err ignored; /* nothing was written, or another failure is the one to tell */
    if (!sqlite3_get_autocommit(s->writer.db))
        (void)!sqlite_step_done(s->writer.db, s->rollback, "rollback", &ignored);
}

enum err_code sqlite_commit_changes(struct store *base, const struct change_set *c, struct err *err)
{
    struct sqlite_store *s = (struct sqlite_store *)base;
    if (sqlite_is_gone(s, err) != ERR_OK || sqlite_begin(s, err) != ERR_OK)
        return err->code;
    if (write_all(s, c, err) == ERR_OK &&
        sqlite_step_done(s->writer.db, s->commit, "commit", err) == ERR_OK) {
        deferred_committed(s, c);
        deferred_rows_committed(s);
        client_tasks_apply(s->client_tasks, c->rows, c->row_count);
        row_cache_apply(s->row_cache, c->rows, c->row_count);
        base->next_chunk = next_chunk_after(c);
        position_committed(s);
        return ERR_OK;
    }
    deferred_rows_failed(s);
    row_cache_clear(s->row_cache); /* of a failed COMMIT not even SQLite knows what is in the file */
    sqlite_abandon(base);
    return err->code;
}

enum err_code sqlite_probe(struct store *base, struct err *err)
{
    struct sqlite_store *s = (struct sqlite_store *)base;
    if (sqlite_is_gone(s, err) != ERR_OK)
        return err->code;
    char sql[80]; /* the version it has: the first page is written and synced, no value changes */
    snprintf(sql, sizeof sql, "BEGIN IMMEDIATE; PRAGMA user_version=%d; COMMIT", STORE_SCHEMA_VERSION);
    int rc = sqlite3_exec(s->writer.db, sql, NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        return ERR_OK;
    sqlite_err(s->writer.db, rc, "probe", err);
    if (!sqlite3_get_autocommit(s->writer.db))
        sqlite3_exec(s->writer.db, "ROLLBACK", NULL, NULL, NULL);
    return err->code;
}
