/* Events of runs as a connection sees them: `run_events` with those that wait laid over it, both in one
 * snapshot (sqlite_reader.c). */
#include <stdlib.h>

#include "base/must.h"
#include "store/sqlite/sqlite_internal.h"

#include "base/banned.h"

/* Events of one run that wait, copied: a reader's own. */
struct copied {
    struct {
        int64_t seq;
        size_t at, len;
    } * list;
    size_t count, capacity, max;
    struct strbuf bytes;
};

static void copied_free(struct copied *c)
{
    free(c->list);
    strbuf_free(&c->bytes);
}

static bool copied_row(const struct copied *c, size_t i, int64_t run, struct run_event_row *ret_row)
{
    struct str packed = {c->bytes.ptr + c->list[i].at, c->list[i].len};
    return waiting_row(run, c->list[i].seq, packed, ret_row);
}

static void copy_one(struct copied *c, const struct waiting_event *e)
{
    if (c->count == c->capacity) {
        c->capacity = c->capacity ? c->capacity * 2 : 16;
        c->list = must_realloc(c->list, c->capacity * sizeof *c->list);
    }
    c->list[c->count].seq = e->seq;
    c->list[c->count].at = c->bytes.len;
    c->list[c->count++].len = e->bytes;
    strbuf_add(&c->bytes, e->packed, e->bytes);
}

/* Those from blocks in [first, last]. */
static void copy_set(struct copied *c, const struct waiting_events *w, const struct run_event_row *from,
                     int64_t first, int64_t last)
{
    const struct run_waiting *r = waiting_of_run(w, from->run);
    for (size_t i = r ? run_waiting_from(r, from->seq) : 0; r && i < r->count && c->count < c->max; i++)
        if (r->events[i]->block >= first && r->events[i]->block <= last)
            copy_one(c, r->events[i]);
}

/* --- what a reader sees ---------------------------------------------------------------------------- */

static bool put_own(int64_t block, int64_t run, int64_t seq, struct str packed, void *arg)
{
    struct run_event_row row;
    return waiting_row(run, seq, packed, &row) && waiting_put(arg, run, seq, block, packed);
}

/* The blocks of this snapshot, into a set of the reader's own. */
static enum err_code load_own(struct sqlite_reader *r, struct err *err)
{
    waiting_free(&r->own_events);
    enum err_code code = event_blocks_each(r->connection.db, r->event_blocks, put_own, &r->own_events, err);
    r->has_own_events = code == ERR_OK;
    return code;
}

static enum err_code read_span(struct sqlite_reader *r, int64_t *ret_first, int64_t *ret_last,
                               struct err *err)
{
    int rc = sqlite3_step(r->event_span);
    *ret_first = rc == SQLITE_ROW ? sqlite3_column_int64(r->event_span, 0) : 0;
    *ret_last = rc == SQLITE_ROW ? sqlite3_column_int64(r->event_span, 1) : 0;
    sqlite3_reset(r->event_span);
    return rc == SQLITE_ROW ? ERR_OK : sqlite_err(r->connection.db, rc, "event_packs", err);
}

/* False: the snapshot has blocks that are not in memory any more. */
static bool copy_of_writer(struct sqlite_events *e, struct copied *c, const struct run_event_row *from,
                           int64_t first, int64_t last)
{
    pthread_mutex_lock(&e->lock);
    bool held = first >= e->held_from;
    if (held) {
        copy_set(c, &e->old, from, first, last);
        copy_set(c, &e->young, from, first, last);
    }
    pthread_mutex_unlock(&e->lock);
    return held;
}

static enum err_code copy_waiting(struct sqlite_reader *r, const struct run_event_row *from, struct copied *c,
                                  struct err *err)
{
    int64_t first, last;
    if (!r->has_own_events) {
        if (read_span(r, &first, &last, err) != ERR_OK)
            return err->code;
        struct sqlite_store *s = (struct sqlite_store *)r->base.store;
        if (!last || (s && copy_of_writer(&s->events, c, from, first, last)))
            return ERR_OK;
        if (load_own(r, err) != ERR_OK)
            return err->code;
    }
    copy_set(c, &r->own_events, from, 0, INT64_MAX);
    return ERR_OK;
}

/* --- one of them, or some of a run ----------------------------------------------------------------- */

static void take_texts(struct run_event_row *row, struct arena *a)
{
    const struct table *t = &table_run_event_row;
    for (unsigned i = t->key_count; a && i < t->column_count; i++) {
        struct str *s = (struct str *)(void *)((char *)row + t->columns[i].offset);
        if (t->columns[i].type != COLUMN_INT && s->ptr)
            *s = arena_str(a, *s);
    }
}

static enum err_code fetch(struct sqlite_connection *c, const struct copied *waiting,
                           struct run_event_row *row, struct arena *a, bool *ret_found, struct err *err)
{
    *ret_found = waiting->count && waiting->list[0].seq == row->seq;
    if (!*ret_found)
        return rows_fetch(c, &table_run_event_row, row, a, ret_found, err);
    bool whole = copied_row(waiting, 0, row->run, row);
    MUST(whole);
    take_texts(row, a);
    return ERR_OK;
}

struct laid_over {
    const struct copied *waiting;
    int64_t run;
    size_t at, left; /* the next one that waits; how many more are to be told */
    store_row_fn *fn;
    void *arg;
    bool stopped;
};

