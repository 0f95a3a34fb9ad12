/* Index entries of run events as a connection sees them: `run_marks` with the blocks laid over it. */
#include <stdlib.h>

#include "base/must.h"
#include "store/sqlite/sqlite_internal.h"

#include "base/banned.h"

struct sought {
    int64_t place;
    bool found;
};

static void note_place(const struct run_index_row *entry, void *arg)
{
    *(struct sought *)arg = (struct sought){entry->place, true};
}

enum err_code run_index_fetch(struct sqlite_connection *c, sqlite3_stmt *blocks, struct run_index_row *row,
                              bool *ret_found, struct err *err)
{
    if (rows_fetch(c, &table_run_index_row, row, NULL, ret_found, err) != ERR_OK)
        return err->code;
    if (*ret_found)
        return ERR_OK;
    struct sought sought = {0};
    struct index_filter f = {&row->run, &row->hash};
    if (index_blocks_each(c->db, blocks, f, note_place, &sought, NULL, NULL, err) != ERR_OK)
        return err->code;
    *ret_found = sought.found;
    row->place = sought.place;
    return ERR_OK;
}

/* --- all, or all of a run -------------------------------------------------------------------------- */

struct laid_over {
    struct index_set waiting;
    struct index_sort sort;
    size_t at, left; /* the next one that waits; how many more are to be told */
    const struct run_index_row *from;
    store_row_fn *fn;
    void *arg;
    bool stopped;
};

static void note_waiting(const struct run_index_row *entry, void *arg)
{
    struct laid_over *l = arg;
    if (!l->from || entry->hash >= l->from->hash)
        index_set_put(&l->waiting, entry);
}

static bool tell(struct laid_over *l, const struct run_index_row *entry)
{
    if (!l->left || !l->fn(entry, l->arg))
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
    while (l->at < l->sort.count && (order = index_order(&l->sort.rows[l->at], row)) <= 0) {
        l->at++;
        if (order < 0 && !tell(l, &l->sort.rows[l->at - 1]))
            return false;
    }
    return tell(l, row);
}

enum err_code run_index_scan(struct sqlite_connection *c, sqlite3_stmt *blocks,
                             const struct run_index_row *from, size_t max, store_row_fn *fn, void *arg,
                             struct err *err)
{
    struct laid_over l = {.left = max, .from = from, .fn = fn, .arg = arg, .stopped = !max};
    struct index_filter f = {.run = from ? &from->run : NULL};
    enum err_code code = index_blocks_each(c->db, blocks, f, note_waiting, &l, NULL, NULL, err);
    index_sort_start(&l.sort, &l.waiting);
    index_sort_until(&l.sort, l.sort.count);
    index_set_free(&l.waiting);
    if (code == ERR_OK && from)
        code = rows_range(c, &table_run_index_row, from, max, tell_merged, &l, err);
    else if (code == ERR_OK)
        code = rows_scan(c, &table_run_index_row, tell_merged, &l, err);
    while (code == ERR_OK && !l.stopped && l.at < l.sort.count)
        (void)tell(&l, &l.sort.rows[l.at++]);
    index_sort_free(&l.sort);
    return code;
}
