#include "store/sqlite/sqlite_events.h"

#include <stdlib.h>

#include "base/must.h"
#include "store/sqlite/sqlite_internal.h"

#include "base/banned.h"

enum {
    GROUP_BYTES = 16 << 20, /* of ten thousand busy runs each has some ten events in it */
    GROUP_BLOCKS = 8192,
    RUN_BYTES = 1024, /* a commit with no more than that for each run: a page each would cost more */
    EVENT_BYTES = 96, /* of an event beside its texts, about */
    SLICE_MIN = 64,
    DROP_BLOCKS = 8, /* with a commit */
};

void events_init(struct sqlite_events *e, size_t group)
{
    e->group = group ? group : GROUP_BYTES;
    pthread_mutex_init(&e->lock, NULL);
}

enum err_code events_prepare(struct sqlite_store *s, struct err *err)
{
    struct sqlite_events *e = &s->events;
    sqlite3 *db = s->writer.db;
    if (sqlite_prepare(db, EVENT_BLOCKS_SQL, &e->blocks, err) != ERR_OK ||
        sqlite_prepare(db, "INSERT INTO event_packs(n,events) VALUES(?,?)", &e->put, err) != ERR_OK ||
        sqlite_prepare(db, "DELETE FROM event_packs WHERE n<?", &e->drop, err) != ERR_OK)
        return err->code;
    return feed_prepare(db, "INSERT OR IGNORE", &table_run_event_row, &e->merge, err);
}

void events_close(struct sqlite_store *s)
{
    struct sqlite_events *e = &s->events;
    sqlite3_finalize(e->blocks);
    sqlite3_finalize(e->put);
    sqlite3_finalize(e->drop);
    sqlite3_finalize(e->merge);
    waiting_free(&e->young);
    waiting_free(&e->old);
    free(e->order);
    free(e->rows);
    strbuf_free(&e->block);
    pthread_mutex_destroy(&e->lock);
}

/* The group is there: it becomes the old one, unless another still is. */
static void turn(struct sqlite_events *e)
{
    if (e->old.count || !e->young.count ||
        (e->young.bytes < e->group && e->next_block - e->first_block < GROUP_BLOCKS))
        return;
    pthread_mutex_lock(&e->lock);
    waiting_free(&e->old);
    e->old = e->young;
    e->young = (struct waiting_events){0};
    pthread_mutex_unlock(&e->lock);
    e->order = waiting_in_order(&e->old);
    e->merged = (struct event_place){0};
    e->old_below = e->next_block;
}

static bool put_young(int64_t block, int64_t run, int64_t seq, struct str packed, void *arg)
{
    struct sqlite_events *e = arg;
    struct run_event_row row;
    e->first_block = e->first_block ? e->first_block : block;
    e->next_block = block + 1;
    return waiting_row(run, seq, packed, &row) && waiting_put(&e->young, run, seq, block, packed);
}

enum err_code events_load(struct sqlite_store *s, struct err *err)
{
    struct sqlite_events *e = &s->events;
    if (event_blocks_each(s->writer.db, e->blocks, put_young, e, err) != ERR_OK)
        return err->code;
    e->next_block = e->next_block ? e->next_block : 1;
    e->first_block = e->first_block ? e->first_block : e->next_block;
    e->held_from = e->first_block;
    turn(e);
    return ERR_OK;
}

/* --- merging ------------------------------------------------------------------------------------- */

static enum err_code drop_blocks(struct sqlite_store *s, int64_t below, struct err *err)
{
    s->events.drop_below = below;
    sqlite3_bind_int64(s->events.drop, 1, below);
    return sqlite_step_done(s->writer.db, s->events.drop, "event_packs", err);
}

static enum err_code merge_rows(struct sqlite_store *s, size_t count, struct err *err)
{
    struct sqlite_events *e = &s->events;
    const void **fed = sqlite_fed_room(s, count);
    for (size_t i = 0; i < count; i++)
        fed[i] = &e->rows[i];
    return feed_write(s->writer.db, &s->feed, e->merge, &table_run_event_row, fed, count, err);
}

/* The next rows of a set in its order, `max` at most; *at moves behind them. */
static size_t take_rows(struct sqlite_events *e, const struct waiting_events *w,
                        const struct run_waiting *const *order, struct event_place *at, size_t max)
{
    size_t count = 0;
    if (max > e->row_capacity) {
        e->row_capacity = max * 2;
        e->rows = must_realloc(e->rows, e->row_capacity * sizeof *e->rows);
    }
    while (at->run < w->by_run.count) {
        const struct run_waiting *r = order[at->run];
        for (; at->event < r->count && count < max; at->event++) {
            const struct waiting_event *w1 = r->events[at->event];
            struct str packed = {w1->packed, w1->bytes};
            bool whole = waiting_row(r->run, w1->seq, packed, &e->rows[count++]);
            MUST(whole);
        }
        if (at->event < r->count)
            break;
        *at = (struct event_place){at->run + 1, 0};
    }
    return count;
}

/* More than came with the commit, so that the old ones are merged before the young ones are as many. */
static enum err_code merge_slice(struct sqlite_store *s, size_t came, struct err *err)
{
    struct sqlite_events *e = &s->events;
    if (e->merged.run == e->old.by_run.count) {
        int64_t below = e->first_block + DROP_BLOCKS;
        return drop_blocks(s, below < e->old_below ? below : e->old_below, err);
    }
    size_t count = take_rows(e, &e->old, e->order, &e->until, came + came / 4 + SLICE_MIN);
    return merge_rows(s, count, err);
}

