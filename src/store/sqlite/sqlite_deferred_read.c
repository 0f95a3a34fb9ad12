/* Deferred rows as a connection sees them: the table with what waits laid over it, both in one snapshot
 * (sqlite_reader.c). To look at what waits first and at the table second is not enough: between the looks the
 * next event of a run may come to wait and the one behind it go straight to the table. */
#include <stdlib.h>

#include "base/must.h"
#include "store/sqlite/sqlite_internal.h"

#include "base/banned.h"

/* --- what waits -------------------------------------------------------------------------------------- */

struct wanted {
    int64_t run, key;
    size_t max;
    bool one; /* it alone; else it and what follows in its run */
};

static struct wanted wanted_of(const struct table *t, const void *row, size_t max, bool one)
{
    return (struct wanted){row_int(row, &t->columns[0]), row_int(row, &t->columns[1]), max, one};
}

static void copy_set(struct waiting_list *l, const struct waiting_set *s, const struct wanted *w,
                     size_t until)
{
    if (w->one)
        waiting_copy(l, s, w->run, w->key, until);
    else
        waiting_copy_run(l, s, w->run, w->key, until, w->max);
}

/* False: the snapshot, which has the blocks [first, last], has some that are not in memory any more. */
static bool copy_of_writer(struct deferred_rows *d, struct waiting_list *l, const struct wanted *w,
                           int64_t first, int64_t last)
{
    pthread_mutex_lock(&d->lock);
    bool held = first >= d->held_from;
    if (held) {
        copy_set(l, &d->old, w, waiting_until(&d->old, last));
        copy_set(l, &d->young, w, waiting_until(&d->young, last));
    }
    pthread_mutex_unlock(&d->lock);
    return held;
}

struct own_blocks {
    const struct deferred_kind *kind;
    struct waiting_set *set;
};

static bool take_own(int64_t number, struct str block, void *arg)
{
    const struct own_blocks *o = arg;
    return deferred_block_take(o->kind, o->set, number, block);
}

/* The blocks of this snapshot, into a set of the reader's own. */
static enum err_code load_own(struct sqlite_reader *r, const struct deferred_kind *k,
                              struct deferred_reader *mine, struct err *err)
{
    struct own_blocks o = {k, &mine->own};
    waiting_free(&mine->own);
    mine->own.has_bytes = k->has_bytes;
    mine->own.rises = k->rises;
    enum err_code code = blocks_each(r->connection.db, mine->blocks, k->area, k->what, take_own, &o, err);
    mine->has_own = code == ERR_OK;
    return code;
}

static enum err_code read_span(struct sqlite_reader *r, sqlite3_stmt *span, int64_t *ret_first,
                               int64_t *ret_last, struct err *err)
{
    int rc = sqlite3_step(span);
    *ret_first = rc == SQLITE_ROW ? sqlite3_column_int64(span, 0) : 0;
    *ret_last = rc == SQLITE_ROW ? sqlite3_column_int64(span, 1) : 0;
    sqlite3_reset(span);
    return rc == SQLITE_ROW ? ERR_OK : sqlite_err(r->connection.db, rc, "deferred rows", err);
}

static enum err_code copy_waiting(struct sqlite_reader *r, int kind, const struct wanted *w,
                                  struct waiting_list *l, struct err *err)
{
    struct deferred_reader *mine = &r->deferred[kind];
    struct sqlite_store *s = (struct sqlite_store *)r->base.store;
    int64_t first, last;
    if (!mine->has_own) {
        if (read_span(r, mine->span, &first, &last, err) != ERR_OK)
            return err->code;
        if (!last || (s && copy_of_writer(&s->deferred_rows[kind], l, w, first, last)))
            return ERR_OK;
        if (load_own(r, deferred_kinds[kind], mine, err) != ERR_OK)
            return err->code;
    }
    copy_set(l, &mine->own, w, mine->own.count);
    return ERR_OK;
}

/* --- laid over the table ------------------------------------------------------------------------------ */

/* The texts of the row are its reader's now. */
static void take_texts(const struct table *t, void *row, struct arena *a)
{
    for (unsigned i = t->key_count; a && i < t->column_count; i++) {
        struct str *s = (struct str *)(void *)((char *)row + t->columns[i].offset);
        if (t->columns[i].type != COLUMN_INT && s->ptr)
            *s = arena_str(a, *s);
    }
}

static void unpack(const struct deferred_kind *k, const struct waiting_row *w, void *row)
{
    bool whole = k->unpack(w, row);
    MUST(whole);
}

struct laid_over {
    const struct deferred_kind *kind;
    const struct waiting_row *rows; /* in their order */
    size_t count, at, left;         /* the next one that waits; how many more are to be told */
    store_row_fn *fn;
    void *arg;
    bool stopped;
};

static bool tell(struct laid_over *l, const void *row)
{
    l->stopped = !l->left || !l->fn(row, l->arg) || --l->left == 0;
    return !l->stopped;
}

static bool tell_waiting(struct laid_over *l)
{
    char row[TABLE_ROW_BYTES_MAX] __attribute__((aligned(16)));
    unpack(l->kind, &l->rows[l->at++], row);
    return tell(l, row);
}

/* Those that wait and come before a merged one; one that is both is told once. */
static bool tell_merged(const void *row, void *arg)
{
    struct laid_over *l = arg;
    const struct table *t = l->kind->table;
    struct waiting_row merged = {.run = row_int(row, &t->columns[0]), .key = row_int(row, &t->columns[1])};
    int order = 1;
    while (l->at < l->count && (order = waiting_order(&l->rows[l->at], &merged)) < 0)
        if (!tell_waiting(l))
            return false;
    l->at += l->at < l->count && order == 0;
    return tell(l, row);
}

