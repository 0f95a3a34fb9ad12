#include "store/sqlite/sqlite_deferred_rows.h"

#include <stdlib.h>

#include "base/must.h"
#include "store/sqlite/sqlite_internal.h"

#include "base/banned.h"

enum {
    RUN_BYTES = 1024, /* a commit with no more than that for each run: a page each would cost more */
    SLICE_MIN = 64,
    DROP_BLOCKS = 8, /* with a commit */
    MERGE_AT_ONCE = 4096,
};

const struct deferred_kind *const deferred_kinds[DEFERRED_KINDS] = {
    [DEFERRED_RUN_INDEX] = &deferred_run_index, [DEFERRED_RUN_EVENTS] = &deferred_run_events};

int deferred_kind_of(const struct table *t)
{
    for (int i = 0; i < DEFERRED_KINDS; i++)
        if (deferred_kinds[i]->table == t)
            return i;
    return -1;
}

enum err_code deferred_sql(sqlite3 *db, const struct deferred_kind *k, const char *form, sqlite3_stmt **ret,
                           struct err *err)
{
    struct strbuf sql = {0};
    for (; *form; form++)
        if (*form == '@')
            strbuf_add_text(&sql, k->area);
        else
            strbuf_add_char(&sql, *form);
    enum err_code code = sqlite_prepare(db, sql.ptr, ret, err);
    strbuf_free(&sql);
    return code;
}

void deferred_rows_init(struct sqlite_store *s, const struct sqlite_options *o)
{
    const size_t wanted[DEFERRED_KINDS] = {o->index_group * sizeof(struct waiting_row), o->event_group};
    for (int i = 0; i < DEFERRED_KINDS; i++) {
        struct deferred_rows *d = &s->deferred_rows[i];
        d->kind = deferred_kinds[i];
        d->group = wanted[i] ? wanted[i] : deferred_kinds[i]->group_bytes;
        d->young = d->old = (struct waiting_set){.has_bytes = deferred_kinds[i]->has_bytes,
                                                 .rises = deferred_kinds[i]->rises};
        pthread_mutex_init(&d->lock, NULL);
    }
}

enum err_code deferred_rows_prepare(struct sqlite_store *s, struct err *err)
{
    sqlite3 *db = s->writer.db;
    for (int i = 0; i < DEFERRED_KINDS; i++) {
        struct deferred_rows *d = &s->deferred_rows[i];
        if (deferred_sql(db, d->kind, DEFERRED_BLOCKS_SQL, &d->blocks, err) != ERR_OK ||
            deferred_sql(db, d->kind, "INSERT INTO @(n,block) VALUES(?,?)", &d->put, err) != ERR_OK ||
            deferred_sql(db, d->kind, "DELETE FROM @ WHERE n<?", &d->drop, err) != ERR_OK ||
            feed_prepare(db, "INSERT OR IGNORE", d->kind->table, &d->merge, err) != ERR_OK)
            return err->code;
    }
    return ERR_OK;
}

void deferred_rows_close(struct sqlite_store *s)
{
    for (int i = 0; i < DEFERRED_KINDS; i++) {
        struct deferred_rows *d = &s->deferred_rows[i];
        sqlite3_finalize(d->blocks);
        sqlite3_finalize(d->put);
        sqlite3_finalize(d->drop);
        sqlite3_finalize(d->merge);
        waiting_free(&d->young);
        waiting_free(&d->old);
        waiting_sort_free(&d->sort);
        free(d->rows);
        strbuf_free(&d->block);
        pthread_mutex_destroy(&d->lock);
    }
}

/* The group is there: it becomes the old one, unless another still is. */
static void turn(struct deferred_rows *d)
{
    if (d->old.count || !d->young.count ||
        (d->young.bytes < d->group && d->next_block - d->first_block < d->kind->group_blocks))
        return;
    pthread_mutex_lock(&d->lock);
    struct waiting_set empty = d->old;
    d->old = d->young;
    d->young = empty;
    pthread_mutex_unlock(&d->lock);
    waiting_sort_start(&d->sort, &d->old);
    d->merged = 0;
    d->old_below = d->next_block;
}

