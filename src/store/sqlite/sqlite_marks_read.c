/* Marks of run events as a connection sees them: `run_marks` with the packs laid over it. */
#include <stdlib.h>

#include "base/must.h"
#include "store/sqlite/sqlite_internal.h"

#include "base/banned.h"

struct sought {
    int64_t place;
    bool found;
};

static void note_place(const struct run_mark_row *mark, void *arg)
{
    *(struct sought *)arg = (struct sought){mark->place, true};
}

enum err_code marks_fetch(struct sqlite_connection *c, sqlite3_stmt *packs, struct run_mark_row *row,
                          bool *ret_found, struct err *err)
{
    if (rows_fetch(c, &table_run_mark_row, row, NULL, ret_found, err) != ERR_OK)
        return err->code;
    if (*ret_found)
        return ERR_OK;
    struct sought sought = {0};
    struct mark_filter f = {&row->run, &row->hash};
    if (mark_packs_each(c->db, packs, f, note_place, &sought, NULL, NULL, err) != ERR_OK)
        return err->code;
    *ret_found = sought.found;
    row->place = sought.place;
    return ERR_OK;
}

/* --- all, or all of a run -------------------------------------------------------------------------- */

struct laid_over {
    struct mark_set waiting;
    struct mark_sort sort;
    size_t at, left; /* the next one that waits; how many more are to be told */
    const struct run_mark_row *from;
    store_row_fn *fn;
    void *arg;
    bool stopped;
};

static void note_waiting(const struct run_mark_row *mark, void *arg)
{
    struct laid_over *l = arg;
    if (!l->from || mark->hash >= l->from->hash)
        mark_set_put(&l->waiting, mark);
}

static bool tell(struct laid_over *l, const struct run_mark_row *mark)
{
    if (!l->left || !l->fn(mark, l->arg))
        l->stopped = true;
    else
        l->stopped = --l->left == 0;
    return !l->stopped;
}

/* Those that wait and come before a merged one; one that is both is told once. */
static bool tell_merged(const void *row, void *arg)
{
    struct laid_over *l = arg;
    int order = 1;
    while (l->at < l->sort.count && (order = mark_order(&l->sort.rows[l->at], row)) <= 0) {
        l->at++;
        if (order < 0 && !tell(l, &l->sort.rows[l->at - 1]))
            return false;
    }
    return tell(l, row);
}

enum err_code marks_scan(struct sqlite_connection *c, sqlite3_stmt *packs, const struct run_mark_row *from,
                         size_t max, store_row_fn *fn, void *arg, struct err *err)
{
    struct laid_over l = {.left = max, .from = from, .fn = fn, .arg = arg, .stopped = !max};
    struct mark_filter f = {.run = from ? &from->run : NULL};
    enum err_code code = mark_packs_each(c->db, packs, f, note_waiting, &l, NULL, NULL, err);
    mark_sort_start(&l.sort, &l.waiting);
    mark_sort_until(&l.sort, l.sort.count);
    mark_set_free(&l.waiting);
    if (code == ERR_OK && from)
        code = rows_range(c, &table_run_mark_row, from, max, tell_merged, &l, err);
    else if (code == ERR_OK)
        code = rows_scan(c, &table_run_mark_row, tell_merged, &l, err);
    while (code == ERR_OK && !l.stopped && l.at < l.sort.count)
        (void)tell(&l, &l.sort.rows[l.at++]);
    mark_sort_free(&l.sort);
    return code;
}