static bool tell(struct laid_over *l, const struct run_event_row *row)
{
    l->stopped = !l->left || !l->fn(row, l->arg) || --l->left == 0;
    return !l->stopped;
}

static bool tell_waiting(struct laid_over *l)
{
    struct run_event_row row;
    bool whole = copied_row(l->waiting, l->at++, l->run, &row);
    MUST(whole);
    return tell(l, &row);
}

/* Those that wait and come before a merged one; one that is both is told once. */
static bool tell_merged(const void *row, void *arg)
{
    struct laid_over *l = arg;
    const struct run_event_row *merged = row;
    for (; l->at < l->waiting->count && l->waiting->list[l->at].seq < merged->seq;)
        if (!tell_waiting(l))
            return false;
    l->at += l->at < l->waiting->count && l->waiting->list[l->at].seq == merged->seq;
    return tell(l, merged);
}

static enum err_code range(struct sqlite_connection *c, const struct copied *waiting,
                           const struct run_event_row *from, size_t max, store_row_fn *fn, void *arg,
                           struct err *err)
{
    struct laid_over l = {waiting, from->run, 0, max, fn, arg, !max};
    enum err_code code = rows_range(c, &table_run_event_row, from, max, tell_merged, &l, err);
    while (code == ERR_OK && !l.stopped && l.at < waiting->count)
        (void)tell_waiting(&l);
    return code;
}

enum err_code events_fetch(struct sqlite_reader *r, struct run_event_row *row, struct arena *a,
                           bool *ret_found, struct err *err)
{
    struct copied waiting = {.max = 1};
    enum err_code code = copy_waiting(r, row, &waiting, err);
    if (code == ERR_OK)
        code = fetch(&r->connection, &waiting, row, a, ret_found, err);
    copied_free(&waiting);
    return code;
}

enum err_code events_range(struct sqlite_reader *r, const struct run_event_row *from, size_t max,
                           store_row_fn *fn, void *arg, struct err *err)
{
    struct copied waiting = {.max = max};
    enum err_code code = copy_waiting(r, from, &waiting, err);
    if (code == ERR_OK)
        code = range(&r->connection, &waiting, from, max, fn, arg, err);
    copied_free(&waiting);
    return code;
}

enum err_code events_of_writer(struct sqlite_store *s, struct run_event_row *row, struct arena *a,
                               bool *ret_found, struct err *err)
{
    struct copied waiting = {.max = 1};
    copy_set(&waiting, &s->events.old, row, 0, INT64_MAX);
    if (!waiting.count || waiting.list[0].seq != row->seq) {
        waiting.count = waiting.bytes.len = 0;
        copy_set(&waiting, &s->events.young, row, 0, INT64_MAX);
    }
    enum err_code code = fetch(&s->writer, &waiting, row, a, ret_found, err);
    copied_free(&waiting);
    return code;
}

enum err_code events_range_of_writer(struct sqlite_store *s, const struct run_event_row *from, size_t max,
                                     store_row_fn *fn, void *arg, struct err *err)
{
    struct copied waiting = {.max = max};
    copy_set(&waiting, &s->events.old, from, 0, INT64_MAX);
    copy_set(&waiting, &s->events.young, from, 0, INT64_MAX);
    enum err_code code = range(&s->writer, &waiting, from, max, fn, arg, err);
    copied_free(&waiting);
    return code;
}

/* --- all ------------------------------------------------------------------------------------------- */

struct all {
    const struct run_waiting **order;
    size_t run_count, run, event;
    store_row_fn *fn;
    void *arg;
    bool stopped;
};

/* The next one that waits; NULL: none is left. */
static const struct waiting_event *next_waiting(struct all *l)
{
    while (l->run < l->run_count && l->event == l->order[l->run]->count) {
        l->run++;
        l->event = 0;
    }
    return l->run < l->run_count ? l->order[l->run]->events[l->event] : NULL;
}

static bool tell_next(struct all *l)
{
    const struct waiting_event *e = next_waiting(l);
    struct run_event_row row;
    bool whole = waiting_row(l->order[l->run]->run, e->seq, (struct str){e->packed, e->bytes}, &row);
    MUST(whole);
    l->event++;
    l->stopped = !l->fn(&row, l->arg);
    return !l->stopped;
}

static bool tell_all_merged(const void *row, void *arg)
{
    struct all *l = arg;
    const struct run_event_row *merged = row;
    const struct waiting_event *e;
    while ((e = next_waiting(l))) {
        int64_t run = l->order[l->run]->run;
        if (run > merged->run || (run == merged->run && e->seq > merged->seq))
            break;
        if (run == merged->run && e->seq == merged->seq)
            l->event++; /* it is both */
        else if (!tell_next(l))
            return false;
    }
    l->stopped = !l->fn(merged, l->arg);
    return !l->stopped;
}

enum err_code events_scan(struct sqlite_reader *r, store_row_fn *fn, void *arg, struct err *err)
{
    if (!r->has_own_events && load_own(r, err) != ERR_OK)
        return err->code;
    struct all l = {.order = waiting_in_order(&r->own_events),
                    .run_count = r->own_events.by_run.count,
                    .fn = fn,
                    .arg = arg};
    enum err_code code = rows_scan(&r->connection, &table_run_event_row, tell_all_merged, &l, err);
    while (code == ERR_OK && !l.stopped && next_waiting(&l))
        (void)tell_next(&l);
    free(l.order);
    return code;
}