bool deferred_block_take(const struct deferred_kind *k, struct waiting_set *into, int64_t number,
                         struct str block)
{
    char row[TABLE_ROW_BYTES_MAX] __attribute__((aligned(16)));
    struct str content;
    bool sound = block_content(block, &content);
    size_t i = into->count;
    waiting_begin(into, number);
    sound = sound && k->decode(content, into);
    for (; sound && i < into->count; i++)
        sound = k->unpack(&into->rows[i], row);
    return sound;
}

static bool load_block(int64_t number, struct str block, void *arg)
{
    struct deferred_rows *d = arg;
    d->first_block = d->first_block ? d->first_block : number;
    d->next_block = number + 1;
    return deferred_block_take(d->kind, &d->young, number, block);
}

enum err_code deferred_rows_load(struct sqlite_store *s, struct err *err)
{
    for (int i = 0; i < DEFERRED_KINDS; i++) {
        struct deferred_rows *d = &s->deferred_rows[i];
        if (blocks_each(s->writer.db, d->blocks, d->kind->area, d->kind->what, load_block, d, err) != ERR_OK)
            return err->code;
        d->next_block = d->next_block ? d->next_block : 1;
        d->first_block = d->first_block ? d->first_block : d->next_block;
        d->held_from = d->first_block;
        turn(d);
    }
    return ERR_OK;
}

/* --- merging ------------------------------------------------------------------------------------- */

static enum err_code drop_blocks(struct sqlite_store *s, struct deferred_rows *d, int64_t below,
                                 struct err *err)
{
    d->drop_below = below;
    sqlite3_bind_int64(d->drop, 1, below);
    return sqlite_step_done(s->writer.db, d->drop, d->kind->area, err);
}

static enum err_code merge_rows(struct sqlite_store *s, struct deferred_rows *d,
                                const struct waiting_row *rows, size_t count, struct err *err)
{
    const struct deferred_kind *k = d->kind;
    const void **fed = sqlite_fed_room(s, count);
    if (count > d->row_capacity) {
        d->row_capacity = count * 2;
        d->rows = must_realloc(d->rows, d->row_capacity * k->table->row_size);
    }
    for (size_t i = 0; i < count; i++) {
        char *row = d->rows + i * k->table->row_size;
        bool whole = k->unpack(&rows[i], row);
        MUST(whole);
        if (k->to_table)
            k->to_table(s, row);
        fed[i] = row;
    }
    return feed_write(s->writer.db, &s->feed, d->merge, k->table, fed, count, err);
}

/* More than came with the commit, so that the old ones are merged before the young ones are as many. */
static enum err_code merge_slice(struct sqlite_store *s, struct deferred_rows *d, size_t came,
                                 struct err *err)
{
    size_t left = d->sort.count - d->merged, slice = came + came / 4 + SLICE_MIN;
    if (!left) {
        int64_t below = d->first_block + DROP_BLOCKS;
        return drop_blocks(s, d, below < d->old_below ? below : d->old_below, err);
    }
    d->slice = slice < left ? slice : left;
    waiting_sort_until(&d->sort, d->merged + d->slice);
    return merge_rows(s, d, d->sort.rows + d->merged, d->slice, err);
}

static enum err_code merge_set(struct sqlite_store *s, struct deferred_rows *d, const struct waiting_set *w,
                               struct err *err)
{
    for (size_t at = 0; at < w->count; at += MERGE_AT_ONCE) {
        size_t left = w->count - at;
        if (merge_rows(s, d, w->rows + at, left < MERGE_AT_ONCE ? left : MERGE_AT_ONCE, err) != ERR_OK)
            return err->code;
    }
    return ERR_OK;
}

/* Nothing may wait that would bring back what the commit changes or deletes. Its own are rows like any. */
static enum err_code merge_all(struct sqlite_store *s, struct deferred_rows *d, const struct change_set *c,
                               struct err *err)
{
    for (size_t i = 0; i < c->row_count && d->kind->to_table; i++)
        if (c->rows[i].table == d->kind->table)
            d->kind->to_table(s, c->rows[i].row);
    if (merge_set(s, d, &d->old, err) != ERR_OK || merge_set(s, d, &d->young, err) != ERR_OK)
        return err->code;
    return drop_blocks(s, d, d->next_block, err);
}