static enum err_code merge_set(struct sqlite_store *s, const struct waiting_events *w, struct err *err)
{
    enum { AT_ONCE = 4096 };
    const struct run_waiting **order = waiting_in_order(w);
    struct event_place at = {0};
    size_t count;
    enum err_code code = ERR_OK;
    while (code == ERR_OK && (count = take_rows(&s->events, w, order, &at, AT_ONCE)))
        code = merge_rows(s, count, err);
    free(order);
    return code;
}

/* An event is changed or deleted (Weir itself does neither): nothing may wait that would bring it back. */
static enum err_code merge_all(struct sqlite_store *s, struct err *err)
{
    if (merge_set(s, &s->events.old, err) != ERR_OK || merge_set(s, &s->events.young, err) != ERR_OK)
        return err->code;
    return drop_blocks(s, s->events.next_block, err);
}

static void end_merge(struct sqlite_events *e)
{
    pthread_mutex_lock(&e->lock);
    waiting_free(&e->old);
    e->held_from = e->old_below;
    pthread_mutex_unlock(&e->lock);
    free(e->order);
    e->order = NULL;
}

/* --- a commit -------------------------------------------------------------------------------------- */

struct survey {
    size_t events, bytes, runs; /* runs: stretches of neighbours */
    bool others;                /* not all are inserts */
};

static struct survey look_at(const struct change_set *c)
{
    struct survey y = {0};
    int64_t run = 0;
    for (size_t i = 0; i < c->row_count; i++) {
        if (c->rows[i].table != &table_run_event_row)
            continue;
        const struct run_event_row *e = c->rows[i].row;
        y.others = y.others || c->rows[i].op != ROW_INSERT;
        y.runs += !y.events || e->run != run;
        y.events++;
        y.bytes += EVENT_BYTES + e->payload.len + e->step.len + e->name.len + e->plan.len + e->version.len;
        run = e->run;
    }
    return y;
}

static enum err_code put_all(struct sqlite_events *e, const struct change_set *c, struct err *err)
{
    bool fits = true;
    event_block_begin(&e->block);
    pthread_mutex_lock(&e->lock); /* readers do not see them before the commit: it brings the block */
    for (size_t i = 0; fits && i < c->row_count; i++) {
        const struct run_event_row *row = c->rows[i].row;
        if (c->rows[i].table == &table_run_event_row)
            fits = waiting_put(&e->young, row->run, row->seq, e->next_block, event_block_add(&e->block, row));
    }
    pthread_mutex_unlock(&e->lock);
    event_block_end(&e->block);
    return fits ? ERR_OK
                : err_set(err, ERR_STORE_CORRUPT, "an event of a run is written twice, or in a wrong order");
}

static enum err_code write_block(struct sqlite_store *s, const struct change_set *c, struct err *err)
{
    struct sqlite_events *e = &s->events;
    if (put_all(e, c, err) != ERR_OK)
        return err->code;
    sqlite3_bind_int64(e->put, 1, e->next_block);
    sqlite3_bind_blob64(e->put, 2, e->block.ptr, e->block.len, SQLITE_STATIC);
    return sqlite_step_done(s->writer.db, e->put, "event_packs", err);
}

enum err_code events_write(struct sqlite_store *s, const struct change_set *c, struct err *err)
{
    struct sqlite_events *e = &s->events;
    struct survey y = look_at(c);
    e->all_at_once = y.others;
    e->rides = y.events && !y.others && y.bytes <= y.runs * RUN_BYTES;
    e->until = e->merged;
    e->drop_below = 0;
    if (!y.events)
        return ERR_OK;
    if (e->all_at_once)
        return merge_all(s, err);
    if (e->rides && write_block(s, c, err) != ERR_OK)
        return err->code;
    return e->old.count ? merge_slice(s, e->rides ? y.events : 0, err) : ERR_OK;
}

bool events_ride(const struct sqlite_store *s, const struct row_change *r)
{
    return s->events.rides && r->table == &table_run_event_row;
}

void events_committed(struct sqlite_store *s)
{
    struct sqlite_events *e = &s->events;
    e->merged = e->until;
    if (e->drop_below)
        e->first_block = e->drop_below;
    if (e->all_at_once) {
        e->old_below = e->next_block;
        end_merge(e);
        pthread_mutex_lock(&e->lock);
        waiting_free(&e->young);
        pthread_mutex_unlock(&e->lock);
        return;
    }
    if (e->old.count && e->first_block >= e->old_below)
        end_merge(e);
    e->next_block += e->rides;
    turn(e);
}

void events_failed(struct sqlite_store *s, const struct change_set *c)
{
    struct sqlite_events *e = &s->events;
    if (!e->rides)
        return;
    pthread_mutex_lock(&e->lock);
    for (size_t i = 0; i < c->row_count; i++)
        if (c->rows[i].table == &table_run_event_row)
            waiting_take_back(&e->young, ((const struct run_event_row *)c->rows[i].row)->run, e->next_block);
    pthread_mutex_unlock(&e->lock);
}