static enum err_code lay_over(struct sqlite_connection *c, struct laid_over *l, const void *from,
                              struct err *err)
{
    const struct table *t = l->kind->table;
    enum err_code code =
        from ? rows_range(c, t, from, l->left, tell_merged, l, err) : rows_scan(c, t, tell_merged, l, err);
    while (code == ERR_OK && !l->stopped && l->at < l->count)
        (void)tell_waiting(l);
    return code;
}

static enum err_code range(struct sqlite_connection *c, const struct deferred_kind *k,
                           const struct waiting_list *waiting, const void *from, size_t max, store_row_fn *fn,
                           void *arg, struct err *err)
{
    if (waiting->count && !k->rises)
        qsort(waiting->rows, waiting->count, sizeof *waiting->rows, waiting_compare);
    struct laid_over l = {k, waiting->rows, waiting->count, 0, max, fn, arg, !max};
    return lay_over(c, &l, from, err);
}

/* --- the writer ---------------------------------------------------------------------------------------- */

enum err_code deferred_find(struct sqlite_store *s, int kind, void *row, struct arena *a, bool *ret_found,
                            struct err *err)
{
    const struct deferred_rows *d = &s->deferred_rows[kind];
    const struct deferred_kind *k = d->kind;
    struct wanted w = wanted_of(k->table, row, 1, true);
    const struct waiting_row *found = waiting_find(&d->young, w.run, w.key, SIZE_MAX);
    if (!found)
        found = waiting_find(&d->old, w.run, w.key, SIZE_MAX);
    *ret_found = found != NULL;
    if (found) {
        unpack(k, found, row);
        take_texts(k->table, row, a);
    }
    if (found || (k->lacks && k->lacks(s, row)))
        return ERR_OK;
    return rows_fetch(&s->writer, k->table, row, a, ret_found, err);
}

enum err_code deferred_find_range(struct sqlite_store *s, int kind, const void *from, size_t max,
                                  store_row_fn *fn, void *arg, struct err *err)
{
    const struct deferred_rows *d = &s->deferred_rows[kind];
    struct wanted w = wanted_of(d->kind->table, from, max, false);
    struct waiting_list waiting = {0};
    copy_set(&waiting, &d->old, &w, d->old.count);
    copy_set(&waiting, &d->young, &w, d->young.count);
    enum err_code code = range(&s->writer, d->kind, &waiting, from, max, fn, arg, err);
    waiting_list_free(&waiting);
    return code;
}

/* --- readers ------------------------------------------------------------------------------------------- */

enum err_code deferred_reader_prepare(struct sqlite_reader *r, struct err *err)
{
    static const char span[] = "SELECT coalesce((SELECT min(n) FROM @),0),coalesce((SELECT max(n) FROM @),0)";
    for (int i = 0; i < DEFERRED_KINDS; i++)
        if (deferred_sql(r->connection.db, deferred_kinds[i], DEFERRED_BLOCKS_SQL, &r->deferred[i].blocks,
                         err) != ERR_OK ||
            deferred_sql(r->connection.db, deferred_kinds[i], span, &r->deferred[i].span, err) != ERR_OK)
            return err->code;
    return ERR_OK;
}

void deferred_reader_forget(struct sqlite_reader *r)
{
    for (int i = 0; i < DEFERRED_KINDS; i++) {
        waiting_free(&r->deferred[i].own);
        r->deferred[i].has_own = false;
    }
}

void deferred_reader_close(struct sqlite_reader *r)
{
    deferred_reader_forget(r);
    for (int i = 0; i < DEFERRED_KINDS; i++) {
        sqlite3_finalize(r->deferred[i].blocks);
        sqlite3_finalize(r->deferred[i].span);
    }
}

enum err_code deferred_read(struct sqlite_reader *r, int kind, void *row, struct arena *a, bool *ret_found,
                            struct err *err)
{
    const struct deferred_kind *k = deferred_kinds[kind];
    struct wanted w = wanted_of(k->table, row, 1, true);
    struct waiting_list waiting = {0};
    enum err_code code = copy_waiting(r, kind, &w, &waiting, err);
    *ret_found = waiting.count > 0;
    if (*ret_found) {
        unpack(k, &waiting.rows[0], row);
        take_texts(k->table, row, a);
    } else if (code == ERR_OK) {
        code = rows_fetch(&r->connection, k->table, row, a, ret_found, err);
    }
    waiting_list_free(&waiting);
    return code;
}

enum err_code deferred_read_range(struct sqlite_reader *r, int kind, const void *from, size_t max,
                                  store_row_fn *fn, void *arg, struct err *err)
{
    const struct deferred_kind *k = deferred_kinds[kind];
    struct wanted w = wanted_of(k->table, from, max, false);
    struct waiting_list waiting = {0};
    enum err_code code = copy_waiting(r, kind, &w, &waiting, err);
    if (code == ERR_OK)
        code = range(&r->connection, k, &waiting, from, max, fn, arg, err);
    waiting_list_free(&waiting);
    return code;
}

enum err_code deferred_read_all(struct sqlite_reader *r, int kind, store_row_fn *fn, void *arg,
                                struct err *err)
{
    const struct deferred_kind *k = deferred_kinds[kind];
    struct deferred_reader *mine = &r->deferred[kind];
    struct waiting_sort sort;
    if (!mine->has_own && load_own(r, k, mine, err) != ERR_OK)
        return err->code;
    waiting_sort_start(&sort, &mine->own);
    waiting_sort_until(&sort, sort.count);
    struct laid_over l = {k, sort.rows, sort.count, 0, SIZE_MAX, fn, arg, false};
    enum err_code code = lay_over(&r->connection, &l, NULL, err);
    waiting_sort_free(&sort);
    return code;
}