static void end_merge(struct deferred_rows *d)
{
    pthread_mutex_lock(&d->lock);
    waiting_free(&d->old);
    if (d->all_at_once)
        waiting_free(&d->young);
    d->held_from = d->old_below;
    pthread_mutex_unlock(&d->lock);
    waiting_sort_free(&d->sort);
    d->merged = 0;
}

/* --- a commit -------------------------------------------------------------------------------------- */

struct survey {
    size_t rows, bytes, runs; /* runs: stretches of neighbours */
    bool others;              /* not all are inserts */
};

/* Leaves its rows in the store's room for pointers. */
static struct survey look_at(struct sqlite_store *s, const struct deferred_kind *k,
                             const struct change_set *c)
{
    const void **rows = sqlite_fed_room(s, c->row_count);
    struct survey y = {0};
    int64_t run = 0;
    for (size_t i = 0; i < c->row_count; i++) {
        if (c->rows[i].table != k->table)
            continue;
        int64_t its = row_int(c->rows[i].row, &k->table->columns[0]);
        y.others = y.others || c->rows[i].op != ROW_INSERT;
        y.runs += !y.rows || its != run;
        rows[y.rows++] = c->rows[i].row;
        y.bytes += k->size ? k->size(c->rows[i].row) : 0;
        run = its;
    }
    return y;
}

/* Readers do not see the rows before the commit: it brings the block. */
static enum err_code write_block(struct sqlite_store *s, struct deferred_rows *d, size_t count,
                                 struct err *err)
{
    block_begin(&d->block);
    d->kind->encode(&d->block, s->fed, count);
    struct str content = block_end(&d->block);
    pthread_mutex_lock(&d->lock);
    waiting_begin(&d->young, d->next_block);
    bool fits = d->kind->decode(content, &d->young);
    pthread_mutex_unlock(&d->lock);
    if (!fits)
        return err_set(err, ERR_STORE_CORRUPT, "a row of %s is written twice, or in a wrong order",
                       d->kind->table->name);
    sqlite3_bind_int64(d->put, 1, d->next_block);
    sqlite3_bind_blob64(d->put, 2, d->block.ptr, d->block.len, SQLITE_STATIC);
    return sqlite_step_done(s->writer.db, d->put, d->kind->area, err);
}

static enum err_code write_kind(struct sqlite_store *s, struct deferred_rows *d, const struct change_set *c,
                                struct err *err)
{
    struct survey y = look_at(s, d->kind, c);
    d->all_at_once = y.others;
    d->waits = y.rows && !y.others && y.bytes <= y.runs * RUN_BYTES;
    d->slice = 0;
    d->drop_below = 0;
    if (!y.rows)
        return ERR_OK;
    if (d->all_at_once)
        return merge_all(s, d, c, err);
    if (d->waits && write_block(s, d, y.rows, err) != ERR_OK)
        return err->code;
    return d->old.count ? merge_slice(s, d, d->waits ? y.rows : 0, err) : ERR_OK;
}

enum err_code deferred_rows_write(struct sqlite_store *s, const struct change_set *c, struct err *err)
{
    for (int i = 0; i < DEFERRED_KINDS; i++)
        if (write_kind(s, &s->deferred_rows[i], c, err) != ERR_OK)
            return err->code;
    return ERR_OK;
}

bool deferred_rows_wait(const struct sqlite_store *s, const struct row_change *r)
{
    int kind = deferred_kind_of(r->table);
    return kind >= 0 && s->deferred_rows[kind].waits;
}

static void committed(struct deferred_rows *d)
{
    d->merged += d->slice;
    if (d->drop_below)
        d->first_block = d->drop_below;
    if (d->all_at_once)
        d->old_below = d->next_block;
    if (d->all_at_once || (d->old.count && d->first_block >= d->old_below))
        end_merge(d);
    d->next_block += d->waits;
    turn(d);
}

void deferred_rows_committed(struct sqlite_store *s)
{
    for (int i = 0; i < DEFERRED_KINDS; i++)
        committed(&s->deferred_rows[i]);
}

void deferred_rows_failed(struct sqlite_store *s)
{
    for (int i = 0; i < DEFERRED_KINDS; i++) {
        struct deferred_rows *d = &s->deferred_rows[i];
        pthread_mutex_lock(&d->lock);
        waiting_take_back(&d->young, d->next_block);
        pthread_mutex_unlock(&d->lock);
    }
}
